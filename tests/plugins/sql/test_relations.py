"""Places of relations: each place of the grammar has its name found, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from pyspark_paimon.plugins.sql.text.relations import relations, without_table_words
from pyspark_paimon.plugins.sql.text.words import TokenCursor
from tests.relation_places import HIDDEN, PLACES, QUERIES, TABLE_PLACES

SPARKS = {("range",)}


def named(text: str) -> list[tuple[str, ...]]:
    words, found = TokenCursor(text), []
    for relation in relations(words):
        words.at = relation.word
        name = words.name()
        if not relation.is_common and name not in SPARKS:
            found.append(name)
    return found


@pytest.mark.parametrize("query", QUERIES)
def test_the_relation_of_each_place_is_found(query: str) -> None:
    assert [name[-1] for name in named(query)] == ["g"]
    plain = without_table_words(query)
    assert [name[-1] for name in named(plain)] == ["g"]
    assert without_table_words(plain) == plain


@pytest.mark.parametrize("query", HIDDEN)
def test_common_table_expressions_hide_tables(query: str) -> None:
    assert named(query) == []


@pytest.mark.parametrize("outer", PLACES)
def test_places_nest(outer: str) -> None:
    for inner in (*PLACES, *TABLE_PLACES):
        query = outer.format(r=f"({inner.format(r='d.g')})")
        assert named(query) == [("d", "g")], query


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT table FROM a", ["a"]),
        ("SELECT x.table, table b, 1 AS table FROM a AS table JOIN b", ["a", "b"]),
        ("SELECT * FROM a PIVOT (sum(x) FOR y IN (1, 2)) p, b", ["a", "b"]),
        ("SELECT trim((BOTH) FROM s), substring(s FROM 1), overlay(s PLACING 'x' FROM 2) FROM a", ["a"]),
        ("SELECT * FROM f(TABLE (a), 1, TABLE b) JOIN c", ["f", "a", "b", "c"]),
        ("SELECT * FROM f(data => TABLE (SELECT * FROM a)), b", ["f", "a", "b"]),
        ("INSERT INTO TABLE t TABLE a", ["a"]),
        ("INSERT INTO t (x, y) TABLE a", ["a"]),
        ("INSERT INTO t WITH c AS (TABLE a) SELECT * FROM c", ["a"]),
        ("CREATE VIEW v AS TABLE a", ["a"]),
        ("EXPLAIN EXTENDED TABLE a", ["a"]),
        ("SELECT CAST(x AS TIMESTAMP WITH LOCAL TIME ZONE) FROM a", ["a"]),
        ("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r JOIN a) SELECT * FROM r", ["a"]),
        ("SELECT * FROM STREAM a JOIN STREAM(b) ON TRUE, stream, c AS stream", ["a", "b", "stream", "c"]),
        ("FROM a INSERT INTO b SELECT * INSERT INTO TABLE c SELECT * WHERE i IN (TABLE d)", ["a", "d"]),
        ("WITH r AS (SELECT * FROM r) SELECT * FROM r", ["r"]),
    ],
)
def test_words_that_look_like_relations_are_none(text: str, expected: list[str]) -> None:
    assert [name[-1] for name in named(text)] == expected


def test_brackets_may_nest_deeply() -> None:
    deep = 3000
    assert named(f"SELECT {'(' * deep}1{')' * deep} FROM a") == [("a",)]
