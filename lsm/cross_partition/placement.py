"""Rows whose key lives in another partition (Paimon's ``ExistingProcessor``).

``deduplicate`` moves the key: the old partition gets a delete, which is the new row with the old partition's values.
``partial-update`` and ``aggregation`` write the row to the key's partition. ``first-row`` drops the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.arrays import Int8s, Int32s, Int64s, Mask
from fileindex.base.column_type import Plain
from fileindex.base.plain_value import literal_array
from lsm.cross_partition.key_locations import NOT_FOUND, KeyLocations
from lsm.keys.encoding import one_array
from lsm.keys.sort import DELETE
from manifest.schema.table_schema import TableSchema


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
        kept = ~differs
        rows = self.table if kept.all() else self.table.filter(pa.array(kept)).combine_chunks()
        return PlacedRows(rows, None if self.kinds is None else self.kinds[kept], partition[kept], slot[kept], opened)

    def _move(self, order: Int64s, first: Mask, schema: TableSchema) -> PlacedRows:
        """Place rows of an engine that moves keys.

        Each key is where its last row says. ``order`` has the rows of a key together; ``first`` marks the first row of each key.
        """
        keys, place = self.keys[order], self.named[order]
        before = np.empty(len(order), np.int64)
        before[1:] = place[:-1]
        before[first] = self.locations.partition[keys[first]]
        opens = before != place
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
            return PlacedRows(self.table, self.kinds, self.named, slot, place[opens])
        gone, left, left_slot = order[leaves], before[leaves], slot_before[leaves]
        deletes = self._set_partition(self.table.take(pa.array(gone)), np.ones(len(gone), np.bool_), left, schema)
        both = np.argsort(np.concatenate([2 * np.arange(len(order)) + 1, 2 * gone]), kind="stable")
        own = np.zeros(len(order), np.int8) if self.kinds is None else self.kinds
        return PlacedRows(
            pa.concat_tables([self.table, deletes]).take(pa.array(both)).combine_chunks(),
            np.concatenate([own, np.full(len(gone), DELETE, np.int8)])[both],
            np.concatenate([self.named, left])[both],
            np.concatenate([slot, left_slot])[both],
            place[opens],
            (left, left_slot),
        )

    def _set_partition(self, table: Any, which: Mask, partition: Int64s, schema: TableSchema) -> Any:
        """Set the partition columns of the rows ``which``."""
        if not which.any():
            return table
        for at, name in enumerate(schema.partition_keys):
            column = table.column(name)
            values = literal_array([values[at] for values in self.partitions], schema.column_types[name]).cast(column.type)
            theirs = values.take(pa.array(partition))
            mixed = theirs if which.all() else pc.if_else(pa.array(which), theirs, one_array(column))
            table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), mixed)
        return table.combine_chunks()


def buckets_of(slots: Int64s, locations: Int32s, placed: Int32s) -> Int32s:
    """Return the bucket of each slot.

    New keys have the buckets ``placed``.
    """
    known = slots >= 0
    found = np.empty(len(slots), np.int32)
    found[known] = locations[slots[known]]
    found[~known] = placed[-1 - slots[~known]]
    return found


__all__ = ["ArrivedRows", "PlacedRows", "buckets_of"]
