"""Merge of lookup compactions (Paimon's ``LookupMergeFunction``).

A version above level 0 already contains the versions on deeper levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int8s, Int64s, Mask
from lsm.keys.encoding import one_array
from lsm.keys.sort import Sorted
from lsm.merge.function import Deduplicate, FirstRow, MergeFunction

LEVEL = "_LEVEL"
"""Column with the level of a version's file. Only in rows during a merge, never in files."""

_NOT_MERGED_YET = np.iinfo(np.int8).max


def with_level(rows: Any, level: int) -> Any:
    """Return ``rows`` with a ``_LEVEL`` column."""
    return rows.append_column(LEVEL, pa.array(np.full(rows.num_rows, level, np.int8)))


def without_level(rows: Any) -> Any:
    """Return ``rows`` without the ``_LEVEL`` column."""
    return rows.drop_columns([LEVEL]) if LEVEL in rows.column_names else rows


@dataclass(frozen=True, slots=True)
class LookupMerge:
    """Merge function that drops versions contained in shallower ones.

    Of versions above level 0 only the shallowest takes part: it is the merged result of all deeper ones.
    Rows to fold have ``_LEVEL``, results do not. For first-row, keys with a version on a level deeper than ``known_below`` have no result,
    because that version stays the first. None for other engines.
    """

    inner: MergeFunction
    known_below: int | None = None

    def fold(self, rows: Any, done: Sorted) -> Any:
        """See ``MergeFunction``."""
        levels = one_array(rows.column(LEVEL)).to_numpy()[done.order]
        if self.known_below is None:
            keep = _shallowest(levels, done)
        else:  # first-row: a version below the output level stays the first
            keep = ~np.repeat(np.maximum.reduceat(levels, done.starts) > self.known_below, _sizes(done))
        return self.inner.fold(without_level(rows), filter_sorted(done, keep))


def combines_versions(fold: MergeFunction) -> bool:
    """Return whether results combine several versions.

    If so, versions on deeper levels must not be merged twice.
    """
    return not isinstance(fold, Deduplicate | FirstRow)


def filter_sorted(done: Sorted, keep: Mask) -> Sorted:
    """Return ``done`` without the places where ``keep`` is False.

    Keys without a remaining row are removed.

    >>> less = filter_sorted(Sorted(np.array([2, 0, 1]), np.array([0, 1])), np.array([False, True, False]))
    >>> less.order.tolist(), less.starts.tolist()
    ([0], [0])
    """
    if keep.all():
        return done
    group = np.repeat(np.arange(len(done.starts)), _sizes(done))[keep]
    return Sorted(done.order[keep], np.flatnonzero(np.diff(group, prepend=-1)))


def _shallowest(levels: Int8s, done: Sorted) -> Mask:
    """Return a mask without versions contained in a shallower one."""
    merged = levels > 0
    least = np.minimum.reduceat(np.where(merged, levels, _NOT_MERGED_YET), done.starts)
    found: Mask = ~merged | (levels == np.repeat(least, _sizes(done)))
    return found


def _sizes(done: Sorted) -> Int64s:
    return np.diff(done.starts, append=len(done.order))


__all__ = ["LEVEL", "LookupMerge", "combines_versions", "filter_sorted", "with_level", "without_level"]
