"""Bound filters, keys, values and rows of requests.

They are objects in a process and text on the wire.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

import pyarrow as pa
from pydantic import PlainSerializer, PlainValidator

from fileindex.predicate.tree import Predicate
from lsm.keys.key_set import KeySet
from sparkexpr.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue

_TREES = 8
"""Number of parsed filters to cache: every split of a scan carries its filter."""


@lru_cache(maxsize=_TREES)
def _parse(text: str) -> Predicate:
    from fileindex.predicate.json import from_json  # noqa: PLC0415  # see test_imports

    return from_json(text)


def _as_text(tree: Predicate) -> str:
    from fileindex.predicate.json import to_json  # noqa: PLC0415  # as above

    return to_json(tree)


def _as_tree(value: Any) -> Predicate:
    predicate: Predicate = _parse(value) if isinstance(value, str) else value
    if not isinstance(predicate, Predicate):
        raise ValueError(f"a filter is a predicate or its JSON text, not {type(value).__name__}")  # noqa: TRY004  # pydantic's word
    return predicate


BoundFilter: TypeAlias = Annotated[Predicate, PlainValidator(_as_tree), PlainSerializer(_as_text, return_type=str)]
"""A predicate bound to the table's types. JSON text on the wire."""


def _as_rows(value: Any) -> pa.Table:
    if not isinstance(value, str):
        raise ValueError(f"rows are a table or its text, not {type(value).__name__}")  # noqa: TRY004  # pydantic's word
    with pa.ipc.open_stream(base64.b64decode(value, validate=True)) as stream:
        return stream.read_all()


def _from_text(value: Any) -> Any:
    return _as_rows(value) if isinstance(value, str) else value


def _rows_text(rows: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(rows)
    return base64.b64encode(sink.getvalue()).decode()


def _as_keys(value: Any) -> KeySet:
    return value if isinstance(value, KeySet) else KeySet(_as_rows(value))


def _keys_text(keys: KeySet) -> str:
    return _rows_text(keys.rows)


BoundKeys: TypeAlias = Annotated[KeySet, PlainValidator(_as_keys), PlainSerializer(_keys_text, return_type=str)]
"""Keys in the types of the key columns. A Base64 Arrow stream on the wire."""

Value: TypeAlias = Expression | pa.Scalar
"""New value of a column: an expression, or one value for all rows."""


def _as_value(value: Any) -> Value:
    if isinstance(value, ColumnValue | LiteralValue | FunctionCall | pa.Scalar):
        return value
    if isinstance(value, str):
        return _as_rows(value).column(0)[0]
    return _as_expression(value)


def _value_json(value: Value) -> Any:
    if isinstance(value, pa.Scalar):
        return _rows_text(pa.table({"value": pa.repeat(value, 1)}))
    return _expression_json(value)


def _as_expression(value: Any) -> Expression:
    if isinstance(value, ColumnValue | LiteralValue | FunctionCall):
        return value
    from sparkexpr.expression.json import expression_from_json  # noqa: PLC0415  # as above

    return expression_from_json(value)


def _expression_json(expression: Expression) -> Any:
    from sparkexpr.expression.json import expression_to_json  # noqa: PLC0415  # as above

    return expression_to_json(expression)


BoundExpression: TypeAlias = Annotated[Expression, PlainValidator(_as_expression), PlainSerializer(_expression_json)]
"""An expression, bound to columns of a table and of a source."""
BoundValue: TypeAlias = Annotated[Value, PlainValidator(_as_value), PlainSerializer(_value_json)]
"""New value of a column. A scalar is a one-row Arrow stream on the wire."""
BoundRows: TypeAlias = Annotated[
    pa.Table,
    PlainValidator(_from_text),
    PlainSerializer(_rows_text, return_type=str),
]
"""Rows of this process. A Base64 Arrow stream on the wire."""
BoundSource: TypeAlias = Annotated[Any, PlainValidator(_from_text), PlainSerializer(_rows_text, return_type=str)]
"""Source rows: an Arrow table, or ``SparkRows``.

A table is a Base64 Arrow stream on the wire. ``SparkRows`` cannot be serialized.
"""
