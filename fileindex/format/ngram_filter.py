"""The ``ngram-filter`` index.

It finds the blocks of rows that may contain a text anywhere, for ``LIKE '%text%'``. An n-gram is a run of ``size`` bytes of a text in UTF-8,
with ASCII letters in lower case. So one index serves searches with and without regard to case. A text that contains another one has all of its
n-grams. Each block has a filter of the n-grams of its rows: each n-gram sets three lines of one segment (``block_lines``).

It is our own format. Other engines look indexes up by their own columns, and it is stored under another name (``container.NGRAMS``).

Layout, big endian: version, bytes of an n-gram, hash functions, a byte of zero, rows of the file, rows of a block, segments (a power of two),
false positive rate of an n-gram (32-bit float); then the lines.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from fileindex.format.block_lines import SEGMENT, BlockLines, Bytes, Flags, Longs, Words, lines_of, transpose
from fileindex.format.container import Payload
from fileindex.predicate.tree import Leaf, StartsWith, values_of
from fileindex.rowset.result import REMAIN, SKIP, FileIndexResult
from paimon_base.errors import CorruptIndex
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import ColumnType

NGRAM_SIZES = range(2, 9)
"""Bytes of an n-gram. Eight fit a machine word."""

DEFAULT_SIZE = 3
DEFAULT_FPP = 0.1
MOST_FPP = 0.5
_VERSION = 1
_HASHES = 3
_SHARE = 64
_HEAD = struct.Struct(">BBBxiiif")
_FOLDED = np.arange(256, dtype=np.uint8)
_FOLDED[ord("A") : ord("Z") + 1] += 32
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_HALF = np.uint64(32)
_WORD = 8

_Offsets: TypeAlias = np.ndarray[Any, np.dtype[np.integer[Any]]]


class NgramFilterBuilder:
    """Builder of an n-gram filter from a column in row order.

    It holds the filters of the finished blocks, at most ``thresholds.ngram_bytes``. Beyond that they become smaller and less selective.

    Args:
        size: Bytes of an n-gram.
        fpp: Share of absent n-grams that a block may seem to have.
        block_rows: Rows of a block.
        segments: Fixed number of segments of all filters. None: each fits the n-grams of its block.

    >>> builder = NgramFilterBuilder(3, 0.1, 100)
    >>> builder.add(pa.array(["a long text", None]))
    >>> reader = NgramFilterReader(Payload.of(builder.finish()), ColumnType("VARCHAR"))
    >>> reader.candidates([b"LONG"]), reader.candidates([b"lung"])
    (<Verdict.REMAIN: 'remain'>, <Verdict.SKIP: 'skip'>)
    """

    def __init__(self, size: int, fpp: float, block_rows: int, segments: int | None = None) -> None:
        self.row_count = 0
        self._size = size
        self._fpp = fpp
        self._block_rows = block_rows
        self._fixed = segments
        self._most_set = fpp ** (1 / _HASHES)
        self._bits_a_gram = -_HASHES / np.log1p(-self._most_set)
        self._most_segments = max(1, thresholds.ngram_segments)
        self._blocks: list[bytes] = []
        self._rows_in_block = 0
        self._pending: list[Words] = []
        self._pending_count = 0
        self._flags: Flags | None = None

    def add(self, values: Any) -> None:
        """Add the next rows.

        They are texts in physical form, or a dictionary of them.
        """
        row = 0
        while row < len(values):
            piece = values.slice(row, min(self._block_rows - self._rows_in_block, len(values) - row))
            for grams in _grams_of(_distinct_texts(piece), self._size):
                self._pending.append(_hash(grams))
                self._pending_count += len(grams)
                if self._pending_count >= thresholds.ngram_pending:
                    self._set_bits(self._most_segments)
            row += len(piece)
            self.row_count += len(piece)
            self._rows_in_block += len(piece)
            if self._rows_in_block == self._block_rows:
                self._end_block()

    def finish(self) -> bytes:
        """Return the payload."""
        while self._rows_in_block:  # twice, if the end of the last block joins blocks
            self._end_block()
        sizes = sorted(len(block) for block in self._blocks)
        # A few blocks with more n-grams than the others do not enlarge all of them.
        segments = self._fixed or (8 * sizes[len(sizes) * 7 // 8] // SEGMENT if sizes else 1)
        head = _HEAD.pack(_VERSION, self._size, _HASHES, self.row_count, self._block_rows, segments, self._fpp)
        return head + transpose(len(self._blocks), segments, lambda number: _resize(_unpack(self._blocks[number]), segments))

    def could_write(self, reader: NgramFilterReader) -> bool:
        """Return whether a payload has this size, rate and block size.

        Neighbouring blocks of a large file are joined in pairs.
        """
        joined, rest = divmod(reader.block_rows, self._block_rows)
        return (reader.size, reader.fpp) == (self._size, np.float32(self._fpp)) and rest == 0 and joined.bit_count() == 1

    def _end_block(self) -> None:
        max_segments = self._most_segments
        self._set_bits(min(max_segments, _power_of_two(2 * self._distinct() * self._bits_a_gram / SEGMENT)))
        flags, self._flags = self._flags, None
        assert flags is not None
        while self._fixed is None and len(flags) > SEGMENT:
            folded = _resize(flags, len(flags) // SEGMENT // 2)
            if len(flags) <= max_segments * SEGMENT and folded.mean() > self._most_set:
                break
            flags = folded
        self._blocks.append(np.packbits(flags, bitorder="little").tobytes())
        self._rows_in_block = 0
        if len(self._blocks) > thresholds.ngram_blocks:
            self._join_blocks()
        while self._fixed is None and self._most_segments > 1 and sum(map(len, self._blocks)) > thresholds.ngram_bytes:
            self._most_segments //= 2
            self._blocks = [_shrink(block, self._most_segments) for block in self._blocks]

    def _set_bits(self, segments: int) -> None:
        """Set the bits of the pending n-grams in the filter of the open block.

        segments: Size of a new filter. It is larger than necessary, and shrinks at the end of the block.
        """
        if self._flags is None:
            self._flags = np.zeros((self._fixed or segments) * SEGMENT, np.bool_)
        for hashes in self._pending:
            for lines in _lines(hashes, len(self._flags) // SEGMENT):
                self._flags[lines] = True
        self._pending, self._pending_count = [], 0

    def _distinct(self) -> int:
        """Return about how many distinct n-grams are pending, from one in 64 of them if they are many."""
        if self._pending_count < _SHARE * _SHARE:
            return self._pending_count
        return _SHARE * len(np.unique(np.concatenate([hashes[hashes & np.uint64(_SHARE - 1) == 0] for hashes in self._pending])))

    def _join_blocks(self) -> None:
        """Join neighbouring blocks."""
        pairs = zip(self._blocks[::2], [*self._blocks[1::2], b""], strict=False)
        self._blocks = [_join(block, next_block) for block, next_block in pairs]
        # The last block has rows of one half only: the next rows belong to it.
        self._block_rows *= 2
        rest = self.row_count % self._block_rows
        if rest:
            opened = _unpack(self._blocks.pop())
            self._flags, self._rows_in_block = opened if self._fixed else np.tile(opened, 2), rest


def _join(block: bytes, next_block: bytes) -> bytes:
    if not next_block:
        return block
    segments = 8 * max(len(block), len(next_block)) // SEGMENT
    joined = _resize(_unpack(block), segments) | _resize(_unpack(next_block), segments)
    return np.packbits(joined, bitorder="little").tobytes()


def _shrink(block: bytes, segments: int) -> bytes:
    if 8 * len(block) <= segments * SEGMENT:
        return block
    return np.packbits(_resize(_unpack(block), segments), bitorder="little").tobytes()


def _unpack(block: bytes) -> Flags:
    return np.unpackbits(np.frombuffer(block, np.uint8), bitorder="little").astype(np.bool_)


def _resize(flags: Flags, segments: int) -> Flags:
    """Return a filter with another number of segments, a power of two.

    No n-gram is lost. A smaller filter is less selective, a larger one is not more so.
    """
    flag_count = segments * SEGMENT
    if len(flags) <= flag_count:
        return np.tile(flags, flag_count // len(flags))
    folded: Flags = np.logical_or.reduce(flags.reshape(-1, flag_count), axis=0)
    return folded


def _power_of_two(number: float) -> int:
    return 1 << max(0, int(np.ceil(np.log2(max(number, 1)))))


def _distinct_texts(values: Any) -> Any:
    """Return the texts of an array without nulls, each of a dictionary once."""
    if not pa.types.is_dictionary(values.type):
        return values.drop_null() if values.null_count else values
    return values.dictionary.take(values.indices.unique().drop_null())


def _grams_of(texts: Any, size: int) -> Iterator[Words]:
    """Yield the n-grams of all texts, some repeated.

    An array has at most ``thresholds.ngram_part_bytes`` of them.
    """
    if not len(texts):
        return
    wide = pa.types.is_large_string(texts.type)
    offsets: _Offsets = np.frombuffer(texts.buffers()[1], np.int64 if wide else np.int32, len(texts) + 1, texts.offset * (8 if wide else 4))
    first, end = int(offsets[0]), int(offsets[-1])
    if end - first < size:
        return
    data = np.frombuffer(texts.buffers()[2], np.uint8, end - first, first)
    inner = offsets[1:-1] - first
    step = max(1, thresholds.ngram_part_bytes)
    for start in range(0, len(data) - size + 1, step):
        grams = pack_grams(data[start : start + step + size - 1], size)
        keep = np.ones(len(grams), np.bool_)
        ends = inner[np.searchsorted(inner, start) : np.searchsorted(inner, start + len(grams) + size)] - start
        for back in range(1, size):  # an n-gram does not cross the end of a text
            crossing = ends - back
            keep[crossing[(crossing >= 0) & (crossing < len(grams))]] = False
        yield grams[keep]


def pack_grams(data: Bytes, size: int) -> Words:
    """Return the n-grams of one text, first to last, as numbers.

    >>> [hex(gram) for gram in pack_grams(np.frombuffer(b"aBc", np.uint8), 2)]
    ['0x6261', '0x6362']
    """
    count = max(0, len(data) - size + 1)
    padded = np.zeros(len(data) + _WORD, np.uint8)
    padded[: len(data)] = _FOLDED[data]
    words = np.ndarray((count,), np.dtype("<u8"), padded.data, strides=(1,))
    return words & np.uint64((1 << 8 * size) - 1)


def _hash(grams: Words) -> Words:
    mixed = grams * _MIX[0]
    return (mixed ^ mixed >> _HALF) * _MIX[1]


def _lines(hashes: Words, segments: int) -> list[Longs]:
    return lines_of(hashes, hashes & np.uint64(segments - 1), _HASHES)


@lru_cache(maxsize=256)
def _wanted_grams(texts: tuple[bytes, ...], size: int, limit: int) -> Words:
    """Return the distinct n-grams of texts, ``limit`` of them if there are more."""
    grams = np.unique(np.concatenate([pack_grams(np.frombuffer(text, np.uint8), size) for text in texts] or [np.empty(0, np.uint64)]))
    return grams if len(grams) <= limit else grams[np.linspace(0, len(grams) - 1, limit).astype(np.int64)]


class NgramFilterReader:
    """Reader of an n-gram filter.

    Answers texts that a value contains, and ``=``, ``IN`` and prefixes, with the rows of blocks. Everything else is REMAIN.
    """

    distinct: int | None = None

    def __init__(self, payload: Payload, column_type: ColumnType) -> None:  # noqa: ARG002  # as all readers
        version, self.size, hashes, rows, self.block_rows, self.segments, self.fpp = _HEAD.unpack(payload.read(0, _HEAD.size))
        if (version, hashes) != (_VERSION, _HASHES) or self.size not in NGRAM_SIZES:
            raise CorruptIndex(f"version {version} of an n-gram filter with {self.size} bytes and {hashes} hash functions is unknown")
        if self.segments <= 0 or self.segments.bit_count() != 1 or not 0 < self.fpp <= MOST_FPP:
            raise CorruptIndex(f"an n-gram filter has {self.segments} segments and a false positive rate of {self.fpp}")
        self._lines = BlockLines(payload, _HEAD.size, rows, self.block_rows, self.segments)
        self.row_count: int | None = rows
        self.blocks = self._lines.blocks

    def evaluate(self, leaf: Leaf) -> FileIndexResult:
        """Return the rows of all blocks that can match."""
        values = (leaf.prefix,) if isinstance(leaf, StartsWith) and not leaf.negated else values_of(leaf)
        if values is None or len(values) > thresholds.block_literals:
            return REMAIN
        result: FileIndexResult = SKIP
        for value in values:
            result = result.or_(self.candidates([_bytes(value)]))
            if result is REMAIN:
                break
        return result

    def candidates(self, texts: Sequence[bytes]) -> FileIndexResult:
        """Return the rows of the blocks that have all n-grams of ``texts``.

        Texts that are shorter than an n-gram say nothing.
        """
        grams = _wanted_grams(tuple(texts), self.size, thresholds.ngram_probes)
        if not len(grams):
            return REMAIN
        if not self.blocks:
            return SKIP
        return self._lines.result(np.bitwise_and.reduce(self._lines.blocks_with(_lines(_hash(grams), self.segments)), axis=0))

    def false_positive_rate(self) -> float:
        """Return the share of absent n-grams that a block seems to have."""
        return self._lines.share_of_set_bits() ** _HASHES


def _bytes(value: object) -> bytes:
    """Return the UTF-8 of a literal.

    Half a surrogate pair has none. No stored text has it, and b"" says nothing.
    """
    try:
        return str(value).encode()
    except UnicodeEncodeError:
        return b""


def builder_of(options: Mapping[str, str]) -> NgramFilterBuilder:
    """Return a builder for valid options."""
    return NgramFilterBuilder(
        int(options.get("size", DEFAULT_SIZE)),
        float(options.get("fpp", DEFAULT_FPP)),
        int(options.get("block-rows", thresholds.ngram_block_rows)),
    )
