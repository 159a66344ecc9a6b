"""Merge-on-read without sorting rows.

For engines whose result is one of the versions. The winners are found by keys alone; then each run is filtered.
Every row is copied at most once. Batches of the largest run are not copied where nothing is overwritten.
If the oldest run is the largest, its keys are not sorted: the keys of newer runs are looked up in it.
Rows are in order of runs, not of keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.row_kind import retracts
from lsm.arrow.text_form import plain_texts
from lsm.keys.encoding import fixed_words, is_variable, one_array
from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND, Sorted, SortKey
from lsm.merge.merge_iterator import align_versions, sort_versions
from sparkexpr.values.arrays import Int64s, Mask, UInt64s, arrow_array

_BITS = 64


class VersionChooser(Protocol):
    """Part of ``MergeFunction`` for engines that choose a version."""

    @property
    def newest_wins(self) -> bool:
        """Whether a version survives only if no newer one exists."""

    def winners(self, kinds: Any, sorted_rows: Sorted) -> Int64s:
        """Return the positions of the surviving rows."""


def selection_vectors(runs: Sequence[Iterator[Any]], key: SortKey, fold: VersionChooser) -> Iterator[Any]:
    """Yield the rows chosen by ``fold``, without retracts.

    Args:
        runs: As for ``merge_runs``. Texts may be dictionary arrays.
        key: Key and user sequence columns, by name.
        fold: Chooses a version of every key.

    Yields:
        Non-empty tables, whose texts may be dictionary arrays.

    >>> def run(ids, sequence):
    ...     n = len(ids)
    ...     yield pa.table({"id": ids, "_SEQUENCE_NUMBER": [sequence] * n, "_VALUE_KIND": pa.array([0] * n, pa.int8())})
    >>> from lsm.merge.function import Deduplicate
    >>> rows = pa.concat_tables(selection_vectors([run([1, 3, 4], 1), run([2, 3], 2)], SortKey(("id",)), Deduplicate()))
    >>> sorted(zip(rows["id"].to_pylist(), rows["_SEQUENCE_NUMBER"].to_pylist()))
    [(1, 1), (2, 2), (3, 2), (4, 1)]
    """
    names = list(dict.fromkeys([*key.columns, *key.sequence_fields, SEQUENCE_NUMBER, VALUE_KIND]))
    for tables, single in align_versions(runs, key):
        if single == len(tables) == 1:
            masks = [~retracts(tables[0].column(VALUE_KIND))]
        else:
            masks = _choose(tables, names, key, fold, first_is_run=single > 0)
        largest = max(range(len(tables)), key=lambda index: int(tables[index].num_rows))
        rows, mask = tables.pop(largest), masks.pop(largest)
        if mask.any():
            yield _filter(rows, mask)
        if any(mask.any() for mask in masks):  # small tables: one combined copy is faster
            rows = tables[0] if len(tables) == 1 else pa.concat_tables([plain_texts(table) for table in tables]).combine_chunks()
            yield _filter(rows, np.concatenate(masks))


def _choose(tables: Sequence[Any], names: Sequence[str], key: SortKey, fold: VersionChooser, *, first_is_run: bool) -> list[Mask]:
    """Return a mask of the surviving rows of each table.

    With ``first_is_run`` the first table has each key once.
    """
    if first_is_run and len(tables) > 1 and fold.newest_wins and not key.sequence_fields and _is_base(tables):
        codes = pack_keys([[one_array(table.column(name)) for name in key.columns] for table in tables])
        if codes is not None:
            return [_not_overwritten(tables[0], codes), *_choose_sorted(tables[1:], names, key, fold)]
    return _choose_sorted(tables, names, key, fold)


def _choose_sorted(tables: Sequence[Any], names: Sequence[str], key: SortKey, fold: VersionChooser) -> list[Mask]:
    rows = pa.concat_tables([plain_texts(table.select(names)) for table in tables]).combine_chunks()
    kinds = rows.column(VALUE_KIND)
    mask = np.zeros(rows.num_rows, np.bool_)
    mask[fold.winners(kinds, sort_versions(rows, key))] = True
    mask &= ~retracts(kinds)
    return np.split(mask, np.cumsum([table.num_rows for table in tables])[:-1])


def _is_base(tables: Sequence[Any]) -> bool:
    """Return whether the first table is the largest and oldest.

    All its rows must be older than the rows of the other tables.
    """
    first, *newer_tables = tables
    if first.num_rows < max(table.num_rows for table in newer_tables):
        return False
    newest = pc.max(first.column(SEQUENCE_NUMBER)).as_py()
    return all(newest < pc.min(table.column(SEQUENCE_NUMBER)).as_py() for table in newer_tables)


def _not_overwritten(base: Any, codes: Sequence[UInt64s]) -> Mask:
    """Return a mask of base rows without a newer version.

    Retracts are excluded. ``codes`` are the ascending keys of all tables, base first.
    """
    mask = ~retracts(base.column(VALUE_KIND))
    base_codes = codes[0]
    for code in codes[1:]:
        positions = np.minimum(np.searchsorted(base_codes, code), len(base_codes) - 1)
        mask[positions[base_codes[positions] == code]] = False
    return mask


def _filter(table: Any, mask: Mask) -> Any:
    return table if mask.all() else table.filter(arrow_array(mask))


def pack_keys(tables: Sequence[Sequence[Any]]) -> list[UInt64s] | None:
    """Pack the keys of several tables to comparable numbers.

    Each table is given by the arrays of its key columns. Numbers of all tables compare like the keys. None: a column has nulls or
    variable width, or the values do not fit 64 bits.

    >>> import pyarrow as pa
    >>> [codes.tolist() for codes in pack_keys([[pa.array([7, 9]), pa.array([2, 1])], [pa.array([8]), pa.array([1])]])]
    [[1, 4], [2]]
    """
    if any(is_variable(array.type) or array.null_count or not len(array) for arrays in tables for array in arrays):
        return None
    packed = [np.zeros(len(arrays[0]), np.uint64) for arrays in tables]
    bits = 0
    for columns in zip(*tables, strict=True):
        for words in zip(*map(fixed_words, columns), strict=True):
            low, high = min([int(word.min()) for word in words]), max([int(word.max()) for word in words])
            width = (high - low).bit_length()
            bits += width
            if bits > _BITS:
                return None
            for code, word in zip(packed, words, strict=True):
                _append(code, word, low, width)
    return packed


def _append(code: UInt64s, word: UInt64s, low: int, width: int) -> None:
    """Shift the codes in place, and append ``word - low``."""
    if not width:
        return
    if width < _BITS:
        np.left_shift(code, np.uint64(width), out=code)
    np.bitwise_or(code, word - np.uint64(low), out=code)
