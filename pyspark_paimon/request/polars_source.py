"""A scan as a polars LazyFrame.

The plan uses columns, limits and conditions. Polars does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from paimon_base.errors import PaimonError
from pyspark_paimon.filter.bind import bind
from pyspark_paimon.filter.from_polars import polars_condition
from pyspark_paimon.request.scan_mode import ScanSource

_Read = Callable[[list[str] | None, pl.Expr | None, int | None, int | None], Iterator[pl.DataFrame]]


def lazy_frame(scan: ScanSource) -> pl.LazyFrame:
    """Return a scan as a LazyFrame, read when polars collects."""
    schema = pl.DataFrame(scan.schema.empty_table()).schema
    return register_io_source(_source(scan), schema=schema)


def _source(scan: ScanSource) -> _Read:
    def read(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,  # noqa: ARG001  # the files determine the batches
    ) -> Iterator[pl.DataFrame]:
        current = scan
        result_columns = with_columns or scan.schema.names
        if predicate is not None:
            current = _narrow(current, predicate)
            needed = set(predicate.meta.root_names())
            current = current.projected([name for name in scan.schema.names if name in needed or name in result_columns])
        else:
            current = current.projected(list(result_columns))
            current = current if n_rows is None else current.limited(n_rows)
        left = n_rows
        for batch in current.to_batches():
            frame = pl.DataFrame(pa.Table.from_batches([batch]))
            # The scan may return more rows: it applies only the conditions that it can translate.
            frame = (frame if predicate is None else frame.filter(predicate)).select(result_columns)
            yield frame if left is None else frame.head(left)
            left = None if left is None else left - frame.height
            if left is not None and left <= 0:
                return

    return read


def _narrow(scan: ScanSource, predicate: pl.Expr) -> ScanSource:
    types = {name: kind for name, kind in scan.table_schema.column_types.items() if name in scan.schema.names}
    condition = polars_condition(predicate, types)
    if condition is None:
        return scan
    try:
        return scan.narrowed(bind(condition, types))
    except PaimonError:  # a scan with a limit, or a literal that the planner does not support
        return scan
