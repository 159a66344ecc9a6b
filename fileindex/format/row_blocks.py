"""The ``bloom-filter-blocks`` index.

After the file's bloom filter found a possible match, it finds the blocks of rows that may hold the value.

It is our own format. Other engines look indexes up by their own columns, and it is stored under another name (``container.ROW_BLOCKS``).

Each value sets six lines of one segment (``block_lines``), so a query of a value reads one range of bytes.

Layout, big endian: version, hash functions, two bytes of zero, rows of the file, rows of a block, segments; then the lines.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.format.block_lines import MOST_ROWS, SEGMENT, BlockLines, Flags, Longs, Words, lines_of, transpose
from fileindex.format.bloom_filter import literal_hashes
from fileindex.format.container import Payload
from fileindex.keys.hashing import hash_array
from fileindex.predicate.tree import Leaf, values_of
from fileindex.rowset.result import REMAIN, SKIP, FileIndexResult
from paimon_base.errors import CorruptIndex
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import ColumnType

FEWEST_BLOCK_ROWS = 100
_VERSION = 1
_HASHES = 6
_BITS_A_VALUE = 10
_SHARE = 64
_HEAD = struct.Struct(">BBxxiii")
_MIX = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)


def pays(block_rows: int, row_count: int, bloom_bytes: int) -> bool:
    """Return whether a file gets row blocks.

    It needs several blocks, and enough distinct values that a block lacks most of them. Their number follows from the bloom filter's size.

    >>> pays(10_000, 10_000, 6_000), pays(10_000, 10_001, 6_000), pays(10_000, 10_001, 12), pays(0, 10_001, 6_000)
    (False, True, False, False)
    """
    return 0 < block_rows < row_count <= MOST_ROWS and bloom_bytes >= thresholds.small_bloom_bytes


class RowBlocksBuilder:
    """Builder of row blocks from a column in row order.

    It holds eight bytes for each value of a block until ``finish``.
    """

    def __init__(self, column_type: ColumnType, block_rows: int, segments: int | None = None) -> None:
        self.row_count = 0
        self._type = column_type
        self._block_rows = block_rows
        self._segments = segments
        self._blocks: list[list[Words]] = []

    def add(self, values: Any) -> list[Words]:
        """Add the next rows, and return their hashes.

        The rows are in physical form or a dictionary. Some hashes may be repeated.
        """
        coded = pa.types.is_dictionary(values.type)
        # Before rows are cut into blocks: texts are hashed by their lengths, and a block has few of each.
        all_hashes = hash_array(values.dictionary if coded else values, self._type)
        new_hashes, row, hashed = [], 0, 0
        while row < len(values):
            block, before = divmod(self.row_count, self._block_rows)
            piece = values.slice(row, min(self._block_rows - before, len(values) - row))
            if coded:
                hashes = all_hashes[np.unique(piece.indices.drop_null().to_numpy(zero_copy_only=False))]
            else:
                valid = len(piece) - piece.null_count
                hashes = _unique_if_repeated(all_hashes[hashed : hashed + valid])
                hashed += valid
            if block == len(self._blocks):
                self._blocks.append([])
            self._blocks[block].append(hashes)
            new_hashes.append(hashes)
            row += len(piece)
            self.row_count += len(piece)
        return new_hashes

    def finish(self) -> bytes:
        """Return the payload.

        Neighbouring blocks are joined until their number is within ``thresholds.index_blocks``.
        """
        blocks, block_rows = self._blocks, self._block_rows
        while len(blocks) > thresholds.index_blocks:
            blocks = [[*lower, *upper] for lower, upper in zip(blocks[::2], [*blocks[1::2], []], strict=False)]
            block_rows *= 2
        max_values = max((sum(map(len, block)) for block in blocks), default=0)
        segments = self._segments or max(1, -(-max_values * _BITS_A_VALUE // SEGMENT))

        def flags_of(number: int) -> Flags:
            flags = np.zeros(segments * SEGMENT, np.bool_)
            for hashes in blocks[number]:
                for positions in _lines(hashes, segments):
                    flags[positions] = True
            return flags

        return _HEAD.pack(_VERSION, _HASHES, self.row_count, block_rows, segments) + transpose(len(blocks), segments, flags_of)


class RowBlocksReader:
    """Reader of row blocks.

    Answers ``=`` and ``IN`` with the rows of the blocks that may have a value, everything else with REMAIN.
    """

    distinct: int | None = None

    def __init__(self, payload: Payload, column_type: ColumnType) -> None:
        self._type = column_type
        version, hashes, rows, self.block_rows, self.segments = _HEAD.unpack(payload.read(0, _HEAD.size))
        if (version, hashes) != (_VERSION, _HASHES):
            raise CorruptIndex(f"version {version} of row blocks with {hashes} hash functions is unknown")
        self._lines = BlockLines(payload, _HEAD.size, rows, self.block_rows, self.segments)
        self.row_count: int | None = rows
        self.blocks = self._lines.blocks

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
        return self._lines.result(np.bitwise_or.reduce(self._lines.blocks_with(_lines(hashes, self.segments)), axis=0))


def _unique_if_repeated(hashes: Words) -> Words:
    """Return the hashes of a block, deduplicated if many repeat.

    A sample decides.
    """
    sample = hashes[hashes & np.uint64(_SHARE - 1) == 0]
    return np.unique(hashes) if len(sample) < 8 or 4 * len(np.unique(sample)) <= 3 * len(sample) else hashes


def _lines(hashes: Words, segments: int) -> list[Longs]:
    """Return the lines of all hashes, for each hash function.

    The low half chooses a segment, bits of the mixed hash its lines.
    """
    segment_numbers = (hashes & _LOW) * np.uint64(segments) >> np.uint64(32)
    return lines_of((hashes ^ hashes >> np.uint64(32)) * _MIX, segment_numbers, _HASHES)
