"""Arguments of ``aggregate`` and its result as a table.

The result has one row, or a row for each value of partition columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa

from lsm.aggregate.names import AGGREGATES, AggregateName
from lsm.aggregate.summary import RowSummary, can_aggregate
from manifest.stats.column_stats import PartitionType
from paimon_base.errors import InvalidArgument, OutOfRange
from pyspark_paimon.filter.scope import ColumnScope, stored_name
from sparkexpr.expression.tree import Expression
from sparkexpr.values.column_type import FLOATS, WITH_PARTS, ColumnType, Kind, Plain
from sparkexpr.values.float_order import total_order_key
from sparkexpr.values.plain_value import is_plain, literal_array

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema

Wanted: TypeAlias = Mapping[str, str | Sequence[str]]
Function: TypeAlias = AggregateName | Literal["avg", "count_distinct"]
"""Function of a result column. An average is computed of the sum and the count, distinct values are those of groups."""
DISTINCT: Final = "count_distinct"
FUNCTIONS: tuple[Function, ...] = (*AGGREGATES, "avg", DISTINCT)
_SYNONYMS: Mapping[str, Function] = {
    "mean": "avg",
    "average": "avg",
    "minimum": "min",
    "maximum": "max",
    "total": "sum",
    "nunique": DISTINCT,
}
UNGROUPED = WITH_PARTS | {Kind.BLOB, Kind.GEOMETRY, Kind.GEOGRAPHY}
"""Kinds whose values are not compared."""
_OF_AVERAGE: tuple[AggregateName, ...] = ("sum", "count")
_MORE_SCALE = 4
"""Additional digits of an average of decimals, as in Spark."""
_MOST_DIGITS = 38
_MORE_DIGITS = 10
"""Additional digits of a sum of decimals, as in Spark."""


@dataclass(frozen=True)
class Measures:
    """Functions of ``aggregate``, by the name of their value.

    functions: Functions of each value.
    values: Expressions on stored columns.
    row_counts: Names of numbers of rows.

    >>> from pyspark_paimon.example import cities
    >>> scope = ColumnScope(cities().table_schema)
    >>> measures = Measures.of({"n": "count", "ID": ["min", "max"]}, scope)
    >>> measures.functions, measures.row_counts
    ({'id': ('min', 'max')}, ('n',))
    """

    functions: Mapping[str, tuple[Function, ...]]
    values: Mapping[str, Expression]
    row_counts: tuple[str, ...] = ()

    @classmethod
    def of(cls, functions_by_column: object, scope: ColumnScope) -> Measures:
        """Resolve names of columns and of parts of columns. ``count`` of a name that means none counts rows.

        Raises ``InvalidArgument`` for an unknown aggregate or one that the type does not support, ``UnknownColumn``, ``InvalidFilter``.
        """
        if not isinstance(functions_by_column, Mapping) or not functions_by_column:
            raise InvalidArgument(
                f"aggregate must be a dict like {{'n': 'count', 'amount': ['min', 'max', 'sum']}}, not {functions_by_column!r:.60}"
            )
        by_name: dict[str, tuple[Function, ...]] = {}
        values: dict[str, Expression] = {}
        row_counts = []
        for column_name, texts in functions_by_column.items():
            functions = _functions(column_name, texts)
            column = scope.find(str(column_name)) if functions == ("count",) else scope.column(str(column_name))
            if column is None:
                row_counts.append(str(column_name))
                continue
            name, value = column
            for function in functions:
                ungrouped = function == DISTINCT and value.type.kind in UNGROUPED
                if ungrouped or not all(can_aggregate(part, value.type.kind) for part in _parts(function)):
                    raise InvalidArgument(f"aggregate: column '{name}' of type {scope.type_text(value)} has no {function}")
            by_name[name] = tuple(dict.fromkeys((*by_name.get(name, ()), *functions)))
            values[name] = value
        return cls(by_name, values, tuple(row_counts))

    @property
    def stored(self) -> Mapping[str, str] | None:
        """Stored column of each value. None: a value is computed, or a part of a column."""
        names = {name: stored_name(value) for name, value in self.values.items()}
        return None if None in names.values() else {name: column for name, column in names.items() if column is not None}

    @property
    def distinct(self) -> list[str]:
        """Names of values whose distinct values are counted."""
        return [name for name, functions in self.functions.items() if DISTINCT in functions]


def computed_aggregates(functions: Iterable[tuple[str, Sequence[Function]]]) -> dict[str, tuple[AggregateName, ...]]:
    """Return the aggregates that functions need, by the name of their column or value.

    >>> computed_aggregates([("n", ("avg", "sum")), ("s", ("count_distinct",)), ("n", ("min",))])
    {'n': ('sum', 'count', 'min')}
    """
    needed: dict[str, dict[AggregateName, None]] = {}
    for name, column_functions in functions:
        parts = [part for function in column_functions for part in _parts(function)]
        if parts:
            needed.setdefault(name, {}).update(dict.fromkeys(parts))
    return {name: tuple(parts) for name, parts in needed.items()}


def _parts(function: Function) -> tuple[AggregateName, ...]:
    if function == DISTINCT:
        return ()
    return _OF_AVERAGE if function == "avg" else (function,)


def _functions(name: object, value: object) -> tuple[Function, ...]:
    function_names = [value] if isinstance(value, str) else list(value) if isinstance(value, Sequence) else []
    if not function_names:
        raise InvalidArgument(f"aggregate: '{name}' must be one of {', '.join(FUNCTIONS)}, or a list of them, not {value!r:.60}")
    return tuple(_function(name, function_name) for function_name in function_names)


def _function(name: object, value: object) -> Function:
    if isinstance(value, str):
        function_name = _SYNONYMS.get(value.lower(), value.lower())
        for function in FUNCTIONS:
            if function_name == function:
                return function
    raise InvalidArgument(f"aggregate: {value!r:.40} of '{name}' is unknown; use one of {', '.join(FUNCTIONS)}")


def partitions_of(by: object, scope: ColumnScope, schema: TableSchema) -> tuple[str, ...] | None:
    """Return the partition columns to group by. None: other columns or expressions are among the keys."""
    names = [by] if isinstance(by, str) else by or ()
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return None
    keys = dict(column for column in map(scope.find, names) if column is not None)
    partitions = all(name in schema.partition_keys and stored_name(value) == name for name, value in keys.items())
    return tuple(keys) if partitions and len(keys) == len(set(names)) else None


def aggregate_table(
    summary_by_partition: Mapping[bytes, RowSummary],
    measures: Measures,
    by: Sequence[str],
    schema: TableSchema,
    *,
    distinct: Mapping[str, pa.Array],
) -> pa.Table:
    """Return the aggregates of stored columns as a table.

    Columns: ``by``, row counts, then ``name_function`` for each aggregate, in the requested order.
    ``distinct``: numbers of distinct values by name.
    Raises ``OutOfRange``.
    """
    columns = measures.stored or {}
    types = {column.name: column.type for column in schema.fields}
    functions_by_column = computed_aggregates((columns[name], functions) for name, functions in measures.functions.items())
    groups: dict[tuple[Plain, ...], RowSummary] = (
        _group_rows(summary_by_partition, by, schema) if by else {(): _whole(summary_by_partition, functions_by_column)}
    )
    keys = sorted(groups, key=lambda values: tuple(map(total_order_key, values)))
    names: list[str] = [*by, *measures.row_counts]
    arrays: list[pa.Array] = [literal_array([key[index] for key in keys], types[name].column_type) for index, name in enumerate(by)]
    arrays += [pa.array([groups[key].rows for key in keys], pa.int64()) for _ in measures.row_counts]
    for name, functions in measures.functions.items():
        for function in functions:
            names.append(f"{name}_{function}")
            if function == DISTINCT:
                arrays.append(distinct[name])
                continue
            summaries, column_type = [groups[key].columns[columns[name]] for key in keys], types[columns[name]].column_type
            if function == "avg":
                arrays.append(averages([(summary.value("sum"), summary.value("count")) for summary in summaries], column_type))
            else:
                values = [summary.value(function) for summary in summaries]
                arrays.append(_values(values, function, name, column_type if function != "count" else None))
    return named_table(arrays, names)


def named_table(arrays: Sequence[Any], names: Sequence[str]) -> pa.Table:
    """Return the result of ``aggregate``. Raises ``InvalidArgument`` for a repeated name."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidArgument(f"aggregate: two result columns have the name '{twice[0]}'")
    return pa.table(list(arrays), names=list(names))


