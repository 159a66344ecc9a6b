"""A set of keys with vectorised lookup."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.predicate.tree import TRUE, ColumnRef, Compare, In, Op, Predicate, all_of
from lsm.keys.encoding import WordColumn, WordOf, is_variable, one_array
from manifest.schema.table_schema import TableSchema
from paimon_base.lazy import cached_property
from sparkexpr.values.arrays import Int64s, Mask, UInt64s
from sparkexpr.values.column_type import FLOATS
from sparkexpr.values.plain_value import plain_array, plain_values

_Form = TypeVar("_Form")


@dataclass(frozen=True, eq=False)
class KeySet:
    """Set of keys, from a table of key columns.

    The columns have no nulls, and the types of the looked-up rows. Keys are equal as in Paimon: every NaN is one key, -0.0 and 0.0 are two, and
    trailing NUL bytes distinguish texts.

    >>> keys = KeySet(pa.table({"a": ["x", "y", "x"], "b": [1, 2, 1]}))
    >>> len(keys), keys.numbers.tolist(), keys.find(pa.table({"b": [2, 2, 1], "a": ["y", "x", "x"]})).tolist()
    (2, [0, 1, 0], [1, -1, 0])
    """

    rows: pa.Table

    def __len__(self) -> int:
        return int(self.numbers.max()) + 1 if len(self.numbers) else 0

    @property
    def names(self) -> list[str]:
        """Key columns."""
        names: list[str] = self.rows.column_names
        return names

    @property
    def numbers(self) -> Int64s:
        """Key number of each of ``rows``, from 0 without gaps.

        Equal keys have equal numbers.
        """
        return self._lookup[1]

    def derive(self, form: Hashable, make: Callable[[pa.Table], _Form]) -> _Form:
        """Return ``make(rows)``, cached under ``form``.

        >>> keys = KeySet(pa.table({"a": [1]}))
        >>> keys.derive("list", pa.Table.to_pylist) is keys.derive("list", pa.Table.to_pylist)
        True
        """
        if form not in self._forms:
            self._forms[form] = make(self.rows)
        derived: _Form = self._forms[form]
        return derived

    @cached_property
    def _forms(self) -> dict[Hashable, Any]:
        return {}

    def find(self, rows: Any) -> Int64s:
        """Return the key number of each row, otherwise -1."""
        key_numbers = np.full(rows.num_rows, -1, np.int64)
        alive, codes = np.arange(rows.num_rows), np.zeros(rows.num_rows, np.int64)
        for word, (values, pairs) in zip(self._words(rows), self._lookup[0], strict=True):
            row_words = word(alive)
            value_index = np.searchsorted(values, row_words)
            value_index[value_index == len(values)] = 0
            pair = codes * len(values) + value_index
            codes = np.searchsorted(pairs, pair)
            codes[codes == len(pairs)] = 0
            is_match = (values[value_index] == row_words) & (pairs[codes] == pair) if len(pairs) else np.zeros(len(alive), np.bool_)
            alive, codes = alive[is_match], codes[is_match]
        key_numbers[alive] = codes
        return key_numbers

    def holds(self, rows: Any) -> Mask:
        """Return which rows have one of the keys."""
        mask: Mask = self.find(rows) >= 0
        return mask

    @cached_property
    def _lookup(self) -> tuple[list[tuple[UInt64s, Int64s]], Int64s]:
        """Lookup steps of each word, and the rows' key numbers.

        A step has the distinct values of the word, and the pairs of the previous code and the value's index.
        """
        steps, codes = [], np.zeros(self.rows.num_rows, np.int64)
        for word in self._words(self.rows):
            values, value_index = np.unique(word(None), return_inverse=True)
            pairs, codes = np.unique(codes * len(values) + value_index, return_inverse=True)
            steps.append((values, pairs))
        return steps, codes

    def _words(self, rows: Any) -> Iterator[WordOf]:
        """Yield the words needed to distinguish the wanted keys.

        For texts the length, then the bytes of the longest wanted key.
        """
        for name, max_words in zip(self.names, self._most_words, strict=True):
            words = WordColumn.of(one_array(rows.column(name))).words
            if max_words is None:
                yield from words
                continue
            yield words[-1]
            yield from (*words[: min(max_words, len(words) - 1)], *[_zeros] * (max_words - len(words) + 1))

    @cached_property
    def _most_words(self) -> Sequence[int | None]:
        """Number of eight-byte words of each text or binary column.

        None for other columns.
        """
        columns = (one_array(column) for column in self.rows.columns)
        return [len(WordColumn.of(column).words) - 1 if is_variable(column.type) else None for column in columns]


def key_filter(keys: KeySet, schema: TableSchema, listed: int) -> Predicate:
    """Return a filter that matches all keys, and possibly others.

    Args:
        keys: At least one key.
        schema: Schema of the table.
        listed: Maximal number of keys in IN lists. More keys are only bounded.
    """
    types = schema.column_types
    columns: dict[str, Any] = {name: plain_array(keys.rows.column(name), types[name]) for name in keys.names}
    if len(keys) <= listed:
        return all_of(*(In(ColumnRef(name), tuple(plain_values(pc.unique(column), types[name]))) for name, column in columns.items()))
    leading = schema.trimmed_primary_keys[0]
    if types[leading].kind in FLOATS:
        return TRUE
    ends = pc.min_max(columns[leading])
    low, high = plain_values(pa.array([ends["min"].as_py(), ends["max"].as_py()], columns[leading].type), types[leading])
    return all_of(Compare(ColumnRef(leading), Op.GE, low), Compare(ColumnRef(leading), Op.LE, high))


def _zeros(rows: Int64s | None) -> UInt64s:
    return np.zeros(0 if rows is None else len(rows), np.uint64)
