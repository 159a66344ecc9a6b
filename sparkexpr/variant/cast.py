"""Casts of single values to column types, as Spark's ``variant_get`` does.

Values whose kind differs from the wanted type are cast one by one: a column rarely has more than a few of them.
"""

from __future__ import annotations

import re
import struct
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation, localcontext
from typing import Any

import numpy as np
import pyarrow as pa

from sparkexpr.errors import ExpressionError, InvalidArgument
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, ColumnType, Kind, Plain
from sparkexpr.values.time_zone import UTC, to_moment, zone_named
from sparkexpr.variant.decoding import clock_text, date_text, decimal_text, float_text, wall_micros
from sparkexpr.variant.rows import ValueKind

_SECOND, _DAY = 1_000_000, 86_400_000_000
_TWO_TO_63 = 2.0**63
_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
_BLANK = "".join(map(chr, range(0x21))) + "\x7f"
"""Characters that Spark trims from texts before it parses them."""
_TRUE, _FALSE = frozenset({"t", "true", "y", "yes", "1"}), frozenset({"f", "false", "n", "no", "0"})
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?")  # digits of any script, as Java's BigDecimal
_FLOAT = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_HEX_FLOAT = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[dDfF]?")
_SPECIAL_FLOATS = {
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), "inf"),
    **dict.fromkeys(("-inf", "-infinity"), "-inf"),
    "nan": "nan",
}
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T](.*))?)?)?", re.DOTALL)
_TIME = re.compile(r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?)?(.*)", re.DOTALL)
_SHORT_ZONES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Java's short names of zones that are in no database of zones."""
_WIDE = Context(prec=400, rounding=ROUND_HALF_UP)
_NUMBERS = frozenset({ValueKind.INTEGER, ValueKind.DOUBLE, ValueKind.FLOAT, ValueKind.DECIMAL})
_TEXTS_ONLY = frozenset({ValueKind.OBJECT, ValueKind.ARRAY, ValueKind.UUID})
"""Kinds that are cast to texts only."""


class InvalidCastError(ValueError):
    """A value has no counterpart in the wanted type."""


def cast_value(kind: ValueKind, value: Any, target: ColumnType, zone: str) -> Plain:
    """Return a value as a plain value of type ``target``.

    value: Dates are days, timestamps microseconds, binaries bytes, objects and arrays JSON texts, UUIDs texts.

    Raises ``InvalidCastError``.

    >>> cast_value(ValueKind.STRING, " 7 ", ColumnType(Kind.INT), "UTC"), cast_value(ValueKind.DOUBLE, 2.9, ColumnType(Kind.INT), "UTC")
    (7, 2)
    """
    plain: Plain
    if kind in _TEXTS_ONLY and target.kind not in STRINGS:
        _refuse()
    match target.kind:
        case Kind.BOOLEAN:
            plain = _to_boolean(kind, value)
        case number if number in INTEGERS:
            plain = _to_integer(kind, value, _BITS[number])
        case number if number in FLOATS:
            plain = _to_float(kind, value, single=number is Kind.FLOAT)
        case Kind.DECIMAL:
            plain = _to_decimal(kind, value, target)
        case text if text in STRINGS:
            plain = _to_text(kind, value, zone)
        case binary if binary in BINARIES:
            plain = value.encode() if kind is ValueKind.STRING else value if kind is ValueKind.BINARY else _refuse()
        case Kind.DATE:
            plain = _to_date(kind, value, zone)
        case Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ:
            plain = _to_timestamp(kind, value, zone, zoned=target.kind is Kind.TIMESTAMP_LTZ)
        case _:
            _refuse()
    return plain


def _refuse() -> Any:
    raise InvalidCastError


def _to_boolean(kind: ValueKind, value: Any) -> bool:
    if kind in _NUMBERS or kind is ValueKind.BOOLEAN:
        return bool(value != 0)
    if kind is not ValueKind.STRING:
        _refuse()
    word = value.strip(_BLANK).lower()
    if word not in _TRUE | _FALSE:
        _refuse()
    return word in _TRUE


def _to_integer(kind: ValueKind, value: Any, bits: int) -> int:
    match kind:
        case ValueKind.BOOLEAN | ValueKind.INTEGER:
            number = int(value)
        case ValueKind.DOUBLE | ValueKind.FLOAT:
            if not np.isfinite(value):
                _refuse()
            number = (1 << 63) - 1 if value == _TWO_TO_63 else int(value)  # the greatest BIGINT is 2**63 as a DOUBLE
        case ValueKind.DECIMAL:
            number = int(value)
        case ValueKind.STRING:
            text = value.strip(_BLANK)
            number = int(text) if _INTEGER.fullmatch(text) and len(text) < 400 else _refuse()
        case ValueKind.TIMESTAMP:
            number = value // _SECOND
        case _:
            _refuse()
    return number if -(1 << (bits - 1)) <= number < 1 << (bits - 1) else int(_refuse())


def _to_float(kind: ValueKind, value: Any, *, single: bool) -> float:
    match kind:
        case ValueKind.BOOLEAN | ValueKind.INTEGER | ValueKind.DOUBLE | ValueKind.FLOAT | ValueKind.DECIMAL:
            number = float(value)
        case ValueKind.STRING:
            number = _parse_float(value.strip(_BLANK), single=single)
        case ValueKind.TIMESTAMP:
            number = value / _SECOND
        case _:
            _refuse()
    return _single(number) if single else number