def _group_rows(
    summary_by_partition: Mapping[bytes, RowSummary], by: Sequence[str], schema: TableSchema
) -> dict[tuple[Plain, ...], RowSummary]:
    partition = PartitionType(tuple(schema.partition_keys), tuple(schema.field(name).type for name in schema.partition_keys))
    groups: dict[tuple[Plain, ...], RowSummary] = {}
    for row, summary in summary_by_partition.items():
        values = dict(zip(schema.partition_keys, partition.decode(row), strict=True))
        key = tuple(values[name] for name in by)
        if key in groups:
            groups[key].merge(summary)
        elif summary.rows:
            groups[key] = summary
    return groups


def _whole(summary_by_partition: Mapping[bytes, RowSummary], functions_by_column: Mapping[str, Sequence[AggregateName]]) -> RowSummary:
    total = RowSummary.of(functions_by_column, {})
    for summary in summary_by_partition.values():
        total.merge(summary)
    return total


def _values(values: Sequence[Plain], function: AggregateName, column: str, column_type: ColumnType | None) -> pa.Array:
    if column_type is None:
        return pa.array(values, pa.int64())
    if function == "sum":
        column_type = sum_type(column_type)
        wrong = next((value for value in values if not is_plain(value, column_type)), None)
        if wrong is not None and column_type.kind not in FLOATS:
            raise _too_large(wrong, column, column_type)
        values = [float(value) if column_type.kind in FLOATS and isinstance(value, int | float) else value for value in values]
    return literal_array(values, column_type)


