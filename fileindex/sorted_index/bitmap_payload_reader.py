"""Reader of a bitmap payload, version 1.

It reads the footer and the index block, then the dictionary blocks and row sets that a question needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from pyroaring import BitMap

from fileindex.sorted_index.bitmap_payload_writer import BITMAP_FOOTER, BITMAP_MAGIC, BITMAP_VERSION
from fileindex.sorted_index.index_blocks import TRAILER_BYTES, unpack_block
from fileindex.sorted_index.key_codec import KeyCodec, Keys, key_list
from fileindex.sorted_index.key_ranges import Cuts
from fileindex.sorted_index.payload_reader import Directory, SortedIndexReader, spans
from fileindex.sorted_index.row_sets import StoredSets, deserialize_set
from fileindex.sorted_index.varints import INT_BYTES, gather, varint_size, varints_at
from paimon_base.errors import CorruptIndex
from sparkexpr.values.arrays import Int64s, Mask, UInt32s

_MOST_DICTIONARY_BYTES = 16 << 20
_LEAST_SET_BYTES = 8


class BitmapIndexReader(SortedIndexReader["DictionaryBlock"]):
    """Reader of a bitmap payload."""

    _lowers_are_keys: ClassVar[bool] = True

    def _read_directory(self) -> Directory:
        footer = BITMAP_FOOTER.unpack(self._read(self.size - BITMAP_FOOTER.size, BITMAP_FOOTER.size))
        null_offset, null_size, other_offset, other_size, index_offset, index_size, value_count, version, magic = footer
        if version != BITMAP_VERSION or magic != BITMAP_MAGIC:
            raise CorruptIndex(f"a bitmap index has version {version} and magic {magic:#x}")
        body = unpack_block(self._read(index_offset, index_size + TRAILER_BYTES))
        keys, offsets, sizes = _entries(body, self._codec, self.size)
        if not len(keys) <= value_count <= self._row_count:
            raise CorruptIndex(f"a bitmap index of {self._row_count} rows has {value_count} values in {len(keys)} blocks")
        lowers = key_list(keys)
        uppers = lowers[1:] + [key for _, key in self._span[1:]]
        return Directory(lowers, uppers, offsets, sizes, ((null_offset, null_size), (other_offset, other_size)))

    def _parse_block(self, body: bytes) -> DictionaryBlock:
        return DictionaryBlock(body, self._codec, self)

    def _read_nulls(self) -> BitMap:
        nulls, present = (deserialize_set(self._read(*extent), self._row_count) for extent in self.directory.row_sets)
        if nulls & present or len(nulls) + len(present) != self._row_count:
            raise CorruptIndex("the null rows of a bitmap index and the present are not all rows")
        return nulls

    def _cost(self, cuts: Cuts) -> tuple[int, int]:
        # Conditions on few values touch the same dictionary block: then the row sets decide.
        cost, numbers = super()._cost(cuts), self._touched(cuts)
        if len(numbers) != 1:
            return cost
        return cost[0], sum(block.set_bytes(self._selected(number, block, cuts)) for number, block in self._blocks(numbers))

    def sets(self, offsets: Int64s, lengths: Int64s) -> Iterator[StoredSets]:
        """Yield row sets of a dictionary block, in order. Neighbours are read together."""
        for first, last in spans(offsets, lengths):
            start = int(offsets[first])
            data = self._read(start, int(offsets[last - 1] + lengths[last - 1]) - start)
            yield StoredSets(np.frombuffer(data, np.uint8), offsets[first:last] - start, lengths[first:last], self._row_count)


class DictionaryBlock:
    """Values of a dictionary block, and where their row sets are."""

    def __init__(self, body: bytes, codec: KeyCodec, reader: BitmapIndexReader) -> None:
        self._reader = reader
        self.keys, self._offsets, self._lengths = _entries(body, codec, reader.size)
        ends = self._offsets + self._lengths
        in_order = (self._offsets[1:] >= ends[:-1]).all() and (self._lengths >= _LEAST_SET_BYTES).all()
        if not in_order or int(max(self._offsets.max(), self._lengths.max())) > reader.size:
            raise CorruptIndex("the row sets of a bitmap index overlap, or lie outside of its payload")

    def set_bytes(self, selected: Mask) -> int:
        """Return the stored bytes of the row sets of the selected values."""
        return int(self._lengths[selected].sum())

    def rows(self, selected: Mask) -> tuple[BitMap, int]:
        """Return the rows of the selected values, and the number of their ordinals."""
        parts = list(self._sets(selected))
        return BitMap.union(BitMap(), *(part.rows() for part in parts)), sum(int(part.sizes.sum()) for part in parts)

    def postings(self, selected: Mask) -> tuple[Int64s, UInt32s]:
        """Return the number of ordinals of each selected value, and all ordinals."""
        parts = list(self._sets(selected))
        return np.concatenate([part.sizes for part in parts]), np.concatenate([part.ordinals() for part in parts])

    def _sets(self, selected: Mask) -> Iterator[StoredSets]:
        return self._reader.sets(self._offsets[selected], self._lengths[selected])


def _entries(body: bytes, codec: KeyCodec, size: int) -> tuple[Keys, Int64s, Int64s]:
    """Return the keys of a dictionary or index block, and the offsets and lengths after them.

    ``size`` are the bytes of the payload.
    """
    if len(body) > _MOST_DICTIONARY_BYTES:
        raise CorruptIndex(f"a block of a bitmap index has {len(body)} bytes, of at most {_MOST_DICTIONARY_BYTES}")
    data = np.frombuffer(body, np.uint8)
    (count,), (start,) = (part.tolist() for part in varints_at(data, np.zeros(1, np.int64), INT_BYTES))
    # An entry begins where the one before ends: the ends of entries at all positions are found at once, then followed.
    key_lengths, key_starts = varints_at(data, np.arange(len(data)), varint_size(len(data)))
    offsets, ends = varints_at(data, key_starts + key_lengths, varint_size(size))
    lengths, ends = varints_at(data, ends, varint_size(size))
    following: list[int] = ends.tolist()
    starts: list[int] = []
    for _ in range(count):
        if start >= len(data):
            break
        starts.append(start)
        start = following[start]
    if start != len(data) or len(starts) != count:
        raise CorruptIndex("the entries of a bitmap index do not fill their block")
    positions = np.array(starts, np.int64)
    return codec.decode(*gather(data, key_starts[positions], key_lengths[positions])), offsets[positions], lengths[positions]
