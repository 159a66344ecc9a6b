"""Parts of dates and times, and wall clocks in a time zone.

Dates follow the proleptic Gregorian calendar. Times are in UTC, except where a function has a zone as argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.errors import FilterFailed
from sparkexpr.expression.arithmetic import Arrays
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.values.time_zone import to_moment, to_wall_clock

PARTS = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "dayofyear": pc.day_of_year,
    "weekofyear": pc.iso_week,
    "dayofweek": lambda value: pc.day_of_week(value, count_from_zero=False, week_start=7),
    "weekday": pc.day_of_week,
}
"""Kernels of parts by their names in Spark. A week begins on Monday; ``dayofweek`` counts from Sunday, 1."""
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_MOST_DAYS = 32_000 * 365
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
LOCAL, INSTANT, TRUNCATED, SHIFTED = "@local", "@instant", "@date_trunc", "@add_interval"
"""Names that a filter text cannot contain."""


def extract_part(name: str, values: Arrays) -> Any:
    """Return a part of ``PARTS`` as an INT."""
    return PARTS[name](in_calendar(without_zone(values[0]))).cast(pa.int32())


def truncate(value: Any, unit: str) -> Any:
    """``date_trunc(unit, a)``.

    A week begins on Monday.
    """
    return pc.floor_temporal(in_calendar(without_zone(value)), unit=unit).cast(value.type)


def add_days(values: Arrays, result: ColumnType) -> Any:
    """``date_add(day, number)``."""
    day, number = values
    return pc.add_checked(day.cast(pa.int32()), number).cast(result.arrow)


def add_months(values: Arrays, result: ColumnType) -> Any:
    """``add_months(day, number)``: at most the last day of the month."""
    day, number = values
    moved = _plus_months(day, np.asarray(number.fill_null(0))).cast(result.arrow)
    return pc.if_else(number.is_valid(), moved, pa.scalar(None, result.arrow))


def last_day(values: Arrays, result: ColumnType) -> Any:
    """``last_day(day)``: the last day of its month."""
    (day,) = values
    return _dates(_last_days(_days(day).astype("M8[M]")), day).cast(result.arrow)


def add_interval(value: Any, unit: str, count: int, result: ColumnType, zone: str = "UTC") -> Any:
    """Return days or times ``count`` months, days or microseconds later.

    Args:
        value: Days, wall clocks or instants.
        unit: ``month``, ``day`` or ``microsecond``.
        count: Number of them.
        result: Type of the result.
        zone: Time zone in which instants have days and months.
    """
    if pa.types.is_date(value.type):
        moved = pc.add_checked(value.cast(pa.int32()), pa.scalar(count, pa.int32())) if unit == "day" else _plus_months(value, count)
        return moved.cast(result.arrow)
    value = value.cast(result.arrow)
    if unit == "microsecond":
        return pc.add_checked(value.cast(pa.int64()), _ticks(count * _PER_DAY[result.unit] // _PER_DAY["us"])).cast(result.arrow)
    shown = without_zone(value) if zone == "UTC" else to_wall_clock(in_calendar(value), zone)
    per_day = _PER_DAY[result.unit]
    ticks = in_calendar(shown).cast(pa.int64())
    days = pc.floor_temporal(shown, unit="day").cast(pa.int64())
    clock = pc.subtract(ticks, days)
    if unit == "day":
        moved = pc.add_checked(days, _ticks(count * per_day))
    else:
        months = _plus_months(pc.floor_temporal(shown, unit="day").cast(pa.date32()), count)
        moved = pc.multiply_checked(months.cast(pa.int32()).cast(pa.int64()), per_day)
    there = pc.add_checked(moved, clock).cast(shown.type)
    if zone == "UTC":
        return there.cast(pa.int64()).cast(result.arrow)
    # Of an ambiguous hour, the offset is kept if possible, as in ``java.time``.
    near = pc.add(value, pc.subtract(there, shown)).cast(value.type)
    return pc.if_else(pc.equal(to_wall_clock(near, zone), there), near, to_moment(there, zone).cast(value.type))


def _ticks(count: int) -> Any:
    if abs(count) >= 2**63:
        raise FilterFailed("an INTERVAL is longer than a TIMESTAMP can be")
    return pa.scalar(count, pa.int64())


def truncate_day(value: Any, unit: str) -> Any:
    """``trunc(day, unit)``. A week begins on Monday."""
    return pc.floor_temporal(in_calendar(value), unit=unit).cast(pa.date32())


def _plus_months(day: Any, count: Any) -> Any:
    days = _days(day)
    months = days.astype("M8[M]")
    later = months + np.asarray(count, np.int64).astype("m8[M]")
    same_day = later.astype("M8[D]") + (days - months.astype("M8[D]"))
    return _dates(np.minimum(same_day, _last_days(later)), day)


def _last_days(months: Any) -> Any:
    """Return the last day of each month."""
    return (months + np.timedelta64(1, "M")).astype("M8[D]") - np.timedelta64(1, "D")


def _days(day: Any) -> Any:
    return np.asarray(in_calendar(day).cast(pa.int32()).fill_null(0)).astype("M8[D]")


def _dates(days: Any, like: Any) -> Any:
    """Return days as dates, null where ``like`` is."""
    return pa.array(days.astype(np.int64), mask=np.asarray(like.is_null())).cast(pa.int32()).cast(pa.date32())


def days_between(values: Arrays, _: ColumnType) -> Any:
    """``datediff(end, start)``."""
    end, start = values
    return pc.subtract_checked(end.cast(pa.int32()), start.cast(pa.int32()))


def without_zone(value: Any) -> Any:
    """Return instants as wall clocks in UTC."""
    kind = value.type
    return value.view(pa.timestamp(kind.unit)) if pa.types.is_timestamp(kind) and kind.tz is not None else value


def in_calendar(value: Any) -> Any:
    """Return ``value`` after checking its range of years.

    Raises ``FilterFailed`` beyond the year 32,000.
    """
    kind = value.type
    if pa.types.is_time(kind):
        return value
    # Arrow's calendar has 16-bit years.
    per_day = _PER_DAY[kind.unit] if pa.types.is_timestamp(kind) else 1
    ends = pc.min_max(value.view(pa.int64() if pa.types.is_timestamp(kind) else pa.int32()))
    if any(end is not None and abs(end) > _MOST_DAYS * per_day for end in (ends["min"].as_py(), ends["max"].as_py())):
        raise FilterFailed("a year is beyond 32,000, the limit of date functions; compare the column itself")
    return value


def local(values: Arrays, _: ColumnType) -> Any:
    """Return the wall clocks in a zone at instants."""
    return to_wall_clock(in_calendar(values[0]), _zone(values))


def instant(values: Arrays, _: ColumnType) -> Any:
    """Return the instants of wall clocks in a zone."""
    return to_moment(in_calendar(values[0]), _zone(values))


def truncate_instant(value: Any, unit: str, zone: str) -> Any:
    """``date_trunc`` of instants in a zone.

    Of an ambiguous hour, the offset is kept if possible, as in ``java.time``.
    """
    shown = to_wall_clock(in_calendar(value), zone)
    start = truncate(shown, unit)
    near = pc.subtract(value, pc.subtract(shown, start)).cast(value.type)
    return pc.if_else(pc.equal(to_wall_clock(near, zone), start), near, to_moment(start, zone).cast(value.type))


def wall_type(zoned: ColumnType) -> ColumnType:
    """Return the TIMESTAMP of a TIMESTAMP_LTZ."""
    return ColumnType(Kind.TIMESTAMP, precision=zoned.precision)


def instant_type(unzoned: ColumnType) -> ColumnType:
    """Return the TIMESTAMP_LTZ of a TIMESTAMP."""
    return ColumnType(Kind.TIMESTAMP_LTZ, precision=unzoned.precision)


def _zone(values: Arrays) -> str:
    zones = values[1]
    return str(zones[0].as_py()) if len(zones) else "UTC"
