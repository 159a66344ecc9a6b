"""Conditions of boolean terms.

Front ends read their expressions as terms. ``condition_of`` finds the comparisons in a term that statistics and indexes can answer.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from fileindex.predicate.tree import ColumnRef, Op
from paimon_base.errors import InvalidFilter
from pyspark_paimon.filter.arrow_values import literals_of
from pyspark_paimon.filter.ast import (
    MIRRORED,
    And,
    Casting,
    Comparison,
    Computation,
    ComputedCondition,
    Condition,
    Constant,
    GivenValue,
    Literal,
    Membership,
    NanTest,
    Not,
    NullSafeEqual,
    NullTest,
    Or,
    Prefix,
    Term,
    Truth,
)
from pyspark_paimon.filter.bind_terms import constant_of
from sparkexpr.expression.text import like_parts

_OPS = {op.value: op for op in Op}
Node: TypeAlias = Term | Condition
"""A term, or a condition that no term can express, such as SQL text."""


def condition_of(node: Node) -> Condition:
    """Return the condition of a boolean term. Conditions stay as they are.

    Raises ``InvalidFilter`` for a pattern that is not text.

    >>> condition_of(Computation("not", (Computation(">", (GivenValue(3), ColumnRef("k"))),)))
    Not(child=Comparison(column=ColumnRef(name='k', key=None), op=<Op.LT: '<'>, value=3))
    """
    match node:
        case ColumnRef():
            return Truth(node)
        case GivenValue(None | bool() as value):
            return Constant(value)
        case Computation("and", arguments):
            return And(tuple(map(condition_of, arguments)))
        case Computation("or", arguments):
            return Or(tuple(map(condition_of, arguments)))
        case Computation("not", (child,)):
            return Not(condition_of(child))
        case Computation(name, (ColumnRef() as column, other)) if name in _OPS and _is_constant(other):
            return Comparison(column, _OPS[name], _value_of(other))
        case Computation(name, (other, ColumnRef() as column)) if name in _OPS and _is_constant(other):
            return Comparison(column, MIRRORED[_OPS[name]], _value_of(other))
        case Computation("<=>", (ColumnRef() as column, other) | (other, ColumnRef() as column)) if _is_constant(other):
            return NullSafeEqual(column, _value_of(other))
        case Computation("in", (ColumnRef() as column, *items)) if all(map(_is_constant, items)):
            return Membership(column, tuple(map(_value_of, items)))
        case Computation("isnull", (ColumnRef() as column,)):
            return NullTest(column)
        case Computation("isnan", (ColumnRef() as column,)):
            return NanTest(column)
        case Computation("startswith", (ColumnRef() as column, GivenValue(value))):
            return Prefix(column, _pattern(value))
        case Computation("like", (ColumnRef() as column, GivenValue(value), GivenValue(escape))):
            return like(column, _pattern(value), _pattern(escape))
        case GivenValue() | Casting() | Computation():
            return ComputedCondition(node)
    return node


def among(value: Term, values: tuple[Literal, ...] | pa.Array | pa.ChunkedArray) -> Condition:
    """Return the condition ``value IN (values)``."""
    if isinstance(value, ColumnRef):
        return Membership(value, values)
    return condition_of(Computation("in", (value, *map(GivenValue, literals_of(values)))))


def _is_constant(term: Term) -> bool:
    match term:
        case Computation(_, arguments):
            return all(map(_is_constant, arguments))
        case Casting(argument, _):
            return _is_constant(argument)
    return isinstance(term, GivenValue)


def _value_of(constant: Term) -> Literal:
    return constant.value if isinstance(constant, GivenValue) else constant_of(constant)


def combine(name: str, arguments: tuple[Node, ...]) -> Node:
    """Return ``and``, ``or`` or ``not`` of terms and conditions.

    The result is a term if all arguments are.
    """
    if (terms := terms_of(arguments)) is not None:
        return Computation(name, terms)
    conditions = tuple(map(condition_of, arguments))
    return Not(*conditions) if name == "not" else And(conditions) if name == "and" else Or(conditions)


def terms_of(nodes: tuple[Node, ...]) -> tuple[Term, ...] | None:
    """Return the nodes, or None if one is not a term."""
    terms = tuple([node for node in nodes if isinstance(node, ColumnRef | GivenValue | Computation | Casting)])
    return terms if len(terms) == len(nodes) else None


def like(column: ColumnRef, pattern: str, escape: str = "\\") -> Condition:
    r"""Return the condition ``column LIKE pattern``.

    Raises ``InvalidFilter`` if the escape character precedes an ordinary character.

    >>> like(ColumnRef("city"), r"100\%%")
    Prefix(column=ColumnRef(name='city', key=None), prefix='100%')
    """
    parts = like_parts(pattern, escape)
    match parts:
        case []:
            return Comparison(column, Op.EQ, "")
        case [str(text)]:
            return Comparison(column, Op.EQ, text)
        case [None]:
            return Prefix(column, "")
        case [str(text), None]:
            return Prefix(column, text)
    computed = ComputedCondition(Computation("like", (column, GivenValue(pattern), GivenValue(escape))))
    return And((Prefix(column, parts[0]), computed)) if isinstance(parts[0], str) else computed


def _pattern(value: Literal) -> str:
    if not isinstance(value, str):
        raise InvalidFilter(f"a pattern must be a text, not {value!r}")
    return value
