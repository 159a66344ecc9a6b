"""Conditions that are weaker than another one, and what they lost.

A file, a key or another engine often answers only a part of a filter. A projection is that part, and says whether it is all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from fileindex.predicate.tree import (
    FALSE,
    TRUE,
    And,
    ComputedPredicate,
    Leaf,
    Or,
    Predicate,
    all_of,
    any_of,
    columns_of,
    conjuncts,
)
from fileindex.rowset.result import FileIndexResult, RowSet


@dataclass(frozen=True, slots=True)
class Projection:
    """An inclusive projection of a condition.

    Each row that matches the condition matches ``inclusive``. With ``exact`` no other row does, so ``inclusive`` may replace the condition.
    """

    inclusive: Predicate
    exact: bool

    def answer(self, result: FileIndexResult) -> FileIndexResult:
        """Return an index's answer to ``inclusive`` as one to the condition.

        >>> from pyroaring import BitMap
        >>> Projection(TRUE, exact=False).answer(RowSet(BitMap([1]), exact=True))
        RowSet(rows=BitMap([1]), exact=False)
        """
        return RowSet(result.rows) if isinstance(result, RowSet) and not self.exact else result


UNKNOWN = Projection(TRUE, exact=False)
"""Projection of a condition of which nothing is known."""


def project(predicate: Predicate, leaf: Callable[[Leaf], Projection], computed: Callable[[ComputedPredicate], Projection]) -> Projection:
    """Return the projection of a tree whose ends are projected.

    >>> from fileindex.predicate.tree import ColumnRef, IsNull
    >>> a, b = IsNull(ColumnRef("a")), IsNull(ColumnRef("b"))
    >>> known = lambda leaf: Projection(leaf, exact=True) if leaf == a else UNKNOWN
    >>> project(And((a, b)), known, lambda _: UNKNOWN) == Projection(a, exact=False)
    True
    """
    match predicate:
        case And(children) | Or(children):
            parts = [project(child, leaf, computed) for child in children]
            combine = all_of if isinstance(predicate, And) else any_of
            inclusive = combine(*(part.inclusive for part in parts))
            # No row matches FALSE, whatever the other parts lost.
            return Projection(inclusive, exact=inclusive == FALSE or all(part.exact for part in parts))
        case ComputedPredicate():
            return computed(predicate)
        case _:
            return leaf(predicate)


def only_columns(predicate: Predicate | None, columns: Collection[str]) -> Projection:
    """Return the conjuncts that use only ``columns``.

    >>> from fileindex.predicate.tree import ColumnRef, IsNull
    >>> a, b = IsNull(ColumnRef("a")), IsNull(ColumnRef("b"))
    >>> only_columns(And((a, b)), {"a"}) == Projection(a, exact=False), only_columns(Or((a, b)), {"a"}) == UNKNOWN
    (True, True)
    """
    allowed = set(columns)
    terms = conjuncts(predicate)
    usable_terms = [term for term in terms if allowed.issuperset(columns_of(term))]
    return Projection(all_of(*usable_terms), exact=len(usable_terms) == len(terms))


def without_columns(predicate: Predicate | None, columns: Collection[str]) -> Projection:
    """Return the conjuncts that use none of ``columns``.

    >>> from fileindex.predicate.tree import ColumnRef, IsNull
    >>> a, b = IsNull(ColumnRef("a")), IsNull(ColumnRef("b"))
    >>> without_columns(And((a, b)), {"a"}) == Projection(b, exact=False)
    True
    """
    return only_columns(predicate, set(columns_of(predicate)).difference(columns))
