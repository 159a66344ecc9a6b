"""Fast parser of long chains of comparisons.

Example: ``a > 1 AND b <> 'x' AND ...``
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from fileindex.base.thresholds import thresholds
from fileindex.predicate.tree import Op
from pyspark_paimon.filter.ast import And, Comparison, Condition, Literal, Or

_OPS = {"=": Op.EQ, "==": Op.EQ, "<>": Op.NE, "!=": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}
_LINK = re.compile(
    r"\s*([A-Za-z_]\w*|`[^`]+`)\s*(=|==|<>|!=|<|<=|>|>=)\s*(-?)(?:(\d{1,99})|(\d{1,99}\.\d{1,99})|'([^'\\]*)')(?:\s+(AND|OR)(?=[\s`])|\s*\Z)",
    re.ASCII | re.IGNORECASE,
)


def parse_chain(text: str, condition: Callable[[str], Condition]) -> Condition | None:
    """Parse a long chain of comparisons, or return None.

    The comparisons have plain literals and are joined all by AND or all by OR.
    condition: Parser of one comparison. It is called once for each column name, so that names resolve as in other filters.

    >>> read = lambda text: Comparison(text.split()[0], Op.EQ, 0)
    >>> found = parse_chain(" AND ".join(f"k <> {at}" for at in range(100)), read)
    >>> len(found.children), found.children[7]
    (100, Comparison(column='k', op=<Op.NE: '<>'>, value=7))
    >>> parse_chain("k = 1 OR k = 2", read) is None
    True
    """
    if len(text) < 4 * thresholds.parsed_chain:
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
    if len(words) != 2 or None not in words or len(links) < thresholds.parsed_chain:  # one joining word, and None after the last link
        return None
    columns = {}
    for name in {name for name, _, _ in links}:
        read = condition(f"{name} = 0")
        if not isinstance(read, Comparison):  # a literal, or a function without parentheses such as CURRENT_DATE
            return None
        columns[name] = read.column
    conditions = tuple(Comparison(columns[name], _OPS[op], value) for name, op, value in links)
    return And(conditions) if "AND" in words else Or(conditions)


__all__ = ["parse_chain"]
