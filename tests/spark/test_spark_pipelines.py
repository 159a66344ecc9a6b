"""Random queries of operators: Spark's own rows, with and without the conditions that scans evaluate."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

import pyspark_paimon
from pyspark_paimon import Catalog
from tests.pipelines import Query, queries, table_rows

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    made = Catalog(tmp_path_factory.mktemp("pipelines"))
    made.create_table("default.t", "id INT, i INT, v INT", options={"file-index.bitmap.columns": "i"}).write(table_rows())
    return made


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=queries())
def test_queries_have_the_rows_of_the_model(spark, catalog, query: Query) -> None:
    found = pyspark_paimon.sql(spark, query.text, catalog=catalog).select("id", "i", "v").collect()
    expected = query.rows([table_rows()] * query.tables)
    assert sorted(map(tuple, found)) == sorted((row["id"], row["i"], row["v"]) for row in expected), query.text
