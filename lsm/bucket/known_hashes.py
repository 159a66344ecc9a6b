"""Buckets of the known hashes of a partition.

Hashes come from index files, or became known during the write. Files are scanned unsorted while few hashes are looked up.
Sorting pays for many. New hashes are kept in sorted runs, each more than twice as large as the next. So each hash is merged a few
times, however many batches there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fileindex.base.arrays import Int32s
from fileindex.base.thresholds import thresholds

UNKNOWN = -1
_NO_HASHES: Int32s = np.empty(0, np.int32)
_HIGH = np.uint32(16)


@dataclass(frozen=True, slots=True)
class _Run:
    """Ascending hashes and their buckets.

    Of equal hashes the first one counts.
    """

    hashes: Int32s
    buckets: Int32s

    def find(self, wanted: Int32s, found: Int32s) -> None:
        """Fill in the buckets of hashes that are still ``UNKNOWN``."""
        missing = np.flatnonzero(found == UNKNOWN)
        if not missing.size or not self.hashes.size:
            return
        searched = wanted[missing]
        at = np.minimum(np.searchsorted(self.hashes, searched), self.hashes.size - 1)
        hit = self.hashes[at] == searched
        found[missing[hit]] = self.buckets[at[hit]]

    @classmethod
    def merge(cls, *parts: tuple[Int32s, Int32s]) -> _Run:
        """Merge (hashes, buckets) parts into one run."""
        # A stable sort merges ascending parts without a full sort.
        hashes = np.concatenate([_NO_HASHES, *(some for some, _ in parts)])
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], np.concatenate([_NO_HASHES, *(some for _, some in parts)])[order])


class KnownHashes:
    """Hashes of a partition and their buckets.

    ``by_bucket`` has hashes in any order. Not thread-safe.

    >>> known = KnownHashes({0: np.array([7, -3], np.int32)})
    >>> known.add(np.array([5], np.int32), np.array([1], np.int32))
    >>> known.find(np.array([-3, 5, 6], np.int32)).tolist()
    [0, 1, -1]
    """

    def __init__(self, by_bucket: Mapping[int, Int32s]) -> None:
        self._files = dict(by_bucket)
        self._lookups = 0
        self._sorted: _Run | None = None
        self._runs: list[_Run] = []
        self._new: dict[int, Int32s] | None = None

    def find(self, wanted: Int32s) -> Int32s:
        """Return the bucket of each hash, ``UNKNOWN`` for new ones.

        ``wanted`` must ascend.
        """
        found = np.full(len(wanted), UNKNOWN, np.int32)
        self._lookups += len(wanted)
        if self._sorted is None and self._lookups > thresholds().scanned_hashes:
            self._sorted = _Run.merge(*((hashes, np.full(len(hashes), bucket, np.int32)) for bucket, hashes in self._files.items()))
        if self._sorted is None:
            self._scan(wanted, found)
        else:
            self._sorted.find(wanted, found)
        for run in self._runs:
            run.find(wanted, found)
        return found

    def add(self, new: Int32s, buckets: Int32s) -> None:
        """Add hashes that were ``UNKNOWN``, with their buckets.

        They must ascend.
        """
        self._runs.append(_Run(new, buckets))
        self._new = None
        while len(self._runs) > 1 and self._runs[-2].hashes.size <= 2 * self._runs[-1].hashes.size:
            last, before = self._runs.pop(), self._runs.pop()
            self._runs.append(_Run.merge((before.hashes, before.buckets), (last.hashes, last.buckets)))

    def of_bucket(self, bucket: int) -> Int32s:
        """Return the distinct hashes of a bucket, ascending."""
        if self._new is None:
            self._new = self._new_by_bucket()
        hashes = np.sort(np.concatenate([self._files.get(bucket, _NO_HASHES), self._new.get(bucket, _NO_HASHES)]), kind="stable")
        first = np.ones(len(hashes), np.bool_)
        np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
        return hashes[first]

    def _scan(self, wanted: Int32s, found: Int32s) -> None:
        for bucket, hashes in reversed(self._files.items()):  # the first of equal hashes counts
            if len(wanted) <= thresholds().one_by_one_hashes:
                found[[bool((hashes == one).any()) for one in wanted]] = bucket
                continue
            likely = np.zeros(1 << 16, np.bool_)
            likely[wanted.view(np.uint32) >> _HIGH] = True
            candidates = hashes[likely[hashes.view(np.uint32) >> _HIGH]]
            at = np.minimum(np.searchsorted(wanted, candidates), len(wanted) - 1)
            found[at[wanted[at] == candidates]] = bucket

    def _new_by_bucket(self) -> dict[int, Int32s]:
        if not any(run.hashes.size for run in self._runs):
            return {}
        buckets = np.concatenate([run.buckets for run in self._runs])
        order = np.argsort(buckets, kind="stable")
        numbers, starts = np.unique(buckets[order], return_index=True)
        parts = np.split(np.concatenate([run.hashes for run in self._runs])[order], starts[1:])
        return dict(zip(numbers.tolist(), parts, strict=True))


__all__ = ["UNKNOWN", "KnownHashes"]
