"""LIKE patterns that a sorted or indexed column can answer: a prefix, a whole text, or anything."""

from __future__ import annotations

from fileindex.base.errors import InvalidFilter
from fileindex.predicate.tree import ColumnRef, Op
from pyspark_paimon.filter.ast import Comparison, Condition, Prefix


def like(column: ColumnRef, pattern: str, escape: str = "\\") -> Condition:
    r"""``column LIKE pattern``, if the pattern's only wildcard is one ``%`` (or a run of them) at its end.

    Raises ``InvalidFilter`` for other patterns, and where the escape character stands before an ordinary one.

    >>> like(ColumnRef("city"), r"100\%%")
    Prefix(column=ColumnRef(name='city', key=None), prefix='100%')
    """
    fixed: list[str] = []
    rest = iter(range(len(pattern)))
    for at in rest:
        letter = pattern[at]
        if letter == escape:
            following = pattern[at + 1 : at + 2]
            if following not in {"%", "_", escape}:
                raise InvalidFilter(f"LIKE '{pattern}': the escape '{escape}' must stand before %, _ or itself")
            fixed.append(following)
            next(rest)
        elif letter == "%" and set(pattern[at:]) == {"%"}:
            return Prefix(column, "".join(fixed))
        elif letter in {"%", "_"}:
            raise InvalidFilter(f"LIKE '{pattern}': only a prefix can be looked up, as in LIKE 'prefix%'; filter the result for the rest")
        else:
            fixed.append(letter)
    return Comparison(column, Op.EQ, "".join(fixed))


__all__ = ["like"]
