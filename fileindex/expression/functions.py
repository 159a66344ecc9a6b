"""The functions of filters: argument types, result type and kernel.

A function that is not listed here is rejected by name.

CAST supports only pairs of types that Arrow casts exactly as Spark does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.column_type import BINARIES, FLOATS, INTEGERS, LISTS, STRINGS, TIMESTAMPS, WITH_PARTS, ColumnType, Kind
from fileindex.base.errors import FilterFailed, InvalidFilter, UnknownColumn
from fileindex.base.time_zone import zone_named
from fileindex.expression import arithmetic, calendar, comparison, java_regex, nested, text, variants
from fileindex.expression.arithmetic import Arrays
from fileindex.expression.calendar import without_zone
from fileindex.expression.literals import is_null_literal, literal_as, tight_decimal
from fileindex.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue
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
_NUMBER = r"\A[+-]?[0-9]+\z"
_SPACES = " \t\n\r\f\v" + "".join(map(chr, range(9))) + "".join(map(chr, range(14, 32)))  # Spark trims these before it parses a number
WITH_FIELD = "@with_field"
_LAST_FOUR_DIGIT_DAY = 2_932_896
_FIRST_FOUR_DIGIT_DAY = -719_528
_Cast = Callable[[Any, ColumnType], Any]


@dataclass(frozen=True)
class FunctionRule:
    """Argument count, typing and kernel of a function.

    ``most`` None: any number of arguments. ``kernel`` gets the arguments' arrays and the call's type.
    None: ``compute`` evaluates the arguments.
    """

    least: int
    most: int | None
    sign: _Sign
    kernel: _Kernel | None


def call(name: str, arguments: Sequence[Expression]) -> FunctionCall:
    """Return a function call, arguments cast to its types.

    Raises ``InvalidFilter`` for an unknown function, or arguments that it does not take.

    >>> from fileindex.expression.literals import literal_value
    >>> str(call("length", [literal_value("Oslo")])), call("=", [literal_value(1), literal_value(2.5)]).arguments[0].value
    ("length('Oslo')", 1.0)
    """
    rule = FUNCTION_RULES.get(name)
    if rule is None:
        near = get_close_matches(name, FUNCTION_RULES, n=1)
        hint = f", did you mean '{near[0]}'?" if near else ""
        raise InvalidFilter(f"the function '{name}' is not supported in filters{hint}; filter the result instead")
    if len(arguments) < rule.least or (rule.most is not None and len(arguments) > rule.most):
        most = "or more" if rule.most is None else f"to {rule.most}" if rule.most > rule.least else ""
        raise InvalidFilter(f"'{name}' takes {rule.least} {most} arguments, not {len(arguments)}".replace("  ", " "))
    return rule.sign(name, tuple(arguments))


def cast_to(argument: Expression, wanted: ColumnType) -> Expression:
    """Return ``argument`` cast to ``wanted``, as by CAST.

    Raises ``InvalidFilter`` for an unsupported pair of types.
    """
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
    """Return the type to which all arguments are cast.

    NULLs and number literals take the type of the other arguments, as in Spark.
    """
    typed = [argument for argument in arguments if not is_null_literal(argument)]
    if not typed:
        return BOOLEAN_TYPE
    floats = any(argument.type.kind in FLOATS for argument in typed)
    found: ColumnType | None = None
    for argument in typed:
        kind = _operand_type(argument, floats=floats, decimals=any(one.type.kind is Kind.DECIMAL for one in typed))
        found = kind if found is None else common_type(found, kind, name)
    assert found is not None
    if found.kind in STRINGS:
        return TEXT_TYPE
    return BYTES_TYPE if found.kind in BINARIES else found


def _operand_type(argument: Expression, *, floats: bool, decimals: bool) -> ColumnType:
    if isinstance(argument, LiteralValue) and argument.value is not None:
        if argument.type.kind is Kind.DECIMAL and floats:
            return DOUBLE_TYPE
        if argument.type.kind in INTEGERS and decimals and not floats:
            return tight_decimal(argument)
    return argument.type


def _with_shared_type(name: str, arguments: tuple[Expression, ...], result: ColumnType | None = None) -> FunctionCall:
    """Return a call with all arguments cast to one type.

    ``result`` is the type of the call. None: the same type.
    """
    shared = shared_type(name, arguments)
    return FunctionCall(name, tuple(cast_to(argument, shared) for argument in arguments), result or shared)


def _comparison(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    return _with_shared_type(name, arguments, BOOLEAN_TYPE)


def _among(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type ``value IN (literals)``. Value and literals are compared in one type."""
    for listed in arguments[1:]:
        if not isinstance(listed, LiteralValue):
            raise InvalidFilter(f"'{name}' takes literals, not {listed}")
    return _comparison(name, arguments)


