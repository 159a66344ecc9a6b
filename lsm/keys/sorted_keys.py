"""Keys as one sortable array, to find them by binary search.

A key is one number, or its words as bytes of a fixed width. Both compare like the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.keys.encoding import WordColumn, WordOf, is_variable, one_array
from manifest.types.data_type import DataType
from sparkexpr.values.arrays import AnyArray, Indices, Int64s, arrow_array, numpy_array
from sparkexpr.values.column_type import BINARIES, FLOATS, STRINGS
from sparkexpr.values.plain_value import plain_array, plain_values

Layout: TypeAlias = tuple[int, ...]
"""Words of each key column. Those of a text or binary column end with its length."""


@dataclass(frozen=True, eq=False)
class SortedKeys:
    """Distinct keys in key order.

    ``columns`` are the arrays of the key columns, without nulls, in the table's types.
    """

    columns: tuple[Any, ...]
    _codes: dict[Layout, AnyArray] = field(default_factory=dict, repr=False)
    _values: dict[int, AnyArray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, columns: Sequence[Any]) -> SortedKeys:
        """Sort keys and drop repeated ones.

        >>> SortedKeys.of([pa.array([7, 5, 7])]).columns[0].to_pylist()
        [5, 7]
        """
        arrays = tuple(map(one_array, columns))
        if len(arrays[0]) < 2:
            return cls(arrays)
        rows = arrow_array(np.unique(key_codes(arrays)[0], return_index=True)[1])
        return cls(tuple(array.take(rows) for array in arrays))

    def __len__(self) -> int:
        return len(self.columns[0])

    def codes(self, layout: Layout) -> AnyArray:
        """Return the keys as codes of a layout, ascending.

        A text that is longer than the layout compares with codes of the layout like its key, and equals none of them.
        """
        codes = self._codes.get(layout)
        if codes is None:
            codes = self._codes[layout] = key_codes(self.columns, layout)[0]
        return codes

    def values(self, position: int, data_type: DataType) -> AnyArray | None:
        """Return the distinct values of a column, ascending.

        They have the form of file bounds.

        None: bounds of its type are not certain.
        """
        if data_type.kind in FLOATS:
            return None
        distinct_values = self._values.get(position)
        if distinct_values is None:
            distinct_values = self._values[position] = _stored(self.columns[position], data_type)
        return distinct_values

    def ends(self, position: int, data_type: DataType) -> AnyArray | None:
        """Return the least and the greatest of ``values``."""
        if data_type.kind in FLOATS or not len(self):
            return None
        column = self.columns[position]
        if position:
            ends = pc.min_max(column)
            return _stored(pa.array([ends["min"], ends["max"]], column.type), data_type)
        return _stored(column.take(pa.array([0, len(column) - 1])), data_type)


def key_codes(columns: Sequence[Any], layout: Layout | None = None) -> tuple[AnyArray, Layout]:
    """Return a code for each row, and their layout.

    Codes of one layout compare like the keys.

    Args:
        columns: Arrays of the key columns, without nulls.
        layout: Layout of the codes. None: the shortest for these keys.

    >>> codes, layout = key_codes([pa.array(["b", "a"]), pa.array([1, 2])])
    >>> layout, codes[1] < codes[0], key_codes([pa.array(["a"]), pa.array([2])], layout)[0][0] == codes[1]
    ((2, 1), True, True)
    """
    words: list[WordOf | None] = []
    counts: list[int] = []
    for position, column in enumerate(columns):
        column_words = WordColumn.of(column).words
        count = counts_of = len(column_words)
        if layout is not None and is_variable(column.type):
            count = layout[position]
            counts_of = min(counts_of, count)
            words += [*column_words[: counts_of - 1], *[None] * (count - counts_of), column_words[-1]]
        else:
            words += column_words
        counts.append(count)
    if len(words) == 1 and words[0] is not None:
        return words[0](None), tuple(counts)
    table: AnyArray = np.zeros((len(columns[0]), len(words)), ">u8")
    for word_index, word in enumerate(words):
        if word is not None:
            table[:, word_index] = word(None)
    return table.view(f"S{8 * len(words)}").ravel(), tuple(counts)


@dataclass(frozen=True, eq=False, slots=True)
class KeyBlock:
    """Keys of some rows of a file, ascending.

    ``rows`` are their positions. None: they are in order.
    """

    codes: AnyArray
    layout: Layout
    rows: Int64s | None

    @classmethod
    def of(cls, columns: Sequence[Any]) -> KeyBlock:
        """Return the keys of rows.

        Rows with a null in a key column are left out.
        """
        rows: Int64s | None = None
        valid = np.ones(len(columns[0]), np.bool_)
        for column in columns:
            if column.null_count:
                valid &= numpy_array(column.is_valid())
        if not valid.all():
            rows = np.flatnonzero(valid)
            columns = [column.take(arrow_array(rows)) for column in columns]
        codes, layout = key_codes(columns)
        if len(codes) > 1 and not bool((codes[:-1] <= codes[1:]).all()):
            order = np.argsort(codes, kind="stable")
            codes, rows = codes[order], order if rows is None else rows[order]
        return cls(codes, layout, rows)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.codes.nbytes + (0 if self.rows is None else self.rows.nbytes)

    def find(self, keys: SortedKeys, key_numbers: Indices) -> tuple[Indices, Int64s]:
        """Return the keys that have a row, and its position.

        ``key_numbers`` are ascending numbers of ``keys``.
        """
        codes = keys.codes(self.layout)
        if len(key_numbers) < len(codes):
            codes = codes[key_numbers]
        if not len(self.codes) or not len(codes):
            return key_numbers[:0], np.zeros(0, np.int64)
        # The fewer are searched in the more.
        if len(self.codes) < len(codes):
            matches, positions = _same(self.codes, codes)[::-1]
        else:
            matches, positions = _same(codes, self.codes)
        return key_numbers[matches], positions if self.rows is None else self.rows[positions]


def _same(fewer: AnyArray, more: AnyArray) -> tuple[Indices, Indices]:
    """Return the positions of equal codes in two ascending arrays."""
    positions = np.searchsorted(more, fewer)
    positions[positions == len(more)] = 0
    matches = np.flatnonzero(more[positions] == fewer)
    return matches, positions[matches]


def _stored(column: Any, data_type: DataType) -> AnyArray:
    array = plain_array(column, data_type.column_type)
    if pa.types.is_integer(array.type):
        numbers = numpy_array(array)
        if bool((numbers[:-1] < numbers[1:]).all()):  # a leading column, which np.unique would sort again
            return numbers
        return np.unique(numbers)
    values: list[Any] = plain_values(array, data_type.column_type)
    if data_type.kind in STRINGS | BINARIES:
        values = [value.encode() if isinstance(value, str) else value for value in values]
    distinct = sorted(set(values))
    stored = np.empty(len(distinct), object)
    stored[:] = distinct
    return stored