def _parse_float(text: str, *, single: bool) -> float:
    decimal_match = _FLOAT.fullmatch(text)
    if (hexadecimal := _HEX_FLOAT.fullmatch(text)) is not None:
        return _parse_hex(hexadecimal[1])
    if decimal_match is None:
        return float("nan" if text in {"+NaN", "-NaN"} else _SPECIAL_FLOATS.get(text.lower(), "") or _refuse())
    return float(np.float32(decimal_match[1])) if single else float(decimal_match[1])


def _parse_hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return float("-inf") if text[0] == "-" else float("inf")


def _single(number: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _to_decimal(kind: ValueKind, value: Any, target: ColumnType) -> int:
    match kind:
        case ValueKind.BOOLEAN | ValueKind.INTEGER:
            exact = Decimal(int(value))
        case ValueKind.DECIMAL:
            exact = value
        case ValueKind.DOUBLE | ValueKind.FLOAT if np.isfinite(value):
            exact = Decimal(repr(float(value)))
        case ValueKind.STRING:
            text = value.strip(_BLANK)
            exact = Decimal(text) if _DECIMAL.fullmatch(text) else _refuse()
        case ValueKind.TIMESTAMP:
            exact = Decimal(value).scaleb(-6)
        case _:
            _refuse()
    with localcontext(_WIDE):
        try:
            unscaled = int(exact.quantize(Decimal(1).scaleb(-target.scale)).scaleb(target.scale))
        except InvalidOperation:
            _refuse()
    return unscaled if abs(unscaled) < 10**target.precision else int(_refuse())


def _to_text(kind: ValueKind, value: Any, zone: str) -> str:
    match kind:
        case ValueKind.BOOLEAN:
            return "true" if value else "false"
        case ValueKind.DOUBLE | ValueKind.FLOAT:
            return float_text(value, single=kind is ValueKind.FLOAT)
        case ValueKind.DECIMAL:
            return decimal_text(value)
        case ValueKind.DATE:
            return date_text(value)
        case ValueKind.TIMESTAMP:
            return clock_text(wall_micros(value, zone))
        case ValueKind.TIMESTAMP_NTZ:
            return clock_text(value)
        case ValueKind.BINARY:
            return str(value.decode(errors="replace"))
    return str(value)


def _to_date(kind: ValueKind, value: Any, zone: str) -> int:
    match kind:
        case ValueKind.TIMESTAMP:
            return wall_micros(value, zone) // _DAY
        case ValueKind.TIMESTAMP_NTZ:
            return int(value) // _DAY
        case ValueKind.DATE:
            return int(value)
        case ValueKind.STRING:
            days, _ = _parse_date(value.strip(_BLANK))
            return days if -(1 << 31) <= days < 1 << 31 else int(_refuse())
    return int(_refuse())


def _to_timestamp(kind: ValueKind, value: Any, zone: str, *, zoned: bool) -> int:
    match kind:
        case ValueKind.TIMESTAMP:
            micros = value if zoned else wall_micros(value, zone)
        case ValueKind.TIMESTAMP_NTZ:
            micros = _instant(value, zone) if zoned else value
        case ValueKind.DATE:
            micros = _instant(value * _DAY, zone) if zoned else value * _DAY
        case ValueKind.STRING:
            micros = _parse_timestamp(value.strip(_BLANK), zone, zoned=zoned)
        case ValueKind.INTEGER if zoned:
            micros = value * _SECOND
        case ValueKind.DECIMAL if zoned:
            micros = int(value * _SECOND)
        case ValueKind.DOUBLE | ValueKind.FLOAT if zoned and np.isfinite(value * _SECOND):
            micros = int(value * _SECOND)
        case _:
            _refuse()
    return int(micros) if -(1 << 63) <= micros < 1 << 63 else int(_refuse())


def _instant(wall: int, zone: str) -> int:
    if zone == UTC:
        return wall
    if not -(1 << 63) <= wall < 1 << 63:
        _refuse()
    moment = int(to_moment(pa.array([wall], pa.timestamp("us")), zone)[0].value)
    return moment if abs(moment - wall) <= _DAY else int(_refuse())  # Arrow wraps around at the ends of its range


def _parse_date(text: str) -> tuple[int, str | None]:
    """Return days since 1970, and the text of the time behind the date."""
    date_match = _DATE.fullmatch(text)
    if date_match is None:
        _refuse()
    sign, year, month, day, rest = date_match.groups() if date_match is not None else ("", "", "", "", "")
    number = -int(year) if sign == "-" else int(year)
    cycles, small = divmod(number, 400)
    try:
        ordinal = date(small + 400, int(month or 1), int(day or 1)).toordinal()
    except ValueError:
        _refuse()
    return ordinal - 719_163 + (cycles - 1) * 146_097, rest


def _parse_timestamp(text: str, zone: str, *, zoned: bool) -> int:
    days, rest = _parse_date(text)
    wall, where = days * _DAY, ""
    if rest is not None:
        time_match = _TIME.fullmatch(rest)
        if time_match is None:
            _refuse()
        hour, minute, second, fraction, where = time_match.groups() if time_match is not None else ("0", "0", "0", "", "")
        clock = int(hour), int(minute or 0), int(second or 0)
        if clock[0] > 23 or clock[1] > 59 or clock[2] > 59 or (where and second is None):
            _refuse()
        wall += (clock[0] * 3600 + clock[1] * 60 + clock[2]) * _SECOND + int((fraction or "0")[:6].ljust(6, "0"))
    if where:
        named = _named_zone(where)  # a TIMESTAMP_NTZ ignores it
        zone = named if zoned else zone
    try:
        return _instant(wall, zone) if zoned else wall
    except ExpressionError:
        return int(_refuse())


def _named_zone(where: str) -> str:
    name = where.strip()
    try:
        return zone_named(_SHORT_ZONES.get(name, name))
    except InvalidArgument:
        return str(_refuse())