def too_large(total: int, column: str, column_type: ColumnType) -> OutOfRange:
    """Return the error of a sum that does not fit the type of sums of a column."""
    return _too_large(total, column, sum_type(column_type))


def _too_large(total: Plain, column: str, sum_type: ColumnType) -> OutOfRange:
    return OutOfRange(f"the sum of column '{column}' is {_text(total, sum_type)}, too large for {_name(sum_type)}: sum a wider type")


def averages(sums_and_counts: Sequence[tuple[Any, Any]], column_type: ColumnType) -> pa.Array:
    """Return averages: DOUBLE, or DECIMAL with four more digits, rounded half away from zero."""
    if column_type.kind is not Kind.DECIMAL:
        return pa.array([total / count if count else None for total, count in sums_and_counts], pa.float64())
    scale = min(_MOST_DIGITS, column_type.scale + _MORE_SCALE)
    precision = min(_MOST_DIGITS, column_type.precision + _MORE_SCALE)
    scale = min(scale, max(column_type.scale, precision - (column_type.precision - column_type.scale)))
    factor = 10 ** (scale - column_type.scale)
    rounded = [
        None if not count else (1 if total >= 0 else -1) * ((2 * abs(total) * factor + count) // (2 * count))
        for total, count in sums_and_counts
    ]
    return literal_array(rounded, ColumnType(Kind.DECIMAL, precision=precision, scale=scale))


def sum_type(column_type: ColumnType) -> ColumnType:
    """Return the type of a sum, as in Spark."""
    if column_type.kind in FLOATS:
        return ColumnType(Kind.DOUBLE)
    if column_type.kind is Kind.DECIMAL:
        return ColumnType(Kind.DECIMAL, precision=min(_MOST_DIGITS, column_type.precision + _MORE_DIGITS), scale=column_type.scale)
    return ColumnType(Kind.BIGINT)


def _name(column_type: ColumnType) -> str:
    return f"DECIMAL({column_type.precision}, {column_type.scale})" if column_type.kind is Kind.DECIMAL else str(column_type.kind)


def _text(value: Plain, column_type: ColumnType) -> str:
    return f"{value!r}" + (f"E-{column_type.scale}" if column_type.scale else "")
