"""LIKE patterns: a prefix or a whole text is what a sorted or indexed column answers; the rest is computed, after its prefix."""

from __future__ import annotations

from fileindex.expression.text import like_parts
from fileindex.predicate.tree import ColumnRef, Op
from pyspark_paimon.filter.ast import All, Comparison, Computation, Condition, GivenValue, Holds, Prefix


def like(column: ColumnRef, pattern: str, escape: str = "\\") -> Condition:
    r"""``column LIKE pattern``.

    Raises ``InvalidFilter`` where the escape character stands before an ordinary one.

    >>> like(ColumnRef("city"), r"100\%%")
    Prefix(column=ColumnRef(name='city', key=None), prefix='100%')
    """
    parts = like_parts(pattern, escape)
    match parts:
        case []:
            return Comparison(column, Op.EQ, "")
        case [str(text)]:
            return Comparison(column, Op.EQ, text)
        case [None]:
            return Prefix(column, "")
        case [str(text), None]:
            return Prefix(column, text)
    found = Holds(Computation("like", (column, GivenValue(pattern), GivenValue(escape))))
    return All((Prefix(column, parts[0]), found)) if isinstance(parts[0], str) else found


__all__ = ["like"]
