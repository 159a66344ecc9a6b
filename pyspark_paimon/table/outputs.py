"""Computed columns of a scan: parts of columns and named expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fileindex.base.column_type import WITH_PARTS, ColumnType
from fileindex.base.errors import InvalidArgument, InvalidFilter, UnknownColumn
from fileindex.expression.compute import compute
from fileindex.expression.nested import column_part
from fileindex.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue, column_values
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.filter.columns import TARGET
from pyspark_paimon.filter.parse import bind_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTS = frozenset({"item", "get", "element_at", "try_element_at"})


@dataclass(frozen=True)
class Outputs:
    """Expressions by name, in the order of the result.

    ``schema``: schema of the table, whose columns they use.

    >>> from pyspark_paimon.example import cities
    >>> outputs = Outputs.of({"name": "upper(city)"}, cities().table_schema)
    >>> outputs.columns, outputs.arrow
    (('city',), name: string)
    """

    schema: TableSchema
    expressions: Mapping[str, Expression]

    @classmethod
    def of(cls, columns: Sequence[str] | Mapping[str, Any], schema: TableSchema) -> Outputs:
        """Bind the columns of a scan.

        ``columns``: Names of columns and of parts of columns (``"s.a"``, ``"m['k']"``, ``"ar[0]"``), or expressions by name.
        Raises ``InvalidFilter``, ``UnknownColumn``, ``InvalidArgument``.
        """
        if isinstance(columns, Mapping):
            if wrong := [name for name in columns if type(name) is not str]:
                raise InvalidArgument(f"columns: the names of expressions are texts, not {wrong[0]!r}")
            given = dict(columns)
        else:
            given = {name: name for name in columns}
            if len(given) < len(columns):
                raise InvalidArgument(f"columns has a name twice: {', '.join(columns)}")
        if not given:
            raise InvalidArgument("columns is empty; use count() for the number of rows")
        values = {name: _bind(name, value, schema) for name, value in given.items()}
        if isinstance(columns, Mapping):
            return cls(schema, values)
        for name, value in values.items():
            if not _is_part(value):
                raise InvalidArgument(f"columns: '{name}' is an expression; give it a name: columns={{'name': {name!r}}}")
        spelled = {value.name if isinstance(value, ColumnValue) and value.key is None else name: value for name, value in values.items()}
        if len(spelled) < len(values):
            raise InvalidArgument(f"columns has a name twice: {', '.join(columns)}")
        return cls(schema, spelled)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that the expressions use, at least one."""
        found = dict.fromkeys(column.name for value in self.expressions.values() for column in column_values(value))
        return tuple(found) or self.schema.names[:1]

    @property
    def arrow(self) -> pa.Schema:
        """Arrow schema of the rows."""
        return pa.schema([(name, _arrow_type(value, self.schema)) for name, value in self.expressions.items()])

    def projected(self, names: Sequence[str]) -> Outputs:
        """Return some of the columns.

        Raises ``UnknownColumn``.
        """
        if missing := [name for name in names if name not in self.expressions]:
            raise UnknownColumn(missing[0], tuple(self.expressions))
        return Outputs(self.schema, {name: self.expressions[name] for name in names})

    def apply(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Compute the columns of each batch.

        Raises ``FilterFailed`` for a row that has no value.
        """
        arrow = self.arrow
        for batch in batches:
            arrays = [self._array(value, batch, field.type) for value, field in zip(self.expressions.values(), arrow, strict=True)]
            yield pa.record_batch(arrays, arrow)

    def select(self, frame: DataFrame) -> DataFrame:
        """Return the columns of a Spark frame of the table's columns."""
        from pyspark_paimon.frames.spark_functions import functions_of  # noqa: PLC0415  # needed with Spark only
        from pyspark_paimon.spark.client.expression_sql import row_sql  # noqa: PLC0415  # as above

        expr = functions_of(frame).expr
        return frame.alias(TARGET).select(*(expr(row_sql(value)).alias(name) for name, value in self.expressions.items()))

    def _array(self, value: Expression, batch: pa.RecordBatch, wanted: pa.DataType) -> pa.Array:
        def column(found: ColumnValue) -> pa.Array:
            return column_part(batch.column(found.name), found.key)

        array = column(value) if isinstance(value, ColumnValue) else compute(value, column, batch.num_rows)
        return array if array.type == wanted else array.cast(wanted)


def _bind(name: str, value: object, schema: TableSchema) -> Expression:
    try:
        return bind_value(value, schema.column_types)
    except InvalidFilter as error:
        raise InvalidFilter(f"columns: '{name}': {error}") from error


def _is_part(value: Expression) -> bool:
    """Return whether a value is a column or a part of one."""
    match value:
        case ColumnValue():
            return True
        case FunctionCall(function, (whole, LiteralValue()), _) if function in _PARTS:
            return _is_part(whole)
    return False


def _arrow_type(value: Expression, schema: TableSchema) -> pa.DataType:
    match value:
        case ColumnValue(name, key, _):
            whole = schema.field(name).type.arrow
            return whole if key is None else whole.item_type
        case FunctionCall(function, (whole, LiteralValue(part)), _) if function in _PARTS:
            outer = _arrow_type(whole, schema)
            if pa.types.is_struct(outer):
                return outer.field(str(part)).type
            return outer.item_type if pa.types.is_map(outer) else outer.value_type
        case FunctionCall("array", (first, *_), ColumnType(value=ColumnType(kind=kind))) if kind in WITH_PARTS:
            return pa.list_(_arrow_type(first, schema))
        case FunctionCall("array", _, ColumnType(value=ColumnType(arrow=element))):
            return pa.list_(element)
        case FunctionCall("named_struct", arguments, ColumnType(fields=fields)):
            return pa.struct([(name, _arrow_type(one, schema)) for (name, _), one in zip(fields, arguments[1::2], strict=True)])
        case FunctionCall("coalesce", (first,), ColumnType(kind=kind)) if kind in WITH_PARTS:
            return _arrow_type(first, schema)
    return value.type.arrow


__all__ = ["Outputs"]
