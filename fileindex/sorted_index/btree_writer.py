"""Writer of a B-tree payload, version 1.

Data blocks, the set of null rows, the index block and a footer. An entry of a data block is a key and its ordinals.
Layout as in Paimon's ``BTreeIndexWriter`` and its ``BlockWriter``.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.format.int_range import MAX_INT
from fileindex.sorted_index.build_options import SortedIndexOptions
from fileindex.sorted_index.key_codec import binaries
from fileindex.sorted_index.payload_writer import SortedIndexWriter, entry_bytes, lengths_of, pack_entries, pack_extents
from fileindex.sorted_index.row_sets import serialize_set
from fileindex.sorted_index.varints import encode_varints
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, UInt8s, UInt32s
from sparkexpr.values.column_type import ColumnType

BTREE_VERSION = 1
BTREE_MAGIC = 0x50425449
FOOTER = struct.Struct("<qiqqiqiii")
"""Offset, size and entries of a Bloom filter, offset and size of the index block and of the null rows, version, magic."""
ALIGNED_BYTES = 5


class BTreeIndexWriter(SortedIndexWriter):
    """Writer of a B-tree payload."""

    def __init__(self, options: SortedIndexOptions, column_type: ColumnType, write: Callable[[bytes], object]) -> None:
        super().__init__(options, column_type, write)
        self._entries: Any = pa.array([], pa.large_binary())
        """Entries of the open block."""
        self._keys: Any = pa.array([], pa.large_binary())
        """Their keys."""
        self._last_keys: list[bytes] = []
        self._extents: list[tuple[int, int]] = []

    def _write_groups(self, keys: Any, starts: Int64s, ordinals: UInt32s) -> None:
        postings = _postings(starts, ordinals)
        entries = pack_entries(keys, lengths_of(postings), postings)
        self._entries, self._keys = pa.concat_arrays([self._entries, entries]), pa.concat_arrays([self._keys, keys])
        data, bounds = entry_bytes(self._entries)
        first = 0
        for last in _block_ends(bounds, self.options.block_size):
            self._write_data_block(data, bounds, first, last)
            first = last
        self._entries, self._keys = self._entries[first:], self._keys[first:]

    def _write_data_block(self, data: UInt8s, bounds: Int64s, first: int, last: int) -> None:
        body = _block_body(data[bounds[first] : bounds[last]], bounds[first : last + 1] - bounds[first])
        self._extents.append(self._write_block(body))
        self._last_keys.append(self._keys[last - 1].as_py())

    def _finish(self) -> None:
        if len(self._entries):
            self._write_data_block(*entry_bytes(self._entries), 0, len(self._entries))
        null_offset = null_size = 0
        if self._nulls:
            data = serialize_set(self._nulls)
            null_offset, null_size = self._write(data + struct.pack("<I", zlib.crc32(data))), len(data)
        extents = pack_extents(self._extents)
        entries = pack_entries(pa.array(self._last_keys, pa.large_binary()), lengths_of(extents), extents)
        index_offset, index_size = self._write_block(_block_body(*entry_bytes(entries)))
        self._write(FOOTER.pack(0, 0, 0, index_offset, index_size, null_offset, null_size, BTREE_VERSION, BTREE_MAGIC))


def _postings(starts: Int64s, ordinals: UInt32s) -> Any:
    """Return the number of ordinals of each value, and the ordinals."""
    counts = np.diff(starts)
    if len(counts) == 1:  # such a value may have most rows of a table
        step = thresholds.posting_rows
        parts = [counts, *(ordinals[first : first + step] for first in range(0, len(ordinals), step))]
        data = np.concatenate([encode_varints(part.astype(np.int64))[0] for part in parts])
        return binaries(data, np.array([0, len(data)]))
    data, bounds = encode_varints(np.insert(ordinals.astype(np.int64), starts[:-1], counts))
    return binaries(data, bounds[starts + np.arange(len(starts))])


def _block_ends(bounds: Int64s, block_size: int) -> Iterator[int]:
    """Yield the ends of the full blocks of entries.

    A block is full when its entries, and their starts unless all have one size, exceed the block size.
    """
    sizes, room = np.diff(bounds), block_size - ALIGNED_BYTES
    changes = np.flatnonzero(sizes[1:] != sizes[:-1]) + 1
    with_starts = bounds + 4 * np.arange(len(bounds))
    first, count = 0, len(sizes)
    while first < count:
        change = int(np.searchsorted(changes, first, side="right"))
        aligned = int(changes[change]) if change < len(changes) else count
        last = max(int(np.searchsorted(bounds, bounds[first] + room, side="right")), first + 1)
        if last > aligned:
            last = max(int(np.searchsorted(with_starts, with_starts[first] + room, side="right")), aligned + 1)
        if last > count:
            return
        yield last
        first = last


def _block_body(data: UInt8s, bounds: Int64s) -> bytes:
    """Return the body of a block: entries, and their common size or starts."""
    if len(data) > MAX_INT:
        raise OverflowError(f"a block of {len(data)} bytes exceeds 2 GiB")
    sizes = np.diff(bounds)
    if len(sizes) and (sizes == sizes[0]).all():
        return data.tobytes() + struct.pack("<iB", int(sizes[0]), 0)
    return data.tobytes() + bounds[:-1].astype("<i4").tobytes() + struct.pack("<iB", len(sizes), 1)
