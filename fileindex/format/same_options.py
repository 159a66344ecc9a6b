"""Check whether a payload was built with given options.

A rewrite of indexes can then keep it. The check reads only the first bytes.

The options are not stored, but the layout shows them: the size of a bloom filter, the version of a bitmap, and where blocks of
keys and dictionary chunks end. Paimon's writers fill these in one way only.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fileindex.format.bitmap_writer import DEFAULT_BLOCK_SIZE, VERSION_1, VERSION_2
from fileindex.format.bloom_filter import DEFAULT_FPP, DEFAULT_ITEMS, BloomSize
from fileindex.format.bsi import BSI_VERSION
from fileindex.format.container import NGRAMS, ROW_BLOCKS, Payload
from fileindex.format.int_range import MAX_INT
from fileindex.format.ngram_filter import NgramFilterReader, builder_of
from fileindex.format.range_bitmap_writer import RANGE_BITMAP_VERSION as RANGE_VERSION
from fileindex.format.range_bitmap_writer import default_chunk_size
from fileindex.format.row_blocks import RowBlocksReader
from fileindex.keys.fixed import key_width
from paimon_base.errors import CorruptIndex
from paimon_base.memory_size import parse_memory_size
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import STRINGS, ColumnType

_EMPTY_FOR_NULLS = "range-bitmap"


def has_same_options(index_type: str, payload: Payload | None, column_type: ColumnType, options: Mapping[str, str], row_count: int) -> bool:
    """Return whether an index has the form that ``options`` define.

    False if it is malformed or unknown.

    Args:
        index_type: Name of the type in the container.
        payload: Bytes of the index. None: the marker of an empty index, also stored for a range-bitmap of nulls only.
        column_type: Type of the column.
        options: Options of the index.
        row_count: Rows of the file.

    >>> import pyarrow as pa
    >>> from fileindex.format.bitmap_writer import write_bitmap
    >>> from fileindex.keys.group_by import ColumnRows
    >>> rows, kind = ColumnRows(ColumnType("INT")), ColumnType("INT")
    >>> rows.append(pa.array([7, 8, 7], pa.int32()))
    >>> payload = Payload.of(write_bitmap(rows.group(), kind, version=1))
    >>> [has_same_options("bitmap", payload, kind, {"version": version}, 3) for version in "12"]
    [True, False]
    """
    # Paimon has no such check: its rewrite_file_index rebuilds every index.
    if payload is None:
        return row_count == 0 or index_type == _EMPTY_FOR_NULLS
    check = _CHECKS.get(index_type)
    if check is None:
        return False
    try:
        return check(payload, column_type, options, row_count)
    except (CorruptIndex, struct.error):
        return False


def _bloom(payload: Payload, _type: ColumnType, options: Mapping[str, str], rows: int) -> bool:
    """Check a bloom filter.

    Its size is that of the file's values, up to ``items``, or the size of Paimon, which has room for all ``items``.
    """
    fpp = float(options.get("fpp", DEFAULT_FPP))
    size = BloomSize(8 * (payload.length - 4), int.from_bytes(payload.read(0, 4), "big"))
    if size == BloomSize.of(int(options.get("items", DEFAULT_ITEMS)), fpp):
        return True
    items = size.items(min(max(1, rows), int(options.get("items", rows))), fpp)
    if items is None:
        return False
    # A filter that was limited to fewer items has more bits set than these set. Any part of it shows that.
    part = payload.read(4, min(payload.length - 4, thresholds.index_check_bytes))
    set_bits = int(np.bitwise_count(np.frombuffer(part, np.uint8)).sum())
    return set_bits * size.bits <= size.hashes * items * 8 * len(part)


def _row_blocks(payload: Payload, column_type: ColumnType, options: Mapping[str, str], rows: int) -> bool:
    """Check row blocks.

    Neighbouring blocks of a large file are joined in pairs, so their size may be a multiple by a power of two.
    """
    stored, block_rows = RowBlocksReader(payload, column_type), int(options.get("block-rows", thresholds.index_block_rows))
    joined, rest = divmod(stored.block_rows, max(1, block_rows))
    return stored.row_count == rows and rest == 0 and joined.bit_count() == 1


def _ngrams(payload: Payload, column_type: ColumnType, options: Mapping[str, str], rows: int) -> bool:
    """Check an n-gram filter. The same rule holds for its blocks."""
    stored, builder = NgramFilterReader(payload, column_type), builder_of(options)
    return stored.row_count == rows and builder.could_write(stored)


def _bsi(payload: Payload, _type: ColumnType, _options: Mapping[str, str], rows: int) -> bool:
    return payload.read(0, 5) == struct.pack(">bi", BSI_VERSION, rows)


def _bitmap(payload: Payload, column_type: ColumnType, options: Mapping[str, str], rows: int) -> bool:
    expected_version = int(options.get("version", VERSION_2))
    version, row_count, values, has_null = struct.unpack(">bii?", payload.read(0, 10))
    if (version, row_count) != (expected_version, rows) or not 0 <= values <= rows:
        return False
    if version == VERSION_1:
        return True
    room = min(parse_memory_size(options.get("index-block-size", str(DEFAULT_BLOCK_SIZE)), "index-block-size"), MAX_INT)
    return _are_full(_blocks(payload, 18 if has_null else 10, column_type), room)


@dataclass(frozen=True, slots=True)
class _BlockSize:
    """Sizes of a block in bytes.

    Attributes:
        size: Used bytes.
        first: Bytes of an entry with the block's first key.
        least: Minimum bytes of the block.
    """

    size: int
    first: int
    least: int


def _are_full(blocks: Iterator[_BlockSize], room: int) -> bool:
    """Return whether each block is as full as ``room`` allows.

    The first entry of the next block would not have fit.
    """
    block_sizes = list(blocks)
    return all(block.size <= max(room, block.least) for block in block_sizes) and all(
        block.size + following.first > room for block, following in pairwise(block_sizes)
    )


def _blocks(payload: Payload, offset: int, column_type: ColumnType) -> Iterator[_BlockSize]:
    """Yield the blocks of a version 2 bitmap.

    ``offset`` is the position of its directory.
    """
    directory = _Bytes(payload, offset)
    count = directory.number()
    starts: list[tuple[int, int]] = []
    for _ in range(count):
        if directory.left < 0:
            break
        starts.append((directory.key(column_type), directory.number()))
    ends = [start for _, start in starts[1:]]
    if starts and len(starts) == count:
        ends.append(directory.number())
    for (key, start), end in zip(starts, ends, strict=False):
        yield _BlockSize(end - start, key + 8, 4 + key + 8)


def _range_bitmap(payload: Payload, column_type: ColumnType, options: Mapping[str, str], rows: int) -> bool:
    (header_length,) = struct.unpack(">i", payload.read(0, 4))
    version, row_count, values = struct.unpack(">bii", payload.read(4, 9))
    if (version, row_count) != (RANGE_VERSION, rows) or not 0 <= values <= rows:
        return False
    text = options.get("chunk-size")
    room = default_chunk_size(column_type) if text is None else min(parse_memory_size(text, "chunk-size"), MAX_INT)
    dictionary = 4 + header_length
    _, _, count, offsets, _ = struct.unpack(">ibiii", payload.read(dictionary, 17))
    chunks = list(_chunks(_Bytes(payload, dictionary + 17 + offsets), count, column_type))
    return all(chunk.fits(room) for chunk in chunks) and all(
        not chunk.with_next(following).fits(room) for chunk, following in pairwise(chunks)
    )


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A dictionary chunk.

    Attributes:
        first: Bytes of its first key.
        size: Number of further keys.
        bytes: Bytes of the further keys.
        texts: Whether keys are texts.
    """

    first: int
    size: int
    bytes: int
    texts: bool

    def fits(self, room: int) -> bool:
        return self.bytes <= room and (not self.texts or 4 * self.size <= room)

    def with_next(self, following: _Chunk) -> _Chunk:
        return _Chunk(self.first, self.size + 1, self.bytes + following.first, self.texts)


