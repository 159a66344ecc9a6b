"""Blocks of an Avro file: locations, row counts and content.

Locations and row counts are read from block headers alone. Content is decompressed up to a size limit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from fileindex.base.thresholds import thresholds
from lsm.parquet.footer import RowGroup
from lsm.parquet.page_index import ReadRange
from manifest.avro.codecs import BROKEN_BLOCK, MAX_PAYLOAD, decompressor
from manifest.avro.schemas import AvroSchema
from manifest.avro.wire import SYNC_BYTES, AvroCursor

_LONGEST_HEADER = 1 << 24
_IN_MEMORY = 200


@dataclass(frozen=True, slots=True)
class Block:
    """Location, compressed size and row count of a block."""

    offset: int
    size: int
    rows: int


@dataclass(frozen=True)
class AvroBlocks:
    """Schema, codec, blocks and row groups of an Avro file.

    ``groups`` has the blocks of each row group.
    """

    schema: AvroSchema
    codec: str
    groups: tuple[tuple[Block, ...], ...]
    row_groups: tuple[RowGroup, ...]
    kept: set[object] = field(default_factory=set, repr=False)

    @classmethod
    def read(cls, read_range: ReadRange, size: int) -> AvroBlocks:
        """Read the block headers of a file of ``size`` bytes.

        Raises:
            ValueError, LookupError: The file is not a complete Avro file.
        """
        source = _Window(read_range, size)
        metadata, sync = source.header()
        groups: list[tuple[Block, ...]] = []
        waiting: list[Block] = []
        while source.position < size:
            rows, length = source.long(), source.long()
            waiting.append(Block(source.position, length, rows))
            if rows < 0 or length < 0:
                raise ValueError(f"a block header has {rows} rows in {length} bytes")
            source.position += length
            if source.take(SYNC_BYTES) != sync:
                raise ValueError("a sync marker is wrong")
            if sum(block.size for block in waiting) >= thresholds().avro_group_bytes:
                groups.append(tuple(waiting))
                waiting = []
        groups += [tuple(waiting)] if waiting else []
        codec = metadata.get(b"avro.codec", b"null").decode()
        return cls(json.loads(metadata[b"avro.schema"]), codec, tuple(groups), _row_groups(groups))

    @property
    def weight(self) -> int:
        """Approximate bytes in memory."""
        return _IN_MEMORY * sum(len(blocks) for blocks in self.groups) + len(str(self.schema))

    def content(self, path: str, read_range: ReadRange, group: int) -> list[tuple[int, bytes]]:
        """Return row counts and bytes of a group's blocks.

        Raises:
            ValueError: A block is damaged.
            UnsupportedTable: The codec is not supported.
        """
        decompress = decompressor(path, self.codec)
        blocks, left = [], MAX_PAYLOAD
        for block in self.groups[group]:
            try:
                data = decompress(read_range(block.offset, block.size), left)
            except BROKEN_BLOCK as error:
                raise ValueError(str(error)) from error
            left -= len(data)
            blocks.append((block.rows, data))
        return blocks


def _row_groups(groups: Sequence[Sequence[Block]]) -> tuple[RowGroup, ...]:
    found: list[RowGroup] = []
    first_row = 0
    for index, blocks in enumerate(groups):
        rows = sum(block.rows for block in blocks)
        found.append(RowGroup(index, first_row, rows, sum(block.size for block in blocks)))
        first_row += rows
    return tuple(found)


class _Window(AvroCursor):
    """Cursor over a file that is read in pieces."""

    def __init__(self, read_range: ReadRange, size: int) -> None:
        self.position = 0
        self._read_range = read_range
        self._size = size
        self._start = 0
        self._held = b""

    def take(self, length: int) -> bytes:
        if not 0 <= length <= min(_LONGEST_HEADER, self._size - self.position):
            raise ValueError(f"{length} bytes at {self.position} exceed the file of {self._size} bytes")
        begin = self.position - self._start
        if begin < 0 or begin + length > len(self._held):
            self._start, begin = self.position, 0
            self._held = self._read_range(self._start, min(max(length, thresholds().avro_window_bytes), self._size - self._start))
        self.position += length
        return self._held[begin : begin + length]


__all__ = ["AvroBlocks", "Block"]
