"""Evaluation of predicate leaves on bounds of files.

Bounds are plain values or numpy arrays of them. ``place`` converts a literal, or an array of floats, to the comparable form. The result is
a bool or a mask. The values of an IN are sorted once and searched.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fileindex.base.arrays import AnyArray
from fileindex.base.column_type import Plain
from fileindex.predicate.tree import Compare, In, Op
from fileindex.predicate.value_set import ValueSet, derived


def leaf_may_match(leaf: Compare | In, low: Any, high: Any, place: Callable[[Any], Any]) -> Any:
    """Return False only where no value between bounds matches.

    >>> from fileindex.predicate.tree import ColumnRef
    >>> leaf_may_match(In(ColumnRef("a"), (3, 7)), 4, 8, int), leaf_may_match(Compare(ColumnRef("a"), Op.NE, 4), 4, 4, int)
    (True, False)
    """
    if isinstance(leaf, Compare):
        return _may_compare(leaf.op, low, high, place(leaf.value))
    begin, end = _inside(leaf.values, low, high, place)
    return (low != high) | (begin >= end) if leaf.negated else begin < end


def values_between(values: tuple[Plain, ...], low: Plain, high: Plain) -> ValueSet:
    """Return the ``values`` from ``low`` to ``high``, sorted.

    Not for floats.

    >>> values_between((9, 3, 7), 3, 8)
    (3, 7)
    """
    begin, end = _inside(values, low, high, identity)
    return ValueSet(_sort(values, identity)[begin:end])


def identity(value: Any) -> Any:
    """Return ``value``: the ``place`` of all types except floats."""
    return value


def _inside(values: tuple[Plain, ...], low: Any, high: Any, place: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return the range of sorted values between ``low`` and ``high``."""
    if isinstance(low, np.ndarray):
        line = derived(values, ("line", place), partial(_line, place))
        return np.searchsorted(line, low, "left"), np.searchsorted(line, high, "right")
    ordered = _sort(values, place)
    return bisect_left(ordered, low), bisect_right(ordered, high)


def _sort(values: tuple[Plain, ...], place: Callable[[Any], Any]) -> list[Any]:
    return derived(values, ("ordered", place), lambda given: sorted(map(place, given)))


def _line(place: Callable[[Any], Any], values: tuple[Plain, ...]) -> AnyArray:
    """Return the converted values as a sorted array."""
    if all(isinstance(value, float) for value in values):
        return np.sort(place(np.array(values, np.float64)))
    placed = [one.item() if isinstance(one, np.ndarray) else one for one in map(place, values)]
    if all(isinstance(one, int) and -(2**63) <= one < 2**63 for one in placed):
        return np.sort(np.array(placed, np.int64))
    found = np.empty(len(placed), object)  # bytes, whose trailing NULs other arrays drop, and wide decimals
    found[:] = placed
    return np.sort(found)


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
    """Return whether a string between bounds can start with ``prefix``.

    Strings may be UTF-8 bytes. ``negated``: whether one can start otherwise.
    """
    if negated:
        return not (low.startswith(prefix) and high.startswith(prefix))
    size = len(prefix)
    return bool(low[:size] <= prefix <= high[:size])


__all__ = ["identity", "leaf_may_match", "prefix_may_match", "values_between"]
