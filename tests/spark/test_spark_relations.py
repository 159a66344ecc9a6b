"""Tables of the catalog, wherever a statement names them: Spark has tables of the same names with other rows."""

from __future__ import annotations

import pytest

import pyspark_paimon
from pyspark_paimon import Catalog, InvalidArgument
from tests.build import tuples
from tests.relation_places import HIDDEN, SPARK_QUERIES

pytestmark = pytest.mark.spark
DECOY = 99


@pytest.fixture(scope="module")
def catalog(spark, tmp_path_factory):
    spark.sql("CREATE DATABASE IF NOT EXISTS d")
    spark.sql(f"CREATE TABLE d.g USING parquet AS SELECT {DECOY} AS i")
    made = Catalog(tmp_path_factory.mktemp("warehouse"))
    made.create_database("d")
    made.create_table("d.g", "i INT").write([{"i": 1}])
    pyspark_paimon.sql(spark, "USE d", catalog=made)
    yield made
    spark.sql("USE default")  # USE d went to Spark, too
    spark.sql("DROP DATABASE d CASCADE")


def run(spark, catalog, text: str):
    return [tuple(row) for row in pyspark_paimon.sql(spark, text, catalog=catalog).collect()]


@pytest.mark.parametrize("query", [*SPARK_QUERIES, *HIDDEN])
def test_a_query_reads_the_table_of_the_catalog(spark, catalog, query) -> None:
    assert [str(row[0]).removeprefix("x") for row in run(spark, catalog, query)] == ["1"]


STATEMENTS = {
    "INSERT INTO d.t SELECT 7, i FROM {r}": [(1, 10), (7, 1), (DECOY, 10)],
    "INSERT INTO d.t (v, k) FROM {r} SELECT i, 7": [(1, 10), (7, 1), (DECOY, 10)],
    "INSERT INTO d.t WITH c AS (SELECT * FROM {r}) SELECT 7, i FROM c": [(1, 10), (7, 1), (DECOY, 10)],
    "WITH c AS (SELECT * FROM {r}) INSERT INTO d.t SELECT 7, i FROM c": [(1, 10), (7, 1), (DECOY, 10)],
    "INSERT OVERWRITE d.t SELECT 7, (SELECT max(i) FROM {r})": [(7, 1)],
    "UPDATE d.t SET v = (SELECT max(i) FROM {r})": [(1, 1), (DECOY, 1)],
    "UPDATE d.t AS x SET v = x.v + (SELECT max(i) FROM {r}) WHERE k = 1": [(1, 11), (DECOY, 10)],
    "UPDATE d.t SET v = CASE WHEN EXISTS (SELECT 1 FROM {r} WHERE i < 50) THEN 1 ELSE 99 END": [(1, 1), (DECOY, 1)],
    "UPDATE d.t SET v = if(k IN (SELECT i FROM {r}), 1, 2)": [(1, 1), (DECOY, 2)],
    "UPDATE d.t AS x SET v = (SELECT max(i) FROM {r} WHERE i = x.k)": [(1, 1), (DECOY, None)],
    "UPDATE d.t SET v = 5 WHERE k IN (SELECT i FROM {r})": [(1, 5), (DECOY, 10)],
    "UPDATE d.t AS x SET v = (SELECT max(i) FROM {r}) WHERE EXISTS (SELECT 1 FROM {r} WHERE i = x.k)": [(1, 1), (DECOY, 10)],
    "DELETE FROM d.t WHERE k IN (SELECT i FROM {r})": [(DECOY, 10)],
    "DELETE FROM d.t WHERE k = (SELECT max(i) FROM {r})": [(DECOY, 10)],
    "DELETE FROM d.t AS x WHERE EXISTS (SELECT 1 FROM {r} WHERE i = x.k)": [(DECOY, 10)],
    "MERGE INTO d.t AS x USING {r} AS y ON x.k = y.i WHEN MATCHED THEN DELETE": [(DECOY, 10)],
    "MERGE INTO d.t AS x USING (SELECT * FROM {r}) AS y ON x.k = y.i WHEN MATCHED THEN UPDATE SET v = y.i": [(1, 1), (DECOY, 10)],
}
TABLES = {
    "INSERT INTO d.t (k) TABLE {r}": [(1, None), (DECOY, 10)],
    "INSERT INTO d.t (k) (TABLE {r})": [(1, None), (DECOY, 10)],
    "WITH c AS (TABLE {r}) INSERT INTO d.t (k) TABLE c": [(1, None), (DECOY, 10)],
    "UPDATE d.t SET v = (TABLE {r})": [(1, 1), (DECOY, 1)],
    "DELETE FROM d.t WHERE k IN (TABLE {r})": [(DECOY, 10)],
    "DELETE FROM d.t WHERE k = (TABLE {r})": [(DECOY, 10)],
    "MERGE INTO d.t AS x USING (TABLE {r}) AS y ON x.k = y.i WHEN MATCHED THEN DELETE": [(DECOY, 10)],
}
CASES = [(text.format(r="d.g"), rows) for text, rows in (STATEMENTS | TABLES).items()]


@pytest.mark.parametrize(("statement", "expected"), CASES)
def test_a_statement_reads_the_table_of_the_catalog(spark, catalog, statement, expected) -> None:
    table = catalog.create_table("d.t", "k INT, v INT", primary_keys=["k"], options={"bucket": "1"})
    try:
        table.write([{"k": 1, "v": 10}, {"k": DECOY, "v": 10}])
        run(spark, catalog, statement)
        assert tuples(table) == expected
    finally:
        catalog.drop_table("d.t")


@pytest.mark.parametrize("query", ["SELECT i FROM d.g", "TABLE d.g", "WITH c AS (TABLE g) SELECT * FROM c"])
@pytest.mark.parametrize("statement", ["CREATE TABLE d.made AS {q}", "CREATE TABLE parquet_made USING parquet AS {q}"])
def test_a_table_is_made_of_the_table_of_the_catalog(spark, catalog, statement, query) -> None:
    run(spark, catalog, statement.format(q=query))
    made = statement.split()[2]
    try:
        assert run(spark, catalog, f"SELECT * FROM {made}") == [(1,)]
    finally:
        run(spark, catalog, f"DROP TABLE {made}")


def test_an_append_table_takes_values_of_subqueries_and_refuses_those_of_each_row(spark, catalog) -> None:
    table = catalog.create_table("d.appended", "k INT, v INT")
    table.write([{"k": 1, "v": 10}, {"k": DECOY, "v": 10}])
    run(spark, catalog, "UPDATE d.appended SET v = (SELECT max(i) FROM d.g) + 1 WHERE k IN (TABLE d.g)")
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [2, 10]
    with pytest.raises(InvalidArgument, match=r"SET v = .*needs a table with a primary key"):
        run(spark, catalog, "UPDATE d.appended AS x SET v = (SELECT max(i) FROM d.g WHERE i = x.k)")
    for statement in ("FROM d.g INSERT INTO d.appended SELECT i, i INSERT INTO d.g SELECT 5", "INSERT INTO d.g WITH ('a' = 'b') SELECT 5"):
        with pytest.raises(InvalidArgument, match=r"this form of INSERT cannot write d\..* of the catalog"):
            run(spark, catalog, statement)
    assert [row[0] for row in spark.sql("SELECT i FROM d.g").collect()] == [DECOY]
    with pytest.raises(InvalidArgument, match="IDENTIFIER"):
        run(spark, catalog, "SELECT * FROM IDENTIFIER('d.' || 'g')")
