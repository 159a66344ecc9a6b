"""Binding of computed terms to typed expressions.

Columns get the types of the table, literals get Spark's types. Conditions that are ranges of a column become ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from fileindex.predicate.evaluate_rows import type_of
from fileindex.predicate.tree import ColumnRef, Op
from paimon_base.errors import FilterFailed, InvalidFilter
from paimon_base.texts import count_text
from pyspark_paimon.filter.ast import (
    MIRRORED,
    And,
    Casting,
    Comparison,
    Computation,
    Condition,
    Constant,
    DateLiteral,
    GivenValue,
    Literal,
    Not,
    Term,
    TimeLiteral,
    TimestampLiteral,
)
from pyspark_paimon.filter.columns import StatementText, resolve_whole
from pyspark_paimon.filter.literals import nanos_of, parse_date, parse_time, parse_timestamp
from sparkexpr.expression import calendar, variants
from sparkexpr.expression.calendar import PARTS
from sparkexpr.expression.coercion import cast_to
from sparkexpr.expression.compute import compute
from sparkexpr.expression.functions import call
from sparkexpr.expression.json import MOST_NESTED
from sparkexpr.expression.literals import literal_value
from sparkexpr.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue, column_values
from sparkexpr.expression.types import BOOLEAN_TYPE, DATE_TYPE, TEXT_TYPE
from sparkexpr.values.column_type import FLOATS, INTEGERS, STRINGS, TIMESTAMPS, ColumnType, Kind
from sparkexpr.values.time_zone import UTC, session_zone

_OPS = {op.value: op for op in Op}
_MOST_YEARS = 30_000
_DAY_NANOS = 86_400 * 10**9
_MEETING = frozenset({*_OPS, "<=>", "in", "coalesce", "case", "greatest", "least", "array"})
"""Calls whose arguments are converted to one common type."""
_OF_DAYS = frozenset({"date_add", "datediff", "add_months", "last_day", "trunc"})
"""Calls of days, for which instants are days in the session's time zone."""
_TIMES = frozenset({Kind.DATE, *TIMESTAMPS})


def bind_term(term: Term, types: Mapping[str, ColumnType], depth: int = 0) -> Expression:
    """Return the typed expression of a term.

    Raises:
        UnknownColumn: the table has no such column.
        InvalidFilter: a function is unknown, or does not accept these arguments.
    """
    if depth > MOST_NESTED:
        raise InvalidFilter(f"an expression nests deeper than {MOST_NESTED} calls; simplify it")
    match term:
        case ColumnRef():
            name = resolve_whole(term, types)
            if term.key is not None and types[name].kind is Kind.ROW:
                return call("item", [ColumnValue(name, None, types[name]), LiteralValue(term.key, TEXT_TYPE)])
            return ColumnValue(name, term.key, type_of(ColumnRef(name, term.key), types))
        case GivenValue(value):
            return _literal(value)
        case Casting(argument, target):
            return _cast(bind_term(argument, types, depth + 1), target)
        case Computation("in", (_,)):
            return LiteralValue(False, BOOLEAN_TYPE)
        case Computation("in", (value, *items)) if not all(isinstance(item, GivenValue) for item in items):
            return bind_term(Computation("or", tuple([Computation("=", (value, item)) for item in items])), types, depth)
        case Computation(name, arguments):
            bound = [bind_term(argument, types, depth + 1) for argument in arguments]
            return _call(name, _parse_time_literals(bound) if name in _MEETING else bound)


