"""JSON form of predicate trees.

It carries a bound filter to another process without pickle. A node is an object with one member, named by its kind.
The member's value is an object or a list with a fixed set of members. Literals are exact (``sparkexpr.values.plain_json``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from fileindex.predicate.tree import And, ColumnRef, Compare, ComputedPredicate, In, IsNull, Op, Or, Predicate, StartsWith
from paimon_base.errors import InvalidFilter
from sparkexpr.expression.json import expression_from_json, expression_to_json
from sparkexpr.values.column_type import Kind, Plain
from sparkexpr.values.plain_json import plain_from_json, plain_to_json

MAX_DEPTH = 100

_Json: TypeAlias = dict[str, Any] | list[Any] | str | int | bool | None


def to_json(predicate: Predicate) -> str:
    """Return ``predicate`` as ASCII JSON text for ``from_json``.

    Raises:
        InvalidFilter: AND and OR are nested deeper than MAX_DEPTH.

    >>> to_json(Compare(ColumnRef("attrs", "clicks"), Op.GE, 3))
    '{"compare":{"column":"attrs","key":"clicks","op":">=","value":3}}'
    """
    return json.dumps(_encode(predicate, 0), separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Predicate:
    """Return the tree that ``to_json`` wrote.

    Raises:
        InvalidFilter: The text is not JSON, nests too deeply, or has an unknown node, member, operator or literal.

    >>> from_json('{"is_null":{"column":"a","key":null,"negated":true}}')
    IsNull(column=ColumnRef(name='a', key=None), negated=True)
    """
    try:
        tree = json.loads(text, object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant, parse_float=_reject_float)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidFilter(f"a filter's JSON text cannot be read: {error}") from error
    return _decode(tree, 0)


def _encode(predicate: Predicate, depth: int) -> _Json:
    if depth > MAX_DEPTH:
        raise InvalidFilter(f"the filter nests deeper than {MAX_DEPTH} levels")
    match predicate:
        case And(children):
            return {"and": [_encode(child, depth + 1) for child in children]}
        case Or(children):
            return {"or": [_encode(child, depth + 1) for child in children]}
        case Compare(column, op, value):
            return {"compare": {**_encode_column(column), "op": op.value, "value": plain_to_json(value)}}
        case In(column, values, negated):
            return {"in": {**_encode_column(column), "values": [plain_to_json(value) for value in values], "negated": negated}}
        case IsNull(column, negated):
            return {"is_null": {**_encode_column(column), "negated": negated}}
        case StartsWith(column, prefix, negated):
            return {"starts_with": {**_encode_column(column), "prefix": prefix, "negated": negated}}
        case ComputedPredicate(test, negated):
            return {"formula": {"test": expression_to_json(test), "negated": negated}}


def _encode_column(column: ColumnRef) -> dict[str, Any]:
    return {"column": column.name, "key": column.key}


def _decode(node: Any, depth: int) -> Predicate:
    if depth > MAX_DEPTH:
        raise InvalidFilter(f"the filter nests deeper than {MAX_DEPTH} levels")
    if not isinstance(node, dict) or len(node) != 1:
        raise InvalidFilter(f"a node of a filter's JSON must have exactly one member, not {_abbreviate(node)}")
    ((kind, body),) = node.items()
    if kind in {"and", "or"}:
        children = tuple(_decode(child, depth + 1) for child in _require_type(body, list, kind))
        return And(children) if kind == "and" else Or(children)
    if kind == "formula":
        return _decode_computed(_require_type(body, dict, kind))
    decode = _LEAVES.get(kind)
    if decode is None:
        raise InvalidFilter(f"a filter's JSON has an unknown node '{_abbreviate(kind)}'")
    return decode(_require_type(body, dict, kind))


def _decode_compare(body: dict[str, Any]) -> Predicate:
    column, op, value = _members(body, "compare", "op", "value")
    try:
        operator = Op(op)
    except ValueError as error:
        raise InvalidFilter(f"a filter's JSON has an unknown operator {_abbreviate(op)}") from error
    return Compare(column, operator, _decode_value(value))


def _decode_in(body: dict[str, Any]) -> Predicate:
    column, values, negated = _members(body, "in", "values", "negated")
    return In(
        column, tuple(_decode_value(value) for value in _require_type(values, list, "values")), _require_type(negated, bool, "negated")
    )


def _decode_is_null(body: dict[str, Any]) -> Predicate:
    column, negated = _members(body, "is_null", "negated")
    return IsNull(column, _require_type(negated, bool, "negated"))


def _decode_starts_with(body: dict[str, Any]) -> Predicate:
    column, prefix, negated = _members(body, "starts_with", "prefix", "negated")
    return StartsWith(column, _require_type(prefix, str, "prefix"), _require_type(negated, bool, "negated"))


def _decode_computed(body: dict[str, Any]) -> Predicate:
    if body.keys() != {"test", "negated"}:
        raise InvalidFilter(f"a filter's JSON node 'formula' has the members {_abbreviate(sorted(body))}")
    test = expression_from_json(body["test"])
    if test.type.kind is not Kind.BOOLEAN:
        raise InvalidFilter(f"a filter's JSON has a formula of type {test.type.kind}, which is not a condition")
    return ComputedPredicate(test, _require_type(body["negated"], bool, "negated"))


_LEAVES: dict[str, Callable[[dict[str, Any]], Predicate]] = {
    "compare": _decode_compare,
    "in": _decode_in,
    "is_null": _decode_is_null,
    "starts_with": _decode_starts_with,
}


def _members(body: dict[str, Any], kind: str, *names: str) -> list[Any]:
    if body.keys() != {"column", "key", *names}:
        raise InvalidFilter(f"a filter's JSON node '{kind}' has the members {_abbreviate(sorted(body))}")
    key = body["key"]
    column = ColumnRef(_require_type(body["column"], str, "column"), None if key is None else _require_type(key, str, "key"))
    return [column, *(body[name] for name in names)]


def _decode_value(value: Any) -> Plain:
    if value is None:  # comparisons never contain null
        raise InvalidFilter("a filter's JSON has the invalid literal null")
    try:
        return plain_from_json(value)
    except ValueError as error:
        raise InvalidFilter(f"a filter's JSON has the invalid literal {_abbreviate(value)}: {error}") from error


def _require_type(value: Any, kind: type, name: str) -> Any:
    if type(value) is not kind:
        raise InvalidFilter(f"a filter's JSON has {_abbreviate(value)} where '{name}' needs a {kind.__name__}")
    return value


def _abbreviate(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is repeated")
    return members


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _reject_float(text: str) -> NoReturn:
    raise ValueError(f"the bare float {text} may not be exact")
