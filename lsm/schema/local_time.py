"""Wall clocks and moments, by the time zone of whoever reads: what casts between TIMESTAMP and TIMESTAMP_LTZ go by.

The zone is that of the process, as ``TZ`` or the machine has it. A wall clock that a zone skips is taken as if its clocks had not been put
forward, one that comes twice is the first; so does ``java.time``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

import pyarrow as pa
import pyarrow.compute as pc

from manifest.io.errors import CastFailed

_DATABASE = "zoneinfo/"
_DAY = 86_400


def local_zone() -> str:
    """The name of the process's time zone. Raises ``CastFailed`` where the machine tells none."""
    told = os.environ.get("TZ", "").lstrip(":")
    if not told:
        link = str(Path("/etc/localtime").resolve())
        told = link.partition(_DATABASE)[2] or "UTC"
    told = told.partition(_DATABASE)[2] or told
    if told not in available_timezones():
        raise CastFailed(f"the time zone '{told}' of this process has no name that is known; set TZ, as in TZ=Europe/Berlin")
    return told


def to_wall_clock(moments: Any, zone: str) -> Any:
    """TIMESTAMP_LTZ as the TIMESTAMP that clocks show in ``zone``.

    >>> to_wall_clock(pa.array([0], pa.timestamp("s", "UTC")), "Asia/Tokyo")[0].as_py().isoformat()
    '1970-01-01T09:00:00'
    """
    return pc.local_timestamp(moments.cast(pa.timestamp(moments.type.unit, zone)))


def to_moment(clocks: Any, zone: str) -> Any:
    """TIMESTAMP as the moment, in UTC, at which clocks show it in ``zone``.

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
        shifted = pc.subtract(clocks, offsets).cast(pa.timestamp(unit, "UTC"))
        moments = pc.if_else(skipped, shifted, moments)
    return moments


def _moments(clocks: Any, zone: str) -> Any:
    found = pc.assume_timezone(clocks, zone, ambiguous="earliest", nonexistent="latest")
    return found.cast(pa.timestamp(clocks.type.unit, "UTC"))


__all__ = ["local_zone", "to_moment", "to_wall_clock"]