def _cast(argument: Expression, target_type: ColumnType) -> Expression:
    """Return a CAST, converting TIMESTAMP_LTZ in the session's time zone."""
    if target_type.kind in _TIMES and isinstance(argument, LiteralValue) and isinstance(argument.value, str):
        argument = _read_as(argument, target_type.kind)
    source_kind = argument.type.kind
    if source_kind is Kind.VARIANT:
        return _getter("variant_get", [argument, *(LiteralValue(text, TEXT_TYPE) for text in ("$", variants.type_name(target_type)))])
    if source_kind is Kind.TIMESTAMP_LTZ and target_type.kind in {Kind.TIMESTAMP, Kind.DATE}:
        return cast_to(_convert_timestamp(calendar.LOCAL, argument), target_type)
    if source_kind in {Kind.TIMESTAMP, Kind.DATE} and target_type.kind is Kind.TIMESTAMP_LTZ:
        return _convert_timestamp(calendar.INSTANT, cast_to(argument, calendar.wall_type(target_type)))
    return cast_to(argument, target_type)


def assigned(value: Expression, column_type: ColumnType, text: object = None) -> Expression:
    """Return the value that a column of type ``column_type`` is set to.

    As in Spark, wall clocks become instants of the session's time zone, instants wall clocks, and a DATE either. Columns of floats take
    decimals by the nearest number: 2.0 is a DECIMAL in SQL. Other numbers lose no digits: the check of the rows refuses them.

    text: The expression as given. A ``StatementText`` may also set other numbers to floats, and texts to numbers, as an INSERT does.
    """
    source_kind, in_statement = value.type.kind, isinstance(text, StatementText)
    if source_kind is Kind.DECIMAL and column_type.kind in FLOATS:
        return _cast(value, column_type)
    if in_statement and source_kind in FLOATS and source_kind is not column_type.kind and column_type.kind in FLOATS | {Kind.DECIMAL}:
        return _cast(value, column_type)
    if in_statement and column_type.kind in STRINGS and source_kind in INTEGERS | FLOATS | _TIMES | {Kind.BOOLEAN}:
        return _cast(value, TEXT_TYPE)
    if column_type.kind not in TIMESTAMPS or value.type.kind not in _TIMES or value.type.kind is column_type.kind:
        return value
    return _cast(value, ColumnType(column_type.kind, precision=value.type.precision or column_type.precision))


def _call(name: str, arguments: list[Expression]) -> Expression:
    """Return a function call, converting TIMESTAMP_LTZ arguments where needed.

    Calendar functions read instants in the session's zone. Calls that need one common type convert DATE and TIMESTAMP
    arguments to TIMESTAMP_LTZ if one argument is of that type.
    """
    if name in variants.GETTERS:
        return _getter(name, arguments)
    if name == "try_cast":
        value, target_type = arguments
        if value.type.kind is not Kind.VARIANT:
            raise InvalidFilter(f"a TRY_CAST of {value} of type {value.type.kind} is not supported in filters; write CAST")
        return _getter("try_variant_get", [value, LiteralValue("$", TEXT_TYPE), target_type])
    if name == calendar.SHIFTED or name in _OF_DAYS:
        arguments = [_read_as(arguments[0], Kind.TIMESTAMP if name == calendar.SHIFTED else Kind.DATE), *arguments[1:]]
    if not any(argument.type.kind is Kind.TIMESTAMP_LTZ for argument in arguments):
        return call(name, arguments)
    if name == calendar.SHIFTED and (zone := session_zone()) != UTC:
        return call(name, [*arguments, LiteralValue(zone, TEXT_TYPE)])
    if name == "date_trunc" and (zone := session_zone()) != UTC:
        truncation = call(name, arguments)
        return call(calendar.TRUNCATED, [*truncation.arguments, LiteralValue(zone, TEXT_TYPE)])
    if name in PARTS or name in _OF_DAYS:
        arguments = [
            _convert_timestamp(calendar.LOCAL, operand) if operand.type.kind is Kind.TIMESTAMP_LTZ else operand for operand in arguments
        ]
    elif name in _MEETING:
        places = range(1, len(arguments), 2) if name == "case" else range(len(arguments))
        value_positions = {*places, len(arguments) - 1}
        met = [operand for position, operand in enumerate(arguments) if position in value_positions and operand.type.kind in TIMESTAMPS]
        if any(operand.type.kind is Kind.TIMESTAMP_LTZ for operand in met):
            widest = ColumnType(Kind.TIMESTAMP_LTZ, precision=max(operand.type.precision for operand in met))
            arguments = [
                _cast(operand, widest) if position in value_positions and operand.type.kind in {Kind.DATE, Kind.TIMESTAMP} else operand
                for position, operand in enumerate(arguments)
            ]
    return call(name, arguments)


