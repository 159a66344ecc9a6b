"""Reads of incremental splits, with row kinds.

Returns rows as written, or the difference of two states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import TRUE, Predicate, columns_of
from lsm.arrow.limit import limit_rows
from lsm.arrow.row_kind import ROW_KIND, kind_texts, retracts
from lsm.incremental.planner import IncrementalMode, IncrementalSplit
from lsm.keys.encoding import one_array
from lsm.keys.sort import INSERT, VALUE_KIND, SortKey
from lsm.merge.alignment import align_runs
from lsm.merge.row_diff import row_diff
from lsm.read.data_file import DataFileRead
from lsm.read.file_filter import FileFilter
from lsm.read.metrics import ReadReport
from lsm.read.split import read_split
from lsm.scan.splits import DataSplit
from manifest.entry.data_file import DataFileMeta
from manifest.store import FileStore
from paimon_base.errors import UnknownColumn


def read_incremental(
    store: FileStore,
    split: IncrementalSplit,
    *,
    columns: Sequence[str],
    predicate: Predicate | None = None,
    limit: int | None = None,
    report: ReadReport | None = None,
) -> Iterator[Any]:
    """Yield the changes of a split.

    Args:
        store: Store of the table. Its schema defines the result, whatever the schemas of the files.
        split: Split of an ``IncrementalPlanner``'s plan.
        columns: Names to return, in order. ``_row_kind`` is the kind as text. (): rows without columns, to count them.
        predicate: Exact filter, applied to each row separately.
        limit: Maximum number of rows.
        report: Counters to add to.

    Yields:
        Non-empty record batches. The rows of a key are in order of the changes.

    Raises:
        UnknownColumn: A column does not exist.
        CorruptFile: A file is missing or does not match the metadata; the message names it.
    """
    for name in (*columns, *columns_of(predicate)):
        if name not in store.schema.column_types and name != ROW_KIND:
            raise UnknownColumn(name, tuple(store.schema.names))
    counters = ReadReport() if report is None else report
    condition = TRUE if predicate is None else predicate
    changes = (
        _difference(store, split, condition, counters)
        if split.mode is IncrementalMode.DIFF
        else _additions(store, split, columns, condition, counters)
    )
    if split.retracts is not None:
        changes = (rows for rows in (_of_kind(rows, retracting=split.retracts) for rows in changes) if rows.num_rows)
    for batch in limit_rows((batch for rows in changes for batch in _in_batches(rows, columns)), limit):
        counters.rows_returned += batch.num_rows
        yield batch


def _of_kind(rows: Any, *, retracting: bool) -> Any:
    """Return the ``-U`` and ``-D`` rows, or the others."""
    return rows.filter(pa.array(retracts(rows.column(VALUE_KIND)) == retracting))


def _additions(
    store: FileStore, split: IncrementalSplit, columns: Sequence[str], predicate: Predicate, report: ReadReport
) -> Iterator[Any]:
    """Yield every physical row of the files, in file order."""
    system = (VALUE_KIND,) if store.schema.kind.has_row_kinds else ()
    values = tuple(name for name in columns if name != ROW_KIND)
    file_filter = FileFilter(store, predicate)
    for file in split.files:
        read = DataFileRead(store, split.partition, split.bucket, file, (*values, *system), file_filter, report=report)
        for batch in read.batches():
            rows = batch if system else batch.append_column(VALUE_KIND, pa.array(np.full(batch.num_rows, INSERT, np.int8)))
            if rows.num_rows:
                yield rows


def _difference(store: FileStore, split: IncrementalSplit, predicate: Predicate, report: ReadReport) -> Iterator[Any]:
    """Yield the changes between the states, in key order.

    Memory is bounded.
    """
    schema = store.schema
    key = SortKey(tuple(schema.trimmed_primary_keys))
    sides = [(split.before, split.before_deletion_files), (split.files, split.deletion_files)]
    states = [_state(store, split, files, vectors, report) for files, vectors in sides]
    empty = pa.schema([*schema.arrow, pa.field(VALUE_KIND, pa.int8())]).empty_table()
    for pieces in align_runs(states, key):
        by_side = dict(pieces)
        changes = row_diff(by_side.get(0, empty), by_side.get(1, empty), key, compared=schema.names)
        yield changes if predicate == TRUE else changes.filter(mask(predicate, changes, schema.column_types))


def _state(store: FileStore, split: IncrementalSplit, files: Sequence[DataFileMeta], vectors: Any, report: ReadReport) -> Iterator[Any]:
    """Yield the visible rows of a section's files, by key."""
    if not files:
        return
    state = DataSplit(
        partition=split.partition,
        bucket=split.bucket,
        total_buckets=split.total_buckets,
        files=tuple(files),
        raw_convertible=False,
        deletion_files=vectors,
        snapshot_id=split.snapshot_id,
    )
    state_report = ReadReport()
    for batch in read_split(store, state, columns=store.schema.names, report=state_report, in_key_order=True):
        yield pa.Table.from_batches([batch.append_column(VALUE_KIND, pa.array(np.full(batch.num_rows, INSERT, np.int8)))])
    state_report.rows_returned = 0
    report.merge(state_report)


def _in_batches(rows: Any, columns: Sequence[str]) -> Iterator[Any]:
    if not columns:
        yield pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows.num_rows, [None]))
        return
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    if ROW_KIND in columns:
        kinds = one_array(table.column(VALUE_KIND)).to_numpy(zero_copy_only=False)
        table = table.append_column(pa.field(ROW_KIND, pa.string(), nullable=False), kind_texts(kinds))
    yield from table.select(list(columns)).to_batches()
