"""Places of Spark's grammar where a relation can stand, and forms of a relation.

Every query returns one row with the value of column ``i`` of the relation, which is 1.
"""

from __future__ import annotations

NAMES = ("d.g", "`d`.`g`", "IDENTIFIER('d.g')", "d.g VERSION AS OF 1", "d.g TABLESAMPLE (100 PERCENT)", "g")
"""Forms of a relation. ``g``: in the current database."""
PLACES = (
    "SELECT i FROM {r}",
    "SELECT i FROM (SELECT 1 AS one) CROSS JOIN {r}",
    "SELECT i FROM VALUES (1, 2), (1, 3) AS v(one, two), {r} WHERE two = 2",
    "SELECT i FROM (SELECT i FROM {r})",
    "WITH c AS (SELECT * FROM {r}) SELECT i FROM c",
    "WITH c (SELECT i FROM {r}), e(i, j) AS (SELECT i, 1 FROM c) SELECT i FROM e",
    "SELECT i FROM (WITH c AS (SELECT 5 AS g), g2 AS (SELECT * FROM {r}) SELECT i FROM g2, c)",
    "SELECT i FROM (WITH g AS (SELECT 5 AS j) SELECT j FROM g), {r}",
    "SELECT id AS i FROM range(200) WHERE id IN (SELECT i FROM {r})",
    "SELECT id AS i FROM range(200) WHERE id IN ((SELECT 1 AS i WHERE FALSE) UNION SELECT i FROM {r})",
    "SELECT id AS i FROM range(200) WHERE EXISTS (SELECT 1 FROM {r} WHERE i = id)",
    "SELECT id AS i FROM range(200) LEFT SEMI JOIN (SELECT i AS k FROM {r}) ON id = k",
    "SELECT (SELECT max(i) FROM {r}) AS i",
    "SELECT trim(BOTH 'x' FROM (SELECT concat('x', max(i)) FROM {r})) AS i",
    "SELECT extract(YEAR FROM DATE'0001-01-01') AS i FROM {r} WHERE i IS NOT DISTINCT FROM 1",
    "SELECT 5 AS i WHERE FALSE UNION SELECT i FROM {r}",
    "SELECT i FROM {r} EXCEPT SELECT 5",
    "FROM {r} SELECT i",
    "SELECT i FROM ({r})",
    "SELECT i FROM ((SELECT 1 AS one) CROSS JOIN {r})",
    "SELECT k AS i FROM (SELECT 1 AS one), LATERAL (SELECT i AS k FROM {r})",
    "SELECT explode(array((SELECT max(i) FROM {r}))) AS i",
    "SELECT id AS i FROM range(200) ORDER BY id = (SELECT max(i) FROM {r}) DESC LIMIT 1",
    "SELECT id AS i FROM range(200) GROUP BY id HAVING id = (SELECT max(i) FROM {r})",
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM {r} WHERE i < 50) THEN 1 ELSE 99 END AS i",
    "SELECT sum(i) OVER g AS i FROM {r} WINDOW g AS (ORDER BY i)",
    "SELECT i FROM {r} LATERAL VIEW explode(map('a', 1)) l AS k, g",
    "FROM {r} |> SELECT i",
    "FROM range(200) |> WHERE id IN (SELECT i FROM {r}) |> SELECT id AS i",
    "FROM range(1) |> CROSS JOIN {r} |> EXTEND id AS g, i AS h |> SELECT i",
    "SELECT 5 AS i WHERE FALSE |> UNION ALL (SELECT i FROM {r})",
)
"""Queries with one relation ``{r}``."""
TABLE_PLACES = (
    "TABLE {r}",
    "SELECT i FROM (TABLE {r})",
    "WITH c AS (TABLE {r}) TABLE c",
    "WITH c AS (SELECT 5) TABLE {r}",
    "SELECT id AS i FROM range(200) WHERE id IN (TABLE {r})",
    "SELECT CASE WHEN EXISTS (TABLE {r} |> WHERE i < 50) THEN 1 ELSE 99 END AS i",
    "SELECT 5 AS i WHERE FALSE UNION TABLE {r}",
    "TABLE {r} |> WHERE i > 0",
    "SELECT 5 AS i WHERE FALSE |> UNION ALL (TABLE {r})",
    "SELECT (TABLE {r}) AS i",
)
"""Queries with ``TABLE {r}``, which takes a plain name."""
TABLE_NAMES = ("d.g", "`d`.`g`", "IDENTIFIER('d.g')", "g")
QUERIES = [place.format(r=name) for place in PLACES for name in NAMES] + [
    place.format(r=name) for place in TABLE_PLACES for name in TABLE_NAMES
]
SPARK_QUERIES = [*(place.format(r="d.g") for place in (*PLACES, *TABLE_PLACES)), *(PLACES[0].format(r=name) for name in NAMES[1:])]
"""Fewer queries, for Spark."""
HIDDEN = (
    "WITH g AS (SELECT 1 AS i) SELECT i FROM g",
    "WITH g AS (SELECT 1 AS i) TABLE g",
    "WITH G (SELECT 1 AS i), h AS (SELECT * FROM g) SELECT h.i FROM h JOIN g ON h.i = g.i",
    "SELECT (WITH g AS (SELECT 1 AS i) SELECT max(i) FROM g) AS i",
)
"""Queries in which ``g`` is a common table expression."""

__all__ = ["HIDDEN", "NAMES", "PLACES", "QUERIES", "SPARK_QUERIES", "TABLE_PLACES"]