def _getter(name: str, arguments: list[Expression]) -> Expression:
    """Return a value of a VARIANT, whose clocks are those of the session's time zone."""
    if len(arguments) > 3:
        raise InvalidFilter(f"'{name}' takes a VARIANT, a path and a type, not {count_text(len(arguments), 'argument')}")
    if len(arguments) > 1 and isinstance(inner := arguments[0], FunctionCall) and inner.type.kind is Kind.VARIANT:
        arguments = variants.join_paths(inner, arguments)
    getter = call(name, arguments)
    zone = session_zone() if variants.depends_on_zone(getter) else UTC
    return getter if zone == UTC else call(name, [*getter.arguments, LiteralValue(zone, TEXT_TYPE)])


def _convert_timestamp(function: str, argument: Expression) -> Expression:
    """Convert between local and instant timestamps; fold literals."""
    zone = session_zone()
    target_type = (calendar.wall_type if function == calendar.LOCAL else calendar.instant_type)(argument.type)
    if zone == UTC:
        return cast_to(argument, target_type)
    conversion = call(function, [argument, LiteralValue(zone, TEXT_TYPE)])
    if any(True for _ in column_values(argument)):
        return conversion
    return LiteralValue(compute(conversion, _no_column, 1)[0].value, target_type)


def _literal(value: Literal) -> LiteralValue:
    match value:
        case DateLiteral(days):
            return LiteralValue(days, DATE_TYPE)
        case TimestampLiteral():
            nanos = nanos_of(value, Kind.TIMESTAMP_LTZ)
            fine = nanos % 1000 != 0
            return LiteralValue(nanos if fine else nanos // 1000, ColumnType(Kind.TIMESTAMP_LTZ, precision=9 if fine else 6))
        case TimeLiteral(nanos):
            if nanos % 10**6:
                raise InvalidFilter("a TIME inside a computed expression has millisecond precision at most; round the literal")
            return LiteralValue(nanos // 10**6, ColumnType(Kind.TIME, precision=3))
        case _:
            return literal_value(value)


def _parse_time_literals(arguments: list[Expression]) -> list[Expression]:
    """Parse text literals that meet dates or times."""
    kinds = {argument.type.kind for argument in arguments} - STRINGS
    time_kind = next((kind for kind in (Kind.TIMESTAMP_LTZ, Kind.TIMESTAMP, Kind.DATE, Kind.TIME) if kind in kinds), None)
    return arguments if time_kind is None else [_read_as(argument, time_kind) for argument in arguments]


def _read_as(argument: Expression, kind: Kind) -> Expression:
    if not isinstance(argument, LiteralValue) or not isinstance(argument.value, str):
        return argument
    if kind in TIMESTAMPS:
        return _literal(parse_timestamp(argument.value, zoned=kind is Kind.TIMESTAMP_LTZ))
    return _literal(parse_date(argument.value) if kind is Kind.DATE else parse_time(argument.value))


def constant_of(term: Term) -> Literal:
    """Evaluate a term without columns to a literal.

    Raises the errors of ``bind_term``, and ``InvalidFilter`` if the evaluation fails.
    """
    expression = bind_term(term, {})
    try:
        scalar = compute(expression, _no_column, 1)[0]
    except FilterFailed as error:
        raise InvalidFilter(str(error)) from error
    value = scalar.as_py() if expression.type.kind not in {Kind.DATE, Kind.TIME, *TIMESTAMPS} else scalar.value
    if value is None or isinstance(value, bool | float | str | bytes | Decimal):
        literal: Literal = value
        return literal
    match expression.type.kind:
        case Kind.DATE:
            return DateLiteral(int(value))
        case Kind.TIME:
            return TimeLiteral(int(value) * 10**6)
        case kind if kind in TIMESTAMPS:
            nanos = int(value) * {"ms": 10**6, "us": 10**3, "ns": 1}[expression.type.unit]
            return TimestampLiteral(nanos, wall=kind is Kind.TIMESTAMP)
        case _:
            return int(value)


def _no_column(column: ColumnValue) -> object:
    raise InvalidFilter(f"'{column}' is a column; a literal is expected here")


def simplify(test: Expression) -> Condition | None:
    """Return an equivalent condition that needs no computation, or None.

    ``year(d) = 2024`` and ``CAST(ts AS DATE) = DATE '2024-01-31'`` become ranges, which statistics and indexes can answer.
    """
    if test.type != BOOLEAN_TYPE:
        raise InvalidFilter(f"'{test}' of type {test.type.kind} is not a condition: compare it with a value")
    if not any(True for _ in column_values(test)):
        try:
            return Constant(compute(test, _no_column, 1)[0].as_py())
        except FilterFailed as error:
            raise InvalidFilter(str(error)) from error
    if isinstance(test, FunctionCall) and test.function in _OPS:
        left, right = test.arguments
        if isinstance(right, LiteralValue):
            return _range(left, _OPS[test.function], right)
        if isinstance(left, LiteralValue):
            return _range(right, MIRRORED[_OPS[test.function]], left)
    return None


def enclosing_range(test: Expression) -> Condition | None:
    """Return a range that contains all rows of ``test``.

    Only for a comparison of the year or day of an instant in a time zone; None for any other. Statistics can answer the
    range; the caller still computes ``test``.
    """
    match test:
        case FunctionCall(op, (side, LiteralValue() as literal), _) if op in _OPS:
            pass
        case FunctionCall(op, (LiteralValue() as literal, side), _) if op in _OPS:
            op = MIRRORED[_OPS[op]].value
        case _:
            return None
    match side:
        case FunctionCall(name, (FunctionCall(calendar.LOCAL, (ColumnValue() as column, _), _),), result):
            condition = _range(FunctionCall(name, (column,), result), _OPS[op], literal)
        case _:
            return None
    return None if condition is None else _widen(condition)


def _widen(condition: Condition) -> Condition | None:
    """Widen day bounds so that they hold in every zone."""
    # No zone is as much as two days from UTC.
    match condition:
        case And(children):
            widened = [_widen(child) for child in children]
            return And(tuple(child for child in widened if child is not None))
        case Comparison(column, op, DateLiteral(days)):
            moved = days - 2 if op in {Op.GE, Op.GT} else days + 2
            return Comparison(column, op, TimestampLiteral(moved * _DAY_NANOS))
    return None


def _range(side: Expression, op: Op, literal: LiteralValue) -> Condition | None:
    """Return the days in which a comparison is true."""
    match side, literal.value:
        case FunctionCall("year", (ColumnValue(name, key, _),), _), int(year) if -_MOST_YEARS < year < _MOST_YEARS:
            start, end = _new_year(year), _new_year(year + 1)
        case FunctionCall("cast", (ColumnValue(name, key, column_type),), _), int(day) if (
            column_type.kind in TIMESTAMPS and side.type == DATE_TYPE
        ):
            start, end = DateLiteral(day), DateLiteral(day + 1)
        case _:
            return None
    column = ColumnRef(name, key)
    match op:
        case Op.EQ:
            return And((Comparison(column, Op.GE, start), Comparison(column, Op.LT, end)))
        case Op.NE:
            return Not(And((Comparison(column, Op.GE, start), Comparison(column, Op.LT, end))))
        case Op.LT | Op.GE:
            return Comparison(column, op, start)
        case Op.LE:
            return Comparison(column, Op.LT, end)
        case Op.GT:
            return Comparison(column, Op.GE, end)


def _new_year(year: int) -> DateLiteral:
    cycles, small = divmod(year - 2000, 400)
    return DateLiteral(parse_date(f"{2000 + small}").days + cycles * 146_097)
