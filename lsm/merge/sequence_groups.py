"""Sequence groups of partial-update: in-order and late versions.

A version whose ordering columns are all null does not touch the group. Otherwise its ordering columns are compared with the current ones.
If they are not smaller, the version is in order and its ordering columns become current. If they are smaller, it is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fileindex.base.arrays import Int64s, Mask
from fileindex.base.lazy import cached_property
from lsm.keys.encoding import WordColumn
from lsm.keys.sort import sort_rows
from lsm.merge.version_groups import Versions
from manifest.schema.merge_options import SequenceGroup


@dataclass(frozen=True)
class Ordering:
    """One sequence group over the versions of many keys.

    Args:
        touched: Versions that touch the group.
        rank: Rank of their ordering columns, -1 for other versions.
    """

    group: SequenceGroup
    versions: Versions
    touched: Mask
    rank: Int64s

    @classmethod
    def of(cls, group: SequenceGroup, versions: Versions, rows: Any, counts: Mask) -> Ordering:
        """Return the ordering. ``counts`` masks the versions to use."""
        words = [WordColumn.of(rows.column(name)) for name in group.ordering]
        touched = np.zeros(versions.count, np.bool_)
        for name in group.ordering:
            touched |= versions.valid(rows.column(name))
        touched &= counts
        return cls(group, versions, touched, np.where(touched, _ranks(words, versions.rows), -1))

    @cached_property
    def in_order(self) -> Mask:
        """Versions that are not smaller than all earlier ones."""
        span = int(self.rank.max(initial=0)) + 2
        offset = self.versions.keys * span
        highest = np.maximum.accumulate(offset + self.rank + 1) - offset - 1
        found: Mask = self.touched & (self.rank == highest)
        return found


def _ranks(words: Sequence[WordColumn], rows: Int64s) -> Int64s:
    """Return dense ranks of ``rows``. Equal rows get equal ranks."""
    chosen = [WordColumn(tuple(_of_rows(word, rows) for word in column.words), len(rows)) for column in words]
    done = sort_rows(chosen, length=len(rows))
    ranks = np.empty(len(rows), np.int64)
    ranks[done.order] = np.repeat(np.arange(len(done.starts)), np.diff(np.append(done.starts, len(rows))))
    return ranks


def _of_rows(word: Any, rows: Int64s) -> Any:
    return lambda places: word(rows if places is None else rows[places])


@dataclass(frozen=True)
class GroupEvents:
    """Versions that are in order or late in one group."""

    in_order: Mask
    late: Mask


def events(orderings: Sequence[Ordering], versions: Versions, deletes: Mask, removing: frozenset[str]) -> tuple[list[GroupEvents], Int64s]:
    """Return the events of each group, and the replacing versions.

    The second result is the last version of each key that replaced the whole row, -1 if none. ``deletes`` are the ``-D`` versions.
    A delete replaces the row if it is in order in a group with an ordering column in ``removing``.
    After that all groups continue from its ordering columns.
    """
    in_order = [ordering.in_order.copy() for ordering in orderings]
    base = np.full(len(versions.starts), -1)
    replay = _Replay(orderings, removing, in_order)
    candidates = replay.candidates(deletes)
    for key in np.unique(versions.keys[candidates]).tolist():
        base[key] = replay.last_removal(range(int(versions.starts[key]), int(versions.last[key]) + 1), candidates)
    late = [ordering.touched & ~mask for ordering, mask in zip(orderings, in_order, strict=True)]
    return [GroupEvents(one, other) for one, other in zip(in_order, late, strict=True)], base


@dataclass(frozen=True)
class _Replay:
    """Version-by-version evaluation of keys with row removals.

    A removal resets the ordering values that later versions are compared with.
    """

    orderings: Sequence[Ordering]
    removing: frozenset[str]
    in_order: Sequence[Mask]

    @cached_property
    def _removers(self) -> list[int]:
        return [at for at, ordering in enumerate(self.orderings) if self.removing & set(ordering.group.ordering)]

    def candidates(self, deletes: Mask) -> Mask:
        """Return the deletes that remove the row if in order."""
        found = np.zeros(len(deletes), np.bool_)
        for at in self._removers:
            found |= deletes & self.orderings[at].touched
        return found

    def last_removal(self, places: range, candidates: Mask) -> int:
        """Return the last version that replaced the row, or -1.

        Processes one key, and corrects ``in_order``.
        """
        current = [-1] * len(self.orderings)
        base = -1
        for place in places:
            ranks = [int(ordering.rank[place]) for ordering in self.orderings]
            for at, rank in enumerate(ranks):
                self.in_order[at][place] = 0 <= rank >= current[at]
            if candidates[place] and any(self.in_order[at][place] for at in self._removers):
                base, current = place, ranks
            else:
                current = [max(one, other) for one, other in zip(current, ranks, strict=True)]
        return base


__all__ = ["GroupEvents", "Ordering", "events"]
