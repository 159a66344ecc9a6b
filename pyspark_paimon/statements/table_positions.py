"""Positions of table names in the text of a query."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from pyspark_paimon.statements.words import TokenCursor

_SUBQUERIES = {"SELECT", "WITH", "FROM", "("}
_CLAUSES = {"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "PARTITION"}
"""Words that start a clause before BY."""


def common_names(words: TokenCursor) -> set[str]:
    """Return the names of common table expressions (WITH)."""
    texts = [token.text for token in words.tokens]
    found: set[str] = set()
    for at, text in enumerate(texts):
        if at and text.upper() == "AS" and texts[at + 1 : at + 2] == ["("]:
            name = at - 1
            if texts[name] == ")" and " ".join(texts[at + 2 : at + 3]).upper() in _SUBQUERIES | {"VALUES", "TABLE"}:
                name = max((before for before in range(name) if texts[before] == "("), default=0) - 1
            if name >= 0:
                found.add(texts[name].lower())
    return found


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


__all__ = ["common_names", "has_alias", "skip_sample", "table_positions"]
