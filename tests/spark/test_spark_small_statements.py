"""Small statements and DataFrames: what the client does itself has the results of Spark's jobs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from paimon_base.thresholds import use_thresholds
from pyspark_paimon import Catalog, SchemaMismatch, Table, sql
from pyspark_paimon.spark.client.engine import SparkEngine
from tests.build import tuples

pytestmark = [pytest.mark.spark, pytest.mark.small]
TYPES = {
    "id": "BIGINT NOT NULL",
    "flag": "BOOLEAN",
    "n": "INT COMMENT 'a number'",
    "d": "DOUBLE",
    "f": "FLOAT",
    "price": "DECIMAL(10, 2)",
    "s": "STRING",
    "day": "DATE",
    "at": "TIMESTAMP(6)",
    "zoned": "TIMESTAMP_LTZ(6)",
    "b": "BYTES",
}
DDL = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
SPARK_ROWS = """
    SELECT id, id % 2 = 0 AS flag, cast(id AS INT) * 10 AS n, cast('NaN' AS DOUBLE) AS d, cast(-0.0 AS FLOAT) AS f,
        cast(id AS DECIMAL(10, 2)) AS price, concat('é', id) AS s, DATE'1969-12-31' AS day,
        TIMESTAMP_NTZ'1969-12-31 23:59:59.999999' AS at, TIMESTAMP_LTZ'2024-03-10 02:30:00 America/New_York' AS zoned,
        CAST('bytes' AS BINARY) AS b
    FROM range(5)
    UNION ALL SELECT 9, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
