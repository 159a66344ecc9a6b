"""The functions of filters: argument types, result type and kernel.

A function that is not listed here is rejected by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

from sparkexpr.errors import InvalidFilter, UnknownColumn
from sparkexpr.expression import arithmetic, calendar, comparison, java_regex, nested, rounding, text, variants
from sparkexpr.expression.arithmetic import Arrays
from sparkexpr.expression.casts import cast_kernel
from sparkexpr.expression.coercion import cast_to, shared_type
from sparkexpr.expression.literals import is_null_literal, tight_decimal
from sparkexpr.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue
from sparkexpr.expression.types import (
    BIGINT_TYPE,
    BOOLEAN_TYPE,
    DATE_TYPE,
    DOUBLE_TYPE,
    INT_TYPE,
    MOST_DIGITS,
    TEXT_TYPE,
    as_decimal,
    is_number,
    product_type,
    sum_type,
)
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, LISTS, STRINGS, TIMESTAMPS, WITH_PARTS, ColumnType, Kind
from sparkexpr.values.time_zone import zone_named

_Kernel = Callable[[Arrays, ColumnType], Any]
_Sign = Callable[[str, tuple[Expression, ...]], FunctionCall]
WITH_FIELD = "@with_field"
_MOST_PADDED = 4096
_DAY_UNITS = {
    "year": "year",
    "yyyy": "year",
    "yy": "year",
    "quarter": "quarter",
    "month": "month",
    "mon": "month",
    "mm": "month",
    "week": "week",
}
"""Units of ``trunc`` by their names."""


@dataclass(frozen=True)
class FunctionRule:
    """Argument count, typing and kernel of a function.

    ``max_arguments`` None: any number of arguments. ``kernel`` gets the arguments' arrays and the call's type.
    None: ``compute`` evaluates the arguments.
    """

    min_arguments: int
    max_arguments: int | None
    sign: _Sign
    kernel: _Kernel | None


def call(name: str, arguments: Sequence[Expression]) -> FunctionCall:
    """Return a function call, arguments cast to its types.

    Raises ``InvalidFilter`` for an unknown function, or arguments that it does not take.

    >>> from sparkexpr.expression.literals import literal_value
    >>> str(call("length", [literal_value("Oslo")])), call("=", [literal_value(1), literal_value(2.5)]).arguments[0].value
    ("length('Oslo')", 1.0)
    """
    rule = FUNCTION_RULES.get(name)
    if rule is None:
        near = get_close_matches(name, FUNCTION_RULES, n=1)
        hint = f", did you mean '{near[0]}'?" if near else ""
        raise InvalidFilter(f"the function '{name}' is not supported in filters{hint}; filter the result instead")
    if len(arguments) < rule.min_arguments or (rule.max_arguments is not None and len(arguments) > rule.max_arguments):
        count_text = (
            "or more" if rule.max_arguments is None else f"to {rule.max_arguments}" if rule.max_arguments > rule.min_arguments else ""
        )
        raise InvalidFilter(f"'{name}' takes {rule.min_arguments} {count_text} arguments, not {len(arguments)}".replace("  ", " "))
    return rule.sign(name, tuple(arguments))


def _with_shared_type(name: str, arguments: tuple[Expression, ...], result: ColumnType | None = None) -> FunctionCall:
    """Return a call with all arguments cast to one type.

    ``result`` is the type of the call. None: the same type.
    """
    shared = shared_type(name, arguments)
    if len(arguments) > 1 and (shared.kind in LISTS or shared.kind in {Kind.ROW, Kind.MULTISET}):
        raise InvalidFilter(f"'{name}' does not take a value of type {shared.kind}; write IS NULL to test it for NULL")
    return FunctionCall(name, tuple(cast_to(argument, shared) for argument in arguments), result or shared)


def _comparison(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    return _with_shared_type(name, arguments, BOOLEAN_TYPE)


def _among(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type ``value IN (literals)``. Value and literals are compared in one type."""
    for listed in arguments[1:]:
        if not isinstance(listed, LiteralValue):
            raise InvalidFilter(f"'{name}' takes literals, not {listed}")
    compared = _comparison(name, arguments)
    for argument, listed in zip(arguments[1:], compared.arguments[1:], strict=True):
        if not isinstance(listed, LiteralValue):  # evaluation reads literals only
            raise InvalidFilter(
                f"'{name}': {argument} of type {argument.type.kind} does not fit {compared.arguments[0].type.kind}; write = and OR"
            )
    return compared


