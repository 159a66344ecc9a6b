"""Writer of a bitmap payload, version 1.

The row set of each value in order, with a dictionary block among them whenever one is full. Then the sets of null and of other rows, the
index block and a footer. Layout as in Paimon's ``BitmapGlobalIndexFormat``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from fileindex.rowset.roaring import all_rows, bitmap_to_rows, rows_to_bitmap, serialize_groups
from fileindex.sorted_index.build_options import SortedIndexOptions
from fileindex.sorted_index.key_codec import binaries, join_binaries
from fileindex.sorted_index.payload_writer import SortedIndexWriter, entry_bytes, pack_entries, pack_extents
from fileindex.sorted_index.row_sets import ONE_WORD, serialize_set
from fileindex.sorted_index.varints import encode_varint
from sparkexpr.values.arrays import Int64s, UInt32s
from sparkexpr.values.column_type import ColumnType

BITMAP_VERSION = 1
BITMAP_MAGIC = 0x42474958
BITMAP_FOOTER = struct.Struct(">qiqiqiiii")
"""Offsets and sizes of null rows, other rows and the index block, number of values, version, magic."""
_LEAST_ENTRY_BYTES = 3
"""Bytes of the length of a key, the offset and the length of a set."""
_ROWS_AT_ONCE = 1 << 20


class BitmapIndexWriter(SortedIndexWriter):
    """Writer of a bitmap payload."""

    def __init__(self, options: SortedIndexOptions, column_type: ColumnType, write: Callable[[bytes], object]) -> None:
        super().__init__(options, column_type, write)
        self._entries: list[bytes] = []
        """Entries of the open dictionary block, many in each part."""
        self._entry_count = 0
        self._value_count = 0
        self._open_first_key = b""
        self._first_keys: list[bytes] = []
        self._extents: list[tuple[int, int]] = []

    def _write_groups(self, keys: Any, starts: Int64s, ordinals: UInt32s) -> None:
        sets, bounds = serialize_groups(ordinals, starts)
        sets, bounds = entry_bytes(join_binaries(pa.scalar(ONE_WORD, pa.large_binary()), binaries(sets, bounds)))
        self._value_count += len(keys)
        least_entry_bytes = _LEAST_ENTRY_BYTES + int(np.diff(entry_bytes(keys)[1]).min())
        first = 0
        while first < len(keys):
            last = min(len(keys), first + self.options.block_size // least_entry_bytes + 2)
            extents = np.stack([self.size + bounds[first:last] - bounds[first], np.diff(bounds[first : last + 1])], axis=1)
            data, ends = entry_bytes(pack_entries(keys[first:last], pack_extents(extents)))
            fitting = self._fitting(ends)
            is_full = fitting < last - first
            # The set of the entry that does not fit is already written when the block is.
            written = first + fitting + is_full
            self._write(sets[bounds[first] : bounds[written]].tobytes())
            self._append(data[: ends[fitting]].tobytes(), fitting, keys[first])
            if is_full:
                self._write_dictionary()
                self._append(data[ends[fitting] : ends[fitting + 1]].tobytes(), 1, keys[written - 1])
            first = written

    def _fitting(self, ends: Int64s) -> int:
        """Return how many more entries the open block takes, at least one if it is empty."""
        counts = self._entry_count + np.arange(1, len(ends))
        count_sizes = np.searchsorted(1 << 7 * np.arange(1, 9), counts, side="right") + 1
        too_large = sum(map(len, self._entries)) + ends[1:] + count_sizes > self.options.block_size
        if not self._entry_count:
            too_large[0] = False
        return int(np.argmax(too_large)) if too_large.any() else len(too_large)

    def _append(self, entries: bytes, count: int, first_key: Any) -> None:
        if count:
            self._open_first_key = self._open_first_key if self._entry_count else first_key.as_py()
            self._entries.append(entries)
            self._entry_count += count

    def _write_dictionary(self) -> None:
        self._extents.append(self._write_block(b"".join([encode_varint(self._entry_count), *self._entries])))
        self._first_keys.append(self._open_first_key)
        self._entries, self._entry_count = [], 0

    def _finish(self) -> None:
        if self._entry_count:
            self._write_dictionary()
        extents = [self._write_set(self._nulls), self._write_set(self._present())]
        entries = pack_entries(pa.array(self._first_keys, pa.large_binary()), pack_extents(self._extents))
        extents.append(self._write_block(encode_varint(len(self._extents)) + entry_bytes(entries)[0].tobytes()))
        footer = [number for extent in extents for number in extent]
        self._write(BITMAP_FOOTER.pack(*footer, self._value_count, BITMAP_VERSION, BITMAP_MAGIC))

    def _present(self) -> BitMap:
        """Return the rows that have a value, as a set whose rows were added one by one.

        Where runs and single rows take the same bytes, a set that was made of runs keeps them, and Java's does not.
        """
        rows, present = BitMap(), all_rows(self.row_count) - self._nulls
        for start in range(0, self.row_count, _ROWS_AT_ONCE):
            rows |= rows_to_bitmap(bitmap_to_rows(present & BitMap(range(start, start + _ROWS_AT_ONCE))))
        return rows

    def _write_set(self, rows: Any) -> tuple[int, int]:
        data = serialize_set(rows)
        return self._write(data), len(data)