"""


@pytest.fixture(scope="module")
def database(spark, tmp_path_factory):
    catalog = Catalog(tmp_path_factory.mktemp("warehouse"))
    catalog.create_database("db")
    catalog.create_table("db.t", DDL, primary_keys=["id"], options={"bucket": "1"})
    sql(spark, f"INSERT INTO db.t {SPARK_ROWS}", catalog=catalog)
    return catalog


@pytest.fixture
def executions(monkeypatch):
    """Plans and commands that the client lets Spark run."""
    from pyspark.sql.connect.client.core import SparkConnectClient

    noted = []
    original = SparkConnectClient._execute_and_fetch_as_iterator

    def record(self, req, *args, **kwargs):
        noted.append(req.plan.WhichOneof("op_type"))
        return original(self, req, *args, **kwargs)

    monkeypatch.setattr(SparkConnectClient, "_execute_and_fetch_as_iterator", record)
    return noted


def described(frame: Any) -> tuple[str, list[str]]:
    """Return columns and rows of a result."""
    return frame.schema.json(), sorted(map(repr, frame.collect()))


PLAIN = [
    "SELECT * FROM {t}",
    "SELECT * FROM {t} WHERE id = 3",
    "SELECT s, id AS key FROM {t} x WHERE x.n > 10 AND s LIKE 'é%'",
    "SELECT x.price, x.n FROM {t} AS x WHERE flag",
    "SELECT n FROM {t} WHERE id < 0",
    "SELECT d, f FROM {t} WHERE d IS NOT NULL",
    "SELECT day AS `a b`, at, zoned, b FROM {t} WHERE zoned > '2020-01-01'",
]
OTHERS = [
    "SELECT N, ID FROM {t} WHERE id = 3",
    "SELECT id, id FROM {t} WHERE id = 3",
    "SELECT id AS a, n AS A FROM {t} WHERE id = 3",
    "SELECT n + 1 FROM {t} WHERE id = 3",
    "SELECT DISTINCT flag FROM {t}",
    "SELECT n FROM {t} ORDER BY n LIMIT 2",
    "SELECT id FROM {t} WHERE upper(s) = 'É3'",
    "SELECT id FROM {t} WHERE id = (SELECT max(id) FROM {t})",
    "SELECT * EXCEPT (d) FROM {t} WHERE id = 3",
    "SELECT *, n FROM {t} WHERE id = 3",
    "SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id WHERE a.id = 3",
    "SELECT x FROM {t} AS t(x, c, e, g, h, i, j, k, l, m, o) WHERE x = 3",
    "WITH c AS (SELECT n FROM {t}) SELECT n FROM c WHERE n = 10",
    "SELECT id FROM {t} WHERE id = 3 UNION ALL SELECT n FROM {t} WHERE id = 2",
    "SELECT id FROM {t} TABLESAMPLE (100 PERCENT) WHERE id = 3",
    "SELECT current_date IS NULL FROM {t} WHERE id = 3",
    "SELECT /*+ COALESCE(1) */ id FROM {t} WHERE id = 3",
    "FROM {t} |> WHERE id = 3 |> SELECT id",
]


@pytest.mark.parametrize("text", [*PLAIN, *OTHERS])
def test_a_small_result_is_that_of_spark(spark, database, executions, text):
    statement = text.replace("{t}", "db.t")
    frame = sql(spark, statement, catalog=database)
    assert text in OTHERS or executions == []
    small = described(frame)
    with use_thresholds(driver_bytes=0, sent_bytes=0):
        assert small == described(sql(spark, statement, catalog=database))


DEPENDENT = [
    "SELECT id FROM {t} WHERE n <> '1.9'",
    "SELECT id FROM {t} WHERE n = '1_0'",
    "SELECT id FROM {t} WHERE n = '10.0'",
    "SELECT id FROM {t} WHERE f <> 16777217",
    "SELECT id FROM {t} WHERE d < 1e309",
    "SELECT id FROM {t} WHERE at <> '1969-12-31 23:59:59.9999991'",
    "SELECT count(*) FROM {t} WHERE n <> '1.9'",
    "SELECT count(*) FROM {t} WHERE at <> '1969-12-31 23:59:59.9999991'",
    "SELECT id FROM {t} WHERE s LIKE 'é!%' ESCAPE 'xy'",
    "SELECT id FROM {t} WHERE s <> 'it''s'",
    "SELECT id FROM {t} WHERE s <> '${spark.sql.session.timeZone}'",
    "SELECT id AS `${spark.sql.session.timeZone}` FROM {t} WHERE id = 3",
    "SELECT ID FROM {t} WHERE ID = 3",
    "SELECT T.id FROM {t} WHERE id = 3",
    "SELECT +id FROM {t} WHERE id = 3",
    "SELECT id, FROM {t} WHERE id = 3",
    "SELECT id AS 'x' FROM {t} WHERE id = 3",
    "SELECT id $x FROM {t} WHERE id = 3",
    "SELECT id FROM {t} WHERE n ISNULL",
]
"""Queries whose rows, names or errors depend on settings, or that Spark reads otherwise than sqlglot."""


def outcome(call: Any) -> object:
    """Return columns and rows of a result, or the kind of its error."""
    try:
        return described(call())
    except Exception as error:  # noqa: BLE001  # both roads must raise it
        return type(error).__name__


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [{}, {"spark.sql.ansi.enabled": "false"}, {"spark.sql.caseSensitive": "true"}, {"spark.sql.parser.escapedStringLiterals": "true"}],
    ids=["plain", "without ANSI", "case sensitive", "escaped texts"],
)
def test_settings_mean_the_same_for_small_results(spark, database, settings):
    before = {key: spark.conf.get(key) for key in settings}
    wrong = []
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        for text in DEPENDENT:
            statement = text.replace("{t}", "db.t")
            small = outcome(lambda: sql(spark, statement, catalog=database))  # noqa: B023  # called at once
            with use_thresholds(driver_bytes=0, sent_bytes=0):
                if small != outcome(lambda: sql(spark, statement, catalog=database)):  # noqa: B023  # as above
                    wrong.append(text)
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    assert wrong == []


@pytest.mark.parametrize("text", PLAIN)
def test_the_rows_of_a_plain_select_are_its_result(spark, database, text):
    assert type(sql(spark, text.replace("{t}", "db.t"), catalog=database)._plan).__name__ == "LocalRelation"


def test_a_wrong_query_is_refused_at_once(spark, database):
    for text in ("SELECT missing FROM db.t WHERE id = 3", "SELECT n + FROM db.t", "SELECT id FROM db.t ORDER BY missing"):
        with pytest.raises(Exception, match=r"missing|PARSE_SYNTAX_ERROR|FROM"):
            sql(spark, text, catalog=database)


def test_a_temporary_view_may_be_a_plain_select(spark, database):
    sql(spark, "CREATE OR REPLACE TEMPORARY VIEW plain_select AS SELECT id AS key FROM db.t WHERE id < 2", catalog=database)
    assert sorted(row.key for row in spark.sql("SELECT key FROM plain_select").collect()) == [0, 1]


CELLS = [
    "TRUE",
    "NULL",
    "7",
    "-128",
    "128",
    "007",
    "2147483648",
    "0.5",
    "-0.0",
    "1e2",
    "1.005",
    "'a'",
    "'12'",
    "DATE '2024-02-29'",
    "1 + 1",
]


@pytest.mark.slow
@pytest.mark.parametrize("column", [name for name in TYPES if name != "id"])
def test_values_are_stored_as_those_of_a_query(spark, tmp_path, column):
    catalog = Catalog(tmp_path)
    catalog.create_table("default.values", f"id BIGINT, {column} {TYPES[column]}", primary_keys=["id"], options={"bucket": "1"})
    catalog.create_table("default.query", f"id BIGINT, {column} {TYPES[column]}", primary_keys=["id"], options={"bucket": "1"})
    for number, cell in enumerate(CELLS):
        outcomes = []
        for table, query in (("values", f"VALUES ({number}, {cell})"), ("query", f"SELECT {number} AS id, {cell} AS v")):
            try:
                sql(spark, f"INSERT INTO {table} {query}", catalog=catalog)
                outcomes.append("stored")
            except Exception as error:  # noqa: BLE001  # both must refuse it
                outcomes.append(type(error).__name__)
        assert outcomes[0] == outcomes[1], cell
    stored, of_query = (repr(sorted(tuples(catalog.table(name).scan()), key=lambda row: row[0])) for name in ("values", "query"))
    assert stored == of_query


@pytest.fixture
def write_jobs(monkeypatch):
    """Writes of the engine that start a job."""
    noted = []
    original = SparkEngine._write

    def record(self, *args):
        noted.append(args)
        return original(self, *args)

    monkeypatch.setattr(SparkEngine, "_write", record)
    return noted


@pytest.mark.parametrize("options", [{"bucket": "2"}, {"bucket": "-1"}], ids=["fixed", "dynamic"])
def test_a_small_frame_is_written_without_a_write_job(spark, tmp_path, write_jobs, options):
    tables = [Table.create(tmp_path / name, DDL, primary_keys=["id"], options=options, spark=spark) for name in ("small", "job")]
    frame = spark.sql(SPARK_ROWS)
    assert tables[0].write(frame).rows == 6
    assert write_jobs == []
    with use_thresholds(driver_bytes=0):
        assert tables[1].write(frame).rows == 6
    assert len(write_jobs) == 1
    small, job = (repr(tuples(table.scan(order_by="id", limit=10))) for table in tables)
    assert small == job


def test_larger_and_nested_frames_are_written_by_a_job(spark, tmp_path, write_jobs):
    table = Table.create(tmp_path / "t", "id BIGINT, tags ARRAY<STRING>", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    table.write(spark.sql("SELECT 1L AS id, array('a') AS tags"))
    assert len(write_jobs) == 1
    with use_thresholds(sent_bytes=100):
        table.write(spark.range(100).selectExpr("id"), missing="null")
    assert len(write_jobs) == 2
    # Spark estimates the size of one row.
    with use_thresholds(sent_bytes=1000):
        table.write(spark.sql("SELECT explode(sequence(1000L, 5000L)) AS id"), missing="null")
    assert len(write_jobs) == 3
    assert table.count() == 100 + 4001


def test_a_job_writes_the_rows_that_were_fetched(spark, tmp_path, write_jobs):
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}
    table = Table.create(tmp_path / "t", "id BIGINT, n INT", primary_keys=["id"], options=options, spark=spark)
    table.write(spark.sql("SELECT id, 1 AS n FROM range(5)"))
    with use_thresholds(driver_bytes=1):  # the compaction that is due is too large for the driver
        table.write(spark.sql("SELECT id, 2 AS n FROM range(3)"))
    assert [type(rows).__name__ for rows, *_ in write_jobs] == ["ArrowRows"]
    assert tuples(table.scan(order_by="id", limit=9)) == [(0, 2), (1, 2), (2, 2), (3, 1), (4, 1)]


def test_a_frame_without_columns_is_refused(spark, tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    with pytest.raises(SchemaMismatch):
        table.write(spark.range(1).select())


def test_a_result_follows_its_view(spark, database):
    spark.range(2).createOrReplaceTempView("followed")
    frame = sql(spark, "SELECT * FROM followed", catalog=database)
    spark.range(3).selectExpr("id AS other").createOrReplaceTempView("followed")
    assert frame.toArrow().to_pydict() == {"other": [0, 1, 2]}


def test_a_small_frame_with_a_known_id_is_neither_read_nor_written_again(spark, tmp_path, write_jobs):
    table = Table.create(tmp_path / "t", "id BIGINT, n INT", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    first = table.write(spark.sql("SELECT 1L AS id, 1 AS n"), commit_id="nightly")
    again = table.write(spark.sql("SELECT 1L AS id, cast(raise_error('read again') AS INT) AS n"), commit_id="nightly")
    assert (first.replayed, again.replayed, again.snapshot_id) == (False, True, first.snapshot_id)
    assert write_jobs == []


def test_an_error_in_a_small_frame_is_its_own(spark, tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, n INT", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    with pytest.raises(Exception, match="no such rate"):
        table.write(spark.sql("SELECT id, cast(raise_error('no such rate') AS INT) AS n FROM range(2)"))
    assert table.snapshots().num_rows == 0


def test_rows_of_another_type_are_refused_by_name(spark, tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, n INT", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    with pytest.raises(Exception, match="'n'"):
        table.write(spark.createDataFrame(pa.table({"id": [1], "n": ["one"]})))
