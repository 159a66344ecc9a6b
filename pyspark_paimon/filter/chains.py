"""Long chains of comparisons, ``a > 1 AND b <> 'x' AND ...``, which are read as they stand: no tree is made of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from fileindex.base.thresholds import thresholds
from fileindex.predicate.tree import Op
from pyspark_paimon.filter.ast import All, Any, Comparison, Condition, Literal

_OPS = {"=": Op.EQ, "==": Op.EQ, "<>": Op.NE, "!=": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}
_LINK = re.compile(
    r"\s*([A-Za-z_]\w*|`[^`]+`)\s*(=|==|<>|!=|<|<=|>|>=)\s*(-?)(?:(\d{1,99})|(\d{1,99}\.\d{1,99})|'([^'\\]*)')(?:\s+(AND|OR)(?=[\s`])|\s*\Z)",
    re.ASCII | re.IGNORECASE,
)


def chain_of(text: str, condition: Callable[[str], Condition]) -> Condition | None:
    """The condition of a text that is a long chain of comparisons with plain literals, all joined by AND or all by OR; None for another.

    ``condition`` reads a text that compares a single column; it is asked once for each name, so that names mean what they mean elsewhere.

    >>> read = lambda text: Comparison(text.split()[0], Op.EQ, 0)
    >>> found = chain_of(" AND ".join(f"k <> {at}" for at in range(100)), read)
    >>> len(found.children), found.children[7]
    (100, Comparison(column='k', op=<Op.NE: '<>'>, value=7))
    >>> chain_of("k = 1 OR k = 2", read) is None
    True
    """
    if len(text) < 4 * thresholds().parsed_chain:
        return None
    links: list[tuple[str, str, Literal]] = []
    words = set()
    at = 0
    while at < len(text):
        found = _LINK.match(text, at)
        if found is None:
            return None
        name, op, minus, whole, exact, word, joined = found.groups()
        if word is not None:
            if minus:
                return None
            links.append((name, op, word))
        elif whole is not None:
            links.append((name, op, -int(whole) if minus else int(whole)))
        else:
            links.append((name, op, Decimal(exact).copy_negate() if minus else Decimal(exact)))
        words.add(joined and joined.upper())
        at = found.end()
    if len(words) != 2 or None not in words or len(links) < thresholds().parsed_chain:  # joined by one word, and the last by none
        return None
    columns = {}
    for name in {name for name, _, _ in links}:
        read = condition(f"{name} = 0")
        if not isinstance(read, Comparison):  # a literal or a function that is written without parentheses
            return None
        columns[name] = read.column
    conditions = tuple(Comparison(columns[name], _OPS[op], value) for name, op, value in links)
    return All(conditions) if "AND" in words else Any(conditions)


__all__ = ["chain_of"]
