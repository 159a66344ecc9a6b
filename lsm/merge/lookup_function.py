"""Merging where a file above level 0 already holds what lies below it (Paimon's ``LookupMergeFunction``)."""

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
"""The level of the file that a version comes from; a column of rows that are merged, never of files."""

_NOT_MERGED_YET = np.iinfo(np.int8).max


def with_level(rows: Any, level: int) -> Any:
    """``rows`` and the level that they come from."""
    return rows.append_column(LEVEL, pa.array(np.full(rows.num_rows, level, np.int8)))


def without_level(rows: Any) -> Any:
    """``rows`` as files have them."""
    return rows.drop_columns([LEVEL]) if LEVEL in rows.column_names else rows


@dataclass(frozen=True, slots=True)
class LookupMerge:
    """Of versions from above level 0 only the shallowest takes part: it is the result of all deeper ones.

    Rows to fold have ``_LEVEL``, results do not. ``known_below``: keys that have a version on a deeper level than this one have
    no result at all (first-row: that version stays the first); None for other engines.
    """

    inner: MergeFunction
    known_below: int | None = None

    def fold(self, rows: Any, done: Sorted) -> Any:
        """See ``MergeFunction``."""
        levels = one_array(rows.column(LEVEL)).to_numpy()[done.order]
        if self.known_below is None:
            keep = _shallowest(levels, done)
        else:  # the first version wins, wherever it lies
            keep = ~np.repeat(np.maximum.reduceat(levels, done.starts) > self.known_below, _sizes(done))
        return self.inner.fold(without_level(rows), kept(done, keep))


def combines_versions(fold: MergeFunction) -> bool:
    """Whether results are made of several versions, so that it matters that a version above level 0 holds the deeper ones already."""
    return not isinstance(fold, Deduplicate | FirstRow)


def kept(done: Sorted, keep: Mask) -> Sorted:
    """``done`` without the places where ``keep`` is false; keys without a row left vanish.

    >>> less = kept(Sorted(np.array([2, 0, 1]), np.array([0, 1])), np.array([False, True, False]))
    >>> less.order.tolist(), less.starts.tolist()
    ([0], [0])
    """
    if keep.all():
        return done
    group = np.repeat(np.arange(len(done.starts)), _sizes(done))[keep]
    return Sorted(done.order[keep], np.flatnonzero(np.diff(group, prepend=-1)))


def _shallowest(levels: Int8s, done: Sorted) -> Mask:
    """Which places do not hold a version that a shallower file has merged already."""
    merged = levels > 0
    least = np.minimum.reduceat(np.where(merged, levels, _NOT_MERGED_YET), done.starts)
    found: Mask = ~merged | (levels == np.repeat(least, _sizes(done)))
    return found


def _sizes(done: Sorted) -> Int64s:
    return np.diff(done.starts, append=len(done.order))


__all__ = ["LEVEL", "LookupMerge", "combines_versions", "kept", "with_level", "without_level"]
