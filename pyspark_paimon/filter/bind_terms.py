"""Binding what is computed: columns get their types, literals Spark's, and conditions that are ranges of a column become ranges."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from fileindex.base.column_type import STRINGS, TIMESTAMPS, ColumnType, Kind
from fileindex.base.errors import FilterFailed, InvalidFilter
from fileindex.base.time_zone import UTC, session_zone
from fileindex.expression import zones
from fileindex.expression.calendar import PARTS
from fileindex.expression.compute import computed
from fileindex.expression.functions import call, cast_to
from fileindex.expression.json import MOST_NESTED
from fileindex.expression.literals import literal_value
from fileindex.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue, column_values
from fileindex.expression.types import BOOLEAN_TYPE, DATE_TYPE, TEXT_TYPE
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
from pyspark_paimon.filter.literals import nanos_of, parse_date, parse_time, parse_timestamp

_OPS = {op.value: op for op in Op}
_MOST_YEARS = 30_000
_DAY_NANOS = 86_400 * 10**9
_MEETING = frozenset({*_OPS, "<=>", "coalesce", "case"})
"""Calls whose arguments meet in one type."""


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
            return _cast(bind_term(argument, types, depth + 1), wanted)
        case Computation(name, arguments):
            bound = [bind_term(argument, types, depth + 1) for argument in arguments]
            return _call(name, _dated(bound) if name in _MEETING else bound)


def _cast(argument: Expression, wanted: ColumnType) -> Expression:
    """CAST, by the session's zone between instants and what clocks show."""
    given = argument.type.kind
    if given is Kind.TIMESTAMP_LTZ and wanted.kind in {Kind.TIMESTAMP, Kind.DATE}:
        return cast_to(_turned(zones.LOCAL, argument), wanted)
    if given in {Kind.TIMESTAMP, Kind.DATE} and wanted.kind is Kind.TIMESTAMP_LTZ:
        return _turned(zones.INSTANT, cast_to(argument, zones.wall_type(wanted)))
    return cast_to(argument, wanted)


def _call(name: str, arguments: list[Expression]) -> Expression:
    """A call whose arguments are read in the session's zone where it asks for a calendar, or puts both kinds of timestamps together."""
    if not any(argument.type.kind is Kind.TIMESTAMP_LTZ for argument in arguments):
        return call(name, arguments)
    if name == "date_trunc" and (zone := session_zone()) != UTC:
        made = call(name, arguments)
        return call(zones.TRUNCATED, [*made.arguments, LiteralValue(zone, TEXT_TYPE)])
    if name in PARTS or name in {"date_add", "datediff"}:
        arguments = [_turned(zones.LOCAL, one) if one.type.kind is Kind.TIMESTAMP_LTZ else one for one in arguments]
    elif name in _MEETING:
        places = range(1, len(arguments), 2) if name == "case" else range(len(arguments))
        chosen = {*places, len(arguments) - 1}
        met = [one for at, one in enumerate(arguments) if at in chosen and one.type.kind in TIMESTAMPS]
        if any(one.type.kind is Kind.TIMESTAMP_LTZ for one in met):
            widest = ColumnType(Kind.TIMESTAMP_LTZ, precision=max(one.type.precision for one in met))
            arguments = [
                _cast(one, widest) if at in chosen and one.type.kind in {Kind.DATE, Kind.TIMESTAMP} else one
                for at, one in enumerate(arguments)
            ]
    return call(name, arguments)


def _turned(function: str, argument: Expression) -> Expression:
    """``argument`` as a timestamp of the other kind; a literal at once."""
    zone = session_zone()
    wanted = (zones.wall_type if function == zones.LOCAL else zones.instant_type)(argument.type)
    if zone == UTC:
        return cast_to(argument, wanted)
    made = call(function, [argument, LiteralValue(zone, TEXT_TYPE)])
    if any(True for _ in column_values(argument)):
        return made
    return LiteralValue(computed(made, _no_column, 1)[0].value, wanted)


def _literal(value: Literal) -> LiteralValue:
    match value:
        case Day(days):
            return LiteralValue(days, DATE_TYPE)
        case Moment():
            nanos = nanos_of(value, Kind.TIMESTAMP_LTZ)
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
            nanos = int(value) * {"ms": 10**6, "us": 10**3, "ns": 1}[expression.type.unit]
            return Moment(nanos, wall=kind is Kind.TIMESTAMP)
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


def hull(test: Expression) -> Condition | None:
    """A condition on a column that is true wherever ``test`` is, if ``test`` compares days of a zone; statistics can answer it."""
    match test:
        case FunctionCall(op, (side, LiteralValue() as literal), _) if op in _OPS:
            pass
        case FunctionCall(op, (LiteralValue() as literal, side), _) if op in _OPS:
            op = MIRRORED[_OPS[op]].value
        case _:
            return None
    match side:
        case FunctionCall(name, (FunctionCall(zones.LOCAL, (ColumnValue() as column, _), _),), result):
            found = _range(FunctionCall(name, (column,), result), _OPS[op], literal)
        case _:
            return None
    return None if found is None else _widened(found)


def _widened(condition: Condition) -> Condition | None:
    """Bounds two days apart from those given, in UTC: farther than any zone is."""
    match condition:
        case All(children):
            found = [_widened(child) for child in children]
            return All(tuple(child for child in found if child is not None))
        case Comparison(column, op, Day(days)):
            moved = days - 2 if op in {Op.GE, Op.GT} else days + 2
            return Comparison(column, op, Moment(moved * _DAY_NANOS))
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


__all__ = ["bind_term", "constant_of", "hull", "simplified"]