def _with_type(wanted: ColumnType, result: ColumnType) -> _Sign:
    """Return a typing rule: all arguments have type ``wanted``."""

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
    whole = all(argument.type.kind in INTEGERS or is_null_literal(argument) for argument in arguments)
    return call("div" if whole else "/", arguments)


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


def _kinds(wanted: frozenset[Kind], description: str, result: ColumnType) -> _Sign:
    def sign(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
        for argument in arguments:
            if argument.type.kind not in wanted:
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
    pairs = [one for pair in zip(conditions, values.arguments, strict=False) for one in pair]
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
    given, wanted = (Kind.TIMESTAMP, calendar.instant_type) if name == calendar.INSTANT else (Kind.TIMESTAMP_LTZ, calendar.wall_type)
    if value.type.kind is not given or not isinstance(zone, LiteralValue) or zone_named(str(zone.value)) != zone.value:
        raise InvalidFilter(f"'{name}' takes a {given} and a time zone, not {', '.join(map(str, arguments))}")
    return FunctionCall(name, arguments, value.type if name == calendar.TRUNCATED else wanted(value.type))


def _item(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type a field of a ROW, an element of an ARRAY or an entry of a MAP.

    The field, index or key is a literal.
    """
    whole, wanted = arguments
    kind = whole.type.kind
    if not isinstance(wanted, LiteralValue) or wanted.value is None:
        raise InvalidFilter(f"'{name}' of {whole} takes a literal as its field, index or key, not {wanted}")
    if kind is Kind.ROW and name == "item":
        return _field(whole, wanted)
    if kind in LISTS and whole.type.value is not None:
        if wanted.type.kind is not Kind.INT:
            raise InvalidFilter(f"{whole} is an {kind}: its elements have whole numbers as index, not {wanted}")
        if wanted.value == 0 and name in {"element_at", "try_element_at"}:
            raise InvalidFilter(f"'{name}' counts from 1; write {whole}[0] for the first element")
        return FunctionCall(name, arguments, whole.type.value)
    if kind is Kind.MAP and name != "get" and whole.type.key is not None and whole.type.value is not None:
        key = cast_to(wanted, whole.type.key if whole.type.key.kind not in STRINGS else TEXT_TYPE)
        if not isinstance(key, LiteralValue):
            raise InvalidFilter(f"{whole} has keys of type {whole.type.key.kind}, not {wanted} of type {wanted.type.kind}")
        return FunctionCall(name, (whole, key), whole.type.value)
    raise InvalidFilter(f"'{name}': {whole} of type {kind} has no element {wanted}")


def _field(whole: Expression, wanted: LiteralValue) -> FunctionCall:
    names = [name for name, _ in whole.type.fields]
    alike = [name for name in names if name.lower() == str(wanted.value).lower()]
    found = wanted.value if wanted.value in names else alike[0] if len(alike) == 1 else None
    if found is None and alike:
        raise InvalidFilter(f"field '{wanted.value!s}' of {whole} is ambiguous: it may be {' or '.join(alike)}; write the exact case")
    if found is None:
        raise UnknownColumn(f"{whole}.{wanted.value!s}", tuple(f"{whole}.{name}" for name in names))
    return FunctionCall("item", (whole, LiteralValue(found, TEXT_TYPE)), dict(whole.type.fields)[str(found)])


def _with_field(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type a ROW with another value of one field. Its value is cast when it is computed."""
    whole, field, _ = arguments
    if not isinstance(field, LiteralValue) or field.value not in dict(whole.type.fields):
        raise InvalidFilter(f"{whole} of type {whole.type.kind} has no field {field}")
    return FunctionCall(name, arguments, whole.type)


def _array_contains(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type a search of an ARRAY. Elements and value are compared in their common type."""
    whole, wanted = arguments
    if whole.type.kind not in LISTS or whole.type.value is None or whole.type.value.kind in WITH_PARTS:
        raise InvalidFilter(f"'{name}' takes an ARRAY of values without parts, not {whole} of type {whole.type.kind}")
    if is_null_literal(wanted):
        raise InvalidFilter(f"'{name}' cannot search for NULL")
    shared = shared_type(name, (ColumnValue(f"an element of {whole}", None, whole.type.value), wanted))
    cast_kernel(whole.type.value, shared)
    return FunctionCall(name, (whole, cast_to(wanted, shared)), BOOLEAN_TYPE)


def _size(values: Arrays, _: ColumnType) -> Any:
    return nested.list_size(values[0])


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
    "coalesce": FunctionRule(1, None, _with_shared_type, None),
    "case": FunctionRule(3, None, _case, None),
    "lower": FunctionRule(1, 1, _with_type(TEXT_TYPE, TEXT_TYPE), text.lower),
    "upper": FunctionRule(1, 1, _with_type(TEXT_TYPE, TEXT_TYPE), text.upper),
    "trim": FunctionRule(1, 1, _with_type(TEXT_TYPE, TEXT_TYPE), text.trim),
    "ltrim": FunctionRule(1, 1, _with_type(TEXT_TYPE, TEXT_TYPE), text.ltrim),
    "rtrim": FunctionRule(1, 1, _with_type(TEXT_TYPE, TEXT_TYPE), text.rtrim),
    "reverse": FunctionRule(1, 1, _with_type(TEXT_TYPE, TEXT_TYPE), text.reverse),
    "concat": FunctionRule(1, None, _with_type(TEXT_TYPE, TEXT_TYPE), text.concat),
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
    "date_trunc": FunctionRule(2, 2, _date_trunc, None),
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


def _cast(kernel: Callable[[Any, ColumnType], Any], values: Arrays, wanted: ColumnType) -> Any:
    return kernel(values[0], wanted)


def cast_kernel(given: ColumnType, wanted: ColumnType) -> _Cast:
    """Return the kernel that casts arrays of ``given`` to ``wanted``.

    Raises ``InvalidFilter`` for an unsupported pair.

    >>> cast_kernel(ColumnType(Kind.INT), ColumnType(Kind.VARCHAR, length=2**31 - 1))(pa.array([7]), ColumnType(Kind.VARCHAR)).to_pylist()
    ['7']
    """
    found = _kernel(given, wanted)
    if found is None:
        raise InvalidFilter(f"a CAST of {given.kind} to {wanted.kind} is not supported in filters; compare in the column's type")
    return found


def _kernel(given: ColumnType, wanted: ColumnType) -> _Cast | None:
    if given.kind is wanted.kind and given.arrow == wanted.arrow and wanted.kind not in STRINGS | BINARIES:
        return _identity
    if wanted.kind in INTEGERS:
        return _to_integer(given)
    if wanted.kind in FLOATS:
        return _arrow_cast if given.kind in INTEGERS | FLOATS or given.kind is Kind.BOOLEAN else None
    if wanted.kind in STRINGS:
        return _to_text(given) if wanted.length >= 2**31 - 1 else None
    if wanted.kind in BINARIES:
        return _identity if given.kind in BINARIES else None
    if wanted.kind is Kind.DECIMAL:
        widens = given.kind in INTEGERS or (given.kind is Kind.DECIMAL and given.scale <= wanted.scale)
        return _arrow_cast if widens else None
    if wanted.kind is Kind.DATE:
        return _to_date if given.kind in TIMESTAMPS else None
    if wanted.kind in TIMESTAMPS:
        return _to_timestamp if given.kind in TIMESTAMPS or given.kind is Kind.DATE else None
    return None


def _to_integer(given: ColumnType) -> _Cast | None:
    if given.kind in INTEGERS or given.kind is Kind.BOOLEAN:
        return _arrow_cast
    if given.kind in STRINGS:
        return _parse_integer
    return _truncate_float if given.kind in FLOATS else None


def _to_text(given: ColumnType) -> _Cast | None:
    if given.kind in STRINGS:
        return _identity
    if given.kind in INTEGERS or given.kind is Kind.BOOLEAN:
        return _arrow_cast
    return _date_text if given.kind is Kind.DATE else None


def _identity(array: Any, wanted: ColumnType) -> Any:  # noqa: ARG001  # a kernel's signature
    return array


def _arrow_cast(array: Any, wanted: ColumnType) -> Any:
    """Cast by Arrow.

    Raises for numbers out of range. Integers that a float cannot hold are rounded, as in Java.
    """
    if wanted.kind in STRINGS:
        return array.cast(pa.large_string())
    if wanted.kind in FLOATS and not pa.types.is_boolean(array.type):
        return pc.cast(array, wanted.arrow, safe=False)
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8()).cast(wanted.arrow)
    if wanted.kind is Kind.DECIMAL and pa.types.is_integer(array.type):
        whole = array.cast(pa.decimal128(as_decimal(ColumnType(Kind.BIGINT)).precision, 0))
        return whole.cast(wanted.arrow)
    return array.cast(wanted.arrow)


def _parse_integer(array: Any, wanted: ColumnType) -> Any:
    """Parse digits with an optional sign and surrounding white space.

    Anything else is an error in ANSI mode.
    """
    texts = pc.utf8_trim(array, characters=_SPACES)
    wrong = pc.invert(pc.match_substring_regex(texts, _NUMBER)).fill_null(False)
    if pc.any(wrong, min_count=0).as_py():
        raise FilterFailed(f"the text {texts.filter(wrong)[0].as_py()!r} is not of type {wanted.kind}")
    return pc.utf8_ltrim(texts, characters="+").cast(wanted.arrow)


def _truncate_float(array: Any, wanted: ColumnType) -> Any:
    """Return floats without their fractions."""
    numbers = np.asarray(array.cast(pa.float64()).fill_null(0.0))
    bits = (pa.types.is_int64(wanted.arrow) and 63) or {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31}[wanted.arrow]
    whole = np.trunc(numbers)
    if not bool(((whole >= -(2.0**bits)) & (whole < 2.0**bits)).all()):
        raise FilterFailed(f"a number is out of range of {wanted.kind}")
    return pa.array(whole.astype(np.int64), mask=np.asarray(array.is_null())).cast(wanted.arrow)


def _to_date(array: Any, wanted: ColumnType) -> Any:
    return pc.floor_temporal(without_zone(array), unit="day").cast(wanted.arrow)


def _to_timestamp(array: Any, wanted: ColumnType) -> Any:
    found = without_zone(array)
    if pa.types.is_timestamp(found.type) and found.type.unit != wanted.unit:
        found = found.cast(pa.timestamp(wanted.unit))  # raises where digits would be lost
    elif not pa.types.is_timestamp(found.type):
        found = found.cast(pa.timestamp("s")).cast(pa.timestamp(wanted.unit))
    return found.view(wanted.arrow)


def _date_text(array: Any, wanted: ColumnType) -> Any:  # noqa: ARG001  # a kernel's signature
    ends = pc.min_max(array.view(pa.int32()))
    if ends["min"].is_valid and not _FIRST_FOUR_DIGIT_DAY <= ends["min"].as_py() <= ends["max"].as_py() <= _LAST_FOUR_DIGIT_DAY:
        raise FilterFailed("a date is outside the years 0 to 9999, which a CAST to STRING supports")
    return array.cast(pa.large_string())


__all__ = ["FUNCTION_RULES", "WITH_FIELD", "FunctionRule", "call", "cast_kernel", "cast_to", "kernel_of", "shared_type"]
