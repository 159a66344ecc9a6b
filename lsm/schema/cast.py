"""Casts of arrays after a type change (Paimon's ``CastExecutors``).

Integers wrap around, and floats saturate. Numbers with too many digits for a DECIMAL become null. Decimals round half up. Text is
cut or padded to its length. Text that cannot be parsed raises an error. There are two deviations from Paimon: instants before 1970
have their calendar date and time, and dates and times are parsed from text in ISO form only.

Casts from and to text follow Paimon's ``BinaryStringUtils`` and ``DateTimeUtils``, vectorised.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from manifest.io.errors import CastFailed
from manifest.types.cast_rules import NUMBERS
from manifest.types.data_type import MAX_LENGTH, DataType
from paimon_base.errors import InvalidArgument
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Kind
from sparkexpr.values.time_zone import process_zone, to_moment, to_wall_clock

_WIDE_SCALE = 38
_WIDE = pa.decimal256(76, _WIDE_SCALE)
_MAX_DIGITS = 38
_EXACT_DIGITS, _SHORTEST = 15, 17
"""Decimal digits that every double represents; digits that distinguish any two doubles."""
_DAY_MS = 86_400_000
_NUMPY = {Kind.TINYINT: np.int8, Kind.SMALLINT: np.int16, Kind.INT: np.int32, Kind.BIGINT: np.int64}
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_FORMS = {
    Kind.DATE: r"^\d{4}-\d{2}-\d{2}( \d{2}:\d{2}:\d{2}(\.\d{1,9})?)?$",
    Kind.TIME: r"^\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?$",
    Kind.TIMESTAMP: r"^\d{4}-\d{2}-\d{2}( \d{2}:\d{2}:\d{2}(\.\d{1,9})?)?$",
    Kind.DECIMAL: r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?$",
    **dict.fromkeys(INTEGERS, r"^[+-]?(\d+(\.\d*)?|\.\d+)$"),
    **dict.fromkeys(FLOATS, r"^\s*([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|NaN|[+-]?Infinity)\s*$"),
}
_SECOND_LENGTH = 19
_DAY_LENGTH = 10
_FLOAT_PARTS = r"^(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<fraction>\d+))?(?:e(?P<exponent>[+-]?\d+))?$"


def cast_values(array: Any, old: DataType, new: DataType) -> Any:
    """Cast ``array`` from ``old.arrow`` to ``new.arrow``.

    Both types are atomic, and ``manifest.types.cast_rules`` allows the change.

    Raises:
        CastFailed: A value has no counterpart in the new type.

    >>> cast_values(pa.array([70000, None], pa.int32()), DataType(Kind.INT), DataType(Kind.TINYINT)).to_pylist()
    [112, None]
    """
    try:
        return _cast_in_zone(array, old, new)
    except pa.ArrowInvalid as error:
        raise CastFailed(f"a value of {old} is no {new} ({error})") from error


def _cast_in_zone(array: Any, old: DataType, new: DataType) -> Any:
    """Cast between instants and local times in the process zone.

    Casts from and to numbers ignore the zone: they are seconds since the epoch.
    """
    if (old.kind is Kind.TIMESTAMP_LTZ) is (new.kind is Kind.TIMESTAMP_LTZ) or {old.kind, new.kind} & NUMBERS:
        return _cast(array, old, new)
    try:
        zone = process_zone()  # reads run in threads, where a zone set by the caller's context does not apply
    except InvalidArgument as error:
        raise CastFailed(str(error)) from error
    if old.kind is Kind.TIMESTAMP_LTZ:
        return _cast(to_wall_clock(array, zone), replace(old, kind=Kind.TIMESTAMP), new)
    return to_moment(_cast(array, old, replace(new, kind=Kind.TIMESTAMP)), zone)


def _cast(array: Any, old: DataType, new: DataType) -> Any:
    match old.kind, new.kind:
        case (a, b) if a in STRINGS | BINARIES and b in BINARIES:
            return fit_binary(array.cast(pa.binary()), new)
        case (a, b) if a in BINARIES and b in STRINGS:
            return array.cast(pa.string())
        case (a, b) if b in STRINGS:
            return fit_text(array if a in STRINGS else to_text(array, old), new)
        case (a, b) if a in STRINGS:
            parsed = from_text(array, new)
            return _to_decimal(parsed, new) if b is Kind.DECIMAL else parsed
        case (Kind.BOOLEAN, _):
            return _cast(array.cast(pa.int8()), DataType(Kind.TINYINT), new)
        case (_, Kind.BOOLEAN):
            return pc.not_equal(array, pa.scalar(0, array.type))
        case (_, Kind.DECIMAL):
            return _to_decimal(array, new)
        case (Kind.DECIMAL, b) if b is Kind.FLOAT or (b is Kind.DOUBLE and old.precision > _EXACT_DIGITS):
            return plain_decimal(array).cast(new.arrow)  # nearest float of the exact decimal
        case (Kind.DECIMAL, b) if b in INTEGERS:
            return _narrow(_low_words(pc.trunc(array).cast(pa.decimal256(76, 0)).cast(pa.decimal128(_MAX_DIGITS, 0))), array, new)
        case (a, b) if a in FLOATS and b in INTEGERS:
            return _float_to_integer(array, new)
        case (a, b) if (a in TIMESTAMPS or a is Kind.TIME) and b not in TIMESTAMPS:
            return _from_millis(_millis(array), new)
        case (a, b) if a in TIMESTAMPS and b in TIMESTAMPS:
            return _change_precision(array, new)
        case (a, b) if a in INTEGERS and b in TIMESTAMPS:
            return array.cast(pa.int64()).cast(pa.timestamp("s")).cast(new.arrow)
        case (Kind.TIME, _):
            return array.cast(pa.int32()).cast(pa.int64()).cast(pa.timestamp("ms")).cast(new.arrow)
    return pc.cast(array, new.arrow, safe=False) if new.kind in INTEGERS | FLOATS else array.cast(new.arrow)


def _to_decimal(array: Any, new: DataType) -> Any:
    """Round half up.

    Null if there are too many integer digits.
    """
    room = new.precision - new.scale
    if pa.types.is_floating(array.type):
        wide = _shortest_digits(array.cast(pa.float64()), room, new)
    else:
        wide = (array.cast(pa.decimal128(19, 0)) if pa.types.is_integer(array.type) else array).cast(_WIDE)
    rounded = pc.round(wide, ndigits=new.scale, round_mode="half_towards_infinity")
    if room < _MAX_DIGITS:
        limit = pa.array([Decimal(10) ** room], pa.decimal128(_MAX_DIGITS, 0)).cast(_WIDE)[0]
        rounded = pc.if_else(pc.less(pc.abs(rounded), limit), rounded, pa.scalar(None, _WIDE))
    return rounded.cast(new.arrow)


def _shortest_digits(values: Any, room: int, new: DataType) -> Any:
    """Convert doubles to wide decimals by their shortest text.

    Like Java: 1.005 is 1.005. Null if the integer digits do not fit.
    """
    if pc.any(pc.invert(pc.is_finite(values))).as_py():
        raise CastFailed(f"NaN or an infinity is no {new}")
    size = pc.abs(values)
    fitting = pc.if_else(pc.less(size, 10.0**room), values, pa.scalar(None, pa.float64()))
    if new.scale + _SHORTEST >= _WIDE_SCALE:
        return _digit_by_digit(fitting, new)
    return pc.if_else(pc.less(size, 10.0 ** (-new.scale - 1)), 0.0, fitting).cast(pa.string()).cast(_WIDE)


def _digit_by_digit(values: Any, new: DataType) -> Any:
    """Round doubles by their shortest text, per distinct value."""
    # Arrow cannot cast text to a decimal with fewer digits after the point.
    encoded = values.dictionary_encode()
    step, context = Decimal(1).scaleb(-new.scale), Context(prec=_WIDE.precision, rounding=ROUND_HALF_UP)
    rounded = [Decimal(repr(value)).quantize(step, context=context) for value in encoded.dictionary.to_pylist()]
    return pa.array(rounded, _WIDE).take(encoded.indices)


def _float_to_integer(array: Any, new: DataType) -> Any:
    """Truncate and saturate to 32 or 64 bits.

    NaN becomes 0.

    Narrower types then wrap around.
    """
    values = np.nan_to_num(
        np.trunc(array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)), nan=0.0, posinf=np.inf, neginf=-np.inf
    )
    bounds = np.iinfo(np.int64 if new.kind is Kind.BIGINT else np.int32)
    in_range = (values > float(bounds.min)) & (values < float(bounds.max))
    integers = np.where(in_range, values, 0.0).astype(np.int64)
    integers = np.where(values >= float(bounds.max), bounds.max, np.where(values <= float(bounds.min), bounds.min, integers))
    return _narrow(integers, array, new)


def _low_words(array: Any) -> Any:
    """Return the low 64 bits of 128-bit integers."""
    return np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset : 2 * (array.offset + len(array)) : 2]


def _narrow(integers: Any, like: Any, new: DataType) -> Any:
    """Truncate 64-bit integers to ``new``; null where ``like`` is."""
    nulls = like.is_null().to_numpy(zero_copy_only=False) if like.null_count else None
    return pa.array(integers.astype(_NUMPY[new.kind]), new.arrow, mask=nulls)


def _millis(array: Any) -> Any:
    """Return milliseconds as 64-bit integers, rounded down."""
    if pa.types.is_time(array.type):
        return array.cast(pa.int32()).cast(pa.int64())
    return pc.floor_temporal(array, unit="millisecond").cast(pa.timestamp("ms", array.type.tz)).cast(pa.int64())


def _from_millis(millis: Any, new: DataType) -> Any:
    """Convert epoch milliseconds to seconds, a date or a time."""
    values = millis.fill_null(0).to_numpy(zero_copy_only=False)
    match new.kind:
        case Kind.DATE:
            return _narrow(values // _DAY_MS, millis, DataType(Kind.INT)).cast(pa.date32())
        case Kind.TIME:
            return _narrow(values % _DAY_MS, millis, DataType(Kind.INT)).cast(pa.time32("ms"))
        case _:
            return _narrow(np.trunc(values / 1000).astype(np.int64), millis, new)


def _change_precision(array: Any, new: DataType) -> Any:
    """Change the precision of timestamps.

    Fractions of fewer than 3 digits are cut toward 1970, finer ones are rounded down.
    """
    if new.precision > 6:
        return array.cast(new.arrow)
    if new.precision > 3:
        step = 10 ** (6 - new.precision)
        micros = pc.floor_temporal(array, unit="microsecond").cast(pa.timestamp("us", array.type.tz))
        return micros if step == 1 else _truncate(micros.cast(pa.int64()), step, np.floor_divide).cast(new.arrow)
    millis = _millis(array)
    step = 10 ** (3 - new.precision)
    return (millis if step == 1 else _truncate(millis, step, lambda a, b: np.trunc(a / b).astype(np.int64))).cast(new.arrow)


def _truncate(values: Any, step: int, divide: Any) -> Any:
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    return _narrow(divide(numbers, step) * step, values, DataType(Kind.BIGINT))


def to_text(array: Any, old: DataType) -> Any:
    """Convert values of type ``old`` to text.

    >>> to_text(pa.array([1.5, 1e10, None]), DataType(Kind.DOUBLE)).to_pylist()
    ['1.5', '1.0E10', None]
    """
    match old.kind:
        case Kind.DECIMAL:
            return plain_decimal(array)
        case kind if kind in FLOATS:
            return _java_floats(array)
        case Kind.TIME if old.precision:
            return pc.replace_substring_regex(array.cast(pa.string()), r"0{1,2}$", "")
        case Kind.TIME:
            return pc.utf8_slice_codeunits(array.cast(pa.string()), 0, 8)
        case kind if kind in TIMESTAMPS:
            length = _SECOND_LENGTH + (old.precision + 1 if old.precision else 0)
            return pc.utf8_slice_codeunits(array.cast(pa.string()), 0, length)
    return array.cast(pa.string())


def plain_decimal(array: Any) -> Any:
    """Format decimals with all digits of their scale, without exponent."""
    scale = array.type.scale
    if scale == 0:
        return array.cast(pa.string())
    unscaled = pa.Array.from_buffers(pa.decimal128(38, 0), len(array), array.buffers()[:2], offset=array.offset).cast(pa.string())
    sign = pc.if_else(pc.starts_with(unscaled, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(unscaled, "-"), scale + 1, "0")
    point = pc.binary_join_element_wise
    return point(sign, pc.utf8_slice_codeunits(digits, 0, stop=-scale), ".", pc.utf8_slice_codeunits(digits, -scale), "")


def _java_floats(array: Any) -> Any:
    """Format floats with the shortest digits in Java's notation.

    Plain from 0.001 up to 10 million, otherwise ``d.dE<n>``.
    """
    text = array.cast(pa.string())
    parts = pc.extract_regex(text, _FLOAT_PARTS)
    sign, integer_digits, fraction, exponent = (pc.struct_field(parts, name) for name in ("sign", "whole", "fraction", "exponent"))
    fraction = pc.if_else(pc.equal(fraction, ""), "0", fraction)
    plain = pc.binary_join_element_wise(sign, integer_digits, ".", fraction, "")
    size = pc.abs(array)
    is_plain = pc.or_(pc.equal(size, 0), pc.and_(pc.greater_equal(size, pa.scalar(0.001, array.type)), pc.less(size, 1e7)))
    shown = pc.if_else(is_plain, plain, _scientific(sign, integer_digits, fraction, exponent))
    named = pc.case_when(
        pc.make_struct(pc.is_nan(array), pc.equal(array, float("inf")), pc.equal(array, float("-inf"))), "NaN", "Infinity", "-Infinity"
    )
    return pc.coalesce(named, shown)


def _scientific(sign: Any, integer_digits: Any, fraction: Any, exponent: Any) -> Any:
    all_digits = pc.binary_join_element_wise(integer_digits, fraction, "")
    significant = pc.utf8_ltrim(all_digits, "0")
    leading = pc.subtract(pc.utf8_length(all_digits), pc.utf8_length(significant))
    written_exponent = pc.if_else(pc.equal(exponent, ""), "0", pc.utf8_ltrim(exponent, "+")).cast(pa.int32())
    power = pc.add(pc.subtract(pc.subtract(pc.utf8_length(integer_digits), leading), 1), written_exponent)
    rest = pc.utf8_rtrim(pc.utf8_slice_codeunits(significant, 1), "0")
    rest = pc.if_else(pc.equal(rest, ""), "0", rest)
    return pc.binary_join_element_wise(sign, pc.utf8_slice_codeunits(significant, 0, 1), ".", rest, "E", power.cast(pa.string()), "")


def from_text(array: Any, new: DataType) -> Any:
    """Parse text as values of type ``new``.

    A DECIMAL result has more digits than the type.

    Raises:
        CastFailed: A text cannot be parsed; the message shows it.
        pyarrow.ArrowInvalid: A value does not fit.

    >>> from_text(pa.array(["1.9", "-07"]), DataType(Kind.INT)).to_pylist()
    [1, -7]
    """
    if new.kind is Kind.BOOLEAN:
        return _booleans(array, new)
    _refuse(array, pc.match_substring_regex(array, _FORMS[new.kind]), new)
    match new.kind:
        case Kind.DATE:
            return pc.utf8_slice_codeunits(array, 0, _DAY_LENGTH).cast(pa.date32())
        case Kind.TIME:
            return pc.binary_join_element_wise("1970-01-01", array, " ").cast(pa.timestamp("ms")).cast(pa.time32("ms"))
        case Kind.TIMESTAMP:
            return _timestamps(array, new)
        case Kind.DECIMAL:
            return array.cast(pa.decimal256(76, 38))
        case kind if kind in INTEGERS:
            cut = pc.replace_substring_regex(pc.utf8_ltrim(array, "+"), r"\..*$", "")
            return pc.if_else(pc.is_in(cut, pa.array(["", "-"])), "0", cut).cast(new.arrow)
    return pc.utf8_trim_whitespace(array).cast(new.arrow)


def may_parse(array: Any, new: DataType) -> Any:
    """Return which texts have the form of values of type ``new``.

    A text of another form raises ``CastFailed``. One of that form may, too: its value may be out of range.
    """
    if new.kind is Kind.BOOLEAN:
        return pc.is_in(pc.utf8_lower(array), pa.array([*_TRUE, *_FALSE]))
    form = _FORMS.get(new.kind)
    return pa.array(np.ones(len(array), np.bool_)) if form is None else pc.match_substring_regex(array, form)


def _booleans(array: Any, new: DataType) -> Any:
    lowered = pc.utf8_lower(array)
    true = pc.is_in(lowered, pa.array(_TRUE))
    _refuse(array, pc.or_(true, pc.is_in(lowered, pa.array(_FALSE))), new)
    return pc.if_else(array.is_valid(), true, pa.scalar(None, pa.bool_()))


def _timestamps(array: Any, new: DataType) -> Any:
    full_texts = pc.if_else(pc.equal(pc.utf8_length(array), _DAY_LENGTH), pc.binary_join_element_wise(array, "00:00:00", " "), array)
    if new.precision == 0:
        return pc.utf8_slice_codeunits(full_texts, 0, _SECOND_LENGTH).cast(new.arrow)
    return pc.utf8_slice_codeunits(full_texts, 0, _SECOND_LENGTH + 1 + new.precision).cast(new.arrow)


def _refuse(array: Any, fits: Any, new: DataType) -> None:
    unfit = pc.index(fits, False).as_py()
    if unfit >= 0 and array[unfit].is_valid:
        raise CastFailed(f"{array[unfit].as_py()!r} is no {new}")
    if pc.any(pc.and_(pc.invert(fits), array.is_valid())).as_py():
        raise CastFailed(f"a text is no {new}")


def fit_text(array: Any, new: DataType) -> Any:
    """Cut text to the length of ``new``.

    CHAR is padded with spaces.

    >>> fit_text(pa.array(["abcd", "x"]), DataType(Kind.CHAR, length=3)).to_pylist()
    ['abc', 'x  ']
    """
    if new.length == MAX_LENGTH:
        return array
    cut = pc.utf8_slice_codeunits(array, 0, new.length)
    return pc.utf8_rpad(cut, new.length, " ") if new.kind is Kind.CHAR else cut


def fit_binary(array: Any, new: DataType) -> Any:
    r"""Cut bytes to the length of ``new``.

    BINARY is padded with zeros.

    >>> fit_binary(pa.array([b"abcd", b"x"]), DataType(Kind.BINARY, length=3)).to_pylist()
    [b'abc', b'x\x00\x00']
    """
    if new.length == MAX_LENGTH:
        return array
    if new.kind is Kind.BINARY:
        array = pc.binary_join_element_wise(array, pa.scalar(bytes(new.length), pa.binary()), pa.scalar(b"", pa.binary()))
    return pc.binary_slice(array, 0, new.length)