def _with_type(operand_type: ColumnType, result: ColumnType) -> _Sign:
    """Return a typing rule: all arguments have type ``operand_type``."""

    def sign(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
        for argument in arguments:
            if argument.type.kind is not operand_type.kind and not is_null_literal(argument) and not _widens(argument.type, operand_type):
                raise InvalidFilter(f"'{name}' takes {operand_type.kind}, not {argument} of type {argument.type.kind}")
        return FunctionCall(name, tuple(cast_to(argument, operand_type) for argument in arguments), result)

    return sign


def _widens(source: ColumnType, target: ColumnType) -> bool:
    if target.kind in STRINGS:
        return source.kind in STRINGS
    if target.kind is Kind.DOUBLE:
        return source.kind in INTEGERS | FLOATS
    return (
        source.kind in INTEGERS
        and target.kind in {Kind.INT, Kind.BIGINT}
        and (target.kind is Kind.BIGINT or source.kind is not Kind.BIGINT)
    )


def _arithmetic(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type ``+``, ``-``, ``*`` and ``%``.

    The type is the wider integer type, DOUBLE, or a DECIMAL that holds every result.
    """
    for argument in arguments:
        if not is_number(argument.type) and not is_null_literal(argument):
            raise InvalidFilter(f"'{name}' takes numbers, not {argument} of type {argument.type.kind}")
    shared = shared_type(name, arguments)
    if shared == BOOLEAN_TYPE:
        shared = INT_TYPE
    if shared.kind is not Kind.DECIMAL:
        return FunctionCall(name, tuple(cast_to(argument, shared) for argument in arguments), shared)
    if name not in _DECIMAL_RESULTS:
        raise InvalidFilter(f"'{name}' of DECIMALs is not supported, as its rounding differs; write a CAST of both sides to DOUBLE")
    sides = tuple(cast_to(argument, _as_decimal(argument, shared)) for argument in arguments)
    left, right = (side.type for side in sides)
    return FunctionCall(name, sides, _DECIMAL_RESULTS[name](left, right, name))


def _as_decimal(argument: Expression, shared: ColumnType) -> ColumnType:
    if is_null_literal(argument):
        return shared
    return tight_decimal(argument) if isinstance(argument, LiteralValue) and argument.type.kind in INTEGERS else as_decimal(argument.type)


_DECIMAL_RESULTS = {"+": sum_type, "-": sum_type, "*": product_type}


def _division(_: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type Arrow's ``divide``.

    Of two integers it is an integer, rounded towards zero.
    """
    is_integral = all(argument.type.kind in INTEGERS or is_null_literal(argument) for argument in arguments)
    return call("div" if is_integral else "/", arguments)


def _number(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    (argument,) = arguments
    if not is_number(argument.type):
        raise InvalidFilter(f"'{name}' takes a number, not {argument} of type {argument.type.kind}")
    return FunctionCall(name, arguments, argument.type)


def _length(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    (argument,) = arguments
    return FunctionCall(
        name, (argument if argument.type.kind in BINARIES else _with_type(TEXT_TYPE, INT_TYPE)(name, arguments).arguments[0],), INT_TYPE
    )


def _kinds(allowed_kinds: frozenset[Kind], description: str, result: ColumnType) -> _Sign:
    def sign(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
        for argument in arguments:
            if argument.type.kind not in allowed_kinds:
                raise InvalidFilter(f"'{name}' takes {description}, not {argument} of type {argument.type.kind}")
        return FunctionCall(name, arguments, result)

    return sign


def _any(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    return FunctionCall(name, arguments, BOOLEAN_TYPE)


def _case(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type ``case(condition, value, ..., otherwise)``.

    Conditions are BOOLEAN. All values have one type.
    """
    if len(arguments) % 2 == 0:
        raise InvalidFilter("CASE takes pairs of a condition and a value, and a value for ELSE")
    conditions = _with_type(BOOLEAN_TYPE, BOOLEAN_TYPE)(name, arguments[:-1:2]).arguments
    values = _with_shared_type(name, (*arguments[1::2], arguments[-1]))
    pairs = [operand for pair in zip(conditions, values.arguments, strict=False) for operand in pair]
    return FunctionCall(name, (*pairs, values.arguments[-1]), values.type)


def _pattern_match(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    value, *patterns = arguments
    for pattern in patterns:
        if not isinstance(pattern, LiteralValue):
            raise InvalidFilter(f"'{name}' takes a quoted text as its pattern, not {pattern}")
        text.literal_text(pattern.value, pattern.type, name)
    if name == "like":
        text.like_parts(*(str(pattern.value) for pattern in patterns))  # type: ignore[union-attr]  # checked above: all are literals
    if name == "rlike":
        java_regex.translate(*(str(pattern.value) for pattern in patterns))  # type: ignore[union-attr]  # as above
    return FunctionCall(name, (_with_type(TEXT_TYPE, TEXT_TYPE)(name, (value,)).arguments[0], *patterns), BOOLEAN_TYPE)


def _substring(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    value, *numbers = arguments
    if not all(isinstance(number, LiteralValue) and number.type.kind is Kind.INT for number in numbers):
        raise InvalidFilter(f"'{name}' takes integer literals as positions, not {', '.join(map(str, numbers))}")
    return FunctionCall(name, (_with_type(TEXT_TYPE, TEXT_TYPE)(name, (value,)).arguments[0], *numbers), TEXT_TYPE)


def _text_call(name: str, arguments: tuple[Expression, ...], kinds: tuple[Kind, ...]) -> tuple[Expression, ...]:
    """Check a function of one text and literals: texts, or whole numbers."""
    value, *literals = arguments
    for literal, kind in zip(literals, kinds, strict=False):
        if not isinstance(literal, LiteralValue) or (
            literal.type.kind not in STRINGS if kind is Kind.VARCHAR else literal.type.kind is not kind
        ):
            expected = "a quoted text" if kind is Kind.VARCHAR else "a whole number"
            raise InvalidFilter(f"'{name}' takes {expected} as this argument, not {literal}")
    return (_with_type(TEXT_TYPE, TEXT_TYPE)(name, (value,)).arguments[0], *literals)


def _with_literals(result: ColumnType, *kinds: Kind) -> _Sign:
    """Return a typing rule: a text, then literals of ``kinds``."""

    def sign(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
        return FunctionCall(name, _text_call(name, arguments, kinds), result)

    return sign


def _pad(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    filler = arguments[2] if len(arguments) > 2 else LiteralValue(" ", TEXT_TYPE)
    node = FunctionCall(name, _text_call(name, (*arguments[:2], filler), (Kind.INT, Kind.VARCHAR)), TEXT_TYPE)
    if _whole(node.arguments[1]) > _MOST_PADDED:
        raise InvalidFilter(f"'{name}' pads to {_MOST_PADDED} letters at most, not to {node.arguments[1]}")
    return node


def _repeat(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    node = FunctionCall(name, _text_call(name, arguments, (Kind.INT,)), TEXT_TYPE)
    if _whole(node.arguments[1]) > _MOST_PADDED:
        raise InvalidFilter(f"'{name}' repeats a text {_MOST_PADDED} times at most, not {node.arguments[1]} times")
    return node


def _split_part(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    node = FunctionCall(name, _text_call(name, arguments, (Kind.VARCHAR, Kind.INT)), TEXT_TYPE)
    if _whole(node.arguments[2]) == 0:
        raise InvalidFilter(f"'{name}' counts from 1, or from the end by -1, not from 0")
    return node


def _whole(argument: Expression) -> int:
    return int(argument.value or 0) if isinstance(argument, LiteralValue) else 0


def _as_double(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type a function of one DOUBLE."""
    return FunctionCall(name, (cast_to(_number(name, arguments).arguments[0], DOUBLE_TYPE),), DOUBLE_TYPE)


def _round(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    value = _number(name, arguments[:1]).arguments[0]
    places = arguments[1] if len(arguments) > 1 else LiteralValue(0, INT_TYPE)
    least = 0 if value.type.kind in FLOATS else -MOST_DIGITS
    if not isinstance(places, LiteralValue) or places.type.kind is not Kind.INT or not least <= _whole(places) <= rounding.MOST_PLACES:
        raise InvalidFilter(f"'{name}' takes {least} to {rounding.MOST_PLACES} decimal places as a whole number, not {places}")
    result = value.type
    if result.kind is Kind.DECIMAL:
        integer_digits, scale = result.precision - result.scale + 1, max(0, min(result.scale, _whole(places)))
        result = ColumnType(Kind.DECIMAL, precision=min(MOST_DIGITS, max(integer_digits + scale, 1 - _whole(places))), scale=scale)
    return FunctionCall(name, (value, places), result)


def _to_whole(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type ``floor`` and ``ceil``: BIGINT, or a DECIMAL without places."""
    value = _number(name, arguments).arguments[0]
    result = BIGINT_TYPE
    if value.type.kind is Kind.DECIMAL:
        more = 1 if value.type.scale else 0
        result = ColumnType(Kind.DECIMAL, precision=min(MOST_DIGITS, value.type.precision - value.type.scale + more), scale=0)
    return FunctionCall(name, (value,), result)


def _bits(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    for argument in arguments:
        if argument.type.kind not in INTEGERS:
            raise InvalidFilter(f"'{name}' takes integers, not {argument} of type {argument.type.kind}")
    return _with_shared_type(name, arguments)


def _array(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    elements = _with_shared_type(name, arguments)
    return FunctionCall(name, elements.arguments, ColumnType(Kind.ARRAY, value=elements.type))


def _named_struct(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    fields = []
    for field, value in zip(arguments[::2], arguments[1::2], strict=len(arguments) % 2 == 0):
        if not isinstance(field, LiteralValue) or not isinstance(field.value, str):
            raise InvalidFilter(f"'{name}' takes quoted names, each with its value, not {field}")
        fields.append((field.value, value.type))
    return FunctionCall(name, arguments, ColumnType(Kind.ROW, fields=tuple(fields)))


def _interval(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type ``value + INTERVAL``: a value, a unit, a count, and the time zone of instants unless it is UTC."""
    value, unit, count, *zone = arguments
    named = unit.value if isinstance(unit, LiteralValue) else None
    if value.type.kind not in _DAY_TYPES or named not in {"month", "day", "microsecond"} or not isinstance(count, LiteralValue):
        raise InvalidFilter(f"an INTERVAL is added to a DATE or TIMESTAMP, not to {value} of type {value.type.kind}")
    if value.type.kind is Kind.DATE and named == "microsecond":
        raise InvalidFilter(f"an INTERVAL of hours or less is not added to the DATE {value}; write a CAST to TIMESTAMP")
    if zone and (not isinstance(zone[0], LiteralValue) or zone_named(str(zone[0].value)) != zone[0].value):
        raise InvalidFilter(f"'{name}' takes a time zone, not {zone[0]}")
    if abs(_whole(count)) >= (2**63 if named == "microsecond" else 2**31):
        raise InvalidFilter(f"the INTERVAL of {count} {named}s that is added to {value} is too long; write a shorter one")
    result = value.type
    if named == "microsecond" and result.precision < 6 and _whole(count) % 1000:
        result = ColumnType(result.kind, precision=6)
    return FunctionCall(name, arguments, result)


def _day(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type ``last_day``, ``add_months`` and ``trunc``: a day, and what follows."""
    value, *parameters = arguments
    if name == "trunc":
        unit = _DAY_UNITS.get(str(parameters[0].value).lower() if isinstance(parameters[0], LiteralValue) else "")
        if unit is None:
            raise InvalidFilter(f"'{name}' takes one of {', '.join(sorted(set(_DAY_UNITS.values())))}, not {parameters[0]}")
        parameters = [LiteralValue(unit, TEXT_TYPE)]
    elif parameters:
        parameters = list(_with_type(INT_TYPE, INT_TYPE)(name, tuple(parameters)).arguments)
    return FunctionCall(name, (cast_to(value, DATE_TYPE), *parameters), DATE_TYPE)


def _date_trunc(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    unit, value = arguments
    named = str(unit.value).lower() if isinstance(unit, LiteralValue) else ""
    if named not in calendar.UNITS or value.type.kind not in TIMESTAMPS:
        raise InvalidFilter(
            f"'{name}' takes one of {', '.join(calendar.UNITS)}, and a TIMESTAMP; for a DATE, compare year(), month() and day()"
        )
    return FunctionCall(name, (LiteralValue(named, TEXT_TYPE), value), value.type)


def _date_arithmetic(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type ``date_add`` and ``datediff``.

    A TIMESTAMP is cast to its day.
    """
    first, second = arguments
    if name == "datediff":
        return FunctionCall(name, (cast_to(first, DATE_TYPE), cast_to(second, DATE_TYPE)), INT_TYPE)
    return FunctionCall(name, (cast_to(first, DATE_TYPE), _with_type(INT_TYPE, INT_TYPE)(name, (second,)).arguments[0]), DATE_TYPE)


def _zone_conversion(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type a conversion between TIMESTAMP and TIMESTAMP_LTZ.

    The zone is a literal.
    """
    *_, value, zone = arguments
    source_kind, result_type = (
        (Kind.TIMESTAMP, calendar.instant_type) if name == calendar.INSTANT else (Kind.TIMESTAMP_LTZ, calendar.wall_type)
    )
    if value.type.kind is not source_kind or not isinstance(zone, LiteralValue) or zone_named(str(zone.value)) != zone.value:
        raise InvalidFilter(f"'{name}' takes a {source_kind} and a time zone, not {', '.join(map(str, arguments))}")
    return FunctionCall(name, arguments, value.type if name == calendar.TRUNCATED else result_type(value.type))


def _item(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type a field of a ROW, an element of an ARRAY or an entry of a MAP.

    The field, index or key is a literal.
    """
    container, selector = arguments
    kind = container.type.kind
    if not isinstance(selector, LiteralValue) or selector.value is None:
        raise InvalidFilter(f"'{name}' of {container} takes a literal as its field, index or key, not {selector}")
    if kind is Kind.ROW and name == "item":
        return _field(container, selector)
    if kind in LISTS and container.type.value is not None:
        if selector.type.kind is not Kind.INT:
            raise InvalidFilter(f"{container} is an {kind}: its elements have whole numbers as index, not {selector}")
        if selector.value == 0 and name in {"element_at", "try_element_at"}:
            raise InvalidFilter(f"'{name}' counts from 1; write {container}[0] for the first element")
        return FunctionCall(name, arguments, container.type.value)
    if kind is Kind.MAP and name != "get" and container.type.key is not None and container.type.value is not None:
        key = cast_to(selector, container.type.key if container.type.key.kind not in STRINGS else TEXT_TYPE)
        if not isinstance(key, LiteralValue):
            raise InvalidFilter(f"{container} has keys of type {container.type.key.kind}, not {selector} of type {selector.type.kind}")
        return FunctionCall(name, (container, key), container.type.value)
    raise InvalidFilter(f"'{name}': {container} of type {kind} has no element {selector}")


def _field(struct: Expression, selector: LiteralValue) -> FunctionCall:
    names = [name for name, _ in struct.type.fields]
    alike = [name for name in names if name.lower() == str(selector.value).lower()]
    field_name = selector.value if selector.value in names else alike[0] if len(alike) == 1 else None
    if field_name is None and alike:
        raise InvalidFilter(f"field '{selector.value!s}' of {struct} is ambiguous: it may be {' or '.join(alike)}; write the exact case")
    if field_name is None:
        raise UnknownColumn(f"{struct}.{selector.value!s}", tuple(f"{struct}.{name}" for name in names))
    return FunctionCall("item", (struct, LiteralValue(field_name, TEXT_TYPE)), dict(struct.type.fields)[str(field_name)])


def _with_field(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type a ROW with another value of one field. Its value is cast when it is computed."""
    struct, field, _ = arguments
    if not isinstance(field, LiteralValue) or field.value not in dict(struct.type.fields):
        raise InvalidFilter(f"{struct} of type {struct.type.kind} has no field {field}")
    return FunctionCall(name, arguments, struct.type)


def _array_contains(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type a search of an ARRAY. Elements and value are compared in their common type."""
    container, searched = arguments
    if container.type.kind not in LISTS or container.type.value is None or container.type.value.kind in WITH_PARTS:
        raise InvalidFilter(f"'{name}' takes an ARRAY whose elements are not nested, not {container} of type {container.type.kind}")
    if is_null_literal(searched):
        raise InvalidFilter(f"'{name}' cannot search for NULL")
    shared = shared_type(name, (ColumnValue(f"an element of {container}", None, container.type.value), searched))
    cast_kernel(container.type.value, shared)
    return FunctionCall(name, (container, cast_to(searched, shared)), BOOLEAN_TYPE)


def _size(values: Arrays, _: ColumnType) -> Any:
    return nested.list_size(values[0])


def _array_of(values: Arrays, _: ColumnType) -> Any:
    return nested.array_of(values)


def _struct_of(values: Arrays, result: ColumnType) -> Any:
    return nested.struct_of([name for name, _ in result.fields], values[1::2])


def _part(name: str, values: Arrays, _: ColumnType) -> Any:
    return calendar.extract_part(name, values)


_DAY_TYPES = frozenset({Kind.DATE, *TIMESTAMPS})
_CLOCK_TYPES = TIMESTAMPS | {Kind.TIME}
_CLOCK_PARTS = {"hour", "minute", "second"}
FUNCTION_RULES: dict[str, FunctionRule] = {
    "+": FunctionRule(2, 2, _arithmetic, arithmetic.add),
    "-": FunctionRule(2, 2, _arithmetic, arithmetic.subtract),
    "*": FunctionRule(2, 2, _arithmetic, arithmetic.multiply),
    "%": FunctionRule(2, 2, _arithmetic, arithmetic.remainder),
    "/": FunctionRule(2, 2, _with_type(DOUBLE_TYPE, DOUBLE_TYPE), arithmetic.divide),
    "div": FunctionRule(2, 2, _with_type(BIGINT_TYPE, BIGINT_TYPE), arithmetic.integer_divide),
    "quotient": FunctionRule(2, 2, _division, None),
    "negative": FunctionRule(1, 1, _number, arithmetic.negative),
    "abs": FunctionRule(1, 1, _number, arithmetic.absolute),
    **{name: FunctionRule(2, 2, _comparison, None) for name in comparison.COMPARISONS},
    "<=>": FunctionRule(2, 2, _comparison, None),
    "in": FunctionRule(2, None, _among, None),
    "isnull": FunctionRule(1, 1, _any, comparison.is_null),
    "isnan": FunctionRule(1, 1, _kinds(FLOATS, "a FLOAT or DOUBLE", BOOLEAN_TYPE), comparison.is_nan),
    "not": FunctionRule(1, 1, _with_type(BOOLEAN_TYPE, BOOLEAN_TYPE), comparison.invert),
    "and": FunctionRule(1, None, _with_type(BOOLEAN_TYPE, BOOLEAN_TYPE), None),
    "or": FunctionRule(1, None, _with_type(BOOLEAN_TYPE, BOOLEAN_TYPE), None),
    **{name: FunctionRule(2, 2, _bits, partial(arithmetic.combine_bits, name)) for name in arithmetic.BITS},
    "~": FunctionRule(1, 1, _bits, arithmetic.invert_bits),
    "round": FunctionRule(1, 2, _round, None),
    "floor": FunctionRule(1, 1, _to_whole, rounding.floor),
    "ceil": FunctionRule(1, 1, _to_whole, rounding.ceil),
    "sign": FunctionRule(1, 1, _as_double, rounding.sign),
    "sqrt": FunctionRule(1, 1, _as_double, rounding.square_root),
    **{name: FunctionRule(2, None, _with_shared_type, partial(comparison.extreme, name)) for name in ("greatest", "least")},
    "coalesce": FunctionRule(1, None, _with_shared_type, None),
    "case": FunctionRule(3, None, _case, None),
    "lower": FunctionRule(1, 1, _with_type(TEXT_TYPE, TEXT_TYPE), text.lower),
    "upper": FunctionRule(1, 1, _with_type(TEXT_TYPE, TEXT_TYPE), text.upper),
    "trim": FunctionRule(1, 1, _with_type(TEXT_TYPE, TEXT_TYPE), text.trim),
    "ltrim": FunctionRule(1, 1, _with_type(TEXT_TYPE, TEXT_TYPE), text.ltrim),
    "rtrim": FunctionRule(1, 1, _with_type(TEXT_TYPE, TEXT_TYPE), text.rtrim),
    "reverse": FunctionRule(1, 1, _with_type(TEXT_TYPE, TEXT_TYPE), text.reverse),
    "concat": FunctionRule(1, None, _with_type(TEXT_TYPE, TEXT_TYPE), text.concat),
    "concat_ws": FunctionRule(1, None, _with_type(TEXT_TYPE, TEXT_TYPE), text.concat_with),
    "replace": FunctionRule(3, 3, _with_literals(TEXT_TYPE, Kind.VARCHAR, Kind.VARCHAR), None),
    "repeat": FunctionRule(2, 2, _repeat, None),
    **{name: FunctionRule(2, 3, _pad, None) for name in ("lpad", "rpad")},
    "instr": FunctionRule(2, 2, _with_literals(INT_TYPE, Kind.VARCHAR), None),
    "split_part": FunctionRule(3, 3, _split_part, None),
    "length": FunctionRule(1, 1, _length, text.length),
    "octet_length": FunctionRule(1, 1, _length, text.octet_length),
    "substring": FunctionRule(2, 3, _substring, None),
    "like": FunctionRule(3, 3, _pattern_match, None),
    "contains": FunctionRule(2, 2, _pattern_match, None),
    "startswith": FunctionRule(2, 2, _pattern_match, None),
    "endswith": FunctionRule(2, 2, _pattern_match, None),
    "rlike": FunctionRule(2, 2, _pattern_match, None),
    **{name: FunctionRule(2, 2, _item, None) for name in ("item", "get", "element_at", "try_element_at")},
    WITH_FIELD: FunctionRule(3, 3, _with_field, None),
    **{name: FunctionRule(2, 4, variants.sign_getter, None) for name in variants.GETTERS},
    "is_variant_null": FunctionRule(1, 1, _kinds(frozenset({Kind.VARIANT}), "a VARIANT", BOOLEAN_TYPE), variants.is_variant_null),
    "parse_json": FunctionRule(1, 1, _with_type(TEXT_TYPE, variants.VARIANT_TYPE), variants.parse_json),
    "try_parse_json": FunctionRule(1, 1, _with_type(TEXT_TYPE, variants.VARIANT_TYPE), variants.try_parse_json),
    "size": FunctionRule(1, 1, _kinds(frozenset({Kind.ARRAY, Kind.VECTOR, Kind.MAP, Kind.MULTISET}), "an ARRAY or MAP", INT_TYPE), _size),
    "array_contains": FunctionRule(2, 2, _array_contains, None),
    "array": FunctionRule(1, None, _array, _array_of),
    "named_struct": FunctionRule(2, None, _named_struct, _struct_of),
    "date_trunc": FunctionRule(2, 2, _date_trunc, None),
    "trunc": FunctionRule(2, 2, _day, None),
    "last_day": FunctionRule(1, 1, _day, calendar.last_day),
    "add_months": FunctionRule(2, 2, _day, calendar.add_months),
    calendar.SHIFTED: FunctionRule(3, 4, _interval, None),
    calendar.LOCAL: FunctionRule(2, 2, _zone_conversion, calendar.local),
    calendar.INSTANT: FunctionRule(2, 2, _zone_conversion, calendar.instant),
    calendar.TRUNCATED: FunctionRule(3, 3, _zone_conversion, None),
    "date_add": FunctionRule(2, 2, _date_arithmetic, calendar.add_days),
    "datediff": FunctionRule(2, 2, _date_arithmetic, calendar.days_between),
    **{
        name: FunctionRule(
            1,
            1,
            _kinds(_CLOCK_TYPES, "a TIMESTAMP or TIME", INT_TYPE)
            if name in _CLOCK_PARTS
            else _kinds(_DAY_TYPES, "a DATE or TIMESTAMP", INT_TYPE),
            partial(_part, name),
        )
        for name in calendar.PARTS
    },
}


def kernel_of(node: FunctionCall) -> _Kernel | None:
    """Return the kernel that computes a call from argument arrays.

    None if the arguments must not all be evaluated for every row.
    """
    if node.function == "cast":
        return partial(_cast, cast_kernel(node.arguments[0].type, node.type))
    return FUNCTION_RULES[node.function].kernel


def _cast(kernel: Callable[[Any, ColumnType], Any], values: Arrays, target: ColumnType) -> Any:
    return kernel(values[0], target)
