"""SQL, ``df.write`` and the errors that Spark's users see."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from sql_statements import ALL, D1, D2, OURS, REFUSED, WORKS, Feature, docs_table

import pyspark_paimon
from paimon_base.errors import InvalidArgument
from pyspark_paimon import Catalog, PaimonError, Table
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.spark.wire.errors import typed_error
from tests.build import keyed

spark_tests = pytest.mark.spark
PAGE = Path(__file__).parent.parent.parent / "docs" / "spark" / "sql-reference.md"


def content(table: Table) -> list[tuple]:
    rows = (tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
    return sorted((tuple(str(value) if isinstance(value, dt.date) else value for value in row) for row in rows), key=repr)


def refill(table: Table, rows: list[tuple]) -> None:
    if content(table) != sorted(rows, key=repr):
        columns = [list(column) for column in zip(*rows, strict=True)]
        if columns and isinstance(columns[0][0], str):
            columns[0] = [dt.date.fromisoformat(day) for day in columns[0]]
        table.write(pa.table(columns, names=table.schema.names), mode="overwrite", options={"dynamic-partition-overwrite": "false"})


@pytest.fixture
def table(tmp_path):
    made = Table.create(tmp_path / "t", "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "2"})
    refill(made, ALL)
    return made


DAYS = [(D1, 1, "b"), (D2, 5, "a")]


@pytest.fixture
def days(tmp_path):
    keys = {"primary_keys": ["day", "id"], "partition_keys": ["day"]}
    made = Table.create(tmp_path / "days", "day DATE, id INT, v STRING", **keys, options={"bucket": "1"})
    refill(made, DAYS)
    return made


@pytest.fixture(scope="module")
def parquet(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("parquet") / "lands"
    spark.sql("SELECT * FROM VALUES (1L, 'NO'), (2L, 'PE') AS lands(id, land)").write.parquet(str(path))
    spark.read.parquet(str(path)).createOrReplaceTempView("sql_lands")
    return "sql_lands"


@pytest.fixture
def names(spark, table, days, parquet):
    number = uuid.uuid4().hex[:8]
    names = {key: f"sql_{key}_{number}" for key in ("t", "d", "v", "new")}
    names |= {"path": table.path, "days": days.path, "parquet": parquet}
    spark.sql("CREATE TABLE {t} USING paimon OPTIONS (path '{path}')".format(**names))
    spark.sql("CREATE TABLE {d} USING paimon OPTIONS (path '{days}')".format(**names))
    spark.sql("CREATE TEMPORARY VIEW {v} USING paimon OPTIONS (path '{path}')".format(**names))
    yield names
    for key in ("t", "d", "new"):
        spark.sql(f"DROP TABLE IF EXISTS {names[key]}")
    spark.catalog.clearCache()


def told(error: Exception) -> str:
    """What an error says, its type first if it is one of ours."""
    typed = error if isinstance(error, PaimonError) else typed_error(str(error))
    return f"{type(typed).__name__}: {typed}" if typed is not None else str(error)


def in_turn(feature: Feature):
    """A statement of ours; those that change rows or travel in time are tried each time, the others in the long tests."""
    quick = feature.shown.startswith(("`UPDATE", "`MERGE", "`VERSION"))
    return pytest.param(feature, id=shown(feature), marks=() if quick else pytest.mark.long)


def shown(feature: Feature) -> str:
    return re.sub(r"[^A-Za-z]+", "-", feature.shown)[:50]


def named(rows: list[tuple], names: dict[str, str]) -> list[tuple]:
    return [tuple(value.format(**names) if isinstance(value, str) else value for value in row) for row in rows]


@pytest.fixture
def warehouse(tmp_path):
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_database("db")
    return catalog


@spark_tests
@pytest.mark.parametrize("feature", [*WORKS, *REFUSED, *map(in_turn, OURS)], ids=shown)
def test_every_statement_does_what_the_docs_say(spark, names, table, days, warehouse, feature: Feature):  # noqa: PLR0917
    run = partial(pyspark_paimon.sql, spark, catalog=warehouse) if feature in OURS else spark.sql
    for example in feature.examples:
        sql = example.sql.format(**names)
        if example.refused is None:
            rows = sorted((tuple(row) for row in run(sql).collect()), key=repr)
            assert example.returns is None or rows == sorted(named(example.returns, names), key=repr), sql
        else:
            with pytest.raises(Exception) as raised:  # of Spark's many classes; the text is judged below
                run(sql).collect()
            assert re.search(example.refused, told(raised.value), re.DOTALL), f"{sql}: {told(raised.value)}"
        for made, rows, wanted in ((table, ALL, example.leaves), (days, DAYS, example.leaves_days)):
            if wanted is not None:
                assert content(made) == sorted(wanted, key=repr), sql
                refill(made, rows)


def test_the_docs_list_exactly_the_statements_that_are_tested():
    text = PAGE.read_text()
    shown = text[text.index("<!-- sql:begin -->") : text.index("<!-- sql:end -->") + len("<!-- sql:end -->")]
    assert shown == docs_table()
    assert all(feature.examples for feature in (*WORKS, *REFUSED, *OURS))
    assert all(any(example.refused for example in feature.examples) for feature in REFUSED)


@spark_tests
def test_a_temporary_view_stays_on_its_snapshot_and_a_catalog_table_does_not(spark, names, table):
    spark.sql("INSERT INTO {v} VALUES (4, 'Rome')".format(**names))
    assert spark.sql("SELECT * FROM {v}".format(**names)).count() == 3
    assert spark.sql("SELECT * FROM {t}".format(**names)).count() == 4


@spark_tests
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_that_do_not_fit_are_refused_with_and_without_ansi(spark, tmp_path, ansi):
    table = keyed(tmp_path / "t", "id INT, at TIMESTAMP(6) WITH LOCAL TIME ZONE")
    view = f"sql_ansi_{ansi}"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view} USING paimon OPTIONS (path '{table.path}')")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    try:
        with pytest.raises(Exception, match="CAST_OVERFLOW"):
            spark.sql(f"INSERT INTO {view} VALUES (3000000000, NULL)")
        spark.sql(f"INSERT INTO {view} VALUES (1, TIMESTAMP'2026-07-01 10:00:00')")
        rows = spark.sql("SELECT 3000000000 AS id, CAST(NULL AS TIMESTAMP) AS at")
        with pytest.raises(Exception) as raised:  # Spark's class; judged below
            rows.write.format("paimon").mode("append").save(table.path)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert re.match("SchemaMismatch: column 'id'", told(raised.value))
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "at": dt.datetime(2026, 7, 1, 12, 30, tzinfo=dt.UTC)}]


def plain(frame, mode="append", **options):
    return frame.write.format("paimon").mode(mode).options(**options)


@spark_tests
def test_a_dataframe_is_written_by_name_with_kinds_by_path_and_by_name_of_a_table(spark, names, table):
    plain(spark.sql("SELECT 'Bonn' AS city, 4L AS id")).save(table.path)
    plain(spark.sql("SELECT 1L AS id, '' AS city, '-D' AS _row_kind")).save(table.path)
    spark.sql("SELECT 'Rome' AS city, 5L AS id").writeTo(names["t"]).option("path", table.path).append()
    assert content(table) == [(2, "Lima"), (3, None), (4, "Bonn"), (5, "Rome")]
    refused = {
        "InvalidArgument.*insertInto": lambda df: df.write.insertInto(names["t"]),
        "ErrorIfExists": lambda df: plain(df, "error").save(table.path),
        "Ignore": lambda df: plain(df, "ignore").save(table.path),
        "partitioning or clustering columns do not match": lambda df: plain(df).partitionBy("city").save(table.path),
        "does not support dynamic overwrite": lambda df: df.writeTo(names["t"]).option("path", table.path).overwritePartitions(),
        r"SchemaMismatch.*'CITY' is unknown.*write it 'city'": lambda df: plain(df.withColumnRenamed("city", "CITY")).save(table.path),
        "SchemaMismatch.*'more' is unknown": lambda df: plain(df.selectExpr("*", "1 AS more")).save(table.path),
        "SchemaMismatch.*'id' is missing": lambda df: plain(df.drop("id")).save(table.path),
        "UnsupportedOption.*'replaceWhere'.*overwrite-partition": lambda df: plain(df, "overwrite", replaceWhere="id = 1").save(table.path),
        "UnsupportedOption.*'scan.snapshot-id': is an option of reads": lambda df: plain(df, **{"scan.snapshot-id": "1"}).save(table.path),
    }
    for text, write in refused.items():
        with pytest.raises(Exception) as raised:  # Spark's classes and ours; judged below
            write(spark.sql("SELECT 9L AS id, 'x' AS city"))
        assert re.search(text, told(raised.value), re.DOTALL), told(raised.value)
    assert len(content(table)) == 4


@spark_tests
def test_an_overwrite_replaces_the_table_a_named_partition_or_those_of_the_rows(spark, days):
    new = spark.sql("SELECT DATE'2026-01-01' AS day, 9 AS id, 'new' AS v")
    plain(new, "overwrite", **{"overwrite-partition": "day=2026-01-01"}).save(days.path)
    assert content(days) == [(D1, 9, "new"), (D2, 5, "a")]
    plain(new.withColumn("id", new.id + 1), "overwrite", partitionOverwriteMode="dynamic").save(days.path)
    assert content(days) == [(D1, 10, "new"), (D2, 5, "a")]
    for mode, options, text in [
        ("overwrite", {"overwrite-partition": "day=2026-01-02"}, "InvalidArgument.*outside"),
        ("overwrite", {"overwrite-partition": "2026-01-02"}, "InvalidArgument.*give a partition like"),
        (
            "overwrite",
            {"overwrite-partition": "day=2026-01-02", "partitionOverwriteMode": "dynamic"},
            "InvalidArgument.*contradicts a dynamic overwrite",
        ),
        ("overwrite", {"dynamic-partition-overwrite": "false", "partitionOverwriteMode": "dynamic"}, "InvalidArgument.*contradict"),
        ("overwrite", {"partitionOverwriteMode": "all"}, "InvalidArgument.*static or dynamic"),
        ("append", {"overwrite-partition": "day=2026-01-02"}, "InvalidArgument.*needs mode 'overwrite'"),
    ]:
        with pytest.raises(Exception) as raised:  # Spark's class; judged below
            plain(new, mode, **options).save(days.path)
        assert re.search(text, told(raised.value), re.DOTALL), told(raised.value)
    plain(new, "overwrite").save(days.path)
    assert content(days) == [(D1, 9, "new")]


MISTAKES = {
    "no table at the path": ("TableNotFound", "/nowhere", lambda spark, path: Table.open(f"{path}/nowhere", spark=spark)),
    "a table that is there already": ("TableExists", "already", lambda spark, path: Table.create(path, "id INT", spark=spark)),
    "a wrong column in a filter": ("UnknownColumn", "'town'", lambda spark, path: Table.open(path, spark=spark).scan("town = 'x'")),
    "a filter that is no SQL": ("InvalidFilter", "id = =", lambda spark, path: Table.open(path, spark=spark).scan("id = = 1")),
    "a snapshot that is not there": ("SnapshotNotFound", "99", lambda spark, path: Table.open(path, spark=spark).scan(snapshot=99)),
    "a misspelt option": (
        "UnsupportedOption",
        "did you mean",
        lambda spark, path: Table.open(path, spark=spark).write(cities(spark), options={"target-file-sise": "1 mb"}),
    ),
    "a null in the key": ("NullInKey", "'id'", lambda spark, path: Table.open(path, spark=spark).write(cities(spark, "NULL"))),
    "a text in a number": ("SchemaMismatch", "'id'", lambda spark, path: Table.open(path, spark=spark).write(cities(spark, "'one'"))),
    "a missing column": ("SchemaMismatch", "'id'", lambda spark, path: Table.open(path, spark=spark).write(cities(spark).drop("id"))),
    "a type that no table has": (
        "UnsupportedType",
        "CalendarInterval",
        lambda spark, path: Table.open(path, spark=spark).write(spark.sql("SELECT 1L AS id, make_interval(1) AS city")),
    ),
    "rows that are no rows": ("InvalidArgument", "str", lambda spark, path: Table.open(path, spark=spark).write("rows")),
    "a wrong mode": ("InvalidArgument", "'append'", lambda spark, path: Table.open(path, spark=spark).write(cities(spark), mode="replace")),
}


def cities(spark, key: str = "1L"):
    return spark.sql(f"SELECT {key} AS id, 'x' AS city")


@spark_tests
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_over_connect_is_a_short_error_of_ours(spark, table, mistake):
    kind, text, make = MISTAKES[mistake]
    with pytest.raises(getattr(pyspark_paimon, kind)) as raised:
        make(spark, table.path)
    assert type(raised.value).__name__ == kind
    message = str(raised.value)
    assert text in message
    assert len(message) < 300
    assert len(message.splitlines()) <= 3  # a filter that is no SQL is shown with a caret under the fault
    assert content(table) == ALL


@spark_tests
def test_sparks_own_message_has_ours_without_a_traceback(spark, table):
    for attempt in (
        lambda: spark.read.format("paimon").load(f"{table.path}/nowhere").schema,
        lambda: plain(spark.range(1).selectExpr("'x' AS city")).save(table.path),
        lambda: plain(cities(spark, "nullif(1L, 1L)")).save(table.path),
    ):
        with pytest.raises(Exception, match="paimon-error") as raised:
            attempt()
        before = str(raised.value).partition("paimon-error")[0]
        assert 'File "' not in before, before
        assert len(before.splitlines()) < 6, before
        assert "JVM stacktrace" not in str(raised.value)


@pytest.mark.long
@spark_tests
def test_rows_of_another_session_are_written(spark, table):
    other = spark.newSession()
    Table.open(table.path, spark=spark).write(cities(other, "7L"))
    assert content(table) == [*ALL, (7, "x")]


@spark_tests
def test_parameters_and_versions_are_given_as_to_spark_and_delta(spark, table, days):
    catalog = Catalog(Path(table.path).parent)
    at = quote_name(days.path)

    def run(text, args):
        return pyspark_paimon.sql(spark, text.replace("{d}", f"paimon.{at}"), args, catalog=catalog)

    assert [row.id for row in run("SELECT id FROM {d} WHERE day = :day AND v <> :v", {"day": D2, "v": "it's"}).collect()] == [5]
    run("UPDATE {d} SET v = :v WHERE id = :id", {"id": 5, "v": "a\\b ':v'"})
    assert [row.v for row in run("SELECT v FROM {d} WHERE v = ? AND id = ?", ["a\\b ':v'", 5]).collect()] == ["a\\b ':v'"]
    with pytest.raises(InvalidArgument, match="':id' at position"):
        run("DELETE FROM {d} WHERE id = :id", {"ID": 5})
    first = days.scan().snapshot_id - 1
    for options in ({"versionAsOf": str(first)}, {"timestampAsOf": "2999-01-01"}):
        frame = spark.read.format("paimon").options(**options).load(days.path)
        assert [row.v for row in frame.where("id = 5").collect()] == ["a" if "versionAsOf" in options else "a\\b ':v'"]


@spark_tests
def test_session_and_text_may_be_turned_round(spark, table):
    text = f"SELECT count(*) AS n FROM paimon.`{table.path}` WHERE id < ?"
    assert pyspark_paimon.sql(text, spark, [100]).collect() == pyspark_paimon.sql(spark, text, [100]).collect()
    for wrong in ((None, text), (text, text), (text, None)):
        with pytest.raises(InvalidArgument, match="needs a Spark session and a statement"):
            pyspark_paimon.sql(*wrong)
