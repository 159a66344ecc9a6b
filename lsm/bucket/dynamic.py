"""Dynamic buckets of keys (Paimon's ``HashBucketAssigner``).

A key is identified by its hash. Known hashes keep their bucket forever. New ones fill buckets with room, then new buckets.

``KnownHashes`` come from index files, or from rows of this write. Files are scanned unsorted while few hashes are looked up.
Sorting pays for many. New hashes are kept in sorted runs, each more than twice as large as the next. So each hash is merged a few
times, however many batches there are.

A HASH index file (Paimon's ``HashIndexFile``) has the hashes of the keys in a bucket. Other engines read every four bytes as a hash, so the file cannot have a checksum
inside. But one wrong hash sends a key to a second bucket and duplicates its rows. So the names of our files end with a checksum of
the content, ``-crc32-2cf0ce4b``. Names are always read from the index manifest, which has a checksum itself. For files of other
engines only the length is checked.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lsm.bucket.hash import bucket_hashes
from manifest.entry.index_manifest import HASH, IndexFile, IndexManifestEntry
from manifest.io.paths import FileNames
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, InvalidArgument
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int32s, Mask
from sparkexpr.values.plain_value import to_scalar

UNKNOWN = -1
_NO_HASHES: Int32s = np.empty(0, np.int32)
_HIGH = np.uint32(16)
_ON_DISK = np.dtype(">i4")
_CHECKSUM = re.compile(r"-crc32-([0-9a-f]{8})\Z")


@dataclass(frozen=True, slots=True)
class _Run:
    """Ascending hashes and their buckets.

    Of equal hashes the first one counts.
    """

    hashes: Int32s
    buckets: Int32s

    def find(self, hashes: Int32s, buckets: Int32s) -> None:
        """Fill in the buckets of hashes that are still ``UNKNOWN``."""
        missing = np.flatnonzero(buckets == UNKNOWN)
        if not missing.size or not self.hashes.size:
            return
        searched = hashes[missing]
        positions = np.minimum(np.searchsorted(self.hashes, searched), self.hashes.size - 1)
        hit = self.hashes[positions] == searched
        buckets[missing[hit]] = self.buckets[positions[hit]]

    @classmethod
    def merge(cls, *parts: tuple[Int32s, Int32s]) -> _Run:
        """Merge (hashes, buckets) parts into one run."""
        # A stable sort merges ascending parts without a full sort.
        hashes = np.concatenate([_NO_HASHES, *(part for part, _ in parts)])
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], np.concatenate([_NO_HASHES, *(part for _, part in parts)])[order])


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

    def find(self, searched_hashes: Int32s) -> Int32s:
        """Return the bucket of each hash, ``UNKNOWN`` for new ones.

        ``searched_hashes`` must ascend.
        """
        buckets = np.full(len(searched_hashes), UNKNOWN, np.int32)
        self._lookups += len(searched_hashes)
        if self._sorted is None and self._lookups > thresholds.scanned_hashes:
            self._sorted = _Run.merge(*((hashes, np.full(len(hashes), bucket, np.int32)) for bucket, hashes in self._files.items()))
        if self._sorted is None:
            self._scan(searched_hashes, buckets)
        else:
            self._sorted.find(searched_hashes, buckets)
        for run in self._runs:
            run.find(searched_hashes, buckets)
        return buckets

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

    def _scan(self, searched_hashes: Int32s, buckets: Int32s) -> None:
        for bucket, hashes in reversed(self._files.items()):  # the first of equal hashes counts
            if len(searched_hashes) <= thresholds.one_by_one_hashes:
                buckets[[bool((hashes == new_hash).any()) for new_hash in searched_hashes]] = bucket
                continue
            likely = np.zeros(1 << 16, np.bool_)
            likely[searched_hashes.view(np.uint32) >> _HIGH] = True
            candidates = hashes[likely[hashes.view(np.uint32) >> _HIGH]]
            positions = np.minimum(np.searchsorted(searched_hashes, candidates), len(searched_hashes) - 1)
            buckets[positions[searched_hashes[positions] == candidates]] = bucket

    def _new_by_bucket(self) -> dict[int, Int32s]:
        if not any(run.hashes.size for run in self._runs):
            return {}
        buckets = np.concatenate([run.buckets for run in self._runs])
        order = np.argsort(buckets, kind="stable")
        numbers, starts = np.unique(buckets[order], return_index=True)
        parts = np.split(np.concatenate([run.hashes for run in self._runs])[order], starts[1:])
        return dict(zip(numbers.tolist(), parts, strict=True))


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
class BucketWriters:
    """Bucket writers of a commit, seen from one task.

    ``writers`` of ``tasks`` share the buckets of each partition. They are consecutive tasks, starting with the one selected by the partition's hash.
    So partitions are spread over all tasks, and a partition has at most one partly filled bucket per writer.

    >>> BucketWriters(task=1, tasks=4, writers=2).of(0), BucketWriters(task=1, tasks=4, writers=2).of(5)
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
        owned_buckets = present[self.owned.holds(present)]
        room = np.maximum(self.target_rows - np.array([self.used[bucket] for bucket in owned_buckets.tolist()], np.int64), 0)
        opening = max(0, -(-(count - int(room.sum())) // self.target_rows))
        free = np.setdiff1d(self.owned.first(len(present) + opening), present)
        if self.max_buckets != _UNLIMITED:
            free = free[free < self.max_buckets]
        free = free[:opening]
        ids = np.concatenate([owned_buckets, free]).astype(np.int32)
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

    known_hashes: KnownHashes
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
        distinct_hashes, position = np.unique(hashes, return_inverse=True)
        assigned = self.known_hashes.find(distinct_hashes)
        new = assigned == UNKNOWN
        if new.any():
            assigned[new] = placed = self.room.place(int(new.sum()))
            self.known_hashes.add(distinct_hashes[new], placed)
            self.changed.update(np.unique(placed).tolist())
        buckets: Int32s = assigned[position]
        return buckets


class HashBucketAssigner:
    """Assignment of keys to buckets, as of one snapshot.

    Not thread-safe. ``bucket_writers`` restricts the buckets that receive rows. None: all buckets. Snapshot None is an empty table.
    """

    def __init__(self, store: FileStore, snapshot: Snapshot | None, bucket_writers: BucketWriters | None = None) -> None:
        self._store = store
        self._bucket_writers = bucket_writers
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
        return index.known_hashes.of_bucket(bucket) if index is not None and bucket in index.changed else None

    def entries(self, partition: bytes) -> list[IndexManifestEntry]:
        """Return the hash index files of a partition.

        There is one per bucket.
        """
        return self._entries.get(partition, [])

    def _index(self, partition: bytes) -> PartitionIndex:
        index = self._partitions.get(partition)
        if index is None:
            owned = _ALL if self._bucket_writers is None else self._bucket_writers.of(self._hash(partition))
            entries = [entry for entry in self.entries(partition) if owned.holds(np.array(entry.bucket))]
            by_bucket = {entry.bucket: read_hashes(self._store, entry) for entry in entries}
            options = self._store.options
            limits = (options.dynamic_bucket_target_row_num, options.dynamic_bucket_max_buckets)
            index = PartitionIndex.of(by_bucket, *limits, owned)
            self._partitions[partition] = index
        return index

    def _hash(self, partition: bytes) -> int:
        """Return the bucket-key hash of a partition.

        0 for an unpartitioned table.
        """
        values, types = self._store.partition.decode(partition), self._store.partition.types
        arrays = [pa.repeat(to_scalar(value, type_.column_type), 1) for value, type_ in zip(values, types, strict=True)]
        return int(bucket_hashes(arrays, types)[0]) if arrays else 0


def read_hashes(store: FileStore, entry: IndexManifestEntry) -> Int32s:
    """Read the unordered hashes of an index file.

    The file has big-endian int32 values only.

    Raises:
        CorruptFile: The file is missing, or its length or checksum does not match.
    """
    path = store.paths.index(entry.file_name, store.partition.decode(entry.partition), entry.bucket, entry.external_path)
    try:
        data = store.file_io.read(path)
    except FileNotFoundError:
        raise CorruptFile(path, "is missing, but the index manifest names it") from None
    if len(data) != entry.file_size or len(data) != entry.row_count * _ON_DISK.itemsize:
        raise CorruptFile(path, f"has {len(data)} bytes for {entry.row_count} hashes; the index manifest says {entry.file_size}")
    checksum = _CHECKSUM.search(entry.file_name)
    if checksum is not None and int(checksum[1], 16) != zlib.crc32(data):
        raise CorruptFile(path, "the checksum of its content does not match the one in its name")
    hashes: Int32s = np.frombuffer(data, _ON_DISK).astype(np.int32)
    return hashes


def write_hashes(store: FileStore, names: FileNames, partition: bytes, bucket: int, hashes: Int32s) -> IndexFile:
    """Write a new index file with a bucket's hashes.

    >>> np.array([-300363099, 1465514398], _ON_DISK).tobytes().hex(" ", 4)
    'ee18d2a5 5759f99e'
    """
    data = hashes.astype(_ON_DISK).tobytes()
    name = f"{names.next()}-crc32-{zlib.crc32(data):08x}"
    store.file_io.write(store.paths.index(name, store.partition.decode(partition), bucket), data)
    return IndexFile(file_name=name, file_size=len(data), row_count=len(hashes))
