"""Positions of table names in the text of a query."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from pyspark_paimon.statements.words import NameParts, TokenCursor

_SUBQUERIES = {"SELECT", "WITH", "FROM", "("}
_CLAUSES = {"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "PARTITION"}
"""Words that start a clause before BY."""


@dataclass(frozen=True)
class CommonTable:
    """A common table expression (WITH), whose name hides tables from word ``start`` to before word ``end``."""

    name: str
    start: int
    end: int


def common_tables(words: TokenCursor) -> list[CommonTable]:
    """Return the common table expressions of a text, whose first word is next."""
    texts = [words.peek(at) for at in range(len(words.tokens))]
    closings, parents, opened = dict[int, int](), dict[int, int](), list[int]()
    for at, text in enumerate(texts):
        if text == "(":
            parents[at] = opened[-1] if opened else -1
            opened.append(at)
        elif text == ")" and opened:
            closings[opened.pop()] = at
    is_recursive = ("WITH", "RECURSIVE") in itertools.pairwise(texts)
    found = []
    for at, text in enumerate(texts):
        if at and text == "AS" and at + 1 in parents:
            name, opening = at - 1, at + 1
            if texts[name] == ")" and " ".join(texts[at + 2 : at + 3]) in _SUBQUERIES | {"VALUES", "TABLE"}:
                name = max((before for before in range(name) if texts[before] == "("), default=0) - 1
            if name >= 0:
                start = opening if is_recursive else closings.get(opening, len(texts))
                end = closings.get(parents[opening], len(texts))
                found.append(CommonTable(words.tokens[name].text.lower(), start, end))
    return found


def is_common(name: NameParts, at: int, common: Sequence[CommonTable]) -> bool:
    """Return whether the name that ends before word ``at`` is a common table expression."""
    return len(name) == 1 and any(each.name == name[0].lower() and each.start < at <= each.end for each in common)


def table_positions(words: TokenCursor) -> Iterator[int]:
    """Yield the position of each table name.

    The cursor points to the name. The caller may move it past the words that it reads.
    """
    queries, listing, expected = [True], [False], False
    while not words.done:
        word = words.peek()
        is_group = word == "(" and expected and words.peek(1) not in _SUBQUERIES - {"("} | {"VALUES", "TABLE"}  # FROM (t JOIN u)
        is_source = word == "FROM" and (words.at == 0 or words.tokens[words.at - 1].text.upper() != "DISTINCT")
        if word == "(":
            queries.append(is_group or words.peek(1) in _SUBQUERIES)
            listing.append(listing[-1] and queries[-1])
        elif word == ")" and len(queries) > 1:
            queries.pop()
            listing.pop()
        elif is_source and queries[-1]:
            listing[-1] = True
        elif word in {"WHERE", "GROUP", "ORDER", "SELECT", "ON", "HAVING", "LIMIT", "UNION", "SET"}:
            listing[-1] = word == "ON" and listing[-1]
        words.at += 1
        expected = (is_source or is_group or word in {"JOIN", ","}) and listing[-1]
        if expected and words.peek() not in {"(", "LATERAL", "VALUES", "SELECT"} and not words.done:
            before, expected = words.at, False
            yield words.here
            if words.at == before:
                words.at += 1


def skip_sample(words: TokenCursor) -> None:
    """Move behind TABLESAMPLE, which stands between a table and its alias."""
    for word in ("TABLESAMPLE", "REPEATABLE"):
        if not words.take(word):
            return
        words.expect("(")
        words.until()
        words.expect(")")


def has_alias(words: TokenCursor) -> bool:
    """Return whether an alias of a table comes next."""
    if words.done or (words.peek() in _CLAUSES and words.peek(1) == "BY"):
        return False
    return words.peek() == "AS" or words.tokens[words.at].kind in {TokenType.VAR, TokenType.IDENTIFIER}


__all__ = ["CommonTable", "common_tables", "has_alias", "is_common", "skip_sample", "table_positions"]
