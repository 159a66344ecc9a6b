"""The rows of a stream's batch: changes with their kinds, or only the rows that came to be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.row_kind import ROW_KIND
from lsm.incremental.planner import IncrementalSplit, split_from_json
from lsm.incremental.read import read_incremental
from lsm.read.split import read_split

if TYPE_CHECKING:
    from lsm.scan.splits import DataSplit
    from manifest.store import FileStore
    from pyspark_paimon.request.backend import ScanRequest

_CAME_TO_BE = pa.array(["+I", "+U"])


def stream_rows(store: FileStore, request: ScanRequest, split: DataSplit | str) -> Iterator[pa.RecordBatch]:
    """The rows of one split of a ``StreamScan``'s plan, in the columns of ``request``; those of a key in the order in which they happened.

    Without the column ``_row_kind`` deleted rows and the old rows of updates are left out, for nothing would tell them apart.
    """
    parsed = split_from_json(split) if isinstance(split, str) else split
    if not isinstance(parsed, IncrementalSplit):
        return _state_rows(store, request, parsed)
    if ROW_KIND in request.columns:
        return read_incremental(store, parsed, columns=request.columns, predicate=request.predicate)
    return _new_rows(store, request, parsed)


def _state_rows(store: FileStore, request: ScanRequest, split: DataSplit) -> Iterator[pa.RecordBatch]:
    """Rows of a whole state: each was inserted, as far as the stream knows."""
    values = tuple(name for name in request.columns if name != ROW_KIND)
    for batch in read_split(store, split, columns=values, predicate=request.predicate):
        if ROW_KIND in request.columns:
            kinds = pa.repeat(pa.scalar("+I"), batch.num_rows)
            whole = batch.append_column(pa.field(ROW_KIND, pa.string(), nullable=False), kinds)
            yield whole.select(list(request.columns))
        else:
            yield batch


def _new_rows(store: FileStore, request: ScanRequest, split: IncrementalSplit) -> Iterator[pa.RecordBatch]:
    for batch in read_incremental(store, split, columns=(*request.columns, ROW_KIND), predicate=request.predicate):
        kept = batch.filter(pc.is_in(batch.column(ROW_KIND), value_set=_CAME_TO_BE))
        if kept.num_rows:
            yield kept.select(list(request.columns))


__all__ = ["stream_rows"]
