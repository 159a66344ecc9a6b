from __future__ import annotations

import re
import shutil
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

import pyspark_paimon
from pyspark_paimon import Table
from pyspark_paimon.spark.wire.errors import typed_error
from tests.build import keyed, tuples

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parent.parent / "golden"
SOURCES = sorted(Path(pyspark_paimon.__file__).parent.rglob("*.py"))


@pytest.fixture
def table(tmp_path):
    made = Table.create(tmp_path / "t", "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "2"})
    made.write(pa.table({"id": [1, 2, 3], "city": ["Oslo", "Lima", None]}))
    return made


def raises(name: str):
    """A Spark error that carries our error ``name``."""
    return pytest.raises(Exception, match=rf'paimon-error: \{{"class": "{name}"')


@pytest.mark.parametrize("name", ["all_types", "all_types_pk", "pk_map", "pk_parts", "pk_dv", "evolved", "edges"])
def test_tables_of_the_java_engine_read_in_spark_as_in_process(spark, name, tmp_path):
    path = tmp_path / name
    shutil.copytree(GOLDEN / name / "table", path)
    expected = Table.open(path).scan().to_arrow()
    key = expected.column_names[0]
    over_spark = Table.open(path, spark=spark).scan().to_arrow()
    assert over_spark.schema.equals(expected.schema)
    assert sorted(map(repr, over_spark.to_pylist())) == sorted(map(repr, expected.to_pylist()))
    frame = spark.read.format("paimon").load(str(path))
    assert frame.columns == expected.column_names
    assert sorted(map(repr, frame.select(f"`{key}`").toArrow().column(0).to_pylist())) == sorted(
        map(repr, expected.column(key).to_pylist())
    )
    assert frame.toArrow().num_rows == expected.num_rows


def test_a_table_is_read_by_its_path_with_options(spark, table):
    table.write(pa.table({"id": [1], "city": ["Bergen"]}))
    reader = spark.read.format("paimon")
    assert [tuple(row) for row in reader.load(table.path).orderBy("id").collect()] == [(1, "Bergen"), (2, "Lima"), (3, None)]
    assert reader.load(table.path).schema.simpleString() == "struct<id:bigint,city:string>"
    assert reader.load(table.path).schema["id"].nullable is False
    assert [row.city for row in reader.option("scan.snapshot-id", 1).load(table.path).where("id = 1").collect()] == ["Oslo"]
    filtered = spark.read.format("paimon").options(columns="city, id", filter="city LIKE 'B%'").load(f"file://{table.path}")
    assert [tuple(row) for row in filtered.collect()] == [("Bergen", 1)]


def test_wrong_options_and_paths_are_refused_by_name(spark, table):
    reader = spark.read.format("paimon")
    with raises("UnsupportedOption"):
        reader.option("no.such.option", "1").load(table.path).schema  # noqa: B018
    with raises("TableNotFound"):
        spark.read.format("paimon").load(f"{table.path}/elsewhere").schema  # noqa: B018
    with raises("UnknownColumn"):
        spark.read.format("paimon").option("columns", "id, town").load(table.path).schema  # noqa: B018
    with raises("InvalidFilter"):
        spark.read.format("paimon").option("filter", "id = = 1").load(table.path).schema  # noqa: B018
    with raises("InvalidArgument"):
        spark.read.format("paimon").options(**{"scan.snapshot-id": "1", "scan.tag-name": "x"}).load(table.path).schema  # noqa: B018
    with raises("InvalidArgument"):
        spark.range(1).write.format("paimon").mode("append").save()


def test_a_frame_answers_any_number_of_filters_whatever_the_configuration_pushes(spark, table):
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("paimon").load(table.path)
        for condition, ids in [
            ("id = 2", [2]),
            ("id IN (1, 3) AND city IS NOT NULL", [1]),
            ("city IS NULL", [3]),
            ("city LIKE '%a' OR id = 3", [2, 3]),
            ("id > 1 AND upper(city) = 'LIMA'", [2]),
            ("upper(city) = 'OSLO'", [1]),
            ("true", [1, 2, 3]),
        ]:
            assert sorted(row.id for row in frame.where(condition).collect()) == ids, condition
        assert frame.where("id = 2").union(frame).count() == 4
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_plain_writes_of_many_tasks_keep_one_row_a_key_and_the_later_write_wins(spark, table):
    spark.range(0, 200, 1, 4).selectExpr("id % 50 AS id", "'first' AS city").write.format("paimon").mode("append").save(table.path)
    spark.range(0, 10, 1, 4).selectExpr("'second' AS city", "id").write.format("paimon").mode("append").save(table.path)
    expected = [(i, "second" if i < 10 else "first") for i in range(50)]
    assert tuples(table) == expected
    files = [file for file in table.files().to_pylist() if file["level"] == 0]
    for bucket in (0, 1):
        ranges = sorted((f["min_sequence_number"], f["max_sequence_number"]) for f in files if f["bucket"] == bucket)
        assert all(before[1] < after[0] for before, after in pairwise(ranges))
    table.write(pa.table({"id": [0], "city": ["third"]}))
    table.compact(full=True)
    assert tuples(table) == [(0, "third"), *expected[1:]]


def test_a_plain_overwrite_replaces_the_table(spark, table):
    spark.range(0, 5, 1, 2).selectExpr("id", "'new' AS city").write.format("paimon").mode("overwrite").save(table.path)
    assert tuples(table) == [(i, "new") for i in range(5)]
    assert table.snapshots().column("commit_kind").to_pylist()[-1] == "OVERWRITE"


def test_a_plain_write_with_wrong_columns_is_refused_before_a_task_runs(spark, table):
    with raises("SchemaMismatch"):
        spark.sql("SELECT 'x' AS city").write.format("paimon").mode("append").save(table.path)
    with raises("TableNotFound"):
        spark.range(3).write.format("paimon").mode("append").save(f"{table.path}/elsewhere")
    with raises("NullInKey"):
        spark.sql("SELECT cast(NULL AS bigint) id, 'x' city").write.format("paimon").mode("append").save(table.path)
    assert len(tuples(table)) == 3


def test_sql_creates_selects_and_inserts(spark, table):
    spark.sql(f"CREATE TABLE cities USING paimon OPTIONS (path '{table.path}')")
    try:
        assert [row.id for row in spark.sql("SELECT id FROM cities WHERE city IS NOT NULL ORDER BY id").collect()] == [1, 2]
        spark.sql(f"INSERT INTO cities WITH (path = '{table.path}') SELECT 4L AS id, 'Rome' AS city")
        assert [tuple(row) for row in spark.sql("SELECT * FROM cities WHERE id > 2 ORDER BY id").collect()] == [(3, None), (4, "Rome")]
        assert spark.sql("SELECT * FROM cities WITH (`scan.snapshot-id` = '1')").count() == 3
        assert spark.sql("SELECT a.id FROM cities a JOIN cities b ON a.id = b.id").count() == 4
        with raises("InvalidArgument"):  # Spark hides from a data source which table an INSERT is for
            spark.sql("INSERT INTO cities VALUES (5, 'Bonn')")
        assert len(tuples(table)) == 4
    finally:
        spark.sql("DROP TABLE cities")
    assert len(tuples(table)) == 4, "dropping the name leaves the table's files alone"


def test_sql_inserts_into_a_temporary_view(spark, table, tmp_path):
    other = keyed(tmp_path / "other", "id BIGINT, city STRING")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW source_view USING paimon OPTIONS (path '{table.path}')")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW target_view USING paimon OPTIONS (path '{other.path}')")
    spark.sql("INSERT INTO target_view SELECT * FROM source_view")
    assert tuples(other) == tuples(table)
    spark.sql("INSERT OVERWRITE target_view SELECT 9L, 'only'")
    assert tuples(other) == [(9, "only")]
    assert len(tuples(table)) == 3


