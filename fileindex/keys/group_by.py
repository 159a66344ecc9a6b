"""Rows of a column grouped by value.

All exact indexes (bitmap, bsi, range-bitmap) of a column are built from it. Batches are appended as they are written.
At the end equal values are grouped, once for all indexes of the column. Each index triggers only the work that it needs:
bsi takes the values in file order, range-bitmap a code for each, bitmap the groups.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from fileindex.keys.fixed import to_keys
from fileindex.keys.text_sort import rank_texts, take_texts
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, UInt32s
from sparkexpr.values.column_type import STRINGS, ColumnType

_Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_Codes: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]


class GroupedColumn:
    """Rows of a column by value.

    Args:
        row_count: Rows of the file.
        null_rows: Rows without a value, ascending.
        values: Values of the other rows, in file order: sortable numbers of fixed-width types (``keys.to_keys``), or positions in ``texts``.
        texts: Ascending texts, used or not. None for fixed-width types.
    """

    def __init__(self, row_count: int, null_rows: UInt32s, values: Int64s, texts: Any = None) -> None:
        self.row_count = row_count
        self.null_rows = null_rows
        self.values = values
        self._texts = texts

    @cached_property
    def keys(self) -> Any:
        """The distinct values, ascending.

        Sortable numbers, or a large_string array of texts.
        """
        if self._texts is None:
            return self._distinct
        return self._texts if len(self._distinct) == len(self._texts) else take_texts(self._texts, self._distinct)

    @cached_property
    def codes(self) -> _Codes:
        """Positions in ``keys`` of all non-null rows, in file order."""
        if self._table is not None:
            return self._table[1]
        _, starts, positions = self._groups
        codes = np.empty(len(positions), dtype=np.uint32)
        in_order = np.zeros(len(positions), dtype=np.uint32)
        in_order[starts[1:-1]] = 1
        codes[positions.astype(np.intp)] = np.cumsum(in_order, out=in_order)  # NumPy converts other indices more slowly
        return codes

    @property
    def starts(self) -> _Longs:
        """Start of each value's rows in ``rows``.

        One element more than ``keys``.
        """
        return self._groups[1]

    @cached_property
    def rows(self) -> UInt32s:
        """Row numbers in the order of ``keys``.

        They ascend within one key.
        """
        positions = self._groups[2]
        return np.flatnonzero(self.present).astype(np.uint32)[positions] if len(self.null_rows) else positions

    @cached_property
    def present(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Mask of the file's non-null rows."""
        present = np.ones(self.row_count, dtype=bool)
        present[self.null_rows] = False
        return present

    def expand(self, values: Any) -> Any:
        """Expand an array of the non-null rows to all rows.

        Nulls become zero.
        """
        if not len(self.null_rows):
            return values
        expanded = np.zeros(self.row_count, dtype=values.dtype)
        expanded[self.present] = values
        return expanded

    @property
    def _distinct(self) -> Int64s:
        return self._groups[0] if self._table is None else self._table[0]

    @cached_property
    def _table(self) -> tuple[Int64s, _Codes, _Longs] | None:
        """Distinct values, codes and starts, by counting in a table.

        The table has an element for each possible value. None if these are too many.
        """
        if not len(self.values):
            return None
        least, greatest = (int(self.values.min()), int(self.values.max())) if self._texts is None else (0, len(self._texts) - 1)
        size = greatest - least + 1
        if size > min(thresholds.group_table, len(self.values) + 1024):
            return None
        slots = self.values - least if least else self.values
        counts = np.bincount(slots, minlength=size)
        used = counts > 0
        codes = slots.astype(np.uint32) if used.all() else (np.cumsum(used, dtype=np.uint32) - np.uint32(1))[slots]
        return np.flatnonzero(used) + least, codes, np.concatenate([[0], np.cumsum(counts[used])])

    @cached_property
    def _groups(self) -> tuple[Int64s, _Longs, UInt32s]:
        if self._table is None:
            return group_rows(self.values)
        distinct, codes, starts = self._table
        if len(distinct) <= 1 << 16:  # numpy sorts narrow integers by their digits
            narrow = codes.astype(np.uint8 if len(distinct) <= 1 << 8 else np.uint16)
            return distinct, starts, np.argsort(narrow, kind="stable").astype(np.uint32)
        return distinct, starts, _sorted_positions(codes.astype(np.uint64))


