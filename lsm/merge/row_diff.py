"""Changelog rows from two states of some keys.

Same rows as Paimon's lookup and full-compaction producers:

========  ==========  =============================
before    after       changes
========  ==========  =============================
nothing   a row       ``+I`` of the row
a row     nothing     ``-D`` of the old row
a row     a row       ``-U`` of the old, ``+U`` of the new row; nothing if they are equal and equality counts
========  ==========  =============================

Rows are equal if all columns are. Null equals null, NaN equals NaN, 0.0 equals -0.0. The entries of a map may have any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.keys.encoding import WordColumn, one_array
from lsm.keys.sort import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, VALUE_KIND, SortKey, sort_rows
from sparkexpr.values.arrays import Int64s, Mask


def row_diff(before: Any, after: Any, key: SortKey, *, compared: Sequence[str] | None = None) -> Any:
    """Return the changes in key order.

    The result has the columns of ``after``, and the row kinds in ``_VALUE_KIND``.

    Args:
        before: Old rows, each key at most once, in key order. Same columns as ``after``.
        after: New rows, each key at most once, in key order.
        key: Key columns.
        compared: An old and a new row equal in these columns are no change. None: every pair is a change.

    >>> state = lambda ids, values: pa.table({"id": ids, "v": values, "_VALUE_KIND": pa.array([0] * len(ids), pa.int8())})
    >>> found = row_diff(state([1, 2, 3], ["a", "b", "c"]), state([2, 3, 4], ["b", "C", "d"]), SortKey(("id",)), compared=["v"])
    >>> list(zip(found["id"].to_pylist(), found["v"].to_pylist(), found["_VALUE_KIND"].to_pylist()))
    [(1, 'a', 3), (3, 'c', 1), (3, 'C', 2), (4, 'd', 0)]
    """
    rows = pa.concat_tables([before.select(after.schema.names).cast(after.schema), after]).combine_chunks()
    if not rows.num_rows:
        return rows
    side = np.repeat([0, 1], [before.num_rows, after.num_rows])
    sorted_rows = sort_rows(key.key_words(rows), [WordColumn.of(pa.array(side))], length=rows.num_rows, runs=True)
    sizes = np.diff(np.append(sorted_rows.starts, rows.num_rows))
    kinds = np.where(side[sorted_rows.order] == 0, DELETE, INSERT).astype(np.int8)
    first = sorted_rows.starts[sizes == 2]
    kinds[first], kinds[first + 1] = UPDATE_BEFORE, UPDATE_AFTER
    mask = np.ones(rows.num_rows, np.bool_)
    if compared is not None and len(first):
        same = first[_equal(rows, sorted_rows.order, first, compared)]
        mask[same] = mask[same + 1] = False
    changes = rows.take(pa.array(sorted_rows.order[mask]))
    return changes.set_column(changes.schema.get_field_index(VALUE_KIND), VALUE_KIND, pa.array(kinds[mask]))


def _equal(rows: Any, order: Int64s, first: Int64s, compared: Sequence[str]) -> Mask:
    old, new = (rows.select(compared).take(pa.array(order[positions])).combine_chunks() for positions in (first, first + 1))
    return equal_rows(old, new, compared)


def equal_rows(left: Any, right: Any, names: Sequence[str]) -> Mask:
    """Return which rows are equal in the columns ``names``.

    Both tables must have the same types and length.

    >>> one = pa.table({"a": [1, None, 3], "b": [[1, 2], [], None]})
    >>> other = pa.table({"a": [1, None, 4], "b": [[1, 2], [0], None]})
    >>> equal_rows(one, other, ["a"]).tolist(), equal_rows(one, other, ["b"]).tolist()
    ([True, True, False], [True, False, True])
    """
    same = np.ones(left.num_rows, np.bool_)
    for name in names:
        if not same.any():
            break
        same &= equal_values(one_array(left.column(name)), one_array(right.column(name)))
    return same


def equal_values(left: Any, right: Any) -> Mask:
    """Return which values of two arrays are equal."""
    known_left, known_right = (array.is_valid().to_numpy(zero_copy_only=False) for array in (left, right))
    both_valid = known_left & known_right
    same: Mask = known_left == known_right
    if not both_valid.any():
        return same
    if not both_valid.all():
        valid_mask = pa.array(both_valid)
        same[both_valid] = _equal_known(left.filter(valid_mask), right.filter(valid_mask))
        return same
    return _equal_known(left, right)


def _equal_known(left: Any, right: Any) -> Mask:
    """Compare arrays without nulls on the outermost level."""
    kind = left.type
    if pa.types.is_struct(kind):
        same = np.ones(len(left), np.bool_)
        for left_part, right_part in zip(left.flatten(), right.flatten(), strict=True):
            same &= equal_values(left_part, right_part)
        return same
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _equal_lists(left, right)
    mask: Mask = pc.equal(left, right).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(kind):
        mask = mask | (pc.is_nan(left).to_numpy(zero_copy_only=False) & pc.is_nan(right).to_numpy(zero_copy_only=False))
    return mask


def _equal_lists(left: Any, right: Any) -> Mask:
    """Compare lists of equal length by element.

    The entries of maps are sorted by key first.
    """
    lengths = _lengths(left)
    same: Mask = lengths == _lengths(right)
    if not same.all():
        same_length = pa.array(same)
        left, right, lengths = left.filter(same_length), right.filter(same_length), lengths[same]
    if pa.types.is_map(left.type):
        parts = zip(_map_parts(left, lengths), _map_parts(right, lengths), strict=True)
    else:
        parts = zip([left.flatten()], [right.flatten()], strict=True)
    differing = np.zeros(int(lengths.sum()), np.bool_)
    for left_part, right_part in parts:
        differing |= ~equal_values(left_part, right_part)
    before = np.concatenate([[0], np.cumsum(differing)])
    ends = np.cumsum(lengths)
    same[same] = before[ends] == before[ends - lengths]
    return same


def _lengths(lists: Any) -> Int64s:
    if pa.types.is_map(lists.type):
        offsets: Int64s = lists.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        return np.diff(offsets)
    lengths: Int64s = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _map_parts(maps: Any, lengths: Int64s) -> tuple[Any, Any]:
    """Return the keys and values of maps, sorted by key.

    Maps keep their order.
    """
    first = int(maps.offsets[0].as_py()) if len(maps) else 0
    keys, items = (child.slice(first, int(lengths.sum())) for child in (maps.keys, maps.items))
    owner = np.repeat(np.arange(len(maps)), lengths)
    if not len(owner):
        return keys, items
    order = pa.array(sort_rows([WordColumn.of(pa.array(owner)), WordColumn.of(keys)]).order)
    return keys.take(order), items.take(order)
