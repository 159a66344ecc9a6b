"""Sets of ordinals in the stored form: a 64-bit roaring bitmap.

All ordinals have the high word 0, so a set has one 32-bit bitmap, or none if it is empty. Bitmap indexes have many small sets, which
are decoded together.
"""

from __future__ import annotations

import struct

import numpy as np
from pyroaring import BitMap

from fileindex.rowset.roaring import bitmap_to_rows, deserialize, rows_to_bitmap, serialize
from fileindex.sorted_index.varints import bounds_of, gather
from paimon_base.errors import CorruptIndex
from sparkexpr.values.arrays import Int64s, Mask, UInt8s, UInt32s

_EMPTY = bytes(8)
ONE_WORD = struct.pack("<qI", 1, 0)
"""Bytes before the 32-bit bitmap: the number of high words, and the high word 0."""
_HEAD = np.dtype([("words", "<i8"), ("high", "<u4"), ("cookie", "<u4"), ("containers", "<u4")])
_NO_RUNS = 12346
_ARRAY_MAX = 4096


def serialize_set(rows: BitMap) -> bytes:
    """Return the stored bytes of a set, run optimised. Optimises ``rows`` in place.

    >>> serialize_set(BitMap([1])).hex()
    '0100000000000000000000003a3000000100000000000000100000000100'
    """
    return ONE_WORD + serialize(rows) if rows else _EMPTY


def deserialize_set(data: bytes | memoryview, row_count: int) -> BitMap:
    """Return the set in ``data``.

    Raises CorruptIndex if it is malformed, has other bytes after it, or ordinals of ``row_count`` or more.
    """
    if data == _EMPTY:
        return BitMap()
    if data[: len(ONE_WORD)] != ONE_WORD:
        raise CorruptIndex("a row set has ordinals of more than 32 bits")
    rows, size = deserialize(memoryview(data)[len(ONE_WORD) :])
    if size != len(data) - len(ONE_WORD):
        raise CorruptIndex("a row set has other bytes after it")
    if rows and rows.max() >= row_count:
        raise CorruptIndex(f"a row set has the ordinal {rows.max()} of {row_count} rows")
    return rows


class StoredSets:
    """Sets in the bytes of a payload, decoded together.

    Args:
        data: Bytes of the payload.
        starts: Start of each set.
        lengths: Bytes of each set.
        row_count: Rows of the payload.
    """

    def __init__(self, data: UInt8s, starts: Int64s, lengths: Int64s, row_count: int) -> None:
        self._is_small, sizes, self._small_ordinals = _array_sets(data, starts, lengths)
        if int(self._small_ordinals.max(initial=0)) >= max(1, row_count):
            raise CorruptIndex(f"a row set has the ordinal {self._small_ordinals.max()} of {row_count} rows")
        self._large = {
            number: deserialize_set(data[starts[number] : starts[number] + lengths[number]].data, row_count)
            for number in np.flatnonzero(~self._is_small).tolist()
        }
        self.sizes = np.zeros(len(starts), np.int64)
        """Number of ordinals of each set."""
        self.sizes[self._is_small] = sizes
        self.sizes[~self._is_small] = [len(rows) for rows in self._large.values()]

    def rows(self) -> BitMap:
        """Return the union."""
        return BitMap.union(rows_to_bitmap(np.sort(self._small_ordinals)), *self._large.values())

    def ordinals(self) -> UInt32s:
        """Return the ordinals of all sets, one after the other."""
        bounds = bounds_of(self.sizes)
        ordinals = np.empty(int(bounds[-1]), np.uint32)
        ordinals[np.repeat(self._is_small, self.sizes)] = self._small_ordinals
        for number, rows in self._large.items():
            ordinals[bounds[number] : bounds[number + 1]] = bitmap_to_rows(rows)
        return ordinals


def _array_sets(data: UInt8s, starts: Int64s, lengths: Int64s) -> tuple[Mask, Int64s, UInt32s]:
    """Decode the sets that have only arrays.

    Returns which sets these are, the number of ordinals of each, and their ordinals. Malformed sets are not among them.
    """
    is_small = lengths >= _HEAD.itemsize + 10
    head = gather(data, starts[is_small], np.full(int(is_small.sum()), _HEAD.itemsize))[0].view(_HEAD)
    counts = head["containers"].astype(np.int64)
    fits = (head["words"] == 1) & (head["high"] == 0) & (head["cookie"] == _NO_RUNS) & (counts > 0)
    fits &= counts <= (lengths[is_small] - _HEAD.itemsize) // 10
    is_small[is_small] = fits
    counts, starts, lengths = counts[fits], starts[is_small] + _HEAD.itemsize, lengths[is_small] - _HEAD.itemsize

    headers = gather(data, starts, 4 * counts)[0].view("<u2").reshape(-1, 2)
    offsets = gather(data, starts + 4 * counts, 4 * counts)[0].view("<u4").astype(np.int64)
    cardinalities = headers[:, 1].astype(np.int64) + 1
    first = bounds_of(counts)
    before = bounds_of(cardinalities)
    sizes = np.diff(before[first])
    owner = np.repeat(np.arange(len(counts)), counts)
    fits_container = (cardinalities <= _ARRAY_MAX) & (offsets == 8 * (1 + counts[owner]) + 2 * (before[:-1] - before[first[owner]]))
    fits = (8 * counts + 2 * sizes == lengths) & (np.bincount(owner[~fits_container], minlength=len(counts)) == 0)
    is_small[is_small] = fits
    high = np.repeat(headers[:, 0][fits[owner]].astype(np.uint32), cardinalities[fits[owner]])
    ordinals = high << 16 | gather(data, (starts + 8 * counts)[fits], 2 * sizes[fits])[0].view("<u2")
    ends_set = np.zeros(len(ordinals) + 1, np.bool_)
    ends_set[bounds_of(sizes[fits])] = True
    if not (ends_set[1:-1] | (ordinals[1:] > ordinals[:-1])).all():
        raise CorruptIndex("a row set is not in order")
    return is_small, sizes[fits], ordinals
