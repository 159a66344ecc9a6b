"""Bits of blocks of rows, transposed.

A line has one bit for each block, low bits first. A filter of a block is a column of bits. A query joins a few lines of all blocks, so it
reads few ranges of bytes. Lines of one key lie in one segment of 512 lines (a blocked bloom filter, Putze, Sanders and Singler, 2007).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from pyroaring import BitMap

from fileindex.format.container import Payload
from fileindex.rowset.result import REMAIN, SKIP, FileIndexResult, RowSet
from paimon_base.errors import CorruptIndex

SEGMENT = 512
LINE_BITS = 9
MOST_ROWS = 1 << 27

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


def lines_of(hashes: Words, segments: Words, count: int) -> list[Longs]:
    """Return ``count`` lines of each hash, all in its segment.

    The high bits of a hash choose them.
    """
    base = segments.astype(np.int64) * SEGMENT
    shifts = (np.uint64(64 - LINE_BITS * (number + 1)) for number in range(count))
    return [base + (hashes >> shift & np.uint64(SEGMENT - 1)).astype(np.int64) for shift in shifts]


def transpose(blocks: int, segments: int, flags_of: Callable[[int], Flags]) -> bytes:
    """Return the lines of ``blocks`` blocks.

    ``flags_of`` returns the bits of a block, one for each line.
    """
    lines = np.zeros((segments * SEGMENT, -(-blocks // 8)), np.uint8)
    for first in range(0, blocks, 8):
        flags = np.stack([flags_of(number) for number in range(first, min(first + 8, blocks))])
        lines[:, first // 8] = np.packbits(flags, axis=0, bitorder="little")[0]
    return lines.tobytes()


def missing_bits(built: bytes, stored: bytes) -> int:
    """Return how many bits of ``built`` are not set in ``stored``.

    Both have equal lengths and headers.
    """
    mine, theirs = (np.frombuffer(data, np.uint8) for data in (built, stored))
    return int(np.bitwise_count(mine & ~theirs).sum())


class BlockLines:
    """Reader of the lines of a payload.

    Args:
        payload: The index.
        start: Bytes of its header.
        row_count: Rows of the file.
        block_rows: Rows of a block.
        segments: Segments of lines.
    """

    def __init__(self, payload: Payload, start: int, row_count: int, block_rows: int, segments: int) -> None:
        if row_count < 0 or block_rows <= 0 or segments <= 0:
            raise CorruptIndex(f"blocks of {row_count} rows have {block_rows} rows each and {segments} segments")
        self.blocks = -(-row_count // block_rows)
        self._payload = payload
        self._start = start
        self._row_count = row_count
        self._block_rows = block_rows
        self._segments = segments
        self._width = -(-self.blocks // 8)
        if payload.length != start + segments * SEGMENT * self._width:
            raise CorruptIndex(f"blocks of {payload.length} bytes do not fit {segments} segments for {self.blocks} blocks")

    def blocks_with(self, lines: Sequence[Longs]) -> Bytes:
        """Return, for each key, a bit per block: set if the block has all lines of the key.

        ``lines`` has an array for each hash function, as ``lines_of`` returns them.
        """
        line_numbers = np.stack(lines, axis=1)
        part = SEGMENT * self._width
        if 2 * len(line_numbers) * part >= self._payload.length:
            matrix = np.frombuffer(self._payload.whole(), np.uint8, offset=self._start).reshape(-1, self._width)
            key_lines = matrix[line_numbers]
        else:
            firsts = (line_numbers[:, 0] // SEGMENT).tolist()
            read = np.frombuffer(b"".join(self._payload.read(self._start + first * part, part) for first in firsts), np.uint8)
            key_lines = read.reshape(-1, self._width)[line_numbers % SEGMENT + SEGMENT * np.arange(len(line_numbers))[:, None]]
        joined: Bytes = np.bitwise_and.reduce(key_lines, axis=1)
        return joined

    def result(self, blocks: Bytes) -> FileIndexResult:
        """Return the rows of blocks, given a bit for each block."""
        block_numbers = np.flatnonzero(np.unpackbits(blocks, bitorder="little")[: self.blocks])
        if len(block_numbers) == self.blocks:
            return REMAIN
        return RowSet(self._rows(block_numbers)) if len(block_numbers) else SKIP

    def share_of_set_bits(self) -> float:
        """Return the fraction of set bits of all blocks."""
        bits = np.bitwise_count(np.frombuffer(self._payload.whole(), np.uint8, offset=self._start)).sum()
        return int(bits) / max(1, self.blocks * self._segments * SEGMENT)

    def _rows(self, blocks: Longs) -> BitMap:
        """Return the rows of blocks.

        Neighbouring blocks are added as one range.
        """
        rows = BitMap()
        edges = np.flatnonzero(np.diff(blocks, prepend=-2, append=blocks[-1] + 2) != 1)
        for first, end in pairwise(edges.tolist()):
            rows.add_range(int(blocks[first]) * self._block_rows, min((int(blocks[end - 1]) + 1) * self._block_rows, self._row_count))
        return rows
