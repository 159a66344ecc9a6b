"""The current date and time in Spark's SQL, also with an interval added or subtracted.

They are constants of the moment at which the filter is bound.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

from sqlglot import exp

from paimon_base.errors import InvalidFilter
from pyspark_paimon.filter.ast import DateLiteral, Literal, TimestampLiteral
from sparkexpr.values.time_zone import session_tzinfo

_EPOCH = date(1970, 1, 1)
_MICROS = {"MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6}
_DAYS, _MONTHS = {"DAY": 1, "WEEK": 7}, {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def is_now(node: exp.Expression) -> bool:
    """Return whether ``node`` is the current date or time, perhaps with an interval or a number of days."""
    while isinstance(node, exp.Paren):
        node = node.this
    match node:
        case exp.CurrentDate() | exp.CurrentTimestamp() | exp.Localtimestamp():
            return node.this is None
        case exp.Anonymous():
            return str(node.this).lower() == "now" and not node.expressions
        case exp.Add() | exp.Sub():
            return is_now(node.this) and isinstance(node.expression, exp.Interval | exp.Literal)
    return False


def now_literal(node: exp.Expression) -> Literal:
    """Return the value of such a node.

    Raises ``InvalidFilter`` for an interval that is not a whole number of one unit.
    """
    while isinstance(node, exp.Paren):
        node = node.this
    match node:
        case exp.CurrentDate():
            return DateLiteral.of(_now().astimezone(session_tzinfo()).date())
        case exp.Localtimestamp():
            return TimestampLiteral(_nanos(_now().astimezone(session_tzinfo()).replace(tzinfo=UTC)), wall=True)
        case exp.Add() | exp.Sub():
            return _shift(node, now_literal(node.this), -1 if isinstance(node, exp.Sub) else 1)
    return TimestampLiteral(_nanos(_now()))


def _now() -> datetime:
    """Return the current time in milliseconds."""
    # Columns of precision 3 take no microseconds.
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time.time_ns() // 10**6)


def _nanos(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def interval_parts(node: exp.Expression, sign: int) -> tuple[str, int]:
    """Return unit and number of the interval that a node adds or subtracts.

    The units are ``month``, ``day`` and ``microsecond``. A plain number counts days.
    Raises ``InvalidFilter`` for an interval that is not a whole number of one unit.
    """
    by = node.expression
    unit, number = ("DAY", by) if isinstance(by, exp.Literal) else (str(getattr(by, "unit", None) or "").upper().removesuffix("S"), by.this)
    while isinstance(number, exp.Neg | exp.Paren):
        sign, number = -sign if isinstance(number, exp.Neg) else sign, number.this
    for name, units in (("month", _MONTHS), ("day", _DAYS), ("microsecond", _MICROS)):
        if unit in units:
            with suppress(AttributeError, ValueError):
                return name, sign * int(str(number.this)) * units[unit]
    raise InvalidFilter(
        f"'{node.sql(dialect='spark')[:120]}': write a whole number of one unit, such as now() - INTERVAL 7 DAYS or current_date - 7"
    )


def _shift(node: exp.Expression, value: Literal, sign: int) -> Literal:
    unit, count = interval_parts(node, sign)
    is_day = isinstance(value, DateLiteral)
    if (unit == "microsecond" and is_day) or (isinstance(node.expression, exp.Literal) and not is_day):
        raise InvalidFilter(f"'{node.sql(dialect='spark')[:120]}': add days to a date, and intervals such as INTERVAL 7 HOURS to a time")
    try:
        if isinstance(value, DateLiteral):
            return DateLiteral.of(_calendar(_EPOCH + timedelta(value.days), unit, count))
        assert isinstance(value, TimestampLiteral)  # the other kind of these nodes
        if unit == "microsecond":
            return TimestampLiteral(value.nanos + count * 1000, value.wall)
        # Days and months are of the calendar of the session: a day may have 23 hours.
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value.nanos // 1000)
        local = moment if value.wall else moment.astimezone(session_tzinfo())
        there = datetime.combine(_calendar(local.date(), unit, count), local.timetz())
        return TimestampLiteral(_nanos(there.astimezone(UTC)), value.wall)
    except OverflowError as error:
        raise InvalidFilter(f"'{node.sql(dialect='spark')[:120]}' is outside the years 1 to 9999") from error


def _calendar(day: date, unit: str, count: int) -> date:
    """Add days or months; the day of the month is at most its last one."""
    if unit == "day":
        return day + timedelta(days=count)
    months = day.year * 12 + day.month - 1 + count
    year, month = divmod(months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    first = date(year, month + 1, 1)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(1)).day if (year, month) < (9999, 11) else 31
    return first.replace(day=min(day.day, last))
