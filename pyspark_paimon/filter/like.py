"""Translation of LIKE patterns to conditions.

A pattern without wildcards becomes an equality and ``text%`` a prefix test, which sorted or indexed columns can answer.
Other patterns are computed for each row, after a test of their prefix.
"""

from __future__ import annotations

from fileindex.expression.text import like_parts
from fileindex.predicate.tree import ColumnRef, Op
from pyspark_paimon.filter.ast import And, Comparison, Computation, ComputedCondition, Condition, GivenValue, Prefix


def like(column: ColumnRef, pattern: str, escape: str = "\\") -> Condition:
    r"""Return the condition ``column LIKE pattern``.

    Raises ``InvalidFilter`` if the escape character precedes an ordinary character.

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
    found = ComputedCondition(Computation("like", (column, GivenValue(pattern), GivenValue(escape))))
    return And((Prefix(column, parts[0]), found)) if isinstance(parts[0], str) else found


__all__ = ["like"]
