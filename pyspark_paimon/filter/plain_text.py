"""Conditions of plain SQL texts, read without sqlglot.

Most filters are a column and literals, joined all by AND or all by OR. A fresh process reads them without the import of sqlglot, which takes
a sixth of its time to the first answer, and a long chain takes a hundredth of the time. Every other text is left to ``from_sql``.
"""

from __future__ import annotations

import re
from decimal import Decimal

from fileindex.predicate.tree import ColumnRef, Op
from pyspark_paimon.filter.ast import And, Comparison, Condition, Literal, Membership, Not, NullTest, Or
from pyspark_paimon.filter.conditions import like

_SIGNS = {"=": Op.EQ, "==": Op.EQ, "<>": Op.NE, "!=": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}
_LITERAL = r"(?:-?\d{1,99}(?:\.\d{1,99})?|'[^'\\]*')"
_LIST = rf"\(\s*{_LITERAL}(?:\s*,\s*{_LITERAL})*\s*\)"
_FLAGS = re.ASCII | re.IGNORECASE
_LITERALS = re.compile(_LITERAL, _FLAGS)
_TERM = re.compile(
    rf"""
    \s*(?:(?P<name>[A-Z_]\w*)|`(?P<quoted>[^`]+)`)
    (?:
        \s*(?P<sign>==?|<>|!=|<=?|>=?)\s*(?P<value>{_LITERAL})
      | \s+IS(?P<not_null>\s+NOT)?\s+NULL
      | (?P<negated>\s+NOT)?\s+(?:IN\s*(?P<list>{_LIST}) | BETWEEN\s+(?P<low>{_LITERAL})\s+AND\s+(?P<high>{_LITERAL}) | LIKE\s+'(?P<pattern>[^'\\]*)')
    )
    (?:\s+(?P<word>AND|OR)(?=[\s`]) | \s*\Z)
    """,
    _FLAGS | re.VERBOSE,
)
_WORDS = """
    alter and any as between call case connect_by_root create cross current_date current_timestamp current_user distinct drop else except
    execute explain false fetch for from glob grant having if ilike inner insert intersect interval into join lateral like minus not notnull
    null on optimize or outer partitioned_by prepare qualify regexp rename returning revoke rlike rollback select serdeproperties session_user
    show tablesample then true uncache union using vacuum values when where with xor
"""
NOT_NAMES = frozenset(_WORDS.split())
"""Words that the general parser does not read as a column."""


def plain_condition(text: str) -> Condition | None:
    """Return the condition of a plain text, or None.

    >>> plain_condition("k = 1 AND name IN ('a', 'b')")
    And(children=(Comparison(column=ColumnRef(name='k', key=None), op=<Op.EQ: '='>, value=1),
                  Membership(column=ColumnRef(name='name', key=None), values=('a', 'b'))))
    >>> plain_condition("k = 1 OR upper(name) = 'A'") is None
    True
    """
    conditions: list[Condition] = []
    words: set[str | None] = set()
    offset = 0
    while offset < len(text):
        term = _TERM.match(text, offset)
        if term is None or (term["name"] or "").lower() in NOT_NAMES:
            return None
        conditions.append(_condition(term))
        words.add(term["word"] and term["word"].upper())
        offset = term.end()
    if words == {None}:
        return conditions[0]
    # The last term has no word. Without it, the text ends with AND or OR.
    if len(words) != 2 or None not in words:
        return None
    return And(tuple(conditions)) if "AND" in words else Or(tuple(conditions))


def _condition(term: re.Match[str]) -> Condition:
    column = ColumnRef(term["name"] or term["quoted"])
    if term["sign"]:
        return Comparison(column, _SIGNS[term["sign"]], _literal(term["value"]))
    condition: Condition
    if term["list"]:
        condition = Membership(column, tuple(map(_literal, _LITERALS.findall(term["list"]))))
    elif term["low"]:
        condition = And((Comparison(column, Op.GE, _literal(term["low"])), Comparison(column, Op.LE, _literal(term["high"]))))
    elif term["pattern"] is not None:
        condition = like(column, term["pattern"])
    else:
        condition = NullTest(column)
    return Not(condition) if term["negated"] or term["not_null"] else condition


def _literal(text: str) -> Literal:
    if text.startswith("'"):
        return text[1:-1]
    return Decimal(text) if "." in text else int(text)
