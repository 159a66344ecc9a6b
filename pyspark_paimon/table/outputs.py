"""Computed columns of a scan: parts of columns and named expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lsm.keys.order_by import RowOrder
from lsm.keys.sort import SortColumn
from manifest.schema.metadata_columns import metadata_names
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument, InvalidFilter
from pyspark_paimon.filter.columns import TARGET, resolve
from pyspark_paimon.filter.parse import bind_value
from pyspark_paimon.filter.scope import ColumnScope, is_part
from pyspark_paimon.jobs.ordering import SortValue, sort_batches, sort_columns, sort_frame, sort_values, stored_order
from sparkexpr.expression.compute import compute
from sparkexpr.expression.nested import column_part
from sparkexpr.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue, column_values
from sparkexpr.values.column_type import WITH_PARTS, ColumnType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTS = frozenset({"item", "get", "element_at", "try_element_at"})
_ORDER = "order by "
"""Prefix of the names of values that only sort the rows."""


@dataclass(frozen=True)
class Outputs:
    """Expressions by name, in the order of the result.

    ``schema``: schema of the table, whose columns they use.
    ``order``: computed values that sort the rows. Empty: the order of the scan.
    ``limit``: number of sorted rows. None: all, or the limit of the scan.

    >>> from pyspark_paimon.example import cities
    >>> outputs = Outputs.of({"name": "upper(city)"}, cities().table_schema)
    >>> outputs.columns, outputs.arrow
    (('city',), name: string)
    """

    schema: TableSchema
    expressions: Mapping[str, Expression]
    order: tuple[SortValue, ...] = ()
    limit: int | None = None

    @classmethod
    def of(cls, columns: Sequence[str] | Mapping[str, Any], schema: TableSchema) -> Outputs:
        """Bind the columns of a scan.

        ``columns``: Names of columns and of parts of columns (``"s.a"``, ``"m['k']"``, ``"ar[0]"``), or expressions by name.
        Raises ``InvalidFilter``, ``UnknownColumn``, ``InvalidArgument``.
        """
        if isinstance(columns, Mapping):
            if wrong := [name for name in columns if type(name) is not str]:
                raise InvalidArgument(f"columns: the names of expressions are texts, not {wrong[0]!r}")
            value_by_name = dict(columns)
        else:
            value_by_name = {name: name for name in columns}
            if len(value_by_name) < len(columns):
                raise InvalidArgument(f"columns has a name twice: {', '.join(columns)}")
        if not value_by_name:
            raise InvalidArgument("columns is empty; use count() for the number of rows")
        values = {name: _bind(name, value, schema) for name, value in value_by_name.items()}
        if isinstance(columns, Mapping):
            return cls(schema, values)
        for name, value in values.items():
            if not is_part(value):
                raise InvalidArgument(f"columns: '{name}' is an expression; give it a name: columns={{'name': {name!r}}}")
        spelled = {value.name if isinstance(value, ColumnValue) and value.key is None else name: value for name, value in values.items()}
        if len(spelled) < len(values):
            raise InvalidArgument(f"columns has a name twice: {', '.join(columns)}")
        return cls(schema, spelled)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that the expressions use, at least one."""
        names = dict.fromkeys(column.name for value in self._computed.values() for column in column_values(value))
        return tuple(names) or self.schema.names[:1]

    @property
    def scope(self) -> ColumnScope:
        """Names that ORDER BY, aggregates and groups of the scan may use."""
        return ColumnScope(self.schema, self.expressions)

    @property
    def _computed(self) -> dict[str, Expression]:
        """Values to compute: those of the result, then those that only sort."""
        return {**self.expressions, **{f"{_ORDER}{position}": by.value for position, by in enumerate(self.order)}}

    @property
    def _sort_columns(self) -> tuple[SortColumn, ...]:
        return tuple(replace(by.column, name=f"{_ORDER}{position}") for position, by in enumerate(self.order))

    @property
    def arrow(self) -> pa.Schema:
        """Arrow schema of the rows."""
        return _arrow_schema(self.expressions, self.schema)

    def projected(self, names: Sequence[str]) -> Outputs:
        """Return some of the columns.

        Raises ``UnknownColumn``.
        """
        types = {name: value.type for name, value in self.expressions.items()}
        return replace(self, expressions={name: self.expressions[name] for name in (resolve(name, types) for name in names)})

    def apply(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Compute the columns of each batch, and sort the rows if they have an order.

        Raises ``FilterFailed`` for a row that has no value.
        """
        rows = self._compute(batches)
        if not self.order:
            return rows
        schema = _arrow_schema(self._computed, self.schema)
        ordered = sort_batches(rows, RowOrder(self._sort_columns), self.limit, schema)
        return iter(ordered.select(list(self.expressions)).to_batches())

    def _compute(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        values = self._computed
        schema = _arrow_schema(values, self.schema)
        for batch in batches:
            arrays = [self._array(value, batch, field.type) for value, field in zip(values.values(), schema, strict=True)]
            yield pa.record_batch(arrays, schema)

    def select(self, frame: DataFrame) -> DataFrame:
        """Return the columns of a Spark frame of the table's columns."""
        from pyspark_paimon.frames.spark_functions import functions_of  # noqa: PLC0415  # needed with Spark only
        from pyspark_paimon.spark.client.expression_sql import row_sql  # noqa: PLC0415  # as above

        expr = functions_of(frame).expr
        computed = frame.alias(TARGET).select(*(expr(row_sql(value)).alias(name) for name, value in self._computed.items()))
        return sort_frame(computed, self._sort_columns, self.limit, tuple(self.expressions)) if self.order else computed

    def _array(self, value: Expression, batch: pa.RecordBatch, arrow_type: pa.DataType) -> pa.Array:
        def column(reference: ColumnValue) -> pa.Array:
            return column_part(batch.column(reference.name), reference.key)

        array = column(value) if isinstance(value, ColumnValue) else compute(value, column, batch.num_rows)
        return array if array.type == arrow_type else array.cast(arrow_type)


def sorted_outputs(
    order_by: object, limit: int | None, names: Sequence[str], outputs: Outputs | None, schema: TableSchema
) -> tuple[tuple[SortColumn, ...], Outputs | None]:
    """Return the order of a scan by stored columns, or outputs that sort and limit the rows.

    ``names``: columns of the scan. ``outputs``: what it computes, or None.
    Raises ``InvalidArgument``, ``InvalidFilter``, ``UnknownColumn``.
    """
    order = sort_values(order_by, ColumnScope(schema) if outputs is None else outputs.scope)
    stored = stored_order(order)
    if stored is not None:
        return stored, outputs
    if outputs is None and metadata_names(names, schema):
        return sort_columns(order_by, schema), None  # raises an error: where rows are stored is not computed
    return (), replace(outputs or Outputs.of({name: name for name in names}, schema), order=order, limit=limit)


def _bind(name: str, value: object, schema: TableSchema) -> Expression:
    try:
        return bind_value(value, schema.column_types)
    except InvalidFilter as error:
        raise InvalidFilter(f"columns: '{name}': {error}") from error


def _arrow_schema(values: Mapping[str, Expression], schema: TableSchema) -> pa.Schema:
    return pa.schema([(name, _arrow_type(value, schema)) for name, value in values.items()])


def _arrow_type(value: Expression, schema: TableSchema) -> pa.DataType:
    match value:
        case ColumnValue(name, key, _):
            parent = schema.field(name).type.arrow
            return parent if key is None else parent.item_type
        case FunctionCall(function, (parent, LiteralValue(part)), _) if function in _PARTS:
            outer = _arrow_type(parent, schema)
            if pa.types.is_struct(outer):
                return outer.field(str(part)).type
            return outer.item_type if pa.types.is_map(outer) else outer.value_type
        case FunctionCall("array", (first, *_), ColumnType(value=ColumnType(kind=kind))) if kind in WITH_PARTS:
            return pa.list_(_arrow_type(first, schema))
        case FunctionCall("array", _, ColumnType(value=ColumnType(arrow=element))):
            return pa.list_(element)
        case FunctionCall("named_struct", arguments, ColumnType(fields=fields)):
            return pa.struct(
                [(name, _arrow_type(part_value, schema)) for (name, _), part_value in zip(fields, arguments[1::2], strict=True)]
            )
        case FunctionCall("coalesce", (first,), ColumnType(kind=kind)) if kind in WITH_PARTS:
            return _arrow_type(first, schema)
    return value.type.arrow