class ColumnRows:
    """Collector of one column of a file, batch by batch."""

    def __init__(self, column_type: ColumnType) -> None:
        self._type = column_type
        self._chunks: list[Any] = []
        self._nulls: list[UInt32s] = []
        self._overflow = ""
        self._repetitive = True
        self.row_count = 0

    def append(self, values: Any) -> None:
        """Add the next rows.

        ``values`` is an array in physical form. Texts may be dictionary encoded.
        """
        if values.null_count:
            missing = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
            self._nulls.append((missing + self.row_count).astype(np.uint32))
        self.row_count += len(values)
        if self._type.kind not in STRINGS:
            try:
                self._chunks.append(to_keys(values, self._type))
            except OverflowError as error:
                self._overflow = str(error)
        # Texts are kept as a dictionary and codes while that is smaller.
        elif self._repetitive or pa.types.is_dictionary(values.type):
            encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
            texts = encoded.dictionary.cast(pa.large_string())
            self._repetitive = 2 * len(texts) <= len(values)
            self._chunks.append((texts, encoded.indices.drop_null().to_numpy()))
        else:
            self._chunks.append((values.drop_null().cast(pa.large_string()), None))

    def group(self) -> GroupedColumn:
        """Return all appended rows, grouped.

        Call it once: it releases the collected rows. Raises OverflowError if a value has no key of 64 bits.
        """
        if self._overflow:
            raise OverflowError(self._overflow)
        nulls = np.concatenate(self._nulls) if self._nulls else np.zeros(0, dtype=np.uint32)
        chunks, self._chunks = self._chunks, []
        if self._type.kind in STRINGS:
            texts, ranks = _rank_rows(chunks)
            return GroupedColumn(self.row_count, nulls, ranks, texts)
        return GroupedColumn(self.row_count, nulls, np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64))


def group_rows(keys: Any) -> tuple[Any, _Longs, UInt32s]:
    """Return distinct keys, group starts, and positions in group order.

    The keys ascend.

    >>> [part.tolist() for part in group_rows(np.array([7, -1, 7]))]
    [[-1, 7], [0, 1, 3], [1, 0, 2]]
    """
    count = len(keys)
    if count == 0:
        return keys, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint32)
    least, greatest = int(keys.min()), int(keys.max())
    position_bits = count.bit_length()
    # Pack key and position into one word where they fit: sorting words is many times faster than a stable argsort.
    is_packed = (greatest - least).bit_length() + position_bits <= 64
    if is_packed:
        words = np.subtract(keys, least, dtype=np.int64).view(np.uint64)
    else:
        order = np.argsort(keys)
        words = np.zeros(count, dtype=np.uint64)
        words[order[1:]] = np.cumsum(np.diff(keys[order]) != 0)
    positions = _sorted_positions(words)
    words >>= np.uint64(position_bits)
    opens = np.flatnonzero(words[1:] != words[:-1]) + 1
    starts = np.concatenate([[0], opens, [count]])
    firsts = starts[:-1]
    distinct = words[firsts].view(np.int64) + least if is_packed else keys[positions[firsts]]
    return distinct, starts, positions


def _sorted_positions(words: Any) -> UInt32s:
    """Return positions in the order of the words.

    Modifies ``words``: they become the sorted words with their positions. Both must fit into 64 bits.
    """
    bits = len(words).bit_length()
    words <<= np.uint64(bits)
    words |= np.arange(len(words), dtype=np.uint64)
    words.sort()
    positions: UInt32s = words.astype(np.uint32)  # the lower half
    positions &= np.uint32(2**bits - 1)
    return positions


def _rank_rows(chunks: list[tuple[Any, Any]]) -> tuple[Any, Int64s]:
    """Return distinct texts, and each non-null row's position among them.

    The texts ascend. A chunk is a text per row, or its distinct texts and the row's codes.
    """
    if not chunks:
        return pa.array([], pa.large_string()), np.zeros(0, dtype=np.int64)
    distinct, ranks = rank_texts(pa.concat_arrays([texts for texts, _ in chunks]))
    ends = np.cumsum([len(texts) for texts, _ in chunks])
    rows = []
    for end, (texts, codes) in zip(ends.tolist(), chunks, strict=True):
        part = ranks[end - len(texts) : end]
        rows.append(part if codes is None else part[codes])
    return distinct, np.concatenate(rows)
