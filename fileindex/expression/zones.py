"""Conversions between instants and wall clocks in a zone.

The zone is an argument of the calls.
"""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from fileindex.base.column_type import ColumnType, Kind
from fileindex.base.time_zone import to_moment, to_wall_clock
from fileindex.expression.arithmetic import Arrays
from fileindex.expression.calendar import in_calendar, truncate

LOCAL, INSTANT, TRUNCATED = "@local", "@instant", "@date_trunc"
"""Names that a filter text cannot contain."""


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


def wall_type(given: ColumnType) -> ColumnType:
    """Return the TIMESTAMP of a TIMESTAMP_LTZ."""
    return ColumnType(Kind.TIMESTAMP, precision=given.precision)


def instant_type(given: ColumnType) -> ColumnType:
    """Return the TIMESTAMP_LTZ of a TIMESTAMP."""
    return ColumnType(Kind.TIMESTAMP_LTZ, precision=given.precision)


def _zone(values: Arrays) -> str:
    zones = values[1]
    return str(zones[0].as_py()) if len(zones) else "UTC"


__all__ = ["INSTANT", "LOCAL", "TRUNCATED", "instant", "instant_type", "local", "truncate_instant", "wall_type"]
