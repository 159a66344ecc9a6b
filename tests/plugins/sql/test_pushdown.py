"""Conditions that a query gives to the scans of its tables: the query has the same rows without the others, wherever it limits, folds or renames."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.evaluate_rows import mask
from manifest.schema.validation import build_schema
from pyspark_paimon.plugins.sql.metadata_answers import SimpleAggregate
from pyspark_paimon.plugins.sql.pushdown import Usage, usages
from pyspark_paimon.plugins.sql.text.pipelines import without_pipelines
from pyspark_paimon.plugins.sql.text.relations import relations
from pyspark_paimon.plugins.sql.text.words import TokenCursor
from tests.pipelines import Query, Rows, queries, table_rows

SCHEMA = build_schema("id INT, i INT, v INT")


def scanned(usage: Usage) -> Rows:
    """The rows and columns of ``t`` that its scan reads."""
    rows = pa.Table.from_pylist(table_rows(), SCHEMA.arrow)
    predicate = usage.projection(SCHEMA, lambda: "UTC").inclusive
    (batch,) = rows.to_batches()
    columns = [name for name in SCHEMA.names if usage.names is None or name.upper() in usage.names]
    return batch.filter(mask(predicate, batch, SCHEMA.column_types)).select(columns).to_pylist()


def ordered(rows: Rows) -> list[tuple]:
    return sorted((row["id"], row["i"], row["v"]) for row in rows)


@settings(max_examples=120)
@given(queries())
def test_scans_leave_out_no_row_that_the_query_needs(query: Query) -> None:
    used = usages(query.text)
    starts = [relation.start for relation in relations(TokenCursor(query.text))]
    assert len(starts) == query.tables
    scans = [scanned(used.get(start, Usage())) for start in starts]
    assert ordered(query.rows(scans)) == ordered(query.rows([table_rows()] * query.tables)), query.text


@given(st.integers(0, 6), st.lists(st.sampled_from(["WHERE i > {c}", "LIMIT {c}", "ORDER BY i", "SET i = i + 1"]), max_size=3))
def test_metadata_answers_no_query_with_operators(c: int, operators: list[str]) -> None:
    text = " |> ".join([f"SELECT count(*) AS i FROM t WHERE i > {c}", *(operator.format(c=c) for operator in operators)])
    assert (SimpleAggregate.of(text) is None) is bool(operators)
    assert usages(text)[text.index("t WHERE")].projection(SCHEMA, lambda: "UTC").exact is not bool(operators)


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("FROM t |> WHERE i > 1 AND v = 2 |> LIMIT 3", ("i > 1", "v = 2")),
        ("FROM t |> WHERE i > 1 OR v = 2", ("i > 1 OR v = 2",)),
        ("SELECT * FROM t|>WHERE i > 1|>WHERE v = 2", ("i > 1",)),
        ("FROM t |> ORDER BY id |> LIMIT 3 |> WHERE i > 1", ()),
        ("SELECT v, count(*) AS i FROM t GROUP BY v |> WHERE i > 1", ()),
        ("SELECT DISTINCT i FROM t |> WHERE i > 1", ()),
        ("SELECT i + 1 AS i FROM t WHERE v = 2 |> WHERE i > 1", ("v = 2",)),
        ("SELECT row_number() OVER (ORDER BY v) AS i FROM t |> WHERE i > 1", ()),
        ("SELECT * FROM (FROM t |> LIMIT 3 |> WHERE i > 1) WHERE v = 1", ()),
        ("WITH c AS (FROM t |> WHERE i > 1 |> LIMIT 2) FROM c |> WHERE v = 3", ("i > 1",)),
        ("FROM t |> TABLESAMPLE (3 ROWS) |> WHERE i > 1", ()),
        ("FROM t TABLESAMPLE (3 ROWS) |> WHERE i > 1", ()),
        ("SELECT i FROM t WHERE s = '|>' AND i > 1", ("s = '|>'", "i > 1")),
    ],
)
def test_only_conditions_below_the_first_operator_are_pushed(text: str, conditions: tuple[str, ...]) -> None:
    start = text.index("FROM t") + 5
    assert usages(text)[start].conditions == conditions
    assert without_pipelines(text)[0][start] == "t"
    assert len(without_pipelines(text)[0]) == len(text)
