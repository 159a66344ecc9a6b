"""Times around the start of 1970 in ORC files of another time zone.

Writers add a second to a fraction of a second before 1970, and readers take it away. Java looks at the moment, the decoder at the time on
the writer's wall: between the two beginnings of 1970 they differ.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from lsm.orc.nested import with_parts

_SECOND = 1_000_000_000
_EXACT = 999_999
"""Nanoseconds up to which writers add no second."""
_FARTHEST = 16 * 3600 * _SECOND


def with_java_seconds(array: Any, zone: Callable[[], str]) -> Any:
    """An array with the times that Java reads in it; ``zone`` gives the writer's zone, and is asked where that matters."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        return array if kind.tz is not None or kind.unit != "ns" else _timestamps(array, zone)
    if not pa.types.is_nested(kind) or not _has_times(kind):
        return array
    return with_parts(array, lambda part, _: with_java_seconds(part, zone))


def _has_times(kind: Any) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_times(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def _timestamps(array: Any, zone: Callable[[], str]) -> Any:
    values = array.view(pa.int64()).fill_null(_FARTHEST).to_numpy(zero_copy_only=False)
    fractions = values % _SECOND
    near = (fractions > _EXACT) & (np.abs(values) < _FARTHEST)
    if not near.any():
        return array
    ahead = _seconds_ahead(zone()) * _SECOND
    if ahead >= 0:
        moved = values - _SECOND * (near & (values >= 0) & (values < ahead))
    else:
        moved = values + _SECOND * (near & (values >= ahead - _SECOND) & (values < -_SECOND))
    return pa.array(moved, mask=array.is_null().to_numpy(zero_copy_only=False)).view(array.type)


def _seconds_ahead(zone: str) -> int:
    """How far a zone's clocks were ahead of UTC when 1970 began."""
    if not zone:
        return 0
    try:
        offset = ZoneInfo(zone).utcoffset(datetime(1970, 1, 1))  # noqa: DTZ001  # the zone's own clock
    except (ZoneInfoNotFoundError, ValueError):
        return 0
    return 0 if offset is None else int(offset.total_seconds())


__all__ = ["with_java_seconds"]
