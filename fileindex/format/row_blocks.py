"""The ``bloom-filter-blocks`` index.

After the file's bloom filter found a possible match, it finds the blocks of rows that may hold the value.

It is our own format. Other engines look indexes up by their own columns, and it is stored under another name (``container.ROW_BLOCKS``).

The bits of all blocks are transposed: a line has one bit per block. Each value sets some lines of one segment of 512 lines
(a blocked bloom filter, Putze, Sanders and Singler, 2007). So a query reads one range of bytes and joins a few lines.

Layout, big endian: version, hash functions, two bytes of zero, rows of the file, rows of a block, segments; then the lines, low bits first.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from fileindex.base.column_type import ColumnType
from fileindex.base.errors import CorruptIndex
from fileindex.base.thresholds import thresholds
from fileindex.format.bloom_filter import literal_hashes
from fileindex.format.container import Payload
from fileindex.keys.hashing import hash_array
from fileindex.predicate.tree import Leaf, values_of
from fileindex.rowset.result import REMAIN, SKIP, FileIndexResult, RowSet

FEWEST_BLOCK_ROWS = 100
_VERSION = 1
_HASHES = 6
_SEGMENT = 512
_LINE_BITS = 9
_BITS_A_VALUE = 10
_MOST_ROWS = 1 << 27
_SHARE = 64
_HEAD = struct.Struct(">BBxxiii")
_MIX = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)

_Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
_Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]


def pays(block_rows: int, row_count: int, bloom_bytes: int) -> bool:
    """Return whether a file gets row blocks.

    It needs several blocks, and enough distinct values that a block lacks most of them. Their number follows from the bloom filter's size.

    >>> pays(10_000, 10_000, 6_000), pays(10_000, 10_001, 6_000), pays(10_000, 10_001, 12), pays(0, 10_001, 6_000)
    (False, True, False, False)
    """
    return 0 < block_rows < row_count <= _MOST_ROWS and bloom_bytes >= thresholds.small_bloom_bytes


class RowBlocksBuilder:
    """Builder of row blocks from a column in row order.

    It holds eight bytes for each value of a block until ``finish``.
    """

    def __init__(self, column_type: ColumnType, block_rows: int, segments: int | None = None) -> None:
        self.row_count = 0
        self._type = column_type
        self._block_rows = block_rows
        self._segments = segments
        self._blocks: list[list[_Words]] = []

    def add(self, values: Any) -> list[_Words]:
        """Add the next rows, and return their hashes.

        The rows are in physical form or a dictionary. Some hashes may be repeated.
        """
        of_dictionary = hash_array(values.dictionary, self._type) if pa.types.is_dictionary(values.type) else None
        found, at = [], 0
        while at < len(values):
            block, before = divmod(self.row_count, self._block_rows)
            piece = values.slice(at, min(self._block_rows - before, len(values) - at))
            if of_dictionary is None:
                hashes = _unique_if_repeated(hash_array(piece, self._type))
            else:
                hashes = of_dictionary[np.unique(piece.indices.drop_null().to_numpy(zero_copy_only=False))]
            if block == len(self._blocks):
                self._blocks.append([])
            self._blocks[block].append(hashes)
            found.append(hashes)
            at += len(piece)
            self.row_count += len(piece)
        return found

    def finish(self) -> bytes:
        """Return the payload.

        Neighbouring blocks are joined until their number is within ``thresholds.index_blocks``.
        """
        blocks, block_rows = self._blocks, self._block_rows
        while len(blocks) > thresholds.index_blocks:
            blocks = [[*one, *other] for one, other in zip(blocks[::2], [*blocks[1::2], []], strict=False)]
            block_rows *= 2
        most = max((sum(map(len, block)) for block in blocks), default=0)
        segments = self._segments or max(1, -(-most * _BITS_A_VALUE // _SEGMENT))
        lines = np.zeros((segments * _SEGMENT, -(-len(blocks) // 8)), np.uint8)
        for first in range(0, len(blocks), 8):
            flags = np.zeros((8, segments * _SEGMENT), np.bool_)
            for number, block in enumerate(blocks[first : first + 8]):
                for hashes in block:
                    for positions in _lines(hashes, segments):
                        flags[number][positions] = True
            lines[:, first // 8] = np.packbits(flags, axis=0, bitorder="little")[0]
        return _HEAD.pack(_VERSION, _HASHES, self.row_count, block_rows, segments) + lines.tobytes()


class RowBlocksReader:
    """Reader of row blocks.

    Answers ``=`` and ``IN`` with the rows of the blocks that may have a value, everything else with REMAIN.
    """

    distinct: int | None = None

    def __init__(self, payload: Payload, column_type: ColumnType) -> None:
        self._payload = payload
        self._type = column_type
        version, hashes, rows, self.block_rows, self.segments = _HEAD.unpack(payload.read(0, _HEAD.size))
        if (version, hashes) != (_VERSION, _HASHES):
            raise CorruptIndex(f"version {version} of row blocks with {hashes} hash functions is unknown")
        if rows < 0 or self.block_rows <= 0 or self.segments <= 0:
            raise CorruptIndex(f"row blocks of {rows} rows have {self.block_rows} rows each and {self.segments} segments")
        self.row_count: int | None = rows
        self.blocks = -(-rows // self.block_rows)
        self._width = -(-self.blocks // 8)
        if payload.length != _HEAD.size + self.segments * _SEGMENT * self._width:
            raise CorruptIndex(f"row blocks of {payload.length} bytes do not fit {self.segments} segments for {self.blocks} blocks")

    def evaluate(self, leaf: Leaf) -> FileIndexResult:
        """Return the rows of all blocks that can match.

        The literals must fit the column.
        """
        values = values_of(leaf)
        if values is None:
            return REMAIN
        hashes = literal_hashes(values, self._type) if len(values) <= thresholds.block_literals else None
        if hashes is None:
            return REMAIN
        if not len(hashes) or not self.blocks:
            return SKIP
        found = np.flatnonzero(np.unpackbits(self._blocks_of(hashes), bitorder="little")[: self.blocks])
        if len(found) == self.blocks:
            return REMAIN
        return RowSet(self._rows(found)) if len(found) else SKIP

    def _blocks_of(self, hashes: _Words) -> _Bytes:
        """Return one bit per block.

        It is set if all lines of one of the hashes have it.
        """
        lines = np.stack(_lines(hashes, self.segments), axis=1)
        part = _SEGMENT * self._width
        if 2 * len(lines) * part >= self._payload.length:
            matrix = np.frombuffer(self._payload.whole(), np.uint8, offset=_HEAD.size).reshape(-1, self._width)
            return _any(matrix[lines])
        firsts = (lines[:, 0] // _SEGMENT).tolist()
        segments = np.frombuffer(b"".join(self._payload.read(_HEAD.size + first * part, part) for first in firsts), np.uint8)
        return _any(segments.reshape(-1, self._width)[lines % _SEGMENT + _SEGMENT * np.arange(len(lines))[:, None]])

    def _rows(self, blocks: _Longs) -> BitMap:
        """Return the rows of blocks.

        Neighbouring blocks are added as one range.
        """
        rows = BitMap()
        edges = np.flatnonzero(np.diff(blocks, prepend=-2, append=blocks[-1] + 2) != 1)
        for first, end in pairwise(edges.tolist()):
            rows.add_range(int(blocks[first]) * self.block_rows, min((int(blocks[end - 1]) + 1) * self.block_rows, self.row_count or 0))
        return rows


def _any(lines: _Bytes) -> _Bytes:
    """Return the blocks that have all lines of some hash.

    ``lines`` are indexed by hash and hash function.
    """
    found: _Bytes = np.bitwise_or.reduce(np.bitwise_and.reduce(lines, axis=1), axis=0)
    return found


def _unique_if_repeated(hashes: _Words) -> _Words:
    """Return the hashes of a block, deduplicated if many repeat.

    A sample decides.
    """
    some = hashes[hashes & np.uint64(_SHARE - 1) == 0]
    return np.unique(hashes) if len(some) < 8 or 4 * len(np.unique(some)) <= 3 * len(some) else hashes


def _lines(hashes: _Words, segments: int) -> list[_Longs]:
    """Return the lines of all hashes, for each hash function.

    The low half chooses a segment, bits of the mixed hash its lines.
    """
    base = ((hashes & _LOW) * np.uint64(segments) >> np.uint64(32)).astype(np.int64) * _SEGMENT
    mixed = (hashes ^ hashes >> np.uint64(32)) * _MIX
    shifts = (np.uint64(64 - _LINE_BITS * (number + 1)) for number in range(_HASHES))
    return [base + (mixed >> shift & np.uint64(_SEGMENT - 1)).astype(np.int64) for shift in shifts]


__all__ = ["FEWEST_BLOCK_ROWS", "RowBlocksBuilder", "RowBlocksReader", "pays"]
