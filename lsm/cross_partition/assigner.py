"""Partitions and buckets of cross-partition keys (Paimon's ``GlobalIndexAssigner``).

``deduplicate`` moves the key: the old partition gets a delete, which is the new row with the old partition's values.
``partial-update`` and ``aggregation`` write the row to the key's partition. ``first-row`` drops the row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.bucket.dynamic import BucketOwnership, BucketRoom
from lsm.bucket.router import BucketRows, group_by_bucket, row_partitions
from lsm.cross_partition.key_locations import NOT_FOUND, KeyLocations, ReadEach, locate_keys, name_key
from lsm.keys.encoding import one_array
from lsm.keys.key_set import KeySet
from lsm.keys.sort import DELETE
from lsm.write_buffer.source import Source
from manifest.io.errors import UnmergeableRows
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from sparkexpr.values.arrays import Int8s, Int32s, Int64s, Mask
from sparkexpr.values.column_type import Plain
from sparkexpr.values.plain_value import literal_array

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

    def assign(self, table: Any, kinds: Int8s | None) -> tuple[Source, list[BucketRows]]:
        """Return the rows to write, and their buckets.

        Includes delete rows for keys that moved.

        Raises:
            UnmergeableRows: A key is in two partitions already.
        """
        schema = self._store.schema
        keys = KeySet(table.select(list(schema.primary_keys)))
        key_locations = locate_keys(self._store, self._snapshot, keys, each=self._each)
        if self._replaces:
            key_locations = self._vacate(keys, key_locations)
        named, partitions = row_partitions(table, schema)
        locations, partitions = self._encode(key_locations, partitions)
        placed = ArrivedRows(table, kinds, keys.numbers, named, locations, partitions).place(schema)
        buckets = self._buckets(placed, locations, partitions)
        shares = group_by_bucket(placed.partition, buckets, partitions, int(buckets.max()) + 1) if len(buckets) else []
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

    def _vacate(self, keys: KeySet, locations: KeyLocations) -> KeyLocations:
        """Note the partitions of the keys. Return no locations."""
        for number in np.unique(locations.partition[locations.partition != NOT_FOUND]).tolist():
            partition = locations.partitions[number]
            if partition not in self._vacated:
                self._vacated[partition] = name_key(keys, int(np.flatnonzero(locations.partition == number)[0]))
        return KeyLocations([], np.full_like(locations.partition, NOT_FOUND), np.zeros_like(locations.bucket))

    def _encode(self, locations: KeyLocations, named: list[tuple[Plain, ...]]) -> tuple[KeyLocations, list[tuple[Plain, ...]]]:
        """Return the locations with partitions as codes.

        Partitions of the rows keep their codes, others follow.
        """
        code_of = {values: code for code, values in enumerate(named)}
        codes = [code_of.setdefault(self._store.partition.decode(partition), len(code_of)) for partition in locations.partitions]
        translated = np.array([*codes, NOT_FOUND], np.int64)[locations.partition]
        return KeyLocations(locations.partitions, translated, locations.bucket), list(code_of)

    def _buckets(self, placed: PlacedRows, locations: KeyLocations, partitions: list[tuple[Plain, ...]]) -> Int32s:
        """Return the bucket of every row.

        Keys that left a bucket free room in it first.
        """
        new_buckets = np.empty(len(placed.new), np.int32)
        left, slots = placed.left
        is_located = slots >= 0
        width = int(locations.bucket.max(initial=0)) + 1
        gone = np.bincount(left[is_located] * width + locations.bucket[slots[is_located]])
        for combined_code in np.flatnonzero(gone).tolist():
            self._room(partitions[combined_code // width]).leave(combined_code % width, int(gone[combined_code]))
        for code in np.unique(placed.new).tolist():
            in_partition = placed.new == code
            new_buckets[in_partition] = self._room(partitions[code]).place(int(in_partition.sum()))
        return buckets_of(placed.slot, locations.bucket, new_buckets)

    def _room(self, partition: tuple[Plain, ...]) -> BucketRoom:
        if partition not in self._rooms:
            options = self._store.options
            limits = (options.dynamic_bucket_target_row_num, options.dynamic_bucket_max_buckets)
            self._rooms[partition] = BucketRoom(self._keys_of(partition), *limits, self._owned)
        return self._rooms[partition]


@dataclass(frozen=True)
class PlacedRows:
    """Rows in order of arrival, with target partition and bucket.

    Kinds None means all ``+I``. A slot identifies a bucket: from 0 up it is an index into ``bucket`` of ``locations``. A negative slot
    ``-1 - n`` is the bucket of new key ``n``, whose partition is ``new[n]``. ``left`` has the partition and slot of each key that moved.
    """

    table: Any
    kinds: Int8s | None
    partition: Int64s
    slot: Int64s
    new: Int64s
    left: tuple[Int64s, Int64s] = (np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class ArrivedRows:
    """Conforming rows as they arrived, with their kinds.

    Kinds None means all ``+I``. Each column is in one chunk. ``keys`` are key numbers as in ``locations``, the locations before the
    first row. ``named`` is the partition of each row, as an index into ``partitions``, which the locations use too.
    """

    table: Any
    kinds: Int8s | None
    keys: Int64s
    named: Int64s
    locations: KeyLocations
    partitions: Sequence[tuple[Plain, ...]]

    def place(self, schema: TableSchema) -> PlacedRows:
        """Return the placed rows.

        A row sees the effects of earlier rows on its key.
        """
        order = np.argsort(self.keys, kind="stable")
        grouped = self.keys[order]
        first = np.ones(len(order), np.bool_)
        np.not_equal(grouped[1:], grouped[:-1], out=first[1:])
        engine = schema.core.engine
        if engine.newest_replaces:
            return self._move(order, first, schema)
        location = self.locations.partition.copy()
        new = order[first][location[grouped[first]] == NOT_FOUND]
        location[self.keys[new]] = self.named[new]
        slot_of_key = np.arange(len(location))
        slot_of_key[self.keys[new]] = -1 - np.arange(len(new))
        partition, slot = location[self.keys], slot_of_key[self.keys]
        differs = partition != self.named
        opened = self.named[new]
        if not engine.first_row_wins:
            return PlacedRows(self._set_partition(self.table, differs, partition, schema), self.kinds, partition, slot, opened)
        same_partition = ~differs
        rows = self.table if same_partition.all() else self.table.filter(pa.array(same_partition)).combine_chunks()
        return PlacedRows(
            rows, None if self.kinds is None else self.kinds[same_partition], partition[same_partition], slot[same_partition], opened
        )

    def _move(self, order: Int64s, first: Mask, schema: TableSchema) -> PlacedRows:
        """Place rows of an engine that moves keys.

        Each key is where its last row says. ``order`` has the rows of a key together; ``first`` marks the first row of each key.
        """
        keys, targets = self.keys[order], self.named[order]
        before = np.empty(len(order), np.int64)
        before[1:] = targets[:-1]
        before[first] = self.locations.partition[keys[first]]
        opens = before != targets
        leaves = opens & (before != NOT_FOUND)
        numbers = np.cumsum(opens) - 1
        run_starts = np.maximum.accumulate(np.where(first | opens, np.arange(len(order)), 0))
        slots = np.where(opens[run_starts], -1 - numbers[run_starts], keys)
        slot_before = np.empty(len(order), np.int64)
        slot_before[1:] = slots[:-1]
        slot_before[first] = keys[first]
        slot = np.empty(len(order), np.int64)
        slot[order] = slots
        if not leaves.any():
            return PlacedRows(self.table, self.kinds, self.named, slot, targets[opens])
        gone, left, left_slot = order[leaves], before[leaves], slot_before[leaves]
        deletes = self._set_partition(self.table.take(pa.array(gone)), np.ones(len(gone), np.bool_), left, schema)
        interleaved = np.argsort(np.concatenate([2 * np.arange(len(order)) + 1, 2 * gone]), kind="stable")
        row_kinds = np.zeros(len(order), np.int8) if self.kinds is None else self.kinds
        return PlacedRows(
            pa.concat_tables([self.table, deletes]).take(pa.array(interleaved)).combine_chunks(),
            np.concatenate([row_kinds, np.full(len(gone), DELETE, np.int8)])[interleaved],
            np.concatenate([self.named, left])[interleaved],
            np.concatenate([slot, left_slot])[interleaved],
            targets[opens],
            (left, left_slot),
        )

    def _set_partition(self, table: Any, which: Mask, partition: Int64s, schema: TableSchema) -> Any:
        """Set the partition columns of the rows ``which``."""
        if not which.any():
            return table
        for key_index, name in enumerate(schema.partition_keys):
            column = table.column(name)
            values = literal_array([values[key_index] for values in self.partitions], schema.column_types[name]).cast(column.type)
            theirs = values.take(pa.array(partition))
            mixed = theirs if which.all() else pc.if_else(pa.array(which), theirs, one_array(column))
            table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), mixed)
        return table.combine_chunks()


def buckets_of(slots: Int64s, locations: Int32s, placed: Int32s) -> Int32s:
    """Return the bucket of each slot.

    New keys have the buckets ``placed``.
    """
    is_located = slots >= 0
    buckets = np.empty(len(slots), np.int32)
    buckets[is_located] = locations[slots[is_located]]
    buckets[~is_located] = placed[-1 - slots[~is_located]]
    return buckets
