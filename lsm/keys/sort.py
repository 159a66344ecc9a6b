"""Stable sorts of rows by key, user sequence and arrival.

Sorts packed uint64 words instead of comparing values. Leading words are packed, by the range of their values, into one uint64. The
row's position is packed too, so a plain sort is stable and needs no index array. Rows tied in 64 bits are refined word by word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lsm.keys.encoding import WordColumn, WordOf
from sparkexpr.values.arrays import Int64s, Mask, UInt64s

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema

SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
VALUE_KIND = "_VALUE_KIND"
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class SortKey:
    """Order of rows in a bucket: key columns, then ``sequence.field``.

    Sorted or merged tables must have these columns.
    """

    columns: tuple[str, ...]
    sequence_fields: tuple[str, ...] = ()
    descending: bool = False

    @classmethod
    def of(cls, schema: TableSchema) -> SortKey:
        """Return the order of rows in the buckets of a table."""
        return cls(schema.trimmed_primary_keys, schema.core.sequence_field, schema.core.sequence_descending)

    def key_words(self, table: Any) -> list[WordColumn]:
        """Return the words of the key columns."""
        return [WordColumn.of(table.column(name)) for name in self.columns]

    def sequence_words(self, table: Any) -> list[WordColumn]:
        """Return the words of the user sequence columns.

        Nulls are oldest in either direction.
        """
        return [WordColumn.of(table.column(name), descending=self.descending) for name in self.sequence_fields]


@dataclass(frozen=True, slots=True)
class Sorted:
    """A permutation of rows, grouped by key.

    ``order[i]`` is the row at place ``i``. ``starts`` are the places where a new key begins, ascending.
    """

    order: Int64s
    starts: Int64s

    @property
    def last(self) -> Int64s:
        """Last row of each key: the newest version."""
        ends = np.empty(len(self.starts), np.int64)
        ends[:-1] = self.starts[1:] - 1
        ends[-1:] = len(self.order) - 1
        last_rows: Int64s = self.order[ends]
        return last_rows


def sort_rows(keys: Sequence[WordColumn], ties: Sequence[WordColumn] = (), *, length: int | None = None, runs: bool = False) -> Sorted:
    """Sort rows by ``keys``, then ``ties``, then position.

    ``runs`` means that the input is a few sorted runs. Costs one uint64 sort if the keys' value ranges and the position fit into 64 bits.
    Otherwise rows with equal leading bits are refined.

    >>> import pyarrow as pa
    >>> done = sort_rows([WordColumn.of(pa.array(["b", "a", "b"]))])
    >>> done.order.tolist(), done.starts.tolist()
    ([1, 0, 2], [0, 1])
    """
    rows = length if length is not None else (keys[0].length if keys else 0)
    if rows == 0:
        return Sorted(np.empty(0, np.int64), np.empty(0, np.int64))
    pending: Iterator[WordOf] = (word for column in keys for word in column.words)
    code, bits, overflow = _pack(pending, rows)
    order, is_start, exact = _argsort(code, bits, runs=runs)
    rest: list[WordOf] = [] if exact else [lambda subset: code if subset is None else code[subset]]
    if overflow is not None:
        rest.append(overflow)
    for word in _chain(rest, pending):
        if not _refine(order, is_start, word):
            break
    fine = is_start.copy()
    for column in ties:
        for word in column.words:
            if not _refine(order, fine, word):
                break
    return Sorted(order, np.flatnonzero(is_start))


def _chain(first: list[WordOf], then: Iterator[WordOf]) -> Iterator[WordOf]:
    yield from first
    yield from then


def rough_order(keys: Sequence[WordColumn]) -> Int64s:
    """Return an approximate, stable key order.

    Uses the leading bits of the keys that sort at once.

    >>> import pyarrow as pa
    >>> rough_order([WordColumn.of(pa.array([3, 1, 2]))]).tolist()
    [1, 2, 0]
    """
    # Rows that are gathered later in exact order get close together, for the processor's caches.
    code, bits, _ = _pack((word for column in keys for word in column.words), keys[0].length)
    return _argsort(code, bits, runs=False)[0]


def _pack(pending: Iterator[WordOf], rows: int) -> tuple[UInt64s, int, WordOf | None]:
    """Pack leading words, the last one partly, into 64 bits.

    Returns the codes, the number of bits used, and the word that was packed in part.
    """
    code, bits = np.zeros(rows, np.uint64), 0
    for word in pending:
        values = word(None)
        low, high = values.min(), values.max()
        width = (int(high) - int(low)).bit_length()
        if width == 0:
            continue
        if bits == 0:
            code = values - low
        elif bits + width > 64:
            if bits < 64:
                code = (code << np.uint64(64 - bits)) | ((values - low) >> np.uint64(width - (64 - bits)))
            return code, 64, word
        else:
            code = (code << np.uint64(width)) | (values - low)
        bits += width
    return code, bits, None


def _argsort(code: UInt64s, bits: int, *, runs: bool) -> tuple[Int64s, Mask, bool]:
    """Return the stable order of ``code``, its changes, and exactness.

    Exact means that all bits were compared.
    """
    rows = len(code)
    if runs:  # timsort merges sorted runs without a full sort
        order = np.argsort(code, kind="stable")
        return order, _changes(code[order]), True
    # NumPy sorts values faster than it computes an argsort: the position is in the low bits of the value.
    position_bits = np.uint64(max(1, (rows - 1).bit_length()))
    dropped = np.uint64(max(0, bits + int(position_bits) - 64))
    packed = ((code >> dropped) << position_bits) | np.arange(rows, dtype=np.uint64)
    packed.sort()
    order = (packed & ((np.uint64(1) << position_bits) - np.uint64(1))).view(np.int64)
    return order, _changes(packed >> position_bits), dropped == 0


def _changes(values: UInt64s) -> Mask:
    changed = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed


def _refine(order: Int64s, is_start: Mask, word: WordOf) -> bool:
    """Sort and split tied rows by one more word.

    Works in place. False: no rows are tied.
    """
    next_starts = np.ones(len(is_start), np.bool_)
    next_starts[:-1] = is_start[1:]
    tied = np.flatnonzero(~(is_start & next_starts))
    if not tied.size:
        return False
    rows = order[tied]
    values = word(rows)
    group = np.cumsum(is_start[tied])
    same = group[1:] == group[:-1]
    if bool(np.any(same & (values[1:] < values[:-1]))):
        permutation = np.lexsort((values, group))
        order[tied] = rows[permutation]
        values = values[permutation]
    is_start[tied[1:]] |= same & (values[1:] != values[:-1])
    return True


@dataclass(frozen=True, slots=True)
class SortColumn:
    """One column of an ``ORDER BY``.

    ``nulls_first`` None is Spark's default: nulls first if ascending, last if descending.

    >>> SortColumn("price", ascending=False)
    SortColumn(name='price', ascending=False, nulls_first=False)
    """

    name: str
    ascending: bool = True
    nulls_first: bool | None = None

    def __post_init__(self) -> None:
        if self.nulls_first is None:
            object.__setattr__(self, "nulls_first", self.ascending)
