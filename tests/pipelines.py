"""Random queries of operators, as pipelines and as nested queries, with a model of their rows.

The table ``t`` has the columns ``id``, ``i`` and ``v``. All operators keep these names, and ``id`` unique.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import strategies as st

Row = dict[str, Any]
Rows = list[Row]
Evaluate = Callable[[Sequence[Rows]], Rows]
"""Rows of a query, by the rows of each mention of ``t`` in the order of the text."""
NUMBERS = st.integers(0, 6)


def table_rows() -> Rows:
    """Rows of ``t``."""
    return [{"id": at, "i": at * 5 % 7, "v": at % 3} for at in range(12)]


@dataclass(frozen=True)
class Query:
    """Text of a query, its model, and how often it mentions ``t``."""

    text: str
    rows: Evaluate
    tables: int = 1


def above(c: int) -> Callable[[Rows], Rows]:
    return lambda rows: [row for row in rows if row["i"] > c]


def first(n: int) -> Callable[[Rows], Rows]:
    return lambda rows: sorted(rows, key=lambda row: row["id"])[:n]


def raised(rows: Rows) -> Rows:
    return [{**row, "i": row["i"] + 1} for row in rows]


def distinct(rows: Rows) -> Rows:
    return [{"id": v, "i": v, "v": v} for v in sorted({row["v"] for row in rows})]


def counted(rows: Rows) -> Rows:
    return [{"id": v, "i": sum(row["v"] == v for row in rows), "v": v} for v in sorted({row["v"] for row in rows})]


def numbered(rows: Rows) -> Rows:
    return [{**row, "i": at} for at, row in enumerate(sorted(rows, key=lambda row: row["id"]), 1)]


COUNTED = "SELECT v AS id, count(*) AS i, v"
DISTINCT = "SELECT DISTINCT v AS id, v AS i, v"
NUMBERED = "SELECT id, row_number() OVER (ORDER BY id) AS i, v"


def bases() -> st.SearchStrategy[Query]:
    """Queries of ``t`` alone."""
    plain = st.sampled_from(["FROM t", "SELECT * FROM t", "FROM t AS x", "SELECT id, i, v FROM t"])
    return st.one_of(
        plain.map(lambda text: Query(text, lambda t: t[0])),
        NUMBERS.map(lambda c: Query(f"SELECT id, i, v FROM t WHERE i > {c}", lambda t: above(c)(t[0]))),
        st.just(Query("SELECT id, i + 1 AS i, v FROM t", lambda t: raised(t[0]))),
        st.just(Query(f"{NUMBERED} FROM t", lambda t: numbered(t[0]))),
        st.just(Query(f"{DISTINCT} FROM t", lambda t: distinct(t[0]))),
        NUMBERS.map(lambda c: Query(f"{COUNTED} FROM t WHERE i > {c} GROUP BY v", lambda t: counted(above(c)(t[0])))),
        NUMBERS.map(lambda n: Query(f"SELECT * FROM (SELECT id, i, v FROM t ORDER BY id LIMIT {n})", lambda t: first(n)(t[0]))),
    )


@dataclass(frozen=True)
class Operator:
    """Text after a pipe, texts around a nested query, and the model."""

    piped: str
    nested: str
    change: Callable[[Rows], Rows]


def operators() -> st.SearchStrategy[Operator]:
    """Operators of one query."""
    return st.one_of(
        NUMBERS.map(lambda c: Operator(f"WHERE i > {c}", f"SELECT * FROM ({{q}}) AS t WHERE t.i > {c}", above(c))),
        NUMBERS.map(lambda c: Operator(f"where i>{c}", f"SELECT id, i, v FROM ({{q}}) WHERE i > {c}", above(c))),
        NUMBERS.map(
            lambda n: Operator(f"ORDER BY id |> LIMIT {n}", f"SELECT * FROM (SELECT * FROM ({{q}}) ORDER BY id LIMIT {n})", first(n))
        ),
        st.just(Operator("SET i = i + 1", "SELECT id, i + 1 AS i, v FROM ({q})", raised)),
        st.just(Operator(DISTINCT, f"{DISTINCT} FROM ({{q}})", distinct)),
        st.just(Operator(NUMBERED, f"{NUMBERED} FROM ({{q}})", numbered)),
        st.just(Operator("AGGREGATE count(*) AS n GROUP BY v |> SELECT v AS id, n AS i, v", f"{COUNTED} FROM ({{q}}) GROUP BY v", counted)),
        st.just(Operator("AS t", "SELECT t.* FROM ({q}) AS t", lambda rows: rows)),
    )


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """A query of several operators."""
    query, numbers = draw(bases()), count(1)
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.integers(0, 5)) == 0:
            query = _united(query, 1000 * next(numbers), draw(NUMBERS))
            continue
        operator = draw(operators())
        text = f"{query.text} |> {operator.piped}" if draw(st.booleans()) else operator.nested.format(q=query.text)
        query = Query(text, _then(query.rows, operator.change), query.tables)
    return query


def _then(rows: Evaluate, change: Callable[[Rows], Rows]) -> Evaluate:
    return lambda tables: change(rows(tables))


def _united(query: Query, more: int, c: int) -> Query:
    """Return the union with other rows of ``t``."""
    text = f"{query.text} |> UNION ALL (SELECT id + {more} AS id, i, v FROM t WHERE i > {c})"

    def rows(tables: Sequence[Rows]) -> Rows:
        return query.rows(tables[:-1]) + [{**row, "id": row["id"] + more} for row in above(c)(tables[-1])]

    return Query(text, rows, query.tables + 1)


__all__ = ["Query", "Row", "Rows", "queries", "table_rows"]
