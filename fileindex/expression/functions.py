"""The functions of filters: what each takes, what it gives, and how Arrow computes it. What is not here is refused by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

from fileindex.base.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, ColumnType, Kind
from fileindex.base.errors import InvalidFilter
from fileindex.base.time_zone import zone_named
from fileindex.expression import arithmetic, calendar, comparison, text, zones
from fileindex.expression.arithmetic import Arrays
from fileindex.expression.casts import cast_kernel
from fileindex.expression.literals import is_null_literal, literal_as, tight_decimal
from fileindex.expression.tree import Expression, FunctionCall, LiteralValue
from fileindex.expression.types import (
    BIGINT_TYPE,
    BOOLEAN_TYPE,
    BYTES_TYPE,
    DATE_TYPE,
    DOUBLE_TYPE,
    INT_TYPE,
    TEXT_TYPE,
    as_decimal,
    common_type,
    is_number,
    product_type,
    sum_type,
)

_Kernel = Callable[[Arrays, ColumnType], Any]
_Sign = Callable[[str, tuple[Expression, ...]], FunctionCall]


@dataclass(frozen=True)
class FunctionRule:
    """How many arguments a function takes (``most`` None: any number), how a call of it is typed, and what computes it.

    ``kernel`` gets the arguments' arrays and the call's type; None: ``compute`` evaluates the arguments itself.
    """

    least: int
    most: int | None
    sign: _Sign
    kernel: _Kernel | None


def call(name: str, arguments: Sequence[Expression]) -> FunctionCall:
    """A call of a function, its arguments turned into the types that it takes.

    Raises ``InvalidFilter`` for a function that is not known, or does not take such arguments.

    >>> from fileindex.expression.literals import literal_value
    >>> str(call("length", [literal_value("Oslo")])), call("=", [literal_value(1), literal_value(2.5)]).arguments[0].value
    ("length('Oslo')", 1.0)
    """
    rule = FUNCTION_RULES.get(name)
    if rule is None:
        near = get_close_matches(name, FUNCTION_RULES, n=1)
        hint = f", did you mean '{near[0]}'?" if near else ""
        raise InvalidFilter(f"the function '{name}' is not computed in filters{hint}; filter the result for it")
    if len(arguments) < rule.least or (rule.most is not None and len(arguments) > rule.most):
        most = "or more" if rule.most is None else f"to {rule.most}" if rule.most > rule.least else ""
        raise InvalidFilter(f"'{name}' takes {rule.least} {most} arguments, not {len(arguments)}".replace("  ", " "))
    return rule.sign(name, tuple(arguments))


def cast_to(argument: Expression, wanted: ColumnType) -> Expression:
    """``argument`` as a value of ``wanted``, as CAST has it. Raises ``InvalidFilter`` for types that are not turned exactly."""
    if (
        argument.type == wanted
        or (wanted == TEXT_TYPE and argument.type.kind in STRINGS)
        or (wanted == BYTES_TYPE and argument.type.kind in BINARIES)
    ):
        return argument
    if isinstance(argument, LiteralValue):
        literal = literal_as(argument, wanted)
        if literal is not None:
            return literal
    cast_kernel(argument.type, wanted)
    return FunctionCall("cast", (argument,), wanted)


def shared_type(name: str, arguments: Sequence[Expression]) -> ColumnType:
    """The type in which all arguments meet; NULLs and literal numbers take the others' side as Spark lets them."""
    typed = [argument for argument in arguments if not is_null_literal(argument)]
    if not typed:
        return BOOLEAN_TYPE
    floats = any(argument.type.kind in FLOATS for argument in typed)
    found: ColumnType | None = None
    for argument in typed:
        kind = _met(argument, floats=floats, decimals=any(one.type.kind is Kind.DECIMAL for one in typed))
        found = kind if found is None else common_type(found, kind, name)
    assert found is not None
    if found.kind in STRINGS:
        return TEXT_TYPE
    return BYTES_TYPE if found.kind in BINARIES else found


