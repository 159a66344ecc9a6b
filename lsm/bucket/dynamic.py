"""Dynamic buckets of keys (Paimon's ``HashBucketAssigner``).

A key is identified by its hash. Known hashes keep their bucket forever. New ones fill buckets with room, then new buckets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int32s, Mask
from fileindex.base.errors import InvalidArgument
from fileindex.base.plain_value import to_scalar
from lsm.bucket.hash import bucket_hashes
from lsm.bucket.hash_index import read_hashes
from lsm.bucket.known_hashes import UNKNOWN, KnownHashes
from manifest.entry.index_manifest import HASH, IndexManifestEntry
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore


@dataclass(frozen=True, slots=True)
class BucketOwnership:
    """Dynamic buckets of one of several writers.

    It owns the buckets whose number modulo ``writers`` is ``index``.

    >>> BucketOwnership(1, 4).first(3).tolist()
    [1, 5, 9]
    """

    index: int = 0
    writers: int = 1

    def first(self, count: int) -> Int32s:
        """Return the lowest ``count`` owned bucket numbers."""
        numbers: Int32s = self.index + self.writers * np.arange(count, dtype=np.int32)
        return numbers

    def holds(self, buckets: Int32s) -> Mask:
        """Return a mask of the owned buckets."""
        mask: Mask = buckets % self.writers == self.index
        return mask


@dataclass(frozen=True, slots=True)
class Owners:
    """Bucket ownership of one task of a commit.

    ``writers`` of ``tasks`` share the buckets of each partition. They are consecutive tasks, starting with the one selected by the partition's hash.
    So partitions are spread over all tasks, and a partition has at most one partly filled bucket per writer.

    >>> Owners(task=1, tasks=4, writers=2).of(0), Owners(task=1, tasks=4, writers=2).of(5)
    (BucketOwnership(index=1, writers=2), BucketOwnership(index=0, writers=2))
    """

    task: int
    tasks: int
    writers: int

    def of(self, partition_hash: int) -> BucketOwnership:
        """Return the ownership of a partition's buckets.

        Raises:
            InvalidArgument: The task owns no bucket of the partition.
        """
        index = (self.task - partition_hash) % self.tasks
        if index >= self.writers:
            raise InvalidArgument(f"rows of a partition came to task {self.task} of {self.tasks}, which owns none of its buckets")
        return BucketOwnership(index, self.writers)


_ALL = BucketOwnership()
_UNLIMITED = -1


@dataclass(slots=True)
class BucketRoom:
    """Fill state of the buckets of one partition.

    Args:
        used: Number of keys of each bucket.
        target_rows: Keys per bucket before another is opened (``dynamic-bucket.target-row-num``).
        max_buckets: Maximum number of buckets, -1 for any (``dynamic-bucket.max-buckets``). When all are full they fill evenly.
        owned: Buckets that may receive keys.

    >>> BucketRoom({0: 2}, target_rows=3).place(3).tolist()
    [0, 1, 1]
    """

    used: dict[int, int]
    target_rows: int
    max_buckets: int = _UNLIMITED
    owned: BucketOwnership = _ALL

    def place(self, count: int) -> Int32s:
        """Return buckets for ``count`` new keys.

        Fills open buckets first, lowest number first, then new ones.
        """
        present = np.array(sorted(self.used), np.int32)
        own = present[self.owned.holds(present)]
        room = np.maximum(self.target_rows - np.array([self.used[bucket] for bucket in own.tolist()], np.int64), 0)
        opening = max(0, -(-(count - int(room.sum())) // self.target_rows))
        free = np.setdiff1d(self.owned.first(len(present) + opening), present)
        if self.max_buckets != _UNLIMITED:
            free = free[free < self.max_buckets]
        free = free[:opening]
        ids = np.concatenate([own, free]).astype(np.int32)
        filled = np.repeat(ids, np.concatenate([room, np.full(len(free), self.target_rows)]).astype(np.int64))[:count]
        rest = np.resize(ids if len(ids) else self.owned.first(1), count - len(filled))
        placed: Int32s = np.concatenate([filled, rest]).astype(np.int32)
        for bucket, keys in zip(*(part.tolist() for part in np.unique(placed, return_counts=True)), strict=True):
            self.used[bucket] = self.used.get(bucket, 0) + keys
        return placed

    def leave(self, bucket: int, count: int) -> None:
        """Remove ``count`` keys from a bucket."""
        self.used[bucket] = max(0, self.used.get(bucket, 0) - count)


@dataclass(slots=True)
class PartitionIndex:
    """Buckets of one partition: known hashes and free room."""

    known: KnownHashes
    room: BucketRoom
    changed: set[int] = field(default_factory=set)

    @classmethod
    def of(
        cls, by_bucket: Mapping[int, Int32s], target_rows: int, max_buckets: int = _UNLIMITED, owned: BucketOwnership = _ALL
    ) -> PartitionIndex:
        """Return the index of a partition with these hashes.

        >>> index = PartitionIndex.of({0: np.array([7, -3], np.int32)}, target_rows=3)
        >>> index.assign(np.array([7, 8, 9, 8, -3], np.int32)).tolist(), sorted(index.changed)
        ([0, 0, 1, 0, 0], [0, 1])
        """
        used = {bucket: len(hashes) for bucket, hashes in by_bucket.items() if len(hashes)}
        return cls(KnownHashes(by_bucket), BucketRoom(used, target_rows, max_buckets, owned))

    def assign(self, hashes: Int32s) -> Int32s:
        """Return the bucket of every hash. New ones become known."""
        wanted, position = np.unique(hashes, return_inverse=True)
        assigned = self.known.find(wanted)
        new = assigned == UNKNOWN
        if new.any():
            assigned[new] = placed = self.room.place(int(new.sum()))
            self.known.add(wanted[new], placed)
            self.changed.update(np.unique(placed).tolist())
        found: Int32s = assigned[position]
        return found


class HashBucketAssigner:
    """Assignment of keys to buckets, as of one snapshot.

    Not thread-safe. ``owners`` restricts the buckets that receive rows. None: all buckets. Snapshot None is an empty table.
    """

    def __init__(self, store: FileStore, snapshot: Snapshot | None, owners: Owners | None = None) -> None:
        self._store = store
        self._owners = owners
        self._entries: dict[bytes, list[IndexManifestEntry]] = {}
        for entry in store.index_entries(snapshot):
            if entry.index_type == HASH:
                self._entries.setdefault(entry.partition, []).append(entry)
        self._partitions: dict[bytes, PartitionIndex] = {}

    def assign(self, partition: bytes, hashes: Int32s) -> Int32s:
        """Return the bucket of every key.

        Keys are given by the hash of their trimmed primary key.

        Raises:
            CorruptFile: An index file is damaged.
        """
        return self._index(partition).assign(hashes)

    def new_hashes(self, partition: bytes, bucket: int) -> Int32s | None:
        """Return all hashes of a bucket that received new keys.

        None: it received none.
        """
        index = self._partitions.get(partition)
        return index.known.of_bucket(bucket) if index is not None and bucket in index.changed else None

    def entries(self, partition: bytes) -> list[IndexManifestEntry]:
        """Return the hash index files of a partition.

        There is one per bucket.
        """
        return self._entries.get(partition, [])

    def _index(self, partition: bytes) -> PartitionIndex:
        found = self._partitions.get(partition)
        if found is None:
            owned = _ALL if self._owners is None else self._owners.of(self._hash(partition))
            entries = [entry for entry in self.entries(partition) if owned.holds(np.array(entry.bucket))]
            by_bucket = {entry.bucket: read_hashes(self._store, entry) for entry in entries}
            options = self._store.options
            limits = (options.dynamic_bucket_target_row_num, options.dynamic_bucket_max_buckets)
            found = PartitionIndex.of(by_bucket, *limits, owned)
            self._partitions[partition] = found
        return found

    def _hash(self, partition: bytes) -> int:
        """Return the bucket-key hash of a partition.

        0 for an unpartitioned table.
        """
        values, types = self._store.partition.decode(partition), self._store.partition.types
        arrays = [pa.repeat(to_scalar(value, type_.column_type), 1) for value, type_ in zip(values, types, strict=True)]
        return int(bucket_hashes(arrays, types)[0]) if arrays else 0


__all__ = ["BucketOwnership", "BucketRoom", "HashBucketAssigner", "Owners", "PartitionIndex"]