def _chunks(headers: _Bytes, count: int, column_type: ColumnType) -> Iterator[_Chunk]:
    for _ in range(count):
        if headers.left < 0:
            return
        headers.skip(1)
        first = headers.key(column_type)
        headers.skip(8)
        size, second, third = headers.number(), headers.number(), headers.number()
        texts = column_type.kind in STRINGS
        yield _Chunk(first, size, third if texts else second, texts)


class _Bytes:
    """Cursor over a payload.

    ``left`` is the number of bytes that may still be read.
    """

    def __init__(self, payload: Payload, offset: int) -> None:
        self._payload = payload
        self._at = offset
        self._data = b""
        self._next = 0
        self.left = thresholds.index_check_bytes

    def number(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def key(self, column_type: ColumnType) -> int:
        """Skip a key and return its size.

        In bytes, including the length prefix of a text.
        """
        if column_type.kind not in STRINGS:
            return self.skip(key_width(column_type))
        length = self.number()
        if length < 0:
            raise CorruptIndex("a text in an index has a negative length")
        return 4 + self.skip(length)

    def skip(self, length: int) -> int:
        self._next += length
        self.left -= length
        return length

    def _take(self, length: int) -> bytes:
        if self._next + length > len(self._data):
            self._at, self._next = self._at + self._next, 0
            read_size = max(length, min(thresholds.index_check_bytes, self._payload.length - self._at))
            self._data = self._payload.read(self._at, read_size)
        data = self._data[self._next : self._next + length]
        self.skip(length)
        return data


_CHECKS: Mapping[str, Callable[[Payload, ColumnType, Mapping[str, str], int], bool]] = {
    "bloom-filter": _bloom,
    "bitmap": _bitmap,
    "bsi": _bsi,
    "range-bitmap": _range_bitmap,
    ROW_BLOCKS: _row_blocks,
    NGRAMS: _ngrams,
}
