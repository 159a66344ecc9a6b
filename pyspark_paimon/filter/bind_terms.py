"""Binding what is computed: columns get their types, literals Spark's, and conditions that are ranges of a column become ranges."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from fileindex.base.column_type import STRINGS, TIMESTAMPS, ColumnType, Kind
from fileindex.base.errors import FilterFailed, InvalidFilter
from fileindex.expression.compute import computed
from fileindex.expression.functions import call, cast_to
from fileindex.expression.json import MOST_NESTED
from fileindex.expression.literals import literal_value
from fileindex.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue, column_values
from fileindex.expression.types import BOOLEAN_TYPE, DATE_TYPE
from fileindex.predicate.evaluate_rows import type_of
from fileindex.predicate.tree import ColumnRef, Op
from pyspark_paimon.filter.ast import (
    MIRRORED,
    All,
    Casting,
    Clock,
    Comparison,
    Computation,
    Condition,
    Constant,
    Day,
    GivenValue,
    Literal,
    Moment,
    Not,
    Term,
)
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.filter.literals import parse_date, parse_time, parse_timestamp

_OPS = {op.value: op for op in Op}
_MOST_YEARS = 30_000


def bind_term(term: Term, types: Mapping[str, ColumnType], depth: int = 0) -> Expression:
    """The typed expression of a term.

    Raises:
        UnknownColumn: the table has no such column.
        InvalidFilter: a function is not computed here, or does not take such arguments.
    """
    if depth > MOST_NESTED:
        raise InvalidFilter(f"an expression nests deeper than {MOST_NESTED} calls")
    match term:
        case ColumnRef():
            column = ColumnRef(resolve(term.name, types), term.key)
            return ColumnValue(column.name, column.key, type_of(column, types))
        case GivenValue(value):
            return _literal(value)
        case Casting(argument, wanted):
            return cast_to(bind_term(argument, types, depth + 1), wanted)
        case Computation(name, arguments):
            bound = [bind_term(argument, types, depth + 1) for argument in arguments]
            return call(name, _dated(bound) if name in _OPS or name in {"<=>", "coalesce", "case"} else bound)


def _literal(value: Literal) -> LiteralValue:
    match value:
        case Day(days):
            return LiteralValue(days, DATE_TYPE)
        case Moment(nanos):
            fine = nanos % 1000 != 0
            return LiteralValue(nanos if fine else nanos // 1000, ColumnType(Kind.TIMESTAMP_LTZ, precision=9 if fine else 6))
        case Clock(nanos):
            if nanos % 10**6:
                raise InvalidFilter("a TIME that is computed with has milliseconds at most")
            return LiteralValue(nanos // 10**6, ColumnType(Kind.TIME, precision=3))
        case _:
            return literal_value(value)


def _dated(arguments: list[Expression]) -> list[Expression]:
    """Texts beside dates and times, read as these."""
    kinds = {argument.type.kind for argument in arguments} - STRINGS
    wanted = next((kind for kind in (Kind.TIMESTAMP_LTZ, Kind.TIMESTAMP, Kind.DATE, Kind.TIME) if kind in kinds), None)
    return arguments if wanted is None else [_read_as(argument, wanted) for argument in arguments]


def _read_as(argument: Expression, wanted: Kind) -> Expression:
    if not isinstance(argument, LiteralValue) or not isinstance(argument.value, str):
        return argument
    if wanted in TIMESTAMPS:
        return _literal(parse_timestamp(argument.value, zoned=wanted is Kind.TIMESTAMP_LTZ))
    return _literal(parse_date(argument.value) if wanted is Kind.DATE else parse_time(argument.value))


def constant_of(term: Term) -> Literal:
    """The value of a term without columns, as a literal; raises as ``bind_term``, and ``InvalidFilter`` where it has none."""
    expression = bind_term(term, {})
    try:
        found = computed(expression, _no_column, 1)[0]
    except FilterFailed as error:
        raise InvalidFilter(str(error)) from error
    value = found.as_py() if expression.type.kind not in {Kind.DATE, Kind.TIME, *TIMESTAMPS} else found.value
    if value is None or isinstance(value, bool | float | str | bytes | Decimal):
        literal: Literal = value
        return literal
    match expression.type.kind:
        case Kind.DATE:
            return Day(int(value))
        case Kind.TIME:
            return Clock(int(value) * 10**6)
        case kind if kind in TIMESTAMPS:
            return Moment(int(value) * {"ms": 10**6, "us": 10**3, "ns": 1}[expression.type.unit])
        case _:
            return int(value)


def _no_column(column: ColumnValue) -> object:
    raise InvalidFilter(f"'{column}' is no literal")


def simplified(test: Expression) -> Condition | None:
    """A condition on a column alone that says what ``test`` says; None if ``test`` has to be computed.

    ``year(d) = 2024`` and ``CAST(ts AS DATE_TYPE) = DATE_TYPE '2024-01-31'`` are ranges, which statistics and indexes can answer.
    """
    if test.type != BOOLEAN_TYPE:
        raise InvalidFilter(f"'{test}' of type {test.type.kind} is no condition: compare it with something")
    if not any(True for _ in column_values(test)):
        try:
            return Constant(computed(test, _no_column, 1)[0].as_py())
        except FilterFailed as error:
            raise InvalidFilter(str(error)) from error
    if isinstance(test, FunctionCall) and test.function in _OPS:
        left, right = test.arguments
        if isinstance(right, LiteralValue):
            return _range(left, _OPS[test.function], right)
        if isinstance(left, LiteralValue):
            return _range(right, MIRRORED[_OPS[test.function]], left)
    return None


def _range(side: Expression, op: Op, literal: LiteralValue) -> Condition | None:
    """The days of a DATE or TIMESTAMP column between which the comparison holds."""
    match side, literal.value:
        case FunctionCall("year", (ColumnValue(name, key, _),), _), int(year) if -_MOST_YEARS < year < _MOST_YEARS:
            start, end = _new_year(year), _new_year(year + 1)
        case FunctionCall("cast", (ColumnValue(name, key, column_type),), _), int(day) if (
            column_type.kind in TIMESTAMPS and side.type == DATE_TYPE
        ):
            start, end = Day(day), Day(day + 1)
        case _:
            return None
    column = ColumnRef(name, key)
    match op:
        case Op.EQ:
            return All((Comparison(column, Op.GE, start), Comparison(column, Op.LT, end)))
        case Op.NE:
            return Not(All((Comparison(column, Op.GE, start), Comparison(column, Op.LT, end))))
        case Op.LT | Op.GE:
            return Comparison(column, op, start)
        case Op.LE:
            return Comparison(column, Op.LT, end)
        case Op.GT:
            return Comparison(column, Op.GE, end)


def _new_year(year: int) -> Day:
    cycles, small = divmod(year - 2000, 400)
    return Day(parse_date(f"{2000 + small}").days + cycles * 146_097)


__all__ = ["bind_term", "constant_of", "simplified"]
