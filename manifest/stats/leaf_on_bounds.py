"""Whether values between two bounds can satisfy a leaf of a predicate: of one file, or of many at once.

Bounds are plain values or numpy arrays of them; ``place`` brings a literal into the form in which they compare. The answer is
a bool or a mask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fileindex.base.column_type import Plain
from fileindex.predicate.tree import Compare, In, Op


def leaf_may_match(leaf: Compare | In, low: Any, high: Any, place: Callable[[Plain], Any]) -> Any:
    """False only where no value from ``low`` to ``high`` compares as the leaf asks.

    >>> from fileindex.predicate.tree import ColumnRef
    >>> leaf_may_match(In(ColumnRef("a"), (3, 7)), 4, 8, int), leaf_may_match(Compare(ColumnRef("a"), Op.NE, 4), 4, 4, int)
    (True, False)
    """
    if isinstance(leaf, Compare):
        return _may_compare(leaf.op, low, high, place(leaf.value))
    found: Any = leaf.negated
    for value in leaf.values:
        if leaf.negated:
            found = found & _may_compare(Op.NE, low, high, place(value))
        else:
            found = found | _may_compare(Op.EQ, low, high, place(value))
        if found is (not leaf.negated):  # decided for a single file
            break
    return found


def _may_compare(op: Op, low: Any, high: Any, value: Any) -> Any:
    match op:
        case Op.EQ:
            return (low <= value) & (value <= high)
        case Op.NE:
            return (low != value) | (high != value)
        case Op.LT:
            return low < value
        case Op.LE:
            return low <= value
        case Op.GT:
            return high > value
        case Op.GE:
            return high >= value


def prefix_may_match(prefix: Any, low: Any, high: Any, *, negated: bool) -> bool:
    """Whether a text, or its UTF-8 bytes, from ``low`` to ``high`` can start with ``prefix``; ``negated``: can start otherwise."""
    if negated:
        return not (low.startswith(prefix) and high.startswith(prefix))
    size = len(prefix)
    return bool(low[:size] <= prefix <= high[:size])


__all__ = ["leaf_may_match", "prefix_may_match"]
