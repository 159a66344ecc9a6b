"""Pipelines of a query: ``FROM t |> WHERE a |> LIMIT 3``.

Our parser merges the operators of a pipeline into clauses of one SELECT, whose order is another one: a WHERE after LIMIT would come before it.
So it gets only what comes before the operators that change the rows.
"""

from __future__ import annotations

from pyspark_paimon.plugins.sql.text.words import TokenCursor

_PIPE = "|>"
_CHANGES = frozenset(
    {
        "SELECT",
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "SORT",
        "CLUSTER",
        "DISTRIBUTE",
        "LIMIT",
        "OFFSET",
        "WINDOW",
        "QUALIFY",
        "VALUES",
        "TABLE",
    }
    | {"UNION", "EXCEPT", "INTERSECT", "MINUS"}
)
"""Words of queries whose rows are not those of their FROM clause."""


def without_pipelines(text: str) -> tuple[str, bool]:
    """Return a query without the operators of its pipelines, and whether it has none.

    WHERE right after a FROM clause stays, as the clause that it equals. All tables before the operators keep their positions in the text.

    >>> without_pipelines("FROM t |> WHERE a |> LIMIT 3 |> WHERE b"), without_pipelines("SELECT a FROM t WHERE b")
    (('FROM t    WHERE a                     ', False), ('SELECT a FROM t WHERE b', True))
    """
    if _PIPE not in text:
        return text, True
    words = TokenCursor(text)
    texts = [_word(words, index) for index in range(len(words.tokens))]
    cuts, opened = list[tuple[int, int]](), [0]
    index = 0
    while index < len(texts):
        if texts[index] == "(":
            opened.append(index + 1)
        elif texts[index] == ")" and len(opened) > 1:
            opened.pop()
        elif texts[index] == _PIPE:
            end = _end(texts, index)
            cuts += _cuts(texts, opened[-1], index, end)
            index = end - 1
        index += 1
    if not cuts:  # the mark stands in a text literal
        return text, True
    for first, end in cuts:
        start, stop = words.tokens[first].start, words.tokens[end - 1].end + 1
        text = f"{text[:start]}{' ' * (stop - start)}{text[stop:]}"
    return text, False


def _word(words: TokenCursor, index: int) -> str:
    words.at = index
    return words.peek()


def _end(texts: list[str], index: int) -> int:
    """Return the index after the last word of the bracket that word ``index`` is in."""
    depth = 0
    for end in range(index, len(texts)):
        depth += (texts[end] == "(") - (texts[end] == ")")
        if depth < 0:
            return end
    return len(texts)


def _cuts(texts: list[str], start: int, pipe: int, end: int) -> list[tuple[int, int]]:
    """Return the ranges of words to leave out of a query.

    The query has the words from ``start`` to ``end``. Its first operator is at ``pipe``.
    """
    if texts[pipe + 1 : pipe + 2] != ["WHERE"] or not _is_from_clause(texts, start, pipe):
        return [(pipe, end)]
    depth = 0
    for after in range(pipe + 1, end):
        depth += (texts[after] == "(") - (texts[after] == ")")
        if depth == 0 and texts[after] == _PIPE:
            return [(pipe, pipe + 1), (after, end)]
    return [(pipe, pipe + 1)]


def _is_from_clause(texts: list[str], start: int, end: int) -> bool:
    """Return whether a query is a FROM clause alone, or one with ``SELECT *``."""
    depth, clause = 0, list[str]()
    for index in range(start, end):
        depth += (texts[index] == "(") - (texts[index] == ")")
        clause += [texts[index]] if depth == 0 else []
    if "SELECT" in clause and clause[clause.index("SELECT") + 1 :][:2] == ["*", "FROM"]:
        clause.remove("SELECT")
    return "FROM" in clause and _CHANGES.isdisjoint(clause)
