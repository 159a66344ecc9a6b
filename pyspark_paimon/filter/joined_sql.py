"""Expressions of a merge on the columns of two sides.

The sides are the table ``t`` and the source ``s``. Bound columns are named ``t.name`` and ``s.name``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeGuard

from fileindex.predicate.tree import ColumnRef
from paimon_base.errors import InvalidFilter, UnknownColumn
from pyspark_paimon.filter.ast import Computation, Term, field_of
from pyspark_paimon.filter.bind_terms import bind_term
from pyspark_paimon.filter.columns import SOURCE, TARGET, resolve
from sparkexpr.expression.tree import Expression
from sparkexpr.expression.types import BOOLEAN_TYPE
from sparkexpr.values.column_type import ColumnType
from sparkexpr.values.time_zone import UTC, time_zone

Sides = Mapping[str, Mapping[str, ColumnType]]
"""Column types by side (``t``, ``s``)."""

_ALIASES = {"t": TARGET, "target": TARGET, "s": SOURCE, "source": SOURCE}


def is_column_expression(value: object) -> bool:
    """Return whether a value is a Spark or Arrow expression."""
    return hasattr(value, "_jc") or hasattr(value, "_expr") or type(value).__module__ == "pyarrow._compute"


def bind_value(value: Any, sides: Sides) -> Expression:
    """Bind SQL text, a Spark ``Column`` or an Arrow expression.

    Raises ``UnknownColumn``, and ``InvalidFilter`` for an expression that is not supported.

    >>> from sparkexpr.values.column_type import Kind
    >>> sides = {"t": {"n": ColumnType(Kind.INT)}, "s": {"n": ColumnType(Kind.INT), "m": ColumnType(Kind.INT)}}
    >>> str(bind_value("t.n + source.n * m", sides))
    '(t.n + (s.n * s.m))'
    """
    with time_zone(UTC) if type(value).__module__ == "pyarrow._compute" else nullcontext():
        return _bind_term(_term(value, sides), sides)


def bind_condition(condition: Any, sides: Sides) -> Expression:
    """Bind a BOOLEAN expression on the columns of both sides.

    Raises the errors of ``bind_value``.
    """
    return _as_condition(bind_value(condition, sides))


def join_terms(on: Any, sides: Sides) -> tuple[list[tuple[str, str]], list[Expression]]:
    """Split a join condition into equal columns and other conditions.

    Each pair is a column of the table and the equal column of the source.

    >>> from sparkexpr.values.column_type import Kind
    >>> column = {"id": ColumnType(Kind.INT), "n": ColumnType(Kind.INT)}
    >>> pairs, others = join_terms("s.id = t.id AND t.n < 5", {"t": column, "s": column})
    >>> pairs, list(map(str, others))
    ([('id', 'id')], ['(t.n < 5)'])
    """
    pairs: list[tuple[str, str]] = []
    conditions: list[Expression] = []
    for term in _conjuncts(_term(on, sides)):
        names = [side.name for side in term.arguments if isinstance(side, ColumnRef) and side.key is None] if _is_equality(term) else []
        by_side = dict(name.split(".", 1) for name in names)
        if by_side.keys() == {TARGET, SOURCE}:
            pairs.append((by_side[TARGET], by_side[SOURCE]))
        else:
            conditions.append(_as_condition(_bind_term(term, sides)))
    return pairs, conditions


def _is_equality(term: Term) -> TypeGuard[Computation]:
    return isinstance(term, Computation) and term.function == "="


def _conjuncts(term: Term) -> Iterator[Term]:
    if isinstance(term, Computation) and term.function == "and":
        for child in term.arguments:
            yield from _conjuncts(child)
    else:
        yield term


def _as_condition(bound: Expression) -> Expression:
    if bound.type != BOOLEAN_TYPE:
        raise InvalidFilter(f"'{bound}' of type {bound.type.kind} is not a condition: compare it with a value")
    return bound


def _bind_term(term: Term, sides: Sides) -> Expression:
    return bind_term(term, {f"{side}.{name}": column_type for side, columns in sides.items() for name, column_type in columns.items()})


def _term(expression: Any, sides: Sides) -> Term:
    """Translate SQL text, a Spark Column or an Arrow expression."""
    if isinstance(expression, str):
        from pyspark_paimon.filter.from_sql import sql_term  # noqa: PLC0415  # see test_imports

        return sql_term(expression, (name for columns in sides.values() for name in columns), partial(_reference, sides=sides))
    if type(expression).__module__ == "pyarrow._compute":
        from pyspark_paimon.filter.from_arrow import arrow_term  # noqa: PLC0415  # rarely needed

        return arrow_term(expression, lambda name: ColumnRef(_locate(name.split(".", 1), name, sides)))
    from pyspark_paimon.filter.from_spark import column_term  # noqa: PLC0415  # rarely needed

    return column_term(expression, partial(_reference, sides=sides))


def _reference(parts: Sequence[str], sides: Sides) -> Term:
    """Return the column of a name with or without its side, or a field of the column."""
    # As in Spark, the column of a side comes before the field of a column with the side's name.
    side = _ALIASES.get(parts[0].lower())
    column_names = {name.lower() for columns in sides.values() for name in columns}
    sided = len(parts) > 1 and (parts[0].lower() not in column_names or _has(sides.get(side or ""), parts[1]))
    column = ColumnRef(_locate(parts[: 1 + sided], ".".join(parts), sides))
    return field_of(column, parts[1 + sided :])


def _has(columns: Mapping[str, ColumnType] | None, name: str) -> bool:
    return columns is not None and name.lower() in {column.lower() for column in columns}


def _locate(parts: Sequence[str], shown: str, sides: Sides) -> str:
    if len(parts) == 1:
        having = [side for side, columns in sides.items() if any(name.lower() == parts[0].lower() for name in columns)]
        if len(having) > 1:
            raise InvalidFilter(f"'{parts[0]}' is ambiguous: write t.{parts[0]} for the table or s.{parts[0]} for the source")
        if not having:
            raise UnknownColumn(parts[0], tuple(f"{side}.{name}" for side, columns in sides.items() for name in columns))
        return f"{having[0]}.{resolve(parts[0], sides[having[0]])}"
    if len(parts) != 2:  # a side and a name
        raise InvalidFilter(f"'{shown}' is not a column of the table (t.name) or of the source (s.name)")
    side = _ALIASES.get(parts[0].lower())
    if side is None:
        raise InvalidFilter(f"'{'.'.join(parts)}': the table is called t or target, the source s or source")
    if side not in sides:
        what = "table" if side == TARGET else "source"
        raise InvalidFilter(f"'{'.'.join(parts)}': this clause has no row of the {what}")
    return f"{side}.{resolve(parts[1], sides[side])}"
