"""Reader of a B-tree payload, version 1.

It reads the footer and the index block, then the data blocks that a question needs.
"""

from __future__ import annotations

import zlib
from typing import ClassVar

import numpy as np
from pyroaring import BitMap

from fileindex.rowset.roaring import rows_to_bitmap
from fileindex.sorted_index.btree_writer import ALIGNED_BYTES, BTREE_MAGIC, BTREE_VERSION, FOOTER
from fileindex.sorted_index.index_blocks import TRAILER_BYTES, unpack_block
from fileindex.sorted_index.key_codec import KeyCodec, Keys, key_list
from fileindex.sorted_index.key_ranges import key_after
from fileindex.sorted_index.payload_reader import Directory, SortedIndexReader
from fileindex.sorted_index.row_sets import deserialize_set
from fileindex.sorted_index.varints import INT_BYTES, LONG_BYTES, decode_varints, gather, varints_at
from paimon_base.errors import CorruptIndex
from paimon_base.lazy import cached_property
from sparkexpr.values.arrays import Int64s, Mask, UInt8s, UInt32s

_CHECKSUM_BYTES = 4


class BTreeBlock:
    """Entries of a block: a key and a value each.

    Raises CorruptIndex if they do not fill the block.
    """

    def __init__(self, body: bytes, codec: KeyCodec, row_count: int) -> None:
        self._data = np.frombuffer(body, np.uint8)
        self._codec = codec
        self._row_count = row_count
        bounds = _entry_bounds(self._data)
        key_lengths, self._key_starts = varints_at(self._data, bounds[:-1], INT_BYTES)
        key_ends = self._key_starts + key_lengths
        self._value_lengths, self._value_starts = varints_at(self._data, key_ends, INT_BYTES)
        if (key_ends > bounds[1:]).any() or (self._value_starts + self._value_lengths != bounds[1:]).any():
            raise CorruptIndex("an entry of a B-tree index is malformed")
        self._key_lengths = key_lengths

    @cached_property
    def keys(self) -> Keys:
        """Their keys."""
        return self._codec.decode(*gather(self._data, self._key_starts, self._key_lengths))

    def rows(self, selected: Mask) -> tuple[BitMap, int]:
        """Return the rows of the selected values, and the number of their ordinals."""
        _, ordinals = self.postings(selected)
        return rows_to_bitmap(np.sort(ordinals)), len(ordinals)

    def postings(self, selected: Mask) -> tuple[Int64s, UInt32s]:
        """Return the number of ordinals of each selected value, and all ordinals."""
        numbers, bounds = self.numbers(selected, INT_BYTES)
        is_ordinal = np.ones(len(numbers), np.bool_)
        is_ordinal[bounds[:-1]] = False
        counts, ordinals = np.diff(bounds) - 1, numbers[is_ordinal]
        if (numbers[~is_ordinal] != counts).any() or (counts < 1).any() or int(ordinals.max(initial=0)) >= self._row_count:
            raise CorruptIndex("the ordinals of a B-tree index are malformed")
        return counts, ordinals.astype(np.uint32)

    def numbers(self, selected: Mask, most_bytes: int) -> tuple[Int64s, Int64s]:
        """Return the numbers in the selected values, and the bounds of each value's."""
        data, bounds = gather(self._data, self._value_starts[selected], self._value_lengths[selected])
        numbers, ends = decode_varints(data, most_bytes)
        number_bounds = np.searchsorted(ends, bounds, side="right")
        if (bounds[1:] != ends[number_bounds[1:] - 1]).any() or not self._value_lengths[selected].all():
            raise CorruptIndex("a value of a B-tree index is malformed")
        return numbers, number_bounds


class BTreeIndexReader(SortedIndexReader[BTreeBlock]):
    """Reader of a B-tree payload."""

    _lowers_are_keys: ClassVar[bool] = False

    def _read_directory(self) -> Directory:
        footer = self._read(self.size - FOOTER.size, FOOTER.size)
        _, _, _, index_offset, index_size, null_offset, null_size, version, magic = FOOTER.unpack(footer)
        if version != BTREE_VERSION or magic != BTREE_MAGIC:
            raise CorruptIndex(f"a B-tree index has version {version} and magic {magic:#x}")
        if (null_size > 0) != self._meta.has_nulls:
            raise CorruptIndex("a B-tree index states other null rows than its metadata")
        body = unpack_block(self._read(index_offset, index_size + TRAILER_BYTES))
        index = BTreeBlock(body, self._codec, self._row_count)
        if len(index.keys) > self.size // TRAILER_BYTES:
            raise CorruptIndex(f"a B-tree index of {self.size} bytes has {len(index.keys)} blocks")
        extents = index.numbers(np.ones(len(index.keys), np.bool_), LONG_BYTES)
        if (np.diff(extents[1]) != 2).any():
            raise CorruptIndex("an entry of a B-tree's index block is malformed")
        offsets, sizes = extents[0].reshape(-1, 2).T
        uppers = [key_after(key) for key in key_list(index.keys)]
        lowers = [key for _, key in self._span[:1]] + uppers[:-1] if uppers else []
        return Directory(lowers, uppers, offsets, sizes, ((null_offset, null_size),))

    def _parse_block(self, body: bytes) -> BTreeBlock:
        return BTreeBlock(body, self._codec, self._row_count)

    def _read_nulls(self) -> BitMap:
        ((offset, size),) = self.directory.row_sets
        data = self._read(offset, size + _CHECKSUM_BYTES)
        if zlib.crc32(data[:size]) != int.from_bytes(data[size:], "little"):
            raise CorruptIndex("the null rows of a B-tree index do not match their checksum")
        return deserialize_set(data[:size], self._row_count)


def _entry_bounds(data: UInt8s) -> Int64s:
    """Return the bounds of the entries of a block."""
    if len(data) < ALIGNED_BYTES:
        raise CorruptIndex("a block of a B-tree index is truncated")
    number = int.from_bytes(data[-ALIGNED_BYTES:-1].tobytes(), "little", signed=True)
    if data[-1] == 0:
        count, remainder = divmod(len(data) - ALIGNED_BYTES, number) if number > 0 else (0, 1)
        if remainder:
            raise CorruptIndex(f"a block of a B-tree index has entries of {number} bytes")
        return np.arange(count + 1, dtype=np.int64) * number
    end = len(data) - ALIGNED_BYTES - 4 * number
    if data[-1] != 1 or number < 0 or end < 0:
        raise CorruptIndex(f"a block of a B-tree index has {number} entries")
    bounds = np.append(np.frombuffer(data[end:-ALIGNED_BYTES].tobytes(), "<i4"), end).astype(np.int64)
    if bounds[0] != 0 or (np.diff(bounds) <= 0).any():
        raise CorruptIndex("the entries of a B-tree index are not in order")
    return bounds
