"""Session time zone of filters and casts, and zone arithmetic.

A call binds its filter in one zone: that of the Spark session, of a ``time_zone`` block, or of the process. Bound filters keep it.

As in ``java.time``, a wall clock that a zone skips is read with the offset before the gap. Of an ambiguous one the first is meant.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta, timezone, tzinfo
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.errors import InvalidArgument, InvalidFilter

UTC = "UTC"
_DATABASE = "zoneinfo/"
_DAY = 86_400
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::00)?")
_NANOS = 10**9
_MOST_SECONDS = 32_000 * 365 * _DAY
"""Arrow's calendar has years of 16 bits."""

_zone: ContextVar[Callable[[], str] | None] = ContextVar("time_zone", default=None)


@contextmanager
def time_zone(zone: str | Callable[[], str]) -> Iterator[None]:
    """Read wall clocks in ``zone`` inside the block.

    ``zone`` is a name, or a function that returns one. It is called once, when the zone is needed.

    Raises ``InvalidArgument`` for an unknown name.

    >>> with time_zone("Asia/Tokyo"):
    ...     session_zone()
    'Asia/Tokyo'
    """
    if isinstance(zone, str):
        name = zone_named(zone)
        resolve: Callable[[], str] = lambda: name  # noqa: E731  # a constant
    else:
        lookup = zone
        resolve = cache(lambda: zone_named(lookup()))
    token = _zone.set(resolve)
    try:
        yield
    finally:
        _zone.reset(token)


def session_zone() -> str:
    """Return the zone of the innermost ``time_zone`` block.

    Outside a block, the zone of the process. Raises ``InvalidArgument`` if that has no name.
    """
    resolve = _zone.get()
    return process_zone() if resolve is None else resolve()


def process_zone() -> str:
    """Return the process's zone, from ``TZ`` or the machine.

    Raises ``InvalidArgument`` if it has no name.
    """
    return _zone_of_process(os.environ.get("TZ", ""))


@lru_cache(maxsize=16)
def _zone_of_process(variable: str) -> str:
    zone = variable.lstrip(":")
    if not zone:
        link = str(Path("/etc/localtime").resolve())
        zone = link.partition(_DATABASE)[2] or UTC
    zone = zone.partition(_DATABASE)[2] or zone
    try:
        return zone_named(zone)
    except InvalidArgument:
        raise InvalidArgument(f"the time zone '{zone}' of this process is unknown; set TZ, for example TZ=Europe/Berlin") from None


@lru_cache(maxsize=256)
def zone_named(text: str) -> str:
    """Return Arrow's name of a zone.

    Raises ``InvalidArgument`` for an unknown zone.

    >>> zone_named("GMT+1"), zone_named("Z"), zone_named("Europe/Berlin")
    ('+01:00', 'UTC', 'Europe/Berlin')
    """
    if text.upper() in {"Z", "UTC", "GMT", "UT", "ETC/UTC", "ZULU"}:
        return UTC
    offset = _OFFSET.fullmatch(text)
    if offset is not None:
        sign, hours, minutes = offset[1], int(offset[2]), int(offset[3] or 0)
        if hours <= 18 and minutes <= 59:
            return f"{sign}{hours:02}:{minutes:02}" if hours or minutes else UTC
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise InvalidArgument(f"'{text}' is not a known time zone; write it as Europe/Berlin or +02:00") from None
    return text


def session_tzinfo() -> tzinfo:
    """Return the zone of ``session_zone`` for calculations with datetimes.

    >>> from datetime import datetime
    >>> with time_zone("+05:30"):
    ...     datetime(2024, 1, 31, tzinfo=session_tzinfo()).isoformat()
    '2024-01-31T00:00:00+05:30'
    """
    name = session_zone()
    if name[0] not in "+-":
        return ZoneInfo(name)
    # An offset is no zone of the database.
    offset = timedelta(hours=int(name[1:3]), minutes=int(name[4:6]))
    return timezone(-offset if name[0] == "-" else offset)


def to_wall_clock(moments: Any, zone: str) -> Any:
    """Convert TIMESTAMP_LTZ to the TIMESTAMP of clocks in ``zone``.

    >>> to_wall_clock(pa.array([0], pa.timestamp("s", "UTC")), "Asia/Tokyo")[0].as_py().isoformat()
    '1970-01-01T09:00:00'
    """
    return pc.local_timestamp(moments.cast(pa.timestamp(moments.type.unit, zone)))


def to_moment(clocks: Any, zone: str) -> Any:
    """Convert TIMESTAMP to the instant when ``zone``'s clocks show it.

    The result is in UTC.

    >>> clocks = pa.array(["2024-03-31T02:30:00", "2024-10-27T02:30:00"]).cast(pa.timestamp("s"))
    >>> [moment.as_py().isoformat() for moment in to_moment(clocks, "Europe/Berlin")]
    ['2024-03-31T01:30:00+00:00', '2024-10-27T00:30:00+00:00']
    """
    unit = clocks.type.unit
    moments = _moments(clocks, zone)
    skipped = pc.fill_null(pc.not_equal(to_wall_clock(moments, zone), clocks), fill_value=False)
    if pc.any(skipped).as_py():
        before = pc.subtract(clocks, pa.scalar(_DAY, pa.duration("s")).cast(pa.duration(unit)))
        offsets = pc.subtract(before, _moments(before, zone).cast(pa.timestamp(unit)))
        shifted = pc.subtract(clocks, offsets).cast(pa.timestamp(unit, UTC))
        moments = pc.if_else(skipped, shifted, moments)
    return moments


def _moments(clocks: Any, zone: str) -> Any:
    instants = pc.assume_timezone(clocks, zone, ambiguous="earliest", nonexistent="latest")
    return instants.cast(pa.timestamp(clocks.type.unit, UTC))


def instant_of(wall_nanos: int, zone: str) -> int:
    """Return the instant of a wall clock in ``zone``.

    In nanoseconds since the epoch. Raises ``InvalidFilter`` beyond the year 32,000.

    >>> instant_of(0, "Asia/Tokyo") // 3_600_000_000_000
    -9
    """
    if zone == UTC:
        return wall_nanos
    seconds, rest = _within_years(wall_nanos)
    return int(to_moment(pa.array([seconds], pa.timestamp("s")), zone)[0].value) * _NANOS + rest


def wall_of(instant_nanos: int, zone: str) -> int:
    """Return the wall clock in ``zone`` at an instant.

    In nanoseconds since 1970 on that clock. Raises as ``instant_of``.
    """
    if zone == UTC:
        return instant_nanos
    seconds, rest = _within_years(instant_nanos)
    return int(to_wall_clock(pa.array([seconds], pa.timestamp("s", UTC)), zone)[0].value) * _NANOS + rest


def _within_years(nanos: int) -> tuple[int, int]:
    seconds, rest = divmod(nanos, _NANOS)
    if abs(seconds) > _MOST_SECONDS:
        raise InvalidFilter("the year is beyond 32,000, where time zones are not defined; write the timestamp with the zone UTC")
    return seconds, rest
