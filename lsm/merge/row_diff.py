"""Changelog rows from two states of some keys.

Same rows as Paimon's lookup and full-compaction producers:

========  ==========  =============================
before    after       changes
========  ==========  =============================
nothing   a row       ``+I`` of the row
a row     nothing     ``-D`` of the old row
a row     a row       ``-U`` of the old, ``+U`` of the new row; nothing if they are equal and equality counts
========  ==========  =============================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int64s, Mask
from lsm.arrow.equality import equal_rows
from lsm.keys.encoding import WordColumn
from lsm.keys.sort import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, VALUE_KIND, SortKey, sort_rows


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
    done = sort_rows(key.key_words(rows), [WordColumn.of(pa.array(side))], length=rows.num_rows, runs=True)
    sizes = np.diff(np.append(done.starts, rows.num_rows))
    kinds = np.where(side[done.order] == 0, DELETE, INSERT).astype(np.int8)
    first = done.starts[sizes == 2]
    kinds[first], kinds[first + 1] = UPDATE_BEFORE, UPDATE_AFTER
    kept = np.ones(rows.num_rows, np.bool_)
    if compared is not None and len(first):
        same = first[_equal(rows, done.order, first, compared)]
        kept[same] = kept[same + 1] = False
    found = rows.take(pa.array(done.order[kept]))
    return found.set_column(found.schema.get_field_index(VALUE_KIND), VALUE_KIND, pa.array(kinds[kept]))


def _equal(rows: Any, order: Int64s, first: Int64s, compared: Sequence[str]) -> Mask:
    old, new = (rows.select(compared).take(pa.array(order[at])).combine_chunks() for at in (first, first + 1))
    return equal_rows(old, new, compared)


__all__ = ["row_diff"]
