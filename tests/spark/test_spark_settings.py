"""Settings of a session: overwrites of the partitions of the rows, ``spark.paimon.*``; and VARIANT and null rows from SQL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_paimon import Table, UnsupportedOption, sql
from pyspark_paimon.spark.wire.errors import typed_error
from tests.build import tuples

pytestmark = pytest.mark.spark
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
BOTH = [("a", 1), ("b", 2)]


@pytest.fixture
def table(tmp_path):
    made = Table.create(tmp_path / "db.db" / "t", "day STRING, id BIGINT", partition_keys=["day"])
    made.write(pa.table({"day": ["a", "b"], "id": [1, 2]}))
    return made


@pytest.fixture
def settings(spark):
    """Set a setting of the session for one test."""
    names = []

    def change(name, value):
        names.append(name)
        spark.conf.set(name, value)

    yield change
    for name in names:
        spark.conf.unset(name)


def save(table, frame, mode="overwrite", **options):
    frame.write.format("paimon").mode(mode).options(**options).save(table.path)


def refusal(call):
    with pytest.raises(Exception) as caught:  # Spark's class; judged below
        call()
    error = typed_error(str(caught.value)) or caught.value
    assert isinstance(error, UnsupportedOption), error
    return error


@pytest.mark.parametrize(
    ("session", "option", "left"),
    [
        ("dynamic", None, [("a", 9), ("b", 2)]),
        ("dynamic", "static", [("a", 9)]),
        ("static", "dynamic", [("a", 9), ("b", 2)]),
        ("static", None, [("a", 9)]),
        (None, None, [("a", 9)]),
    ],
)
def test_an_overwrite_goes_by_the_option_and_then_by_the_session(spark, table, settings, session, option, left):  # noqa: PLR0917  # fixtures and parameters
    if session is not None:
        settings(OVERWRITE_MODE, session)
    new = spark.sql("SELECT 'a' AS day, 9L AS id")
    save(table, new, **({} if option is None else {"partitionOverwriteMode": option}))
    assert tuples(table) == left


@pytest.mark.parametrize(("session", "left"), [("dynamic", BOTH), ("static", [])])
def test_an_overwrite_without_rows_goes_by_the_session(spark, table, settings, session, left):
    settings(OVERWRITE_MODE, session)
    for empty in (spark.createDataFrame([], "day STRING, id BIGINT"), spark.sql("SELECT 'a' AS day, id FROM range(4) WHERE id > 9")):
        save(table, empty)
        assert tuples(table) == left


def test_paimons_settings_are_honoured_or_refused_by_name(spark, table, settings):
    name, path = "spark.paimon.*.db.t.scan.snapshot-id", table.path
    table.write(pa.table({"day": ["c"], "id": [3]}))
    settings(name, "1")
    on_spark = Table.open(path, spark=spark)
    assert sql(spark, f"SELECT count(*) AS n FROM paimon.`{path}`").first().n == 2
    assert on_spark.scan().count() == 2
    assert on_spark.scan(snapshot=2).count() == 3, "an argument wins"
    assert refusal(lambda: spark.read.format("paimon").load(path).collect()).option == "spark.paimon.scan.snapshot-id"
    assert spark.read.format("paimon").option("scan.snapshot-id", "1").load(path).count() == 2
    sql(spark, f"INSERT INTO paimon.`{path}` VALUES ('d', 4)")
    assert len(tuples(table)) == 4


def test_paimons_settings_of_writes(spark, table, settings):
    settings("spark.paimon.file.compression", "lz4")
    sql(spark, f"INSERT INTO paimon.`{table.path}` VALUES ('d', 4)")
    (file,) = Path(table.path).glob("day=d/*/*.parquet")
    assert pq.read_metadata(file).row_group(0).column(1).compression == "LZ4"
    new = spark.sql("SELECT 'e' AS day, 5L AS id")
    assert refusal(lambda: save(table, new, "append")).option == "spark.paimon.file.compression"
    save(table, new, "append", **{"file.compression": "lz4"})
    assert ("e", 5) in tuples(table)


def test_a_setting_that_cannot_be_honoured_is_refused_when_it_is_set(spark, table, settings):
    for text in (
        "SET spark.paimon.bucket=3",
        "SET `spark.paimon.*.db.t.write.hive-style-dynamic-partition.enabled` = true",
        "SET spark.paimon.nonsense = 1",
    ):
        with pytest.raises(UnsupportedOption, match=r"spark\.paimon\."):
            sql(spark, text)
    settings("spark.paimon.branch", "b")
    for call in (lambda: Table.open(table.path, spark=spark).scan(), lambda: sql(spark, f"DELETE FROM paimon.`{table.path}`")):
        assert refusal(call).option == "spark.paimon.branch"
    assert tuples(table) == BOTH


def test_variants_and_null_rows_are_inserted(spark, tmp_path):
    table = Table.create(tmp_path / "v", "id BIGINT, v VARIANT, s ROW<a ROW<b INT NOT NULL> NOT NULL, w VARIANT>")
    values = ["parse_json('{\"a\":1}'), NULL", "NULL, named_struct('a', named_struct('b', 1), 'w', parse_json('2'))", "NULL, NULL"]
    for key, value in enumerate(values):
        sql(spark, f"INSERT INTO paimon.`{table.path}` SELECT {key}L AS id, {value}")
    save(table, spark.sql("SELECT 3L AS id, parse_json('3') AS v, CAST(NULL AS STRUCT<a: STRUCT<b: INT>, w: VARIANT>) AS s"), "append")
    number = {"value": b"\x0c\x02", "metadata": b"\x01\x00\x00"}
    found = table.scan(order_by="id").to_arrow().to_pylist()
    assert [row["s"] for row in found] == [None, {"a": {"b": 1}, "w": number}, None, None]
    assert [None if row["v"] is None else row["v"]["value"] for row in found] == [b"\x02\x01\x00\x00\x02\x0c\x01", None, None, b"\x0c\x03"]
    assert spark.read.format("paimon").load(table.path).count() == 4
    assert Table.open(table.path, spark=spark).scan("id = 0").to_spark().first().s is None
