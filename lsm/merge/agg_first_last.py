"""Aggregate functions that choose one version of a column.

First, last, least and greatest value. Each returns one place per key, -1 for null. ``valid`` marks non-null values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lsm.merge.version_groups import Best, VersionHistory
from sparkexpr.values.arrays import Int64s, Mask


def last_value(history: VersionHistory) -> Int64s:
    """Choose the last value, null included.

    The result is null if the last version retracts.
    """
    last = history.versions.last_where(history.in_order)
    return _not_retracted(history, last)


def last_non_null_value(history: VersionHistory, valid: Mask) -> Int64s:
    """Choose the last value that is not null.

    After the retract of a non-null value the result is null, until a late value fills it.
    """
    versions = history.versions
    last = versions.last_where(history.in_order & valid)
    positions = _not_retracted(history, last)
    if history.older is not None:
        late = versions.first_where(history.older & valid & (versions.positions > last[versions.keys]))
        positions = np.where(positions < 0, late, positions)
    return positions


def first_value(history: VersionHistory) -> Int64s:
    """Choose the first value, null included.

    A late value comes before the existing one and replaces it.
    """
    versions = history.versions
    if history.older is None:
        return _apply_seed(history, versions.first_where(history.newer), history.past)
    first = versions.first_where(history.newer | history.older)
    started = np.where((first >= 0) & history.newer[first], first, -1)
    if history.past is not None:
        first = np.where(versions.last_where(history.past) >= 0, -1, first)
    late = versions.last_where(history.older & (versions.positions > first[versions.keys]))
    return np.where(late >= 0, late, _apply_seed(history, started, history.past))


def first_non_null_value(history: VersionHistory, valid: Mask) -> Int64s:
    """Choose the first value that is not null."""
    positions = history.versions.first_where(history.newer & valid)
    positions = _apply_seed(history, positions, None if history.past is None else history.past & valid)
    if history.older is not None:
        for key in np.unique(history.versions.keys[history.older]).tolist():
            positions[key] = _first_non_null_with_late_ones(history, valid, key)
    return positions


def greatest(history: VersionHistory, column: Any, valid: Mask) -> Int64s:
    """Choose the greatest value that is not null."""
    return Best(history.versions).of(column, history.sets & valid)


def least(history: VersionHistory, column: Any, valid: Mask) -> Int64s:
    """Choose the smallest value that is not null."""
    return Best(history.versions, greatest=False).of(column, history.sets & valid)


def _not_retracted(history: VersionHistory, positions: Int64s) -> Int64s:
    if history.retract is None:
        return positions
    return np.where((positions >= 0) & history.retract[positions], -1, positions)


def _apply_seed(history: VersionHistory, positions: Int64s, past: Mask | None) -> Int64s:
    """Replace missing first values by the seed.

    A seed also wins if the first add was before the seed.
    """
    if history.seed is None:
        return positions
    seed = history.versions.last_where(history.seed)
    keep = positions < 0
    if past is not None:
        keep |= history.versions.last_where(past) >= 0
    return np.where(keep & (seed >= 0), seed, positions)


def _first_non_null_with_late_ones(history: VersionHistory, valid: Mask, key: int) -> int:
    """Choose the value of one key, version by version."""
    # Whether an add counts depends on the late versions before it.
    start, end = int(history.versions.starts[key]), int(history.versions.last[key]) + 1
    best, has_value = -1, False
    is_set = history.past is not None and bool((history.past & valid)[start:end].any())
    assert history.older is not None
    for position in range(start, end):
        if history.seed is not None and history.seed[position]:
            best, has_value = position, bool(valid[position])
        if history.newer[position] and not is_set and valid[position]:
            best, has_value, is_set = position, True, True
        elif history.older[position]:
            if not is_set and has_value:
                is_set = True
            else:
                best, has_value = position, bool(valid[position])
    return best
