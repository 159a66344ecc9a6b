"""Dynamic buckets: which bucket a key lives in, and where a new key goes (Paimon's ``HashBucketAssigner``).

A key is known by its hash. Known hashes keep their bucket for ever; new ones fill the buckets that have room, then new buckets.
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
class Owned:
    """The dynamic buckets of one of several writers: those whose number modulo ``writers`` is ``index``.

    >>> Owned(1, 4).first(3).tolist()
    [1, 5, 9]
    """

    index: int = 0
    writers: int = 1

    def first(self, count: int) -> Int32s:
        """The lowest ``count`` bucket numbers."""
        numbers: Int32s = self.index + self.writers * np.arange(count, dtype=np.int32)
        return numbers

    def holds(self, buckets: Int32s) -> Mask:
        """Mask of the buckets that are owned."""
        mask: Mask = buckets % self.writers == self.index
        return mask


@dataclass(frozen=True, slots=True)
class Owners:
    """The buckets of a task, of ``tasks`` in one commit of which ``writers`` share the buckets of each partition.

    Those are neighbours, from the task that the partition's hash names: so partitions are spread over all tasks, and each has no more
    buckets that are filled in part than it needs writers.

    >>> Owners(task=1, tasks=4, writers=2).of(0), Owners(task=1, tasks=4, writers=2).of(5)
    (Owned(index=1, writers=2), Owned(index=0, writers=2))
    """

    task: int
    tasks: int
    writers: int

    def of(self, partition_hash: int) -> Owned:
        """What the task owns of a partition. Raises ``InvalidArgument`` if that is nothing."""
        index = (self.task - partition_hash) % self.tasks
        if index >= self.writers:
            raise InvalidArgument(f"rows of a partition came to task {self.task} of {self.tasks}, which owns none of its buckets")
        return Owned(index, self.writers)


_ALL = Owned()
_UNLIMITED = -1


@dataclass(slots=True)
class BucketRoom:
    """How full the buckets of one partition are, and where its next keys go.

    Args:
        used: Keys of each bucket.
        target_rows: Keys that a bucket takes before another is opened (``dynamic-bucket.target-row-num``).
        max_buckets: Buckets that may be open, -1 for any number (``dynamic-bucket.max-buckets``); when all are full they fill evenly.
        owned: Which buckets may take keys.

    >>> BucketRoom({0: 2}, target_rows=3).place(3).tolist()
    [0, 1, 1]
    """

    used: dict[int, int]
    target_rows: int
    max_buckets: int = _UNLIMITED
    owned: Owned = _ALL

    def place(self, count: int) -> Int32s:
        """Buckets for ``count`` new keys: room in open buckets first, lowest bucket first, then new ones."""
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
        """So many keys have gone from a bucket."""
        self.used[bucket] = max(0, self.used.get(bucket, 0) - count)


@dataclass(slots=True)
class PartitionIndex:
    """The buckets of one partition: which hash lives where (``known``), and how much room each has."""

    known: KnownHashes
    room: BucketRoom
    changed: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, by_bucket: Mapping[int, Int32s], target_rows: int, max_buckets: int = _UNLIMITED, owned: Owned = _ALL) -> PartitionIndex:
        """The index of a partition whose buckets hold these hashes.

        >>> index = PartitionIndex.of({0: np.array([7, -3], np.int32)}, target_rows=3)
        >>> index.assign(np.array([7, 8, 9, 8, -3], np.int32)).tolist(), sorted(index.changed)
        ([0, 0, 1, 0, 0], [0, 1])
        """
        used = {bucket: len(hashes) for bucket, hashes in by_bucket.items() if len(hashes)}
        return cls(KnownHashes(by_bucket), BucketRoom(used, target_rows, max_buckets, owned))

    def assign(self, hashes: Int32s) -> Int32s:
        """The bucket of every hash; new ones become known."""
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
    """Assigns keys to the buckets of their partitions, as of one snapshot; not safe for several threads.

    ``owners`` says which buckets of a partition get rows (None: all). A snapshot of None stands for an empty table.
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
        """The bucket of every key, given by the hash of its trimmed primary key. Raises ``CorruptFile``."""
        return self._index(partition).assign(hashes)

    def new_hashes(self, partition: bytes, bucket: int) -> Int32s | None:
        """All hashes of a bucket that took new keys; None if it took none."""
        index = self._partitions.get(partition)
        return index.known.of_bucket(bucket) if index is not None and bucket in index.changed else None

    def entries(self, partition: bytes) -> list[IndexManifestEntry]:
        """The hash index files of a partition at the snapshot, one for each of its buckets."""
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
        """The hash of a partition, as of a bucket key; 0 where the table has none."""
        values, types = self._store.partition.decode(partition), self._store.partition.types
        arrays = [pa.repeat(to_scalar(value, type_.column_type), 1) for value, type_ in zip(values, types, strict=True)]
        return int(bucket_hashes(arrays, types)[0]) if arrays else 0


__all__ = ["BucketRoom", "HashBucketAssigner", "Owned", "Owners", "PartitionIndex"]
