"""Conversion of filter literals to stored values.

Integers, decimals, dates and timestamps are stored as integers. For a literal ``v`` two cuts matter: the least stored
integer that is ``>= v`` and the least that is ``> v``. Every comparison follows from these two, so a literal of any type is
compared without rounding. Text is parsed to dates and times with Spark's rules of casting.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from zoneinfo import ZoneInfo

from paimon_base.errors import InvalidFilter
from pyspark_paimon.filter.ast import DateLiteral, Literal, TimeLiteral, TimestampLiteral
from sparkexpr.values.column_type import INTEGERS, TIMESTAMPS, ColumnType, Kind
from sparkexpr.values.time_zone import session_zone

_NANOS_PER_DAY = 86_400 * 10**9
_UNIT_NANOS = {"ms": 10**6, "us": 10**3, "ns": 1}
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_TIME = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_DAY_END = re.compile(r"[ T]")
_SPAN_LIMIT = 10_000  # largest accepted exponent: Fraction would allocate as many digits

BOUNDS: dict[Kind, tuple[int, int]] = {
    Kind.TINYINT: (-(2**7), 2**7 - 1),
    Kind.SMALLINT: (-(2**15), 2**15 - 1),
    Kind.INT: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
    Kind.DATE: (-(2**31), 2**31 - 1),
    Kind.TIME: (0, 86_399_999),
    Kind.TIMESTAMP: (-(2**63), 2**63 - 1),
    Kind.TIMESTAMP_LTZ: (-(2**63), 2**63 - 1),
}


def bounds(column_type: ColumnType) -> tuple[int, int]:
    """Return the least and the greatest stored integer."""
    if column_type.kind is Kind.DECIMAL:
        greatest: int = 10**column_type.precision - 1
        return -greatest, greatest
    return BOUNDS[column_type.kind]


def cuts(value: Literal, column_type: ColumnType) -> tuple[int, int]:
    """Return the least stored integers ``>= value`` and ``> value``.

    Raises ``InvalidFilter`` if the column cannot be compared with the literal.

    >>> cuts(Decimal("2.5"), ColumnType(Kind.INT)), cuts("1970-01-02", ColumnType(Kind.DATE))
    ((3, 3), (1, 2))
    """
    number = _on_line(value, column_type)
    low, high = bounds(column_type)
    if isinstance(number, float):
        scale = 10**column_type.scale if column_type.kind is Kind.DECIMAL else 1
        if math.isnan(number):
            return high + 1, high + 1
        return _first(lambda stored: stored / scale >= number, low, high), _first(lambda stored: stored / scale > number, low, high)
    return math.ceil(number), math.floor(number) + 1


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first integer for which ``holds`` is true.

    The search covers [low, high]. ``holds`` must be monotone. The result is ``high + 1`` if it is never true.
    """
    end = high + 1
    while low < end:
        middle = (low + end) // 2
        if holds(middle):
            end = middle
        else:
            low = middle + 1
    return low


def _on_line(value: Literal, column_type: ColumnType) -> Fraction | float:
    kind = column_type.kind
    if kind in INTEGERS:
        return number_of(value, kind)
    if kind is Kind.DECIMAL:
        number = number_of(value, kind)
        return number if isinstance(number, float) else number * 10**column_type.scale
    if kind is Kind.DATE:
        return Fraction(_nanos(value, kind), _NANOS_PER_DAY)
    if kind in TIMESTAMPS:
        return Fraction(_nanos(value, kind), _UNIT_NANOS[column_type.unit])
    return Fraction(_nanos_of_day(value), 10**6)


def number_of(value: Literal, kind: Kind) -> Fraction | float:
    """Return the number of a numeric literal or its text.

    The result is exact, or a float if the literal is one. Raises ``InvalidFilter`` for any other literal.

    >>> number_of("12.50", Kind.DECIMAL), number_of(1e3, Kind.INT)
    (Fraction(25, 2), 1000.0)
    """
    match value:
        case bool():
            pass
        case int():
            return Fraction(value)
        case float():
            return value
        case Decimal() if value.is_finite():
            return _fraction(value)
        case str():
            return _parse_number(value, kind)
    raise InvalidFilter(f"a column of type {kind} cannot be compared with {value!r}")


def _parse_number(text: str, kind: Kind) -> Fraction | float:
    word = text.strip()
    try:
        if word.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
            return float(word)
        number = Decimal(word)
    except (InvalidOperation, ValueError):
        raise InvalidFilter(f"a column of type {kind} cannot be compared with the text '{text}'") from None
    return _fraction(number)


def _fraction(number: Decimal) -> Fraction:
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and abs(exponent) > _SPAN_LIMIT:
        raise InvalidFilter(f"the number {number} is outside the range of every column type")
    return Fraction(number)


def _nanos(value: Literal, kind: Kind) -> int:
    match value:
        case TimestampLiteral() | DateLiteral():
            return nanos_of(value, kind)
        case str() if kind is Kind.DATE:
            return parse_date(value).days * _NANOS_PER_DAY
        case str():
            return nanos_of(parse_timestamp(value, zoned=kind is Kind.TIMESTAMP_LTZ), kind)
    raise InvalidFilter(f"a column of type {kind} cannot be compared with {value!r}; write {kind.split('_')[0]} '2024-01-31...'")


