"""JSON form of expressions.

A node is an object with one member.

The types of calls are not written. Reading computes them again.
"""

from __future__ import annotations

from typing import Any

from sparkexpr.errors import InvalidFilter
from sparkexpr.expression.coercion import cast_to
from sparkexpr.expression.functions import call
from sparkexpr.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue
from sparkexpr.values.column_type import WITH_PARTS, ColumnType, Kind
from sparkexpr.values.plain_json import plain_from_json, plain_to_json
from sparkexpr.values.plain_value import is_plain

MOST_NESTED = 100
_MEMBERS = {"value": {"name", "key", "type"}, "literal": {"plain", "type"}, "call": {"function", "arguments"}, "cast": {"argument", "type"}}


def expression_to_json(expression: Expression, depth: int = 0) -> dict[str, Any]:
    """Return ``expression`` as an object for ``expression_from_json``.

    Raises ``InvalidFilter`` if it nests deeper than MOST_NESTED.
    """
    if depth > MOST_NESTED:
        raise InvalidFilter(f"an expression nests deeper than {MOST_NESTED} calls; split it")
    match expression:
        case ColumnValue(name, key, column_type):
            return {"value": {"name": name, "key": key, "type": _type_json(column_type)}}
        case LiteralValue(value, column_type):
            return {"literal": {"plain": plain_to_json(value), "type": _type_json(column_type)}}
        case FunctionCall("cast", (argument,), column_type):
            return {"cast": {"argument": expression_to_json(argument, depth + 1), "type": _type_json(column_type)}}
        case FunctionCall(name, arguments, _):
            return {"call": {"function": name, "arguments": [expression_to_json(argument, depth + 1) for argument in arguments]}}


def expression_from_json(node: Any, depth: int = 0) -> Expression:
    """Return the expression that ``expression_to_json`` wrote.

    Calls are typed again. Raises ``InvalidFilter`` for any other object.

    >>> expression_from_json({"call": {"function": "length", "arguments": [{"literal": {"plain": "ab", "type": ["VARCHAR", 0, 0, 9]}}]}}).type.kind
    <Kind.INT: 'INT'>
    """
    if depth > MOST_NESTED or not isinstance(node, dict) or len(node) != 1:
        raise _bad(node)
    ((kind, body),) = node.items()
    if not isinstance(body, dict) or body.keys() != _MEMBERS.get(kind):
        raise _bad(node)
    match kind:
        case "value" if isinstance(body["name"], str) and isinstance(body["key"], str | None):
            return ColumnValue(body["name"], body["key"], _type(body["type"]))
        case "literal":
            return _literal(body)
        case "call" if isinstance(body["function"], str) and isinstance(body["arguments"], list):
            return call(body["function"], [expression_from_json(argument, depth + 1) for argument in body["arguments"]])
        case "cast":
            return cast_to(expression_from_json(body["argument"], depth + 1), _type(body["type"]))
    raise _bad(node)


def _literal(body: dict[str, Any]) -> LiteralValue:
    column_type = _type(body["type"])
    try:
        value = plain_from_json(body["plain"])
    except ValueError as error:
        raise _bad(body) from error
    if not is_plain(value, column_type):
        raise _bad(body)
    return LiteralValue(value, column_type)


def _type_json(column_type: ColumnType) -> list[Any]:
    scalar_fields = [column_type.kind.value, column_type.precision, column_type.scale, column_type.length]
    if column_type.kind not in WITH_PARTS:
        return scalar_fields
    key, value = (None if part is None else _type_json(part) for part in (column_type.key, column_type.value))
    return [*scalar_fields, key, value, [[name, _type_json(part)] for name, part in column_type.fields]]


def _type(encoded: Any, depth: int = 0) -> ColumnType:
    match encoded:
        case [str(kind), int(precision), int(scale), int(length), *parts] if (
            kind in Kind.__members__ and 0 <= scale <= precision <= 38 and length >= 0 and depth <= MOST_NESTED
        ):
            return ColumnType(Kind(kind), precision, scale, length, *_parts(parts, depth + 1))
    raise _bad(encoded)


def _parts(encoded: list[Any], depth: int) -> tuple[ColumnType | None, ColumnType | None, tuple[tuple[str, ColumnType], ...]]:
    match encoded:
        case []:
            return None, None, ()
        case [key, value, list(fields)] if all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in fields):
            parts = [None if part is None else _type(part, depth) for part in (key, value)]
            return parts[0], parts[1], tuple([(name, _type(part, depth)) for name, part in fields])
    raise _bad(encoded)


def _bad(node: object) -> InvalidFilter:
    return InvalidFilter(f"a filter's JSON has an invalid expression: {repr(node)[:80]}")
