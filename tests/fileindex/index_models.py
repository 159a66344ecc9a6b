"""A row-by-row model of the predicate's meaning, and Hypothesis strategies for columns, literals and trees."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pyarrow as pa
from hypothesis import strategies as st

from fileindex.predicate.tree import And, ColumnRef, Compare, In, IsNull, Leaf, Op, Or, Predicate, StartsWith
from sparkexpr.values.column_type import BINARIES, FLOATS, STRINGS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import to_scalar
from tests.odd_bytes import odd_bytes, odd_texts

ATOMIC_TYPES = [
    ColumnType(Kind.CHAR, length=9),
    ColumnType(Kind.VARCHAR),
    ColumnType(Kind.BOOLEAN),
    ColumnType(Kind.BINARY, length=4),
    ColumnType(Kind.VARBINARY),
    ColumnType(Kind.DECIMAL, precision=5, scale=2),
    ColumnType(Kind.DECIMAL, precision=18, scale=0),
    ColumnType(Kind.DECIMAL, precision=38, scale=10),
    ColumnType(Kind.TINYINT),
    ColumnType(Kind.SMALLINT),
    ColumnType(Kind.INT),
    ColumnType(Kind.BIGINT),
    ColumnType(Kind.FLOAT),
    ColumnType(Kind.DOUBLE),
    ColumnType(Kind.DATE),
    ColumnType(Kind.TIME),
    ColumnType(Kind.TIMESTAMP, precision=0),
    ColumnType(Kind.TIMESTAMP, precision=3),
    ColumnType(Kind.TIMESTAMP, precision=6),
    ColumnType(Kind.TIMESTAMP, precision=9),
    ColumnType(Kind.TIMESTAMP_LTZ, precision=3),
    ColumnType(Kind.TIMESTAMP_LTZ, precision=6),
    ColumnType(Kind.TIMESTAMP_LTZ, precision=9),
]

_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.DATE: 32}


def type_name(column_type: ColumnType) -> str:
    return f"{column_type.kind}-{column_type.precision}"


def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    near = [low, low + 1, -1001, -1000, -999, -2, -1, 0, 1, 2, 3, 5, 999, 1000, 1001, high - 1, high]
    return st.sampled_from([value for value in near if low <= value <= high]) | st.integers(low, high)


def literals(column_type: ColumnType) -> st.SearchStrategy[Plain]:
    """Values of the type from a small pool with the extremes, so that equal ones meet, or any."""
    match column_type.kind:
        case Kind.BOOLEAN:
            return st.booleans()
        case kind if kind in STRINGS:
            return (
                st.sampled_from(["", "a", "ab", "abc", "b", "\0", "é", "中文", "😀", "\uffff", "a" * 40]) | odd_texts | st.text(max_size=6)
            )
        case kind if kind in BINARIES:
            return st.sampled_from([b"", b"a", b"\0", b"\xff\xfe", b"ab"]) | odd_bytes
        case Kind.FLOAT | Kind.DOUBLE:
            width = 32 if column_type.kind is Kind.FLOAT else 64
            pool = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan]
            return st.sampled_from(pool) | st.floats(width=width)
        case Kind.DECIMAL:
            return _integers(-(10**column_type.precision) + 1, 10**column_type.precision - 1)
        case Kind.TIME:
            return _integers(0, 86_399_999)
        case kind:
            bits = _BITS.get(kind, 64)
            return _integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def columns(column_type: ColumnType, max_size: int = 40) -> st.SearchStrategy[list[Plain]]:
    return st.lists(st.none() | literals(column_type), max_size=max_size)


def leaves_on(column: ColumnRef, column_type: ColumnType) -> st.SearchStrategy[Leaf]:
    literal = literals(column_type)
    choices: list[st.SearchStrategy[Leaf]] = [
        st.builds(Compare, st.just(column), st.sampled_from(Op), literal),
        st.builds(In, st.just(column), st.lists(literal, max_size=5).map(tuple), st.booleans()),
        st.builds(IsNull, st.just(column), st.booleans()),
    ]
    if column_type.kind in STRINGS:
        choices.append(st.builds(StartsWith, st.just(column), literal, st.booleans()))
    return st.one_of(choices)


def trees(leaves: st.SearchStrategy[Leaf]) -> st.SearchStrategy[Predicate]:
    children = st.lists
    return st.recursive(
        leaves,
        lambda nodes: st.builds(And, children(nodes, max_size=3).map(tuple)) | st.builds(Or, children(nodes, max_size=3).map(tuple)),
        max_leaves=5,
    )


def arrow_column(values: Sequence[Plain], column_type: ColumnType) -> pa.Array:
    return pa.array([to_scalar(value, column_type) for value in values], column_type.arrow)


def matches(predicate: Predicate, row: Mapping[ColumnRef, Plain]) -> bool:
    """Whether the predicate is true for a row, by Spark's rules."""
    match predicate:
        case And(children):
            return all(matches(child, row) for child in children)
        case Or(children):
            return any(matches(child, row) for child in children)
        case IsNull(column, negated):
            return (row[column] is None) != negated
        case leaf:
            value = row[leaf.column]
            return value is not None and _leaf(leaf, value)


def _leaf(leaf: Leaf, value: Plain) -> bool:
    match leaf:
        case Compare(_, op, literal):
            left, right = _order(value), _order(literal)
            return {
                Op.EQ: left == right,
                Op.NE: left != right,
                Op.LT: left < right,
                Op.LE: left <= right,
                Op.GT: left > right,
                Op.GE: left >= right,
            }[op]
        case In(_, values, negated):
            return any(_order(value) == _order(literal) for literal in values) != negated
        case StartsWith(_, prefix, negated):
            return value.startswith(prefix) != negated
    raise AssertionError(leaf)


def _order(value: Plain):
    """NaN equals itself and is the greatest; the zeros are equal already."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


__all__ = ["ATOMIC_TYPES", "FLOATS", "arrow_column", "columns", "leaves_on", "literals", "matches", "trees", "type_name"]