def nanos_of(value: TimestampLiteral | DateLiteral, kind: Kind) -> int:
    """Convert a date or timestamp to nanoseconds.

    The result is the instant for TIMESTAMP_LTZ, else the local time in the session's time zone.
    """
    timestamp = value if isinstance(value, TimestampLiteral) else TimestampLiteral(value.days * _NANOS_PER_DAY, wall=True)
    if timestamp.wall is not (kind is Kind.TIMESTAMP_LTZ):
        return timestamp.nanos
    return timestamp.instant(session_zone()) if timestamp.wall else timestamp.reading(session_zone())


def _nanos_of_day(value: Literal) -> int:
    if isinstance(value, TimeLiteral):
        return value.nanos
    if isinstance(value, str):
        return parse_time(value).nanos
    raise InvalidFilter(f"a column of type TIME cannot be compared with {value!r}; write TIME '10:30:00'")


def parse_date(text: str) -> DateLiteral:
    """Parse a date of the form ``yyyy[-m[-d]]``.

    Text after a space or a T is ignored, as in Spark's cast.

    >>> parse_date("1970-1-2T10:00"), parse_date("1971")
    (DateLiteral(days=1), DateLiteral(days=365))
    """
    word = re.split(r"[ T]", text.strip(), maxsplit=1)[0]
    match = _DATE.fullmatch(word)
    if match is None:
        raise InvalidFilter(f"'{text}' is not a date; write it as 2024-01-31")
    return DateLiteral(_days(match, text))


def _days(match: re.Match[str], text: str) -> int:
    year, month, day = (int(part) if part else 1 for part in match.groups())
    cycles, small = divmod(year - 2000, 400)  # Python's dates end in 9999; the calendar repeats every 400 years
    try:
        return DateLiteral.of(date(2000 + small, month, day)).days + cycles * 146_097
    except ValueError as error:
        raise InvalidFilter(f"'{text}' is not a date: {error}") from error


def parse_time(text: str) -> TimeLiteral:
    """Parse a time of the form ``h:m[:s[.fraction]]``."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise InvalidFilter(f"'{text}' is not a time; write it as 10:30:00.123")
    return TimeLiteral(_clock(match, text))


def _clock(match: re.Match[str], text: str) -> int:
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    if hour > 23 or minute > 59 or second > 59:
        raise InvalidFilter(f"'{text}' is not a time of day: hours end at 23, minutes and seconds at 59")
    return ((hour * 60 + minute) * 60 + second) * 10**9 + int((match.group(4) or "").ljust(9, "0") or 0)


def parse_timestamp(text: str, *, zoned: bool) -> TimestampLiteral:
    """Parse ``yyyy[-m[-d]][( |T)h:m[:s[.fraction]]][zone]``.

    zoned: Whether the column is a TIMESTAMP_LTZ. If not, a zone in the text is ignored, as in Spark's cast to TIMESTAMP_NTZ.
    Text without a zone is local time.

    >>> parse_timestamp("1970-01-01 01:00:00+01:00", zoned=True), parse_timestamp("1970-01-01T00:00:01", zoned=False)
    (TimestampLiteral(nanos=0, wall=False), TimestampLiteral(nanos=1000000000, wall=True))
    """
    day, *rests = _DAY_END.split(text.strip(), maxsplit=1)
    rest = "".join(rests)
    date_match = _DATE.fullmatch(day)
    clock = _TIME.match(rest.strip()) if rest.strip() else None
    if date_match is None or (rest.strip() and clock is None):
        raise InvalidFilter(f"'{text}' is not a timestamp; write it as 2024-01-31 10:30:00.123456")
    local = _days(date_match, text) * _NANOS_PER_DAY + (0 if clock is None else _clock(clock, text))
    zone = "" if clock is None else rest.strip()[clock.end() :].strip()
    offset = _offset_nanos(zone, local, text) if zone else 0
    return TimestampLiteral(local - offset) if zoned and zone else TimestampLiteral(local, wall=True)


def _offset_nanos(zone: str, local: int, text: str) -> int:
    fixed = _OFFSET.fullmatch(zone)
    if fixed is not None:
        sign = -1 if fixed.group(1) == "-" else 1
        return sign * (int(fixed.group(2)) * 60 + int(fixed.group(3) or 0)) * 60 * 10**9
    if zone.upper() in {"Z", "UTC", "GMT", "UT"}:
        return 0
    try:
        info: timezone | ZoneInfo = ZoneInfo(zone)
        wall = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=info) + timedelta(microseconds=local // 1000)
        offset = wall.utcoffset() or timedelta(0)
    except (KeyError, ValueError, OSError, OverflowError) as error:
        raise InvalidFilter(f"'{text}' has an unknown time zone '{zone}'; write an offset such as +01:00") from error
    return offset // timedelta(microseconds=1) * 1000
