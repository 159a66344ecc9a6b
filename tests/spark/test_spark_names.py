"""Names in statements: temporary views first, Paimon's database ``sys``, EXECUTE IMMEDIATE, CACHE TABLE, relative paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_paimon import Catalog, InvalidArgument, Table, sql

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def run(spark, tmp_path):
    catalog = Catalog(tmp_path)
    made = catalog.create_table("default.t", "id BIGINT, v STRING", ["id"], options={"bucket": "1"})
    made.write([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    days = catalog.create_table("default.days", "id BIGINT, day INT", ["id", "day"], ["day"], options={"bucket": "1"})
    days.write([{"id": 1, "day": 1}, {"id": 2, "day": 2}])

    def rows(text: str, **args: object) -> list[tuple]:
        return [tuple(row) for row in sql(spark, text, args or None, catalog=catalog).collect()]

    rows.catalog = catalog
    return rows


def test_a_temporary_view_comes_before_a_table(spark, run):
    spark.range(7, 8).selectExpr("id", "'view' AS v").createOrReplaceTempView("t")
    try:
        for text in ("SELECT * FROM t", "TABLE t", "SELECT x.* FROM t x JOIN days ON days.id = x.id - 6"):
            assert run(text) == [(7, "view")], text
        assert run("SELECT count(*) FROM t") == [(1,)]
        assert run("SELECT count(*) FROM default.t") == [(2,)]
        run("CREATE TABLE IF NOT EXISTS t (id BIGINT)")
        run("CREATE OR REPLACE TABLE t (id BIGINT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
        assert run("SELECT count(*) FROM default.t") == [(0,)], "a statement that makes a table means the table"
    finally:
        spark.catalog.dropTempView("t")
    assert run("SELECT count(*) FROM t") == [(0,)]


def test_a_correlated_subquery_in_select_reads_unmerged_files(run):
    run("INSERT INTO t VALUES (2, 'c')")
    assert sorted(run("SELECT x.id, (SELECT max(s.v) FROM t s WHERE s.id = x.id) FROM t x")) == [(1, "a"), (2, "c")]


def test_the_database_sys_has_the_tables_of_all_databases(run):
    shown = run("SELECT table_name, partitioned, primary_key, record_count, file_count FROM sys.all_tables ORDER BY 1")
    assert shown == [("days", True, True, 2, 2), ("t", False, True, 2, 1)]
    assert run("SELECT partition_name, record_count FROM sys.all_partitions ORDER BY 1") == [("day=1", 1), ("day=2", 1)]
    assert run("SELECT DISTINCT key, value FROM sys.all_table_options WHERE table_name = 't'") == [("bucket", "1")]
    with pytest.raises(InvalidArgument, match="print the Catalog"):
        run("SELECT * FROM sys.catalog_options")


def test_sys_without_a_catalog_says_what_it_needs(spark):
    with pytest.raises(InvalidArgument, match="catalog=Catalog"):
        sql(spark, "SELECT * FROM sys.all_tables")


def test_execute_immediate_runs_a_statement_with_its_values(run):
    assert run("EXECUTE IMMEDIATE 'SELECT v FROM t WHERE id = ?' USING 2") == [("b",)]
    assert run("EXECUTE IMMEDIATE 'SELECT v FROM t WHERE id = :id' USING (1 AS id)") == [("a",)]
    run("EXECUTE IMMEDIATE 'DELETE FROM t WHERE id = 1'")
    assert run("EXECUTE IMMEDIATE 'TABLE t'") == [(2, "b")]


def test_rows_are_cached_and_tables_are_not(spark, run):
    run("CACHE TABLE cached OPTIONS ('storageLevel' = 'MEMORY_ONLY') AS SELECT * FROM t WHERE id = 1")
    try:
        assert spark.catalog.isCached("cached")
        run("DELETE FROM t WHERE id = 1")
        assert run("SELECT v FROM cached") == [("a",)]
    finally:
        spark.sql("UNCACHE TABLE cached")
        spark.catalog.dropTempView("cached")
    with pytest.raises(InvalidArgument, match="CACHE TABLE c AS TABLE t"):
        run("CACHE LAZY TABLE t")


def test_procedures_and_databases_are_shown(run):
    assert ("paimon", "sys", "compact") in run("SHOW PROCEDURES IN sys LIKE 'comp*'")
    assert ("Tables", "2") in run("DESCRIBE DATABASE EXTENDED default")


def test_a_table_as_select_has_nullable_columns(run):
    run("CREATE TABLE made TBLPROPERTIES ('primary-key' = 'id') AS SELECT 1 AS id, 'x' AS v, array(1) AS a")
    schema = run.catalog.table("default.made").schema
    assert [(field.name, field.nullable) for field in schema] == [("id", False), ("v", True), ("a", True)]
    assert schema.field("a").type.value_field.nullable


def test_a_rescale_takes_a_filter_of_partitions(run):
    run("ALTER TABLE days SET TBLPROPERTIES ('bucket' = '2')")
    assert run("CALL sys.rescale(table => 'default.days', where => 'day > 1')")[0][-1] == "day=2"
    assert run("CALL sys.rescale(table => 'days')")[0][-1] == "day=1"


def test_a_relative_path_is_in_the_folder_of_the_program(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = Table.create("here/t", "id INT", spark=spark)
    table.write([{"id": 1}])
    assert Path(table.path) == tmp_path / "here/t"
    assert Table.open(tmp_path / "here/t").count() == Table.open("here/t", spark).count() == 1
    with pytest.raises(Exception, match="path 'here/t' is relative"):
        spark.read.format("paimon").load("here/t").count()