def _met(argument: Expression, *, floats: bool, decimals: bool) -> ColumnType:
    if isinstance(argument, LiteralValue) and argument.value is not None:
        if argument.type.kind is Kind.DECIMAL and floats:
            return DOUBLE_TYPE
        if argument.type.kind in INTEGERS and decimals:
            return tight_decimal(argument)
    return argument.type


def _alike(name: str, arguments: tuple[Expression, ...], result: ColumnType | None = None) -> FunctionCall:
    """All arguments in one type, which is the result's unless another is given."""
    shared = shared_type(name, arguments)
    return FunctionCall(name, tuple(cast_to(argument, shared) for argument in arguments), result or shared)


def _compared(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    return _alike(name, arguments, BOOLEAN_TYPE)


def _taking(wanted: ColumnType, result: ColumnType) -> _Sign:
    """Arguments of one type."""

    def sign(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
        for argument in arguments:
            if argument.type.kind is not wanted.kind and not is_null_literal(argument) and not _widens(argument.type, wanted):
                raise InvalidFilter(f"'{name}' takes {wanted.kind}, not {argument} of type {argument.type.kind}")
        return FunctionCall(name, tuple(cast_to(argument, wanted) for argument in arguments), result)

    return sign


def _widens(given: ColumnType, wanted: ColumnType) -> bool:
    if wanted.kind in STRINGS:
        return given.kind in STRINGS
    if wanted.kind is Kind.DOUBLE:
        return given.kind in INTEGERS | FLOATS
    return (
        given.kind in INTEGERS and wanted.kind in {Kind.INT, Kind.BIGINT} and (wanted.kind is Kind.BIGINT or given.kind is not Kind.BIGINT)
    )


def _reckoned(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """``+``, ``-``, ``*`` and ``%``: in the wider of two integer types, in DOUBLE, or in a DECIMAL that holds every result."""
    for argument in arguments:
        if not is_number(argument.type) and not is_null_literal(argument):
            raise InvalidFilter(f"'{name}' reckons with numbers, not with {argument} of type {argument.type.kind}")
    shared = shared_type(name, arguments)
    if shared == BOOLEAN_TYPE:
        shared = INT_TYPE
    if shared.kind is not Kind.DECIMAL:
        return FunctionCall(name, tuple(cast_to(argument, shared) for argument in arguments), shared)
    if name not in _DECIMAL_RESULTS:
        raise InvalidFilter(f"'{name}' of DECIMALs is rounded by rules that are not built; write a CAST of both sides to DOUBLE")
    sides = tuple(cast_to(argument, _as_decimal(argument, shared)) for argument in arguments)
    left, right = (side.type for side in sides)
    return FunctionCall(name, sides, _DECIMAL_RESULTS[name](left, right, name))


def _as_decimal(argument: Expression, shared: ColumnType) -> ColumnType:
    if is_null_literal(argument):
        return shared
    return tight_decimal(argument) if isinstance(argument, LiteralValue) and argument.type.kind in INTEGERS else as_decimal(argument.type)


_DECIMAL_RESULTS = {"+": sum_type, "-": sum_type, "*": product_type}


def _quotient(_: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Arrow's ``divide``: of whole numbers a whole number, towards zero."""
    whole = all(argument.type.kind in INTEGERS or is_null_literal(argument) for argument in arguments)
    return call("div" if whole else "/", arguments)


def _number(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    (argument,) = arguments
    if not is_number(argument.type):
        raise InvalidFilter(f"'{name}' takes a number, not {argument} of type {argument.type.kind}")
    return FunctionCall(name, arguments, argument.type)


def _measured(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    (argument,) = arguments
    return FunctionCall(
        name, (argument if argument.type.kind in BINARIES else _taking(TEXT_TYPE, INT_TYPE)(name, arguments).arguments[0],), INT_TYPE
    )


def _kinds(wanted: frozenset[Kind], said: str, result: ColumnType) -> _Sign:
    def sign(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
        for argument in arguments:
            if argument.type.kind not in wanted:
                raise InvalidFilter(f"'{name}' takes {said}, not {argument} of type {argument.type.kind}")
        return FunctionCall(name, arguments, result)

    return sign


def _any(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    return FunctionCall(name, arguments, BOOLEAN_TYPE)


def _chosen(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """``case(condition, value, ..., otherwise)``: conditions are BOOLEAN, values of one type."""
    if len(arguments) % 2 == 0:
        raise InvalidFilter("CASE takes pairs of a condition and a value, and a value for the rest")
    conditions = _taking(BOOLEAN_TYPE, BOOLEAN_TYPE)(name, arguments[:-1:2]).arguments
    values = _alike(name, (*arguments[1::2], arguments[-1]))
    pairs = [one for pair in zip(conditions, values.arguments, strict=False) for one in pair]
    return FunctionCall(name, (*pairs, values.arguments[-1]), values.type)


def _patterned(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    value, *patterns = arguments
    for pattern in patterns:
        if not isinstance(pattern, LiteralValue):
            raise InvalidFilter(f"'{name}' takes a text in quotes as its pattern, not {pattern}")
        text.literal_text(pattern.value, pattern.type, name)
    if name == "like":
        text.like_parts(*(str(pattern.value) for pattern in patterns))  # type: ignore[union-attr]  # literals, as just seen
    return FunctionCall(name, (_taking(TEXT_TYPE, TEXT_TYPE)(name, (value,)).arguments[0], *patterns), BOOLEAN_TYPE)


def _cut(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    value, *numbers = arguments
    if not all(isinstance(number, LiteralValue) and number.type.kind is Kind.INT for number in numbers):
        raise InvalidFilter(f"'{name}' takes whole numbers as its places, not {', '.join(map(str, numbers))}")
    return FunctionCall(name, (_taking(TEXT_TYPE, TEXT_TYPE)(name, (value,)).arguments[0], *numbers), TEXT_TYPE)


def _floored(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    unit, value = arguments
    named = str(unit.value).lower() if isinstance(unit, LiteralValue) else ""
    if named not in calendar.UNITS or value.type.kind not in TIMESTAMPS:
        raise InvalidFilter(f"'{name}' takes one of {', '.join(calendar.UNITS)}, and a TIMESTAMP; of a DATE compare year(), month() ...")
    return FunctionCall(name, (LiteralValue(named, TEXT_TYPE), value), value.type)


def _shifted(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """``date_add`` and ``datediff``: of days; the day of a TIMESTAMP is taken."""
    first, second = arguments
    if name == "datediff":
        return FunctionCall(name, (cast_to(first, DATE_TYPE), cast_to(second, DATE_TYPE)), INT_TYPE)
    return FunctionCall(name, (cast_to(first, DATE_TYPE), _taking(INT_TYPE, INT_TYPE)(name, (second,)).arguments[0]), DATE_TYPE)


def _zoned(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """A timestamp of one kind as the other's, in the zone that a literal names."""
    *_, value, zone = arguments
    given, wanted = (Kind.TIMESTAMP, zones.instant_type) if name == zones.INSTANT else (Kind.TIMESTAMP_LTZ, zones.wall_type)
    if value.type.kind is not given or not isinstance(zone, LiteralValue) or zone_named(str(zone.value)) != zone.value:
        raise InvalidFilter(f"'{name}' takes a {given} and a time zone, not {', '.join(map(str, arguments))}")
    return FunctionCall(name, arguments, value.type if name == zones.TRUNCATED else wanted(value.type))


def _part(name: str, values: Arrays, _: ColumnType) -> Any:
    return calendar.part_of(name, values)


_DAYS = frozenset({Kind.DATE, *TIMESTAMPS})
_MOMENTS = TIMESTAMPS | {Kind.TIME}
_CLOCK = {"hour", "minute", "second"}

FUNCTION_RULES: dict[str, FunctionRule] = {
    "+": FunctionRule(2, 2, _reckoned, arithmetic.add),
    "-": FunctionRule(2, 2, _reckoned, arithmetic.subtract),
    "*": FunctionRule(2, 2, _reckoned, arithmetic.multiply),
    "%": FunctionRule(2, 2, _reckoned, arithmetic.remainder),
    "/": FunctionRule(2, 2, _taking(DOUBLE_TYPE, DOUBLE_TYPE), arithmetic.divide),
    "div": FunctionRule(2, 2, _taking(BIGINT_TYPE, BIGINT_TYPE), arithmetic.divide_whole),
    "quotient": FunctionRule(2, 2, _quotient, None),
    "negative": FunctionRule(1, 1, _number, arithmetic.negative),
    "abs": FunctionRule(1, 1, _number, arithmetic.absolute),
    **{name: FunctionRule(2, 2, _compared, None) for name in comparison.COMPARISONS},
    "<=>": FunctionRule(2, 2, _compared, None),
    "isnull": FunctionRule(1, 1, _any, comparison.null_test),
    "isnan": FunctionRule(1, 1, _kinds(FLOATS, "a FLOAT or DOUBLE", BOOLEAN_TYPE), comparison.nan_test),
    "not": FunctionRule(1, 1, _taking(BOOLEAN_TYPE, BOOLEAN_TYPE), comparison.inverted),
    "and": FunctionRule(1, None, _taking(BOOLEAN_TYPE, BOOLEAN_TYPE), None),
    "or": FunctionRule(1, None, _taking(BOOLEAN_TYPE, BOOLEAN_TYPE), None),
    "coalesce": FunctionRule(1, None, _alike, None),
    "case": FunctionRule(3, None, _chosen, None),
    "lower": FunctionRule(1, 1, _taking(TEXT_TYPE, TEXT_TYPE), text.lower),
    "upper": FunctionRule(1, 1, _taking(TEXT_TYPE, TEXT_TYPE), text.upper),
    "trim": FunctionRule(1, 1, _taking(TEXT_TYPE, TEXT_TYPE), text.trim),
    "ltrim": FunctionRule(1, 1, _taking(TEXT_TYPE, TEXT_TYPE), text.ltrim),
    "rtrim": FunctionRule(1, 1, _taking(TEXT_TYPE, TEXT_TYPE), text.rtrim),
    "reverse": FunctionRule(1, 1, _taking(TEXT_TYPE, TEXT_TYPE), text.reverse),
    "concat": FunctionRule(1, None, _taking(TEXT_TYPE, TEXT_TYPE), text.concat),
    "length": FunctionRule(1, 1, _measured, text.length),
    "octet_length": FunctionRule(1, 1, _measured, text.octet_length),
    "substring": FunctionRule(2, 3, _cut, None),
    "like": FunctionRule(3, 3, _patterned, None),
    "contains": FunctionRule(2, 2, _patterned, None),
    "startswith": FunctionRule(2, 2, _patterned, None),
    "endswith": FunctionRule(2, 2, _patterned, None),
    "date_trunc": FunctionRule(2, 2, _floored, None),
    zones.LOCAL: FunctionRule(2, 2, _zoned, zones.local),
    zones.INSTANT: FunctionRule(2, 2, _zoned, zones.instant),
    zones.TRUNCATED: FunctionRule(3, 3, _zoned, None),
    "date_add": FunctionRule(2, 2, _shifted, calendar.days_after),
    "datediff": FunctionRule(2, 2, _shifted, calendar.days_between),
    **{
        name: FunctionRule(
            1,
            1,
            _kinds(_MOMENTS, "a TIMESTAMP or TIME", INT_TYPE) if name in _CLOCK else _kinds(_DAYS, "a DATE or TIMESTAMP", INT_TYPE),
            partial(_part, name),
        )
        for name in calendar.PARTS
    },
}


def kernel_of(made: FunctionCall) -> _Kernel | None:
    """What computes a call from the arrays of its arguments; None if they are not all evaluated for every row."""
    if made.function == "cast":
        return partial(_cast, cast_kernel(made.arguments[0].type, made.type))
    return FUNCTION_RULES[made.function].kernel


def _cast(kernel: Callable[[Any, ColumnType], Any], values: Arrays, wanted: ColumnType) -> Any:
    return kernel(values[0], wanted)


__all__ = ["FUNCTION_RULES", "FunctionRule", "call", "cast_to", "kernel_of", "shared_type"]
