"""What is left of a filter once minima, maxima and null counts have proved some of its terms true for every row of a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from fileindex.base.column_type import FLOATS, ColumnType
from fileindex.base.thresholds import thresholds
from fileindex.predicate.tree import FALSE, TRUE, In, IsNull, Leaf, Predicate, map_leaves, negate
from manifest.stats.column_stats import BoundsLookup, may_match
from manifest.stats.leaf_on_bounds import values_between


def residual_after_statistics(predicate: Predicate, bounds: BoundsLookup, types: Mapping[str, ColumnType]) -> Predicate:
    """``predicate`` without the leaves that hold for every row within ``bounds``; TRUE if it always holds.

    A leaf always holds where its negation cannot match and no null can make it unknown. Of a long IN list the values beyond the
    bounds go.

    >>> from fileindex.base.column_type import Kind
    >>> from fileindex.predicate.tree import ColumnRef, Compare, Op
    >>> from manifest.stats.column_stats import ColumnBounds
    >>> terms = [Compare(ColumnRef("id"), Op.GT, value) for value in (9, 10)]
    >>> known = ColumnBounds(10, 20, 0, 100)
    >>> [residual_after_statistics(term, lambda _: known, {"id": ColumnType(Kind.INT)}) == TRUE for term in terms]
    [True, False]
    """
    return map_leaves(predicate, lambda leaf: TRUE if _always(leaf, bounds, types) else _shortened(leaf, bounds, types))


def _shortened(leaf: Leaf, bounds: BoundsLookup, types: Mapping[str, ColumnType]) -> Predicate:
    """``leaf``, or of a long IN the values that lie within the bounds, if they are half of them at most."""
    if not isinstance(leaf, In) or len(leaf.values) < thresholds().listed_values or leaf.negated:
        return leaf
    known, column_type = bounds(leaf.column), types.get(leaf.column.name)
    if known is None or known.min is None or known.max is None or column_type is None or column_type.kind in FLOATS:
        return leaf
    values = values_between(leaf.values, known.min, known.max)
    return leaf if 2 * len(values) > len(leaf.values) else replace(leaf, values=values) if values else FALSE


def _always(leaf: Leaf, bounds: BoundsLookup, types: Mapping[str, ColumnType]) -> bool:
    known = bounds(leaf.column)
    column_type = types.get(leaf.column.name)
    if known is not None and known.max is not None and column_type is not None and column_type.kind in FLOATS:
        known = replace(known, max=math.nan)  # some writers leave NaN, the greatest value, out of the maximum
    if known is None or may_match(negate(leaf), lambda _: known, types):
        return False
    return known.null_count == 0 or isinstance(leaf, IsNull)


__all__ = ["residual_after_statistics"]
