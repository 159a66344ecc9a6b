"""Sorted scans in this process and in Spark.

Parses ``order_by``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from fileindex.predicate.tree import TRUE
from lsm.keys.order_by import RowOrder, TopRows
from lsm.keys.sort import SortColumn
from manifest.io.threads import map_in_threads
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import arrow_schema
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.jobs.incremental import scan_fields
from pyspark_paimon.request.backend import ScanRequest

if TYPE_CHECKING:
    from lsm.read.metrics import ReadReport
    from lsm.read.top_n import TopRead
    from lsm.scan.splits import DataSplit
    from manifest.store import FileStore

_ITEM = re.compile(
    r"\s*(?:`((?:[^`]|``)+)`|([^\s,`]+))(?:\s+(ASC|DESC))?(?:\s+NULLS\s+(FIRST|LAST))?\s*(?:,|$)",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[^\s,`]+")


def sort_columns(order_by: object, schema: TableSchema) -> tuple[SortColumn, ...]:
    """Parse an ``ORDER BY`` text or a sequence of items.

    Returns () for None.
    Raises ``InvalidArgument`` for an invalid order or a column type without order, ``UnknownColumn``.

    >>> from pyspark_paimon.example import cities
    >>> sort_columns("city DESC NULLS FIRST, `id`", cities().table_schema)[0]
    SortColumn(name='city', ascending=False, nulls_first=True)
    """
    if order_by is None:
        return ()
    items = list(order_by) if isinstance(order_by, Sequence) and not isinstance(order_by, str) else [order_by]
    found: dict[str, SortColumn] = {}
    for quoted, plain, direction, nulls in (part for item in items for part in _parts(item)):
        name = resolve(quoted.replace("``", "`") if quoted else plain, schema.column_types)
        if schema.field(name).type.is_nested:
            raise InvalidArgument(f"order_by: column '{name}' of type {schema.field(name).type} has no order")
        column = SortColumn(name, direction.upper() != "DESC", nulls.upper() == "FIRST" if nulls else None)
        found.setdefault(name, column)  # a repeated column does not change the order
    if not found:
        raise InvalidArgument("order_by is empty: give at least one column")
    return tuple(found.values())


def _parts(text: Any) -> Iterator[tuple[str, str, str, str]]:
    if not isinstance(text, str):
        raise InvalidArgument(f"order_by must be text such as 'price DESC NULLS LAST, id', or a sequence of such items, not {text!r}")
    at = 0
    while at < len(text):
        match = _ITEM.match(text, at)
        if match is None:
            raise InvalidArgument(f"order_by: '{text[at:].strip()}' must be 'column [ASC | DESC] [NULLS FIRST | LAST]'")
        yield match[1] or "", match[2] or "", match[3] or "", match[4] or ""
        at = match.end()


def order_text(columns: Sequence[SortColumn]) -> str:
    """Return an order as text for ``sort_columns``.

    >>> order_text([SortColumn("price", ascending=False), SortColumn("id", nulls_first=False)])
    'price DESC, id NULLS LAST'
    """
    return ", ".join(map(_item_text, columns))


def _item_text(column: SortColumn) -> str:
    name = column.name if _PLAIN.fullmatch(column.name) else quote_name(column.name)
    direction = "" if column.ascending else " DESC"
    nulls = "" if column.nulls_first == column.ascending else " NULLS FIRST" if column.nulls_first else " NULLS LAST"
    return f"{name}{direction}{nulls}"


def candidates(request: ScanRequest) -> ScanRequest:
    """Return the request with its sort columns added.

    The added columns come last and are not in the result.
    """
    missing = (column.name for column in request.order_by if column.name not in request.columns)
    return request.model_copy(update={"columns": (*request.columns, *missing)})


def row_order(request: ScanRequest) -> RowOrder:
    """Return the order of a sorted scan."""
    return RowOrder(request.order_by)


def first_rows(
    store: FileStore, request: ScanRequest, splits: Sequence[DataSplit], threads: int, report: ReadReport | None = None
) -> pa.Table:
    """Return the first rows of a request with a limit.

    ``request`` includes its sort columns (see ``candidates``). The rows are sorted.
    """
    from lsm.read.metrics import ReadReport  # noqa: PLC0415  # a client of a server needs no storage engine
    from lsm.read.top_n import TopRead  # noqa: PLC0415  # as above

    assert request.limit is not None
    tree = request.predicate
    read = TopRead(store, request.columns, TRUE if tree is None else tree, row_order(request), request.limit)
    units = read.units(splits)
    reports = [ReadReport() for _ in units]
    map_in_threads(partial(_read_unit, read), list(zip(units, reports, strict=True)), threads)
    rows = read.top.rows(_schema(store.schema, request))
    if report is not None:
        for own in reports:
            report.merge(own)
        report.rows_returned += rows.num_rows - sum(own.rows_returned for own in reports)
    return rows


def sort_rows(batches: Iterable[pa.RecordBatch], request: ScanRequest, schema: TableSchema) -> pa.Table:
    """Sort and limit rows that arrive unordered.

    The rows include the sort columns.
    """
    order = row_order(request)
    if request.limit is None:
        return order.sorted(pa.Table.from_batches(batches, _schema(schema, request)))
    top = TopRows(order, request.limit)
    for batch in batches:
        top.add(batch)
    return top.rows(_schema(schema, request))


def sort_frame(frame: Any, request: ScanRequest) -> Any:
    """Sort and limit a Spark DataFrame of a request's candidates.

    Drops columns that are used only for sorting.
    """
    keys = []
    for column in request.order_by:
        values = frame[quote_name(column.name)]
        by = (values.asc_nulls_first, values.asc_nulls_last) if column.ascending else (values.desc_nulls_first, values.desc_nulls_last)
        keys.append(by[0]() if column.nulls_first else by[1]())
    ordered = frame.orderBy(*keys)
    limited = ordered if request.limit is None else ordered.limit(request.limit)
    return limited.select(*(quote_name(name) for name in request.columns))


def _read_unit(read: TopRead, unit: tuple[DataSplit, ReadReport]) -> None:
    read.read(*unit)


def _schema(schema: TableSchema, request: ScanRequest) -> pa.Schema:
    return arrow_schema(scan_fields(schema, request.columns))


__all__ = ["candidates", "first_rows", "order_text", "row_order", "sort_columns", "sort_frame", "sort_rows"]
