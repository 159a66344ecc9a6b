"""Where the blocks of an Avro file lie and how many rows each has, told by their headers alone; their bytes, decompressed under a limit."""

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
    """A block: the place of its content, its compressed size and its rows."""

    offset: int
    size: int
    rows: int


@dataclass(frozen=True)
class AvroBlocks:
    """What an Avro file says of itself: the writer's schema, the codec, the blocks of each row group, and the row groups."""

    schema: AvroSchema
    codec: str
    groups: tuple[tuple[Block, ...], ...]
    row_groups: tuple[RowGroup, ...]
    kept: set[object] = field(default_factory=set, repr=False)

    @classmethod
    def read(cls, read_range: ReadRange, size: int) -> AvroBlocks:
        """Those of a file of ``size`` bytes. Raises ``ValueError`` or ``LookupError`` if it is no whole Avro file."""
        source = _Window(read_range, size)
        metadata, sync = source.header()
        groups: list[tuple[Block, ...]] = []
        waiting: list[Block] = []
        while source.position < size:
            rows, length = source.long(), source.long()
            waiting.append(Block(source.position, length, rows))
            if rows < 0 or length < 0:
                raise ValueError(f"a block says that it has {rows} rows in {length} bytes")
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
        """Bytes in memory, about."""
        return _IN_MEMORY * sum(len(blocks) for blocks in self.groups) + len(str(self.schema))

    def content(self, path: str, read_range: ReadRange, group: int) -> list[tuple[int, bytes]]:
        """Rows and bytes of every block of a row group. Raises ``ValueError``, or ``UnsupportedTable`` for a codec that is not read."""
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
    """Over a file that is read piece by piece."""

    def __init__(self, read_range: ReadRange, size: int) -> None:
        self.position = 0
        self._read_range = read_range
        self._size = size
        self._start = 0
        self._held = b""

    def take(self, length: int) -> bytes:
        if not 0 <= length <= min(_LONGEST_HEADER, self._size - self.position):
            raise ValueError(f"{length} bytes at {self.position} leave the file of {self._size} bytes")
        begin = self.position - self._start
        if begin < 0 or begin + length > len(self._held):
            self._start, begin = self.position, 0
            self._held = self._read_range(self._start, min(max(length, thresholds().avro_window_bytes), self._size - self._start))
        self.position += length
        return self._held[begin : begin + length]


__all__ = ["AvroBlocks", "Block"]
