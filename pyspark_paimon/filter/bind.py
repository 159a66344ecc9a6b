"""Binding of filters to the columns of a table.

Binding resolves column names, converts literals to the columns' types and pushes NOT to the leaves.
A comparison that the column's type decides is folded: ``k > 2.5`` on an INT becomes ``k >= 3``. ``tiny < 1000`` on
a TINYINT becomes ``tiny IS NOT NULL``. The logic is three-valued as in Spark SQL: under NOT a folded leaf stays unknown for null.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from fileindex.predicate.evaluate_rows import type_of
from fileindex.predicate.json import MAX_DEPTH
from fileindex.predicate.tree import (
    FALSE,
    TRUE,
    ColumnRef,
    Compare,
    ComputedPredicate,
    In,
    IsNull,
    Op,
    Predicate,
    StartsWith,
    ValueSet,
    all_of,
    any_of,
    negate,
)
from paimon_base.errors import InvalidFilter
from paimon_base.thresholds import thresholds
from pyspark_paimon.filter.arrow_values import literals_of, members
from pyspark_paimon.filter.ast import (
    And,
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
from pyspark_paimon.filter.bind_terms import bind_term, enclosing_range, simplify
from pyspark_paimon.filter.columns import resolve_whole
from pyspark_paimon.filter.literals import BOUNDS, bounds, cuts, number_of
from sparkexpr.values.column_type import BINARIES, FLOATS, STRINGS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import is_plain

Members: TypeAlias = "tuple[Literal, ...] | pa.Array | pa.ChunkedArray"
Leaf: TypeAlias = Comparison | NullSafeEqual | Membership | NullTest | NanTest | Prefix | Truth
_COMPARED = frozenset({*(op.value for op in Op), "<=>"})
Types = Mapping[str, ColumnType]
_OPERATORS: dict[Op, Callable[[bool, bool], bool]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def bind(condition: Condition, types: Types) -> Predicate:
    """Bind ``condition`` to columns of the given types.

    Raises:
        UnknownColumn: the table has no such column. Names match regardless of case if that is unambiguous.
        InvalidFilter: a literal cannot be compared with its column.

    >>> from decimal import Decimal
    >>> types = {"k": ColumnType(Kind.INT)}
    >>> bind(Not(Comparison(ColumnRef("K"), Op.LE, Decimal("2.5"))), types)
    Compare(column=ColumnRef(name='k', key=None), op=<Op.GE: '>='>, value=3)
    """
    return _bind(condition, types, negated=False)


def _bind(condition: Condition, types: Types, *, negated: bool, depth: int = 0) -> Predicate:
    if depth > MAX_DEPTH:
        raise InvalidFilter(f"the filter nests too deeply: more than {MAX_DEPTH} levels of AND and OR; split it")
    match condition:
        case Not(child):
            return _bind(child, types, negated=not negated, depth=depth)
        case And(children) | Or(children):
            bound = [_bind(child, types, negated=negated, depth=depth + 1) for child in children]
            every = isinstance(condition, And) is not negated
            return (all_of if every else any_of)(*_merge_equalities(bound, negated=every))
        case Constant(constant):
            return TRUE if constant is not None and constant is not negated else FALSE
        case ComputedCondition(term):
            _refuse_compared_texts(term)
            test = bind_term(term, types)
            simpler = simplify(test)
            if simpler is not None:
                return _bind(simpler, types, negated=negated)
            near = None if negated else enclosing_range(test)
            return ComputedPredicate(test, negated) if near is None else all_of(_bind(near, types, negated=False), ComputedPredicate(test))
    column = ColumnRef(resolve_whole(condition.column, types), condition.column.key)
    if column.key is not None and types[column.name].kind is Kind.ROW:
        return _bind(ComputedCondition(_term_of(condition)), types, negated=negated, depth=depth)
    column_type = type_of(column, types)
    match condition:
        case NullTest():
            return IsNull(column, negated)
        case Truth():
            if column_type.kind is not Kind.BOOLEAN:
                raise InvalidFilter(f"'{column}' of type {column_type.kind} is not a BOOLEAN: compare it with a value")
            return _compare(column, column_type, Op.EQ, not negated)
        case Comparison(_, op, value):
            return FALSE if value is None else _compare(column, column_type, op.negated if negated else op, value)
        case NullSafeEqual(_, value):
            return _null_safe(column, column_type, value, negated=negated)
        case NanTest():
            return _nan(column, column_type, negated=negated)
        case Membership(_, values):
            return _member(column, column_type, values, negated=negated)
        case Prefix(_, prefix):
            return _prefix(column, column_type, prefix, negated=negated)


def _term_of(leaf: Leaf) -> Term:
    """Return the term of a condition on one column."""
    match leaf:
        case NullTest(column):
            return Computation("isnull", (column,))
        case Truth(column):
            return column
        case Comparison(column, op, value):
            return Computation(op.value, (column, GivenValue(value)))
        case NullSafeEqual(column, value):
            return Computation("<=>", (column, GivenValue(value)))
        case NanTest(column):
            return Computation("isnan", (column,))
        case Membership(column, values):
            return Computation("in", (column, *map(GivenValue, literals_of(values))))
        case Prefix(column, prefix):
            return Computation("startswith", (column, GivenValue(prefix)))


def _refuse_compared_texts(term: Term) -> None:
    """Raise ``InvalidFilter`` if a text is compared with a literal."""
    # The user most likely meant the text as a column name.
    match term:
        case Computation(function, (GivenValue(left), GivenValue(right))) if function in _COMPARED:
            text = next((value for value in (left, right) if isinstance(value, str)), None)
            if text is not None:
                raise InvalidFilter(
                    f"{left!r} {function} {right!r} compares a text with a literal and has no column; if '{text}' is a column, write it as one"
                )
        case Computation(_, arguments):
            for argument in arguments:
                _refuse_compared_texts(argument)


def _null_safe(column: ColumnRef, column_type: ColumnType, value: Literal, *, negated: bool) -> Predicate:
    if value is None:
        return IsNull(column, negated)
    if negated:
        return any_of(IsNull(column), _compare(column, column_type, Op.NE, value))
    return _compare(column, column_type, Op.EQ, value)


def _nan(column: ColumnRef, column_type: ColumnType, *, negated: bool) -> Predicate:
    if column_type.kind not in FLOATS:
        raise InvalidFilter(f"'{column}' of type {column_type.kind} cannot be NaN")
    return _null_safe(column, column_type, float("nan"), negated=negated)


def _prefix(column: ColumnRef, column_type: ColumnType, prefix: str, *, negated: bool) -> Predicate:
    if column_type.kind not in STRINGS:
        raise InvalidFilter(f"'{column}' of type {column_type.kind} has no prefix: only text columns can be tested for one")
    if prefix:
        return StartsWith(column, prefix, negated)
    return FALSE if negated else IsNull(column, negated=True)


def _member(column: ColumnRef, column_type: ColumnType, listed: Members, *, negated: bool) -> Predicate:
    if not len(listed):
        return TRUE if negated else FALSE
    if (set_ := members(listed, column_type)) is not None:
        return _among(column, set_, has_null=None in listed if isinstance(listed, tuple) else bool(listed.null_count), negated=negated)
    values = literals_of(listed)
    bound = [_compare(column, column_type, Op.EQ, value) for value in values if value is not None]
    single = tuple(dict.fromkeys(leaf.value for leaf in bound if isinstance(leaf, Compare)))
    predicates: list[Predicate] = [leaf for leaf in bound if not isinstance(leaf, Compare)]
    if len(single) > 1:
        predicates.append(In(column, single))
    elif single:
        predicates.append(Compare(column, Op.EQ, single[0]))
    if not negated:
        return any_of(*predicates)
    if None in values:
        return FALSE
    non_trivial = [leaf for leaf in predicates if leaf != FALSE]
    return all_of(*(negate(leaf) for leaf in non_trivial)) if non_trivial else IsNull(column, negated=True)


def _among(column: ColumnRef, values: ValueSet, *, has_null: bool, negated: bool) -> Predicate:
    if negated and has_null:
        return FALSE
    if not values:
        return IsNull(column, negated=True) if negated else FALSE
    return In(column, values, negated)


def _merge_equalities(children: list[Predicate], *, negated: bool) -> list[Predicate]:
    """Merge many equalities of one column into one IN.

    negated: Merge inequalities of an AND into NOT IN instead.
    """
    op = Op.NE if negated else Op.EQ
    values: dict[ColumnRef, list[Plain]] = {}
    for child in children:
        if isinstance(child, Compare) and child.op is op:
            values.setdefault(child.column, []).append(child.value)
    long = {column: literals for column, literals in values.items() if len(literals) >= thresholds.chained_values}
    if not long:
        return children
    rest = [child for child in children if not (isinstance(child, Compare) and child.op is op and child.column in long)]
    return [*(In(column, ValueSet(dict.fromkeys(literals)), negated) for column, literals in long.items()), *rest]


def _compare(column: ColumnRef, column_type: ColumnType, op: Op, value: Literal) -> Predicate:
    kind = column_type.kind
    if kind is Kind.BOOLEAN:
        return _compare_boolean(column, op, value)
    if kind in FLOATS:
        number = number_of(value, kind)
        return _compare_float(column, kind, op, _nearest(number))
    if kind in BOUNDS or kind is Kind.DECIMAL:
        return _compare_on_line(column, column_type, op, value)
    literal = _same_kind(column, column_type, value)
    return Compare(column, op, literal)


def _same_kind(column: ColumnRef, column_type: ColumnType, value: Literal) -> Plain:
    kind = column_type.kind
    if kind in STRINGS or kind in BINARIES:
        if isinstance(value, str | bytes) and is_plain(value, column_type):
            return value
        write = "'text'" if kind in STRINGS else "X'1A2B'"
        raise InvalidFilter(f"'{column}' of type {kind} cannot be compared with {value!r}; write {write}")
    if kind is Kind.MAP and column.key is None:
        raise InvalidFilter(f"'{column}' is a MAP: compare one of its entries, {column.name}['key']")
    raise InvalidFilter(f"'{column}' of type {kind} can only be tested with IS NULL or IS NOT NULL")


def _compare_boolean(column: ColumnRef, op: Op, value: Literal) -> Predicate:
    words = {"true": True, "false": False}
    literal = words.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(literal, bool):
        raise InvalidFilter(f"'{column}' of type BOOLEAN cannot be compared with {value!r}; write TRUE or FALSE")
    allowed = [stored for stored in (False, True) if _OPERATORS[op](stored, literal)]
    if len(allowed) == 1:
        return Compare(column, Op.EQ, allowed[0])
    return IsNull(column, negated=True) if allowed else FALSE


def _compare_on_line(column: ColumnRef, column_type: ColumnType, op: Op, value: Literal) -> Predicate:
    low, high = bounds(column_type)
    try:
        at_least, above = (min(max(cut, low), high + 1) for cut in cuts(value, column_type))
    except InvalidFilter as error:
        raise InvalidFilter(f"column '{column}': {error}") from error
    exact = above - at_least == 1
    match op:
        case Op.EQ if exact:
            return Compare(column, Op.EQ, at_least)
        case Op.EQ:
            return FALSE if at_least == above else all_of(_from(column, at_least, low, high), _below(column, above, low, high))
        case Op.NE if exact:
            return Compare(column, Op.NE, at_least)
        case Op.NE if at_least == above:
            return IsNull(column, negated=True)
        case Op.NE:
            return any_of(_below(column, at_least, low, high), _from(column, above, low, high))
        case Op.LT if exact and low < at_least:
            return Compare(column, Op.LT, at_least)
        case Op.LT:
            return _below(column, at_least, low, high)
        case Op.LE:
            return _below(column, above, low, high)
        case Op.GE:
            return _from(column, at_least, low, high)
        case Op.GT if exact and above <= high:
            return Compare(column, Op.GT, at_least)
        case Op.GT:
            return _from(column, above, low, high)


def _below(column: ColumnRef, bound: int, low: int, high: int) -> Predicate:
    if bound > high:
        return IsNull(column, negated=True)
    return FALSE if bound <= low else Compare(column, Op.LE, bound - 1)


def _from(column: ColumnRef, bound: int, low: int, high: int) -> Predicate:
    if bound <= low:
        return IsNull(column, negated=True)
    return FALSE if bound > high else Compare(column, Op.GE, bound)


def _nearest(number: object) -> float:
    try:
        return float(number) + 0.0  # type: ignore[arg-type]  # Fraction or float; adding zero turns -0.0 into 0.0
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")  # type: ignore[operator]  # a Fraction


def _compare_float(column: ColumnRef, kind: Kind, op: Op, value: float) -> Predicate:
    """Compare a FLOAT or DOUBLE column with a literal."""
    # A FLOAT is compared as the DOUBLE it equals: a literal between two floats equals neither.
    if kind is Kind.DOUBLE or value != value:  # noqa: PLR0124  # NaN
        return Compare(column, op, value)
    with np.errstate(all="ignore"):  # overflow to infinity and underflow to zero are correct here
        single = np.float32(value)
        less, greater = (float(np.nextafter(single, np.float32(way))) for way in (-np.inf, np.inf))
    nearest = float(single)
    if nearest == value:
        return Compare(column, op, value)
    match op:
        case Op.EQ:
            return FALSE
        case Op.NE:
            return IsNull(column, negated=True)
        case Op.LT | Op.LE:
            return Compare(column, Op.LE, nearest if nearest < value else less)
        case Op.GT | Op.GE:
            return Compare(column, Op.GE, nearest if nearest > value else greater)
