"""Base of the payload writers: groups sorted rows by value.

Call ``add`` with values in order, ``add_nulls`` at any time, then ``finish``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from fileindex.keys.hashing import text_buffers
from fileindex.rowset.roaring import rows_to_bitmap
from fileindex.sorted_index.build_options import SortedIndexOptions
from fileindex.sorted_index.index_blocks import pack_block
from fileindex.sorted_index.index_meta import MAX_ROWS, SortedIndexMeta
from fileindex.sorted_index.key_codec import Keys, binaries, codec_of, is_less, join_binaries, take_keys
from fileindex.sorted_index.varints import bounds_of, encode_varints
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, UInt8s, UInt32s
from sparkexpr.values.column_type import ColumnType


class SortedIndexWriter(ABC):
    """Writer of one payload, in bounded memory.

    It holds the rows of one value, one block, and the set of null rows.

    Args:
        options: Kind, block size and compression.
        column_type: Type of the column.
        write: Receives the bytes of the payload in order.
    """

    def __init__(self, options: SortedIndexOptions, column_type: ColumnType, write: Callable[[bytes], object]) -> None:
        self.options = options
        self.size = 0
        """Bytes written."""
        self.row_count = 0
        """Ordinals added."""
        self._codec = codec_of(column_type)
        self._sink = write
        self._ordinal_sum = 0
        self._nulls = BitMap()
        self._open_key: Keys = None
        self._open_ordinals: list[UInt32s] = []
        self._first_key: bytes | None = None
        self._last_key: bytes | None = None

    def add(self, values: Any, ordinals: UInt32s, counts: Int64s | None = None) -> None:
        """Add rows in the order of values and ordinals.

        Args:
            values: Arrow array of the column, without nulls. It may begin with the last value of the previous call.
            ordinals: Ordinals of the rows.
            counts: Number of ordinals of each value, at least 1. None: one each.

        Raises:
            ValueError: The rows are not in order.
            OverflowError: A part exceeds the range of the format.
        """
        self._count(ordinals)
        if not len(values):
            return
        keys = self._codec.keys(values)
        is_last = np.ones(len(keys), np.bool_)
        is_last[:-1] = is_less(keys, or_equal=False)
        if not is_less(keys, or_equal=True).all():
            raise ValueError("the values of an index are not in order")
        ends = np.flatnonzero(is_last) + 1
        starts = np.concatenate([np.zeros(1, np.int64), ends if counts is None else bounds_of(counts)[ends]])
        keys = take_keys(keys, ends - 1)
        if int(starts[-1]) != len(ordinals) or not _ascend(ordinals, starts):
            raise ValueError("the ordinals of an index are not in order")
        if self._open_key is not None:
            is_same = self._same_as_open(keys)
            if is_same:
                if ordinals[0] <= self._open_ordinals[-1][-1]:
                    raise ValueError("the ordinals of an index are not in order")
                self._open_ordinals.append(ordinals[: starts[1]])
                if len(keys) == 1:
                    return
            self._close_key()
            keys, starts = keys[is_same:], starts[is_same:]
        self._write_values(keys[:-1], starts[:-1], ordinals)
        self._open_key, self._open_ordinals = keys[-1:], [ordinals[starts[-2] :]]

    def add_nulls(self, ordinals: UInt32s) -> None:
        """Add rows without a value, in any order."""
        self._count(ordinals)
        self._nulls |= rows_to_bitmap(ordinals)

    def finish(self) -> SortedIndexMeta:
        """Write the rest, and return the metadata of the payload.

        Raises:
            ValueError: The ordinals are not all numbers from 0 on.
        """
        if self._open_key is not None:
            self._close_key()
        # A lost or repeated row would make wrong answers: their sum shows nearly all.
        if self._ordinal_sum != self.row_count * (self.row_count - 1) // 2:
            raise ValueError("the ordinals of an index are not those of its rows")
        self._finish()
        return SortedIndexMeta(self._first_key, self._last_key, bool(self._nulls))

    @abstractmethod
    def _write_groups(self, keys: Any, starts: Int64s, ordinals: UInt32s) -> None:
        """Write the rows of consecutive values.

        ``keys`` are stored bytes. Value ``i`` has ``ordinals[starts[i]:starts[i + 1]]``.
        """

    @abstractmethod
    def _finish(self) -> None:
        """Write what follows the last value."""

    def _count(self, ordinals: UInt32s) -> None:
        self.row_count += len(ordinals)
        self._ordinal_sum += int(ordinals.sum(dtype=np.uint64))
        if self.row_count > MAX_ROWS:
            raise OverflowError(f"an index of more than {MAX_ROWS} rows")

    def _same_as_open(self, keys: Keys) -> bool:
        both = np.append(self._open_key, keys[:1]) if isinstance(keys, np.ndarray) else pa.concat_arrays([self._open_key, keys[:1]])
        if not is_less(both, or_equal=True)[0]:
            raise ValueError("the values of an index are not in order")
        return not is_less(both, or_equal=False)[0]

    def _close_key(self) -> None:
        ordinals = np.concatenate(self._open_ordinals)
        self._write_values(self._open_key, np.array([0, len(ordinals)]), ordinals)
        self._open_key, self._open_ordinals = None, []

    def _write_values(self, keys: Keys, starts: Int64s, ordinals: UInt32s) -> None:
        if not len(keys):
            return
        stored = self._codec.encode(keys)
        if self._first_key is None:
            self._first_key = stored[0].as_py()
        self._last_key = stored[len(stored) - 1].as_py()
        for first, last in _steps(starts):
            self._write_groups(stored[first:last], starts[first : last + 1] - starts[first], ordinals[starts[first] : starts[last]])

    def _write(self, data: bytes) -> int:
        """Write bytes, and return their offset."""
        offset = self.size
        self._sink(data)
        self.size += len(data)
        return offset

    def _write_block(self, body: bytes) -> tuple[int, int]:
        """Write a block, and return its offset and stored size."""
        offset = self._write(pack_block(body, self.options.compression, self.options.level))
        return offset, self.size - offset - 5


def pack_entries(keys: Any, *columns: Any) -> Any:
    """Return entries: the length of a key, the key, and one part of each column.

    All are large_binary arrays.

    >>> from fileindex.sorted_index.varints import encode_varints
    >>> numbers = binaries(*encode_varints(np.array([7, 300])))
    >>> [entry.hex() for entry in pack_entries(pa.array([b"a", b""], pa.large_binary()), numbers).to_pylist()]
    ['016107', '00ac02']
    """
    return join_binaries(lengths_of(keys), keys, *columns)


def pack_extents(extents: Any) -> Any:
    """Return offsets and lengths as binary values: two varints each."""
    numbers, bounds = encode_varints(np.asarray(extents, np.int64).reshape(-1))
    return binaries(numbers, bounds[::2])


def lengths_of(parts: Any) -> Any:
    """Return the lengths of binary values, as varints."""
    return binaries(*encode_varints(np.diff(text_buffers(parts)[0])))


def entry_bytes(entries: Any) -> tuple[UInt8s, Int64s]:
    """Return the bytes of entries, and the bounds of each."""
    bounds, data = text_buffers(entries)
    return data[int(bounds[0]) : int(bounds[-1])], bounds - bounds[0]


def _ascend(ordinals: UInt32s, starts: Int64s) -> bool:
    """Return whether the ordinals ascend inside each group, and no group is empty."""
    ascends = np.ones(len(ordinals) + 1, np.bool_)
    ascends[1:-1] = ordinals[1:] > ordinals[:-1]
    ascends[starts] = True
    return bool(ascends.all()) and bool((np.diff(starts) > 0).all())


def _steps(starts: Int64s) -> Iterator[tuple[int, int]]:
    """Yield ranges of values with a limited number of rows each, or one value."""
    first, count = 0, len(starts) - 1
    while first < count:
        last = int(np.searchsorted(starts, starts[first] + thresholds.posting_rows, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield first, last
        first = last