def test_the_client_sends_no_code(spark, table, monkeypatch):
    from pyspark.serializers import CloudPickleSerializer

    def refuse(self, obj):
        raise AssertionError(f"{obj!r} would be pickled for the server")

    monkeypatch.setattr(CloudPickleSerializer, "dumps", refuse)
    over_spark = Table.open(table.path, spark=spark)
    over_spark.write(spark.range(10).selectExpr("id", "'x' AS city"))
    over_spark.write(pa.table({"id": [1], "city": ["y"]}))
    over_spark.compact(full=True)
    assert over_spark.scan("city = 'y'").to_arrow().num_rows == over_spark.scan("city = 'y'").count() == 1
    with pytest.raises(AssertionError, match="pickled"):
        spark.udf.register("f", lambda x: x)


def test_no_module_of_the_client_registers_functions_or_sources():
    forbidden = re.compile(
        r"\bdataSource\.register|(?<!pyspark\.)\budf\b|pandas_udf|mapInArrow|mapInPandas|applyIn|cloudpickle|addArtifact"
    )
    found = {path.name for path in SOURCES if forbidden.search(path.read_text())}
    assert found == {"install.py", "session_storage.py"}  # which ship the package, or options of stores, to a server, and are asked to


def test_an_error_that_this_version_does_not_know_is_still_one_of_ours():
    error = typed_error('Traceback\npaimon-error: {"class": "FromTheFuture", "args": [1], "text": "new trouble"}\n')
    assert type(error).__name__ == "RemoteError"
    assert "new trouble" in str(error)
    assert typed_error("an error without a note") is None
