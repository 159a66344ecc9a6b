"""The rows of a column by value: what the exact indexes (bitmap, bsi, range-bitmap) of one column are all made from.

Batches are appended as they are written; at the end one sort brings equal values together. Several indexes on a column
share this work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from fileindex.column_type import STRINGS, ColumnType
from fileindex.keys import Keys, to_keys
from fileindex.roaring import Rows
from fileindex.text_rank import rank_texts

_Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class GroupedColumn:
    """A column's rows grouped by value.

    ``keys`` are the distinct non-null values ascending: sortable numbers of fixed-width types (``keys.to_keys``), a
    large_string array of texts. Group ``i`` is ``rows[starts[i]:starts[i + 1]]``, ascending; ``starts`` has one element more than ``keys``.
    """

    row_count: int
    null_rows: Rows
    keys: Any
    starts: _Longs
    rows: Rows


class ColumnRows:
    """Collects one column of a file, batch after batch."""

    def __init__(self, column_type: ColumnType) -> None:
        self._type = column_type
        self._chunks: list[Any] = []
        self._nulls: list[Rows] = []
        self._overflow = ""
        self._repetitive = True
        self.row_count = 0

    def append(self, values: Any) -> Any:
        """Take the next rows, an array in physical form (texts: or dictionary encoded).

        Texts are kept as a dictionary and codes as long as that is the smaller form.

        Returns:
            Every non-null value at least once, enough for an index that only hashes values.
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
            return values
        if self._repetitive or pa.types.is_dictionary(values.type):
            encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
            texts = encoded.dictionary.cast(pa.large_string())
            self._repetitive = 2 * len(texts) <= len(values)
            self._chunks.append((texts, encoded.indices.drop_null().to_numpy()))
            return texts
        texts = values.drop_null().cast(pa.large_string())
        self._chunks.append((texts, None))
        return texts

    def grouped(self) -> GroupedColumn:
        """All appended rows grouped by value; raises OverflowError if one of the values has no key of 64 bits."""
        if self._overflow:
            raise OverflowError(self._overflow)
        nulls = np.concatenate(self._nulls) if self._nulls else np.zeros(0, dtype=np.uint32)
        if self._type.kind in STRINGS:
            texts, ranks = _rank_rows(self._chunks)
            used, starts, rows = group_rows(ranks)
            keys = texts.take(pa.array(used))
        else:
            keys, starts, rows = group_rows(np.concatenate(self._chunks) if self._chunks else np.zeros(0, dtype=np.int64))
        if len(nulls):
            valid = np.ones(self.row_count, dtype=bool)
            valid[nulls] = False
            rows = np.flatnonzero(valid).astype(np.uint32)[rows]
        return GroupedColumn(self.row_count, nulls, keys, starts, rows)


def group_rows(keys: Keys) -> tuple[Keys, _Longs, Rows]:
    """Distinct keys ascending, where each one's group starts, and the positions of ``keys`` in group order.

    Key and position are packed into one word where they fit, because sorting words is many times faster than a stable argsort.

    >>> [part.tolist() for part in group_rows(np.array([7, -1, 7]))]
    [[-1, 7], [0, 1, 3], [1, 0, 2]]
    """
    count = len(keys)
    if count == 0:
        return keys, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint32)
    least = int(keys.min())
    position_bits = count.bit_length()
    if (int(keys.max()) - least).bit_length() + position_bits <= 64:
        words = (keys - least).astype(np.uint64)
    else:
        order = np.argsort(keys)
        ranks = np.zeros(count, dtype=np.uint64)
        ranks[order[1:]] = np.cumsum(np.diff(keys[order]) != 0)
        words = ranks
    packed = words << np.uint64(position_bits)
    packed |= np.arange(count, dtype=np.uint64)
    packed.sort()
    positions = (packed & np.uint64(2**position_bits - 1)).astype(np.uint32)
    packed >>= np.uint64(position_bits)
    opens = np.concatenate([[0], np.flatnonzero(np.diff(packed)) + 1])
    return keys[positions[opens]], np.append(opens, count), positions


def _rank_rows(chunks: list[tuple[Any, Any]]) -> tuple[Any, Keys]:
    """Distinct texts ascending, and for every non-null row the number of its text in them.

    A chunk is a text per row, or its distinct texts and the row's codes.
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
