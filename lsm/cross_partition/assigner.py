"""Partitions and buckets of rows whose key does not tell their partition (Paimon's ``GlobalIndexAssigner``)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from fileindex.base.arrays import Int8s, Int32s
from fileindex.base.column_type import Plain
from lsm.bucket.dynamic import BucketRoom, Owned
from lsm.bucket.router import Share, row_partitions, shares_of
from lsm.cross_partition.key_homes import NOWHERE, KeyHomes, ReadEach, find_homes, name_key
from lsm.cross_partition.placement import ArrivedRows, PlacedRows, buckets_of
from lsm.keys.key_set import KeySet
from lsm.write_buffer.source import Source
from manifest.io.errors import UnmergeableRows
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore

KeysOf = Callable[[tuple[Plain, ...]], dict[int, int]]
"""About how many keys each bucket of a partition has."""


class CrossPartitionAssigner:
    """Assigns rows as of one snapshot (None: an empty table), and knows which buckets it has filled since; not for several threads.

    Each key may be in one call only. ``owned`` are the buckets that new keys may go to; ``each`` reads splits, as ``map`` does.
    ``replaced`` are the partitions that an overwrite may replace: keys of other partitions are refused. None: the write is no such overwrite.
    """

    def __init__(
        self,
        store: FileStore,
        snapshot: Snapshot | None,
        keys_of: KeysOf,
        *,
        owned: Owned,
        replaced: Collection[bytes] | None = None,
        each: ReadEach = map,
    ) -> None:
        self._store = store
        self._replaced = replaced
        self._snapshot = snapshot
        self._keys_of = keys_of
        self._owned = owned
        self._each = each
        self._rooms: dict[tuple[Plain, ...], BucketRoom] = {}
        # Partitions of ``replaced`` that rows have left, each with the name of a key.
        self._vacated: dict[bytes, str] = {}
        self._written: set[bytes] = set()

    def assign(self, table: Any, kinds: Int8s | None) -> tuple[Source, list[Share]]:
        """The rows to write, with those that delete what moved, and to which buckets they go.

        Raises:
            UnmergeableRows: a key lives in two partitions already, or in one that an overwrite leaves as it is.
        """
        schema = self._store.schema
        keys = KeySet(table.select(list(schema.primary_keys)))
        found = find_homes(self._store, self._snapshot, keys, each=self._each)
        if self._replaced is not None:
            found = self._without_replaced(keys, found, self._replaced)
        named, partitions = row_partitions(table, schema)
        homes, partitions = self._coded(found, partitions)
        placed = ArrivedRows(table, kinds, keys.numbers, named, homes, partitions).placed(schema)
        buckets = self._buckets(placed, homes, partitions)
        shares = shares_of(placed.partition, buckets, partitions, int(buckets.max()) + 1) if len(buckets) else []
        self._written |= {self._store.partition.encode(partitions[code]) for code in np.unique(placed.partition).tolist()}
        return Source(placed.table, placed.kinds), shares

    def check_replaced(self, named: Collection[bytes]) -> None:
        """Check that the overwrite replaces all partitions that keys have left, once all rows are assigned.

        Args:
            named: Partitions that it replaces whatever rows it has.

        Raises:
            UnmergeableRows: A partition stays, because its rows went to the partition of another row of their key.
        """
        for partition, key in self._vacated.items():
            if partition not in self._written and partition not in named:
                raise self._stays(key, partition)

    def _without_replaced(self, keys: KeySet, found: KeyHomes, replaced: Collection[bytes]) -> KeyHomes:
        """Return no home for any key. Raises ``UnmergeableRows`` for a key of a partition that stays."""
        for number in np.unique(found.partition[found.partition != NOWHERE]).tolist():
            partition = found.partitions[number]
            key = name_key(keys, int(np.flatnonzero(found.partition == number)[0]))
            if partition not in replaced:
                raise self._stays(key, partition)
            self._vacated.setdefault(partition, key)
        return KeyHomes([], np.full_like(found.partition, NOWHERE), np.zeros_like(found.bucket))

    def _stays(self, key: str, partition: bytes) -> UnmergeableRows:
        return UnmergeableRows(
            f"{self._store.root}: the key {key} lives in partition {self._store.partition.decode(partition)}, which this overwrite leaves "
            "as it is; nothing was committed: write such rows by mode 'upsert', or overwrite that partition, too"
        )

    def _coded(self, found: KeyHomes, named: list[tuple[Plain, ...]]) -> tuple[KeyHomes, list[tuple[Plain, ...]]]:
        """The homes with partitions as codes: those of the rows keep theirs, others follow."""
        code_of = {values: code for code, values in enumerate(named)}
        codes = [code_of.setdefault(self._store.partition.decode(partition), len(code_of)) for partition in found.partitions]
        translated = np.array([*codes, NOWHERE], np.int64)[found.partition]
        return KeyHomes(found.partitions, translated, found.bucket), list(code_of)

    def _buckets(self, placed: PlacedRows, homes: KeyHomes, partitions: list[tuple[Plain, ...]]) -> Int32s:
        """The bucket of every row; keys that have left a bucket make room in it first."""
        given = np.empty(len(placed.new), np.int32)
        left, slots = placed.left
        known = slots >= 0
        width = int(homes.bucket.max(initial=0)) + 1
        gone = np.bincount(left[known] * width + homes.bucket[slots[known]])
        for both in np.flatnonzero(gone).tolist():
            self._room(partitions[both // width]).leave(both % width, int(gone[both]))
        for code in np.unique(placed.new).tolist():
            wanted = placed.new == code
            given[wanted] = self._room(partitions[code]).place(int(wanted.sum()))
        return buckets_of(placed.slot, homes.bucket, given)

    def _room(self, partition: tuple[Plain, ...]) -> BucketRoom:
        if partition not in self._rooms:
            options = self._store.options
            limits = (options.dynamic_bucket_target_row_num, options.dynamic_bucket_max_buckets)
            self._rooms[partition] = BucketRoom(self._keys_of(partition), *limits, self._owned)
        return self._rooms[partition]


__all__ = ["CrossPartitionAssigner"]
