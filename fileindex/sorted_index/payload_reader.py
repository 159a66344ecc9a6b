"""Base of the payload readers: conditions on the column, and its values in order.

A reader checks all that it reads: bytes that cannot be right raise ``CorruptIndex``, so that the caller reads the rows instead.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from fileindex.format.container import PartCache, Payload, uncached
from fileindex.predicate.tree import Predicate
from fileindex.rowset.result import REMAIN, FileIndexResult, RowSet
from fileindex.rowset.roaring import all_rows, bitmap_to_rows, bytes_in_memory, rows_to_bitmap
from fileindex.sorted_index.index_blocks import TRAILER_BYTES, unpack_block
from fileindex.sorted_index.index_meta import MAX_ROWS, SortedIndexMeta
from fileindex.sorted_index.key_codec import Keys, codec_of, first_not_less, is_less, key_list
from fileindex.sorted_index.key_ranges import Cuts, complement, intersection, key_after, key_ranges
from fileindex.sorted_index.varints import bounds_of
from paimon_base.errors import CorruptIndex, PaimonError, describe_error
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, Mask, UInt32s
from sparkexpr.values.column_type import FLOATS, ColumnType

_MOST_WALKED = 64
"""Blocks of a walk that are read together."""


class ValueBlock(Protocol):
    """Some consecutive values of an index."""

    @property
    def keys(self) -> Keys:
        """Their ascending keys."""

    def rows(self, selected: Mask) -> tuple[BitMap, int]:
        """Return the rows of the selected values, and the number of their ordinals."""

    def postings(self, selected: Mask) -> tuple[Int64s, UInt32s]:
        """Return the number of ordinals of each selected value, and all ordinals."""


Block = TypeVar("Block", bound=ValueBlock)


@dataclass(frozen=True, slots=True)
class Directory:
    """Blocks of values, and where the sets of null rows and, in a bitmap, of other rows are.

    Block ``i`` has keys from ``lowers[i]`` to before ``uppers[i]``. Stored sizes exclude the trailers.
    """

    lowers: list[Any]
    uppers: list[Any]
    offsets: Int64s
    sizes: Int64s
    row_sets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class KeyBlock:
    """Distinct ascending values with their ordinals.

    Value ``i`` has ``ordinals[starts[i]:starts[i + 1]]``.
    """

    values: Any
    keys: Keys
    starts: Int64s
    ordinals: UInt32s

    def rows_of(self, candidates: BitMap | None) -> tuple[Int64s, UInt32s]:
        """Return the position of a value and the ordinal of each candidate, in the order of values."""
        positions = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        if candidates is None:
            return positions, self.ordinals
        common = bitmap_to_rows(rows_to_bitmap(self.ordinals) & candidates)
        is_candidate = np.isin(self.ordinals, common)
        return positions[is_candidate], self.ordinals[is_candidate]


class SortedIndexReader(ABC, Generic[Block]):
    """Reader of one payload. Opening it reads nothing.

    Args:
        read: ``read(offset, length)`` returns these bytes of the payload.
        size: Bytes of the payload.
        column_type: Type of the column.
        row_count: Rows of the files that it covers.
        meta: First and last key.
        hold: Cache of this payload's directory and null rows.

    Attributes:
        reads: Number of calls of ``read``.
        bytes_read: Bytes that these returned.
        blocks_read: Number of blocks of values that were decoded.
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        size: int,
        *,
        column_type: ColumnType,
        row_count: int,
        meta: SortedIndexMeta,
        hold: PartCache | None = None,
    ) -> None:
        if not 0 <= row_count <= MAX_ROWS:
            raise CorruptIndex(f"an index has {row_count} rows, of at most {MAX_ROWS}")
        self.size = size
        self.reads = self.bytes_read = self.blocks_read = 0
        self._fetch = read
        self._hold = uncached if hold is None else hold
        self._payload = Payload(self._counted, 0, size, self._hold)
        self._type = column_type
        self._codec = codec_of(column_type)
        self._row_count = row_count
        self._meta = meta
        self._last_block: tuple[int, Block] | None = None

    def evaluate(self, predicate: Predicate) -> FileIndexResult:
        """Return the rows that satisfy a condition on the column.

        ``predicate`` has no other column. REMAIN if the index cannot tell. Raises CorruptIndex, and the errors of ``read``.
        """
        with malformed():
            ranges = key_ranges(predicate, self._codec)
            if ranges is None:
                return REMAIN
            rows = self._in_ranges(ranges.cuts)
            return RowSet(rows | self._null_rows if ranges.nulls else rows, exact=ranges.exact)

    def may_match(self, predicate: Predicate) -> bool:
        """Return False if first and last key show that no row matches. Reads nothing."""
        with malformed():
            ranges = key_ranges(predicate, self._codec)
            return ranges is None or (ranges.nulls and self._meta.has_nulls) or bool(intersection(ranges.cuts, self._span))

    def nulls(self) -> BitMap:
        """Return the rows without a value. Do not modify the set."""
        with malformed():
            return self._null_rows

    def walk(self, *, descending: bool = False) -> Iterator[KeyBlock]:
        """Yield all values in order, block by block.

        Inside a block values ascend. With ``descending`` the last block comes first.
        """
        with malformed():
            count, step, first = len(self.directory.lowers), 1, 0
            while first < count:
                last = min(first + step, count)
                numbers = range(count - last, count - first) if descending else range(first, last)
                blocks = self._blocks(numbers)
                for _, block in reversed(list(blocks)) if descending else blocks:
                    counts, ordinals = block.postings(np.ones(len(block.keys), np.bool_))
                    yield KeyBlock(self._codec.values(block.keys), block.keys, bounds_of(counts), ordinals)
                first, step = last, min(2 * step, _MOST_WALKED)

    def top_n(self, k: int, *, ascending: bool, nulls_first: bool, strict: bool, candidates: BitMap | None) -> BitMap:
        """Return the rows with the first ``k`` values of ``candidates``.

        Args:
            k: Number of rows, at least 1.
            ascending: Smallest values first. If False, greatest first.
            nulls_first: Position of nulls.
            strict: Return exactly ``k`` rows. If False, return all tied rows too.
            candidates: Rows to choose from. None: all.
        """
        with malformed():
            rows = BitMap() if nulls_first else self._first_rows(k, candidates, ascending=ascending, strict=strict)
            if len(rows) < k:
                nulls = self._null_rows if candidates is None else self._null_rows & candidates
                rows |= nulls[: k - len(rows)] if strict else nulls
            if nulls_first and len(rows) < k:
                rows |= self._first_rows(k - len(rows), candidates, ascending=ascending, strict=strict)
            return rows

    def extreme(self, candidates: BitMap | None, *, greatest: bool) -> Any:
        """Return the smallest or greatest value of ``candidates``, as an array of one value.

        None if they have no value. Without ``candidates`` it reads nothing.
        """
        with malformed():
            if candidates is None:
                return self._codec.values(self._end_keys[int(greatest) :][:1]) if self._span else None
            for block in self.walk(descending=greatest):
                positions, _ = block.rows_of(candidates)
                if len(positions):
                    return block.values[positions[-1 if greatest else 0] :][:1]
            return None

    def value_counts(self, rows: BitMap | None) -> tuple[Any, Int64s] | None:
        """Return the values and the number of rows with each, the null last.

        ``rows`` None means all rows. None if there are so many values that reading the column costs less.
        """
        with malformed():
            values: list[Any] = []
            counts: list[Int64s] = []
            total, distinct = len(self._null_rows), 0
            for block in self.walk():
                total, distinct = total + len(block.ordinals), distinct + len(block.values)
                if distinct > thresholds.row_sets:
                    return None
                values.append(block.values)
                counts.append(np.bincount(block.rows_of(rows)[0], minlength=len(block.values)))
            if total != self._row_count:
                raise CorruptIndex(f"the values of an index have {total} of {self._row_count} rows")
            null_count = len(self._null_rows if rows is None else self._null_rows & rows)
            null = pa.nulls(1, values[0].type if values else self._type.arrow)
            return pa.concat_arrays([*values, null]), np.append(np.concatenate(counts or [np.zeros(0, np.int64)]), null_count)

    @cached_property
    def directory(self) -> Directory:
        """Blocks of the payload."""
        return self._hold("directory", self._checked_directory, lambda directory: 500 + 200 * len(directory.lowers))

    _lowers_are_keys: ClassVar[bool]
    """Whether the directory has the first keys of blocks, or the last ones."""

    @abstractmethod
    def _read_directory(self) -> Directory:
        """Read the footer and the index block."""

    @abstractmethod
    def _parse_block(self, body: bytes) -> Block:
        """Parse an unpacked block of values."""

    @abstractmethod
    def _read_nulls(self) -> BitMap:
        """Read the set of null rows."""

    def _first_rows(self, k: int, candidates: BitMap | None, *, ascending: bool, strict: bool) -> BitMap:
        """Return the first rows that have a value, with those that tie with the last."""
        first_rows = BitMap()
        for block in self.walk(descending=not ascending):
            positions, ordinals = block.rows_of(candidates)
            if not ascending:
                positions, ordinals = positions[::-1], ordinals[::-1]
            missing = k - len(first_rows)
            if len(ordinals) < missing:
                first_rows |= rows_to_bitmap(ordinals)
                continue
            last = positions[missing - 1]
            end = missing if strict else missing + int((positions[missing:] == last).sum())
            first_rows |= rows_to_bitmap(ordinals[:end])
            if not strict and self._type.kind in FLOATS and block.keys[last] in {-1, 0}:  # both zeros tie
                zeros = self._in_ranges(((1, -1), (1, 1)))
                first_rows |= zeros if candidates is None else zeros & candidates
            break
        return first_rows

    def _in_ranges(self, cuts: Cuts) -> BitMap:
        """Return the rows with keys in ranges."""
        inside = intersection(cuts, self._span)
        if not inside:
            return BitMap()
        outside = intersection(complement(cuts), self._span)
        if self._cost(inside) <= self._cost(outside):
            return self._select(inside)
        nulls, excluded = self._null_rows, self._select(outside)
        if nulls & excluded:
            raise CorruptIndex("a row has both a value and no value")
        return all_rows(self._row_count) - nulls - excluded

    def _cost(self, cuts: Cuts) -> tuple[int, int]:
        """Return the bytes to read for the rows of ranges: of blocks, and of row sets if known."""
        return int(self.directory.sizes[self._touched(cuts)].sum()), 0

    def _touched(self, cuts: Cuts) -> list[int]:
        """Return the numbers of the blocks that may have keys in ranges."""
        lowers, uppers = self.directory.lowers, self.directory.uppers
        numbers: set[int] = set()
        for (_, start), (_, end) in zip(cuts[::2], cuts[1::2], strict=True):
            numbers.update(range(bisect_right(uppers, start), bisect_left(lowers, end)))
        return sorted(numbers)

    def _select(self, cuts: Cuts) -> BitMap:
        """Return the rows with keys in ranges, from their blocks."""
        parts = [block.rows(self._selected(number, block, cuts)) for number, block in self._blocks(self._touched(cuts))]
        rows = BitMap.union(BitMap(), *(part for part, _ in parts))
        if len(rows) != sum(count for _, count in parts):
            raise CorruptIndex("two values of an index have the same row")
        return rows

    def _selected(self, number: int, block: ValueBlock, cuts: Cuts) -> Mask:
        """Return a mask of the keys of a block that are inside of ranges."""
        first = bisect_right(cuts, (1, self.directory.lowers[number]))
        last = bisect_left(cuts, (1, self.directory.uppers[number]))
        positions = first_not_less(block.keys, [key for _, key in cuts[first:last]])
        toggles = np.bincount(np.array(positions, np.int64), minlength=len(block.keys) + 1)[:-1]
        selected: Mask = (first + np.cumsum(toggles)) % 2 == 1
        return selected

    def _blocks(self, numbers: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """Yield blocks of values in ascending order. Neighbours are read at once."""
        if len(numbers) == 1 and self._last_block is not None and self._last_block[0] == numbers[0]:
            yield self._last_block
            return
        offsets, lengths = self.directory.offsets[list(numbers)], self.directory.sizes[list(numbers)] + TRAILER_BYTES
        for first, last in spans(offsets, lengths):
            start = int(offsets[first])
            data = self._read(start, int(offsets[last - 1] + lengths[last - 1]) - start)
            for member in range(first, last):
                begin = int(offsets[member]) - start
                body = unpack_block(data[begin : begin + int(lengths[member])])
                self.blocks_read += 1
                self._last_block = numbers[member], self._checked(numbers[member], self._parse_block(body))
                yield self._last_block

    def _checked(self, number: int, block: Block) -> Block:
        """Return a block whose keys ascend and are those that the directory states."""
        directory, keys = self.directory, block.keys
        if not len(keys) or not is_less(keys, or_equal=False).all():
            raise CorruptIndex("the keys of an index are not in order")
        first, after = key_list(keys[:1])[0], key_after(key_list(keys[-1:])[0])
        lower, upper = directory.lowers[number], directory.uppers[number]
        is_first, is_last = number == 0, number == len(directory.lowers) - 1
        exact = first == lower if is_first or self._lowers_are_keys else first >= lower
        if not exact or not (after == upper if is_last or not self._lowers_are_keys else after <= upper):
            raise CorruptIndex("a block of an index has other keys than its directory states")
        return block

    def _checked_directory(self) -> Directory:
        """Return the directory, whose blocks lie inside of the payload and do not overlap."""
        directory = self._read_directory()
        offsets, sizes, bounds = directory.offsets, directory.sizes, [*directory.lowers, *directory.uppers[-1:]]
        if any(key >= following for key, following in pairwise(bounds)) or bounds[:1] + bounds[-1:] != [key for _, key in self._span]:
            raise CorruptIndex("the keys of an index are not in order, or not from the first to the last")
        if len(offsets) and int(max(offsets.max(), sizes.max())) > self.size:
            raise CorruptIndex("a block of an index lies outside of its payload")
        ends = offsets + sizes + TRAILER_BYTES
        if (ends[:-1] > offsets[1:]).any() or (ends > self.size).any():
            raise CorruptIndex("the blocks of an index overlap, or lie outside of its payload")
        return directory

    def _read(self, offset: int, length: int) -> bytes:
        """Return bytes of the payload, if possible from its end that was read first."""
        start = max(0, self.size - Payload.WHOLE)
        if start <= offset <= offset + length <= self.size:
            return self._tail[offset - start : offset - start + length]
        return self._payload.read(offset, length)

    @cached_property
    def _tail(self) -> bytes:
        start = max(0, self.size - Payload.WHOLE)
        return self._payload.read(start, self.size - start)

    def _counted(self, offset: int, length: int) -> bytes:
        data = self._fetch(offset, length)
        self.reads += 1
        self.bytes_read += len(data)
        if len(data) != length:
            raise CorruptIndex(f"an index ends at byte {offset + len(data)} instead of {self.size}")
        return data

    @cached_property
    def _null_rows(self) -> BitMap:
        if not self._meta.has_nulls:
            return BitMap()
        nulls = self._hold("nulls", self._read_nulls, bytes_in_memory)
        if not nulls:
            raise CorruptIndex("an index that states null rows has none")
        return nulls

    @cached_property
    def _end_keys(self) -> Keys:
        """First and last key, or no key."""
        meta = self._meta
        ends = [] if meta.first_key is None or meta.last_key is None else [meta.first_key, meta.last_key]
        keys = self._codec.decode(np.frombuffer(b"".join(ends), np.uint8), bounds_of(np.array(list(map(len, ends)), np.int64)))
        if not is_less(keys, or_equal=True).all():
            raise CorruptIndex("the first key of an index is greater than the last")
        return keys

    @cached_property
    def _span(self) -> Cuts:
        """Range from the first to the last key, or none."""
        keys = key_list(self._end_keys)
        return ((1, keys[0]), (1, key_after(keys[1]))) if keys else ()


def spans(offsets: Int64s, lengths: Int64s) -> Iterator[tuple[int, int]]:
    """Yield ranges of extents to read at once: near each other, and of limited size.

    The extents ascend without overlap.

    >>> list(spans(np.array([0, 10, 1 << 30]), np.array([10, 5, 1])))
    [(0, 2), (2, 3)]
    """
    ends = offsets + lengths
    breaks = [*(np.flatnonzero(offsets[1:] - ends[:-1] > thresholds.manifest_gap_bytes) + 1).tolist(), len(offsets)]
    first = 0
    for stop in breaks:
        while first < stop:
            last = int(np.searchsorted(ends, offsets[first] + thresholds.index_read_bytes, side="right"))
            last = min(max(last, first + 1), stop)
            yield first, last
            first = last


@contextmanager
def malformed() -> Iterator[None]:
    """Turn errors of malformed bytes into CorruptIndex."""
    try:
        yield
    except PaimonError:
        raise
    except (struct.error, ValueError, IndexError, OverflowError, TypeError, pa.ArrowException) as error:
        raise CorruptIndex(f"an index is malformed: {describe_error(error)}") from error
