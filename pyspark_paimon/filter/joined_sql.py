"""SQL text about two sides, a table ``t`` and a source ``s``: values and conditions of a merge as expressions on columns ``t.name``, ``s.name``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from fileindex.base.column_type import ColumnType
from fileindex.base.errors import InvalidFilter, UnknownColumn
from fileindex.expression.tree import Expression
from fileindex.expression.types import BOOLEAN_TYPE
from fileindex.predicate.tree import ColumnRef
from pyspark_paimon.filter.bind_terms import bind_term
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.filter.from_sql import SparkFilter, unreadable
from pyspark_paimon.filter.sql_terms import term_of

Sides = Mapping[str, Mapping[str, ColumnType]]
"""Columns by side, ``t`` or ``s`` or both."""

TARGET, SOURCE = "t", "s"
_ALIASES = {"t": TARGET, "target": TARGET, "s": SOURCE, "source": SOURCE}


def is_column_expression(given: object) -> bool:
    """Whether a value is an expression of Spark or of Arrow."""
    return hasattr(given, "_jc") or hasattr(given, "_expr") or type(given).__module__ == "pyarrow._compute"


def joined_value(given: Any, sides: Sides) -> Expression:
    """What SQL text, a Spark ``Column`` or an Arrow expression computes of the columns of the sides.

    Raises ``InvalidFilter`` for what is not computed here, ``UnknownColumn``.

    >>> from fileindex.base.column_type import Kind
    >>> sides = {"t": {"n": ColumnType(Kind.INT)}, "s": {"n": ColumnType(Kind.INT), "m": ColumnType(Kind.INT)}}
    >>> str(joined_value("t.n + source.n * m", sides))
    '(t.n + (s.n * s.m))'
    """
    return _bound(given, sides)


def joined_condition(given: Any, sides: Sides) -> Expression:
    """As ``joined_value``, of a condition."""
    return _condition(given, sides)


def join_terms(text: str, sides: Sides) -> tuple[list[tuple[str, str]], list[Expression]]:
    """A condition of a join: pairs of columns of table and source that are equal, and the other conditions.

    >>> from fileindex.base.column_type import Kind
    >>> column = {"id": ColumnType(Kind.INT), "n": ColumnType(Kind.INT)}
    >>> pairs, others = join_terms("s.id = t.id AND t.n < 5", {"t": column, "s": column})
    >>> pairs, list(map(str, others))
    ([('id', 'id')], ['(t.n < 5)'])
    """
    pairs: list[tuple[str, str]] = []
    others: list[Expression] = []
    for node in _conjuncts(_parsed(text)):
        names = [_column(side, sides) for side in (node.this, node.expression)] if _is_equality(node) else []
        by_side = dict(name.split(".", 1) for name in names)
        if by_side.keys() == {TARGET, SOURCE}:
            pairs.append((by_side[TARGET], by_side[SOURCE]))
        else:
            others.append(_condition(node, sides))
    return pairs, others


def _is_equality(node: exp.Expression) -> bool:
    return isinstance(node, exp.EQ) and all(isinstance(side, exp.Column) for side in (node.this, node.expression))


def _conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        for child in node.flatten():
            yield from _conjuncts(cast("exp.Expression", child))
    else:
        yield node


def _parsed(text: str) -> exp.Expression:
    try:
        return cast("exp.Expression", sqlglot.parse_one(text, dialect=SparkFilter, into=exp.Condition))
    except ParseError as error:
        raise InvalidFilter(unreadable("the expression", text, error)) from error
    except SqlglotError as error:
        raise InvalidFilter(f"'{text}' cannot be read: {error}") from error
    except RecursionError:
        raise InvalidFilter("an expression nests too deeply") from None


def _condition(given: Any, sides: Sides) -> Expression:
    bound = _bound(given, sides)
    if bound.type != BOOLEAN_TYPE:
        raise InvalidFilter(f"'{bound}' of type {bound.type.kind} is no condition: compare it with something")
    return bound


def _bound(given: Any, sides: Sides) -> Expression:
    """``given``: text, what was parsed of it, a Column of Spark, or an expression of Arrow."""
    types = {f"{side}.{name}": column_type for side, columns in sides.items() for name, column_type in columns.items()}
    if isinstance(given, str | exp.Expression):
        term = term_of(_parsed(given) if isinstance(given, str) else given, partial(_reference, sides=sides))
    elif type(given).__module__ == "pyarrow._compute":
        from pyspark_paimon.filter.from_arrow import arrow_term  # noqa: PLC0415  # few are Arrow's

        term = arrow_term(given, lambda name: ColumnRef(_located(name.split(".", 1), name, sides)))
    else:
        from pyspark_paimon.filter.from_spark import column_term  # noqa: PLC0415  # few are Spark's

        term = column_term(given, lambda parts: ColumnRef(_located(parts, ".".join(parts), sides)))
    return bind_term(term, types)


def _reference(node: exp.Expression, sides: Sides) -> ColumnRef:
    if isinstance(node, exp.Bracket) and len(node.expressions) == 1 and isinstance(node.this, exp.Column):
        key = node.expressions[0]
        if isinstance(key, exp.Literal) and key.is_string:
            return ColumnRef(_column(node.this, sides), key.name)
    return ColumnRef(_column(node, sides))


def _column(node: exp.Expression, sides: Sides) -> str:
    """The name of a column with its side."""
    parts = [part.name for part in node.parts] if isinstance(node, exp.Column) else []
    return _located(parts, node.sql(dialect="spark")[:120], sides)


def _located(parts: Sequence[str], shown: str, sides: Sides) -> str:
    if len(parts) == 1:
        having = [side for side, columns in sides.items() if any(name.lower() == parts[0].lower() for name in columns)]
        if len(having) > 1:
            raise InvalidFilter(f"'{parts[0]}' may be t.{parts[0]} or s.{parts[0]}: say which, t is the table and s the source")
        if not having:
            raise UnknownColumn(parts[0], tuple(f"{side}.{name}" for side, columns in sides.items() for name in columns))
        return f"{having[0]}.{resolve(parts[0], sides[having[0]])}"
    if len(parts) != 2:  # a side and a name
        raise InvalidFilter(f"'{shown}' is no column of the table (t.name) or of the source (s.name)")
    side = _ALIASES.get(parts[0].lower())
    if side is None:
        raise InvalidFilter(f"'{'.'.join(parts)}': the table is called t or target, the source s or source")
    if side not in sides:
        what = "table" if side == TARGET else "source"
        raise InvalidFilter(f"'{'.'.join(parts)}': this clause has no row of the {what}")
    return f"{side}.{resolve(parts[1], sides[side])}"


__all__ = ["SOURCE", "TARGET", "Sides", "is_column_expression", "join_terms", "joined_condition", "joined_value"]
