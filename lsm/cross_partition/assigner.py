"""Partitions and buckets of cross-partition keys (Paimon's ``GlobalIndexAssigner``)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from fileindex.base.arrays import Int8s, Int32s
from fileindex.base.column_type import Plain
from lsm.bucket.dynamic import BucketOwnership, BucketRoom
from lsm.bucket.router import Share, row_partitions, shares_of
from lsm.cross_partition.key_locations import NOT_FOUND, KeyLocations, ReadEach, locate_keys, name_key
from lsm.cross_partition.placement import ArrivedRows, PlacedRows, buckets_of
from lsm.keys.key_set import KeySet
from lsm.write_buffer.source import Source
from manifest.io.errors import UnmergeableRows
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore

KeysOf = Callable[[tuple[Plain, ...]], dict[int, int]]
"""Returns the approximate number of keys in each bucket of a partition."""


class CrossPartitionAssigner:
    """Assignment of rows, as of one snapshot.

    Snapshot None is an empty table.

    Tracks the buckets it fills. Not thread-safe. Each key may be in one call only. New keys go to ``owned`` buckets. ``each`` reads
    splits like ``map``. ``replaces`` means that the write overwrites some partitions: keys have no location then, and ``check_replaced``
    refuses keys of partitions that stay.
    """

    def __init__(
        self,
        store: FileStore,
        snapshot: Snapshot | None,
        keys_of: KeysOf,
        *,
        owned: BucketOwnership,
        replaces: bool = False,
        each: ReadEach = map,
    ) -> None:
        self._store = store
        self._replaces = replaces
        self._snapshot = snapshot
        self._keys_of = keys_of
        self._owned = owned
        self._each = each
        self._rooms: dict[tuple[Plain, ...], BucketRoom] = {}
        # Partitions that keys of an overwrite are in, each with the name of a key.
        self._vacated: dict[bytes, str] = {}
        self._written: set[bytes] = set()

    def assign(self, table: Any, kinds: Int8s | None) -> tuple[Source, list[Share]]:
        """Return the rows to write, and their buckets.

        Includes delete rows for keys that moved.

        Raises:
            UnmergeableRows: A key is in two partitions already.
        """
        schema = self._store.schema
        keys = KeySet(table.select(list(schema.primary_keys)))
        found = locate_keys(self._store, self._snapshot, keys, each=self._each)
        if self._replaces:
            found = self._vacate(keys, found)
        named, partitions = row_partitions(table, schema)
        locations, partitions = self._encode(found, partitions)
        placed = ArrivedRows(table, kinds, keys.numbers, named, locations, partitions).place(schema)
        buckets = self._buckets(placed, locations, partitions)
        shares = shares_of(placed.partition, buckets, partitions, int(buckets.max()) + 1) if len(buckets) else []
        self._written |= {self._store.partition.encode(partitions[code]) for code in np.unique(placed.partition).tolist()}
        return Source(placed.table, placed.kinds), shares

    def check_replaced(self, named: Collection[bytes]) -> None:
        """Check that the overwrite replaces all partitions that keys left.

        Call it after all rows are assigned.

        Args:
            named: Partitions that are replaced whatever the rows are.

        Raises:
            UnmergeableRows: A partition of a key gets no row and is not named.
        """
        # A row that names a partition may go to the partition of another row of its key.
        for partition, key in self._vacated.items():
            if partition not in self._written and partition not in named:
                raise UnmergeableRows(
                    f"{self._store.root}: the key {key} lives in partition {self._store.partition.decode(partition)}, which this overwrite "
                    "does not replace; nothing was committed. Write such rows with mode 'upsert', or overwrite that partition too"
                )

    def _vacate(self, keys: KeySet, found: KeyLocations) -> KeyLocations:
        """Note the partitions of the keys. Return no location for any key."""
        for number in np.unique(found.partition[found.partition != NOT_FOUND]).tolist():
            partition = found.partitions[number]
            if partition not in self._vacated:
                self._vacated[partition] = name_key(keys, int(np.flatnonzero(found.partition == number)[0]))
        return KeyLocations([], np.full_like(found.partition, NOT_FOUND), np.zeros_like(found.bucket))

    def _encode(self, found: KeyLocations, named: list[tuple[Plain, ...]]) -> tuple[KeyLocations, list[tuple[Plain, ...]]]:
        """Return the locations with partitions as codes.

        Partitions of the rows keep their codes, others follow.
        """
        code_of = {values: code for code, values in enumerate(named)}
        codes = [code_of.setdefault(self._store.partition.decode(partition), len(code_of)) for partition in found.partitions]
        translated = np.array([*codes, NOT_FOUND], np.int64)[found.partition]
        return KeyLocations(found.partitions, translated, found.bucket), list(code_of)

    def _buckets(self, placed: PlacedRows, locations: KeyLocations, partitions: list[tuple[Plain, ...]]) -> Int32s:
        """Return the bucket of every row.

        Keys that left a bucket free room in it first.
        """
        given = np.empty(len(placed.new), np.int32)
        left, slots = placed.left
        known = slots >= 0
        width = int(locations.bucket.max(initial=0)) + 1
        gone = np.bincount(left[known] * width + locations.bucket[slots[known]])
        for both in np.flatnonzero(gone).tolist():
            self._room(partitions[both // width]).leave(both % width, int(gone[both]))
        for code in np.unique(placed.new).tolist():
            wanted = placed.new == code
            given[wanted] = self._room(partitions[code]).place(int(wanted.sum()))
        return buckets_of(placed.slot, locations.bucket, given)

    def _room(self, partition: tuple[Plain, ...]) -> BucketRoom:
        if partition not in self._rooms:
            options = self._store.options
            limits = (options.dynamic_bucket_target_row_num, options.dynamic_bucket_max_buckets)
            self._rooms[partition] = BucketRoom(self._keys_of(partition), *limits, self._owned)
        return self._rooms[partition]


__all__ = ["CrossPartitionAssigner"]
