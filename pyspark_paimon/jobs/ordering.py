"""Sorted scans in this process and in Spark.

Parses ``order_by``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from fileindex.predicate.tree import TRUE
from lsm.keys.order_by import RowOrder, TopRows
from lsm.keys.sort import SortColumn
from manifest.io.threads import map_in_threads
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import arrow_schema
from paimon_base.errors import InvalidArgument
from pyspark_paimon.filter.scope import ColumnScope, stored_name
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.jobs.incremental import scan_fields
from pyspark_paimon.request.requests import ScanRequest
from sparkexpr.expression.tree import Expression
from sparkexpr.values.column_type import WITH_PARTS

if TYPE_CHECKING:
    from lsm.read.metrics import ReadReport
    from lsm.read.top_n import TopRead
    from lsm.scan.splits import DataSplit
    from manifest.store import FileStore

_ITEM = re.compile(
    r"\s*(?:`((?:[^`]|``)+)`(?=[\s,]|$)|((?:[^\s,`]|`(?:[^`]|``)+`)+))(?:\s+(ASC|DESC))?(?:\s+NULLS\s+(FIRST|LAST))?\s*(?:,|$)",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[^\s,`.\[(]+")


class SortValue(NamedTuple):
    """Value to sort by, and its name and direction."""

    column: SortColumn
    value: Expression


def sort_values(order_by: object, scope: ColumnScope) -> tuple[SortValue, ...]:
    """Parse an ``ORDER BY`` text or a sequence of items: columns, and parts of columns.

    Returns () for None.
    Raises ``InvalidArgument`` for an invalid order or a type without order, and the errors of ``ColumnScope.column``.

    >>> from pyspark_paimon.example import cities
    >>> order = sort_values("city DESC NULLS FIRST, `id`", ColumnScope(cities().table_schema))
    >>> stored_order(order)[0]
    SortColumn(name='city', ascending=False, nulls_first=True)
    """
    if order_by is None:
        return ()
    items = list(order_by) if isinstance(order_by, Sequence) and not isinstance(order_by, str) else [order_by]
    order: dict[str, SortValue] = {}
    for quoted, plain, direction, nulls in (part for item in items for part in _parts(item)):
        name, value = scope.column(f"`{quoted}`" if quoted else plain)
        if value.type.kind in WITH_PARTS:
            raise InvalidArgument(f"order_by: column '{name}' of type {scope.type_text(value)} has no order")
        column = SortColumn(name, direction.upper() != "DESC", nulls.upper() == "FIRST" if nulls else None)
        order.setdefault(name, SortValue(column, value))  # a repeated column does not change the order
    if not order:
        raise InvalidArgument("order_by is empty: give at least one column")
    return tuple(order.values())


def stored_order(order: Sequence[SortValue]) -> tuple[SortColumn, ...] | None:
    """Return the order by stored columns. None: a value is computed, or a part of a column."""
    names = [stored_name(by.value) for by in order]
    return None if None in names else tuple(replace(by.column, name=name) for by, name in zip(order, names, strict=True) if name)


def sort_columns(order_by: object, schema: TableSchema) -> tuple[SortColumn, ...]:
    """Parse an order by whole columns of the table. Raises the errors of ``sort_values``."""
    order = sort_values(order_by, ColumnScope(schema))
    columns = stored_order(order)
    if columns is None:
        part = next(by.column.name for by in order if stored_name(by.value) is None)
        raise InvalidArgument(f"order_by: '{part}' is a part of a column, and these rows are sorted by whole columns only")
    return columns


def _parts(text: Any) -> Iterator[tuple[str, str, str, str]]:
    if not isinstance(text, str):
        raise InvalidArgument(f"order_by must be text such as 'price DESC NULLS LAST, id', or a sequence of such items, not {text!r}")
    offset = 0
    while offset < len(text):
        match = _ITEM.match(text, offset)
        if match is None:
            raise InvalidArgument(f"order_by: '{text[offset:].strip()}' must be 'column [ASC | DESC] [NULLS FIRST | LAST]'")
        yield match[1] or "", match[2] or "", match[3] or "", match[4] or ""
        offset = match.end()


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
        for split_report in reports:
            report.merge(split_report)
        report.rows_returned += rows.num_rows - sum(split_report.rows_returned for split_report in reports)
    return rows


def sort_rows(batches: Iterable[pa.RecordBatch], request: ScanRequest, schema: TableSchema) -> pa.Table:
    """Sort and limit rows that arrive unordered.

    The rows include the sort columns.
    """
    return sort_batches(batches, row_order(request), request.limit, _schema(schema, request))


def sort_batches(batches: Iterable[pa.RecordBatch], order: RowOrder, limit: int | None, schema: pa.Schema) -> pa.Table:
    """Sort and limit batches of an Arrow schema. With a limit, memory holds a few times as many rows."""
    if limit is None:
        return order.sorted(pa.Table.from_batches(batches, schema))
    top = TopRows(order, limit)
    for batch in batches:
        top.add(batch)
    return top.rows(schema)


def sort_frame(frame: Any, order: Sequence[SortColumn], limit: int | None, columns: Sequence[str]) -> Any:
    """Sort and limit a Spark DataFrame that has the sort columns.

    ``columns``: columns of the result.
    """
    keys = []
    for column in order:
        values = frame[quote_name(column.name)]
        by = (values.asc_nulls_first, values.asc_nulls_last) if column.ascending else (values.desc_nulls_first, values.desc_nulls_last)
        keys.append(by[0]() if column.nulls_first else by[1]())
    ordered = frame.orderBy(*keys)
    limited = ordered if limit is None else ordered.limit(limit)
    return limited.select(*(quote_name(name) for name in columns))


def _read_unit(read: TopRead, unit: tuple[DataSplit, ReadReport]) -> None:
    read.read(*unit)


def _schema(schema: TableSchema, request: ScanRequest) -> pa.Schema:
    return arrow_schema(scan_fields(schema, request.columns))
