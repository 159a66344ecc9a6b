"""Index keys in stored form.

All distinct values of a column are converted together, to big-endian numbers or length-prefixed UTF-8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.keys.fixed import convert_keys, key_dtype
from fileindex.keys.hashing import text_buffers
from fileindex.keys.text_sort import common_length
from sparkexpr.values.column_type import STRINGS, ColumnType

_Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class KeyEntries:
    """Consecutive index entries.

    ``data[bounds[i]:bounds[i + 1]]`` is entry ``i`` and begins with its key.
    """

    def __init__(self, data: memoryview, bounds: _Ints, numbers: int) -> None:
        self.data = data
        self.bounds = bounds
        self._numbers_bytes = 4 * numbers

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def key(self, entry: int) -> memoryview:
        """Return the key of an entry, in stored form."""
        return self.data[int(self.bounds[entry]) : int(self.bounds[entry + 1]) - self._numbers_bytes]


def key_entries(keys: Any, column_type: ColumnType, numbers: Sequence[_Ints] = ()) -> KeyEntries:
    """Return entries of each key followed by its numbers.

    Args:
        keys: Sortable numbers (``keys.to_keys``) or a large_string array.
        column_type: Type of the column.
        numbers: Columns of 32-bit numbers.

    >>> key_entries(np.array([1, -1]), ColumnType("SMALLINT"), [np.array([7, 8])]).data.hex(" ", 2)
    '0001 0000 0007 ffff 0000 0008'
    """
    if column_type.kind in STRINGS:
        return _text_entries(keys, numbers)
    record = np.dtype([("key", key_dtype(column_type)), *((f"n{index}", ">i4") for index in range(len(numbers)))])
    table = np.empty(len(keys), dtype=record)
    table["key"] = convert_keys(keys, column_type)
    return _with_numbers(table, numbers)


def _text_entries(texts: Any, numbers: Sequence[_Ints]) -> KeyEntries:
    """Return entries of texts of different lengths."""
    if not len(texts):
        return KeyEntries(memoryview(b""), np.zeros(1, dtype=np.int64), len(numbers))
    offsets, data = text_buffers(texts)
    width = common_length(offsets)
    if width:
        return _equal_texts(data[offsets[0] : offsets[-1]], width, numbers)
    prefixes = _fixed_binary(np.diff(offsets).astype(">i4"))
    suffixes = [_fixed_binary(np.stack(numbers, axis=1).astype(">i4"))] if numbers else []
    # Arrow joins length, text and numbers of each entry, so all entries are in one buffer.
    joined = pc.binary_join_element_wise(prefixes, texts.cast(pa.large_binary()), *suffixes, pa.scalar(b"", pa.large_binary()))
    bounds, data = text_buffers(joined)
    return KeyEntries(memoryview(data.data)[int(bounds[0]) : int(bounds[-1])], bounds - bounds[0], len(numbers))


def _equal_texts(data: np.ndarray[Any, np.dtype[np.uint8]], width: int, numbers: Sequence[_Ints]) -> KeyEntries:
    record = np.dtype([("length", ">i4"), ("text", np.void, width), *((f"n{index}", ">i4") for index in range(len(numbers)))])
    table = np.empty(len(data) // width, dtype=record)
    table["length"] = width
    table["text"] = np.ascontiguousarray(data).view(np.dtype((np.void, width)))
    return _with_numbers(table, numbers)


def _with_numbers(table: np.ndarray[Any, Any], numbers: Sequence[_Ints]) -> KeyEntries:
    for index, column in enumerate(numbers):
        table[f"n{index}"] = column
    return KeyEntries(memoryview(table.view(np.uint8).data), np.arange(len(table) + 1) * table.itemsize, len(numbers))


def _fixed_binary(table: np.ndarray[Any, Any]) -> Any:
    """Return the rows of a contiguous table as binary values."""
    width = table.nbytes // len(table)
    offsets = np.arange(len(table) + 1, dtype=np.int64) * width
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(table), [None, pa.py_buffer(offsets), pa.py_buffer(table.tobytes())])
