"""Where Spark meets a table that was opened in process: its DataFrames are fetched, its columns filter, a scan goes to it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_paimon import InvalidArgument, SchemaMismatch, Table
from tests.build import keyed

pytestmark = pytest.mark.spark
COLUMNS = "id BIGINT, city STRING, at TIMESTAMP(6), attrs MAP<STRING, INT>"
QUERY = "SELECT id, concat('city-', id) AS city, timestamp_ntz'2024-01-31 10:00:00' AS at, map('clicks', int(id)) AS attrs FROM range(4)"


@pytest.fixture
def table(tmp_path) -> Table:
    return keyed(tmp_path / "t", COLUMNS)


def test_a_connect_dataframe_is_fetched_and_written(spark, table):
    assert table.write(spark.sql(QUERY)).rows == 4
    rows = table.scan("id = 3").to_arrow().to_pylist()
    assert [(row["city"], row["attrs"], row["at"].isoformat()) for row in rows] == [("city-3", [("clicks", 3)], "2024-01-31T10:00:00")]


def test_a_pandas_on_spark_dataframe_is_fetched_and_written(spark, table):
    frame = spark.sql(QUERY).pandas_api(index_col="id").reset_index()
    assert table.write(frame).rows == 4
    with pytest.raises(InvalidArgument, match="Series"):
        table.write(frame["city"])


def test_duplicate_columns_of_a_dataframe_are_refused(spark, table):
    with pytest.raises(SchemaMismatch, match="columns named id"):
        table.write(spark.sql("SELECT id, id FROM range(2)"))
    assert table.snapshots().num_rows == 0


def test_a_column_filters_in_process_and_over_spark(spark, table):
    from pyspark.sql import functions as sf

    table.write(spark.sql(QUERY))
    wanted = (sf.col("attrs")["clicks"] >= 2) & ~sf.col("city").startswith("city-3")
    for opened in (table, Table.open(table.path, spark=spark)):
        assert opened.scan(wanted, columns=["id"]).to_arrow().to_pylist() == [{"id": 2}]


def test_a_scan_in_process_goes_to_a_session(spark, table):
    table.write(pa.table({"id": [1, 2], "city": ["a", "b"], "at": pa.nulls(2), "attrs": pa.nulls(2)}))
    scan = table.scan("id = 2", columns=["id", "city"])
    table.write(pa.table({"id": [2], "city": ["later"], "at": pa.nulls(1), "attrs": pa.nulls(1)}))
    assert [tuple(row) for row in scan.to_spark(spark).collect()] == [(2, "b")]
    with pytest.raises(InvalidArgument, match="session"):
        scan.to_spark()


@pytest.mark.long
def test_a_table_is_analyzed_alike_in_process_and_over_spark(spark, table):
    from pyspark_paimon import UnknownColumn

    table.write(spark.sql(QUERY))
    table.write(spark.sql(QUERY))
    served = Table.open(table.path, spark=spark)
    for opened, other in ((table, served), (served, table)):
        result = opened.analyze(["ID", "city", "attrs"])
        assert (result.rows, result.columns, result.snapshot_id) == (4, 3, table.snapshots().num_rows)
        assert opened.statistics() == other.statistics()
        assert opened.statistics()["distinct_count"].to_pylist() == [4, 4, None]
        assert opened.scan().count() == 4
        with pytest.raises(UnknownColumn, match="nope"):
            opened.analyze(["nope"])
    assert table.statistics(1).num_rows == 0


def test_rows_are_sorted_and_counted_alike_in_process_and_over_spark(spark, tmp_path):
    options = {"bucket": "2", "file-index.range-bitmap.columns": "price", "file-index.bitmap.columns": "city"}
    table = Table.create(tmp_path / "sorted", "id BIGINT, city STRING, price DOUBLE", primary_keys=["id"], options=options)
    prices = [None, float("nan"), 0.0, -0.0, *map(float, range(96))]
    table.write(pa.table({"id": range(100), "city": [f"city-{number % 5}" for number in range(100)], "price": prices}))
    table.compact(full=True)
    served = Table.open(table.path, spark=spark)
    for order, limit, filter_ in (
        ("price DESC, id", 3, None),
        ("price, id DESC", 5, None),
        (["price NULLS LAST", "id"], None, "city = 'city-0'"),
    ):
        scans = [opened.scan(filter_, columns=["id"], order_by=order, limit=limit) for opened in (table, served)]
        expected = scans[0].to_arrow()["id"].to_pylist()
        assert scans[1].to_arrow()["id"].to_pylist() == expected
        assert [row.id for row in scans[1].to_spark().collect()] == expected
        assert scans[1].count() == scans[0].count() == len(expected)
    assert expected[-2:] == [95, 0]
    stages = {stage.name: stage for stage in served.scan("city = 'city-0'", order_by="price", limit=2).explain().stages}
    assert stages["index city: bitmap"].note.startswith("20 rows selected")
    assert served.scan("city = 'city-9'").count() == 0
    table.write(pa.table({"id": [1, 2], "city": ["city-0"] * 2, "price": [7.0, 8.0]}))  # from here on tasks merge
    for filter_ in ("city = 'city-0'", "price > 90", None):
        scans = [opened.scan(filter_) for opened in (table, served)]
        found = [scan.aggregate({"n": "count", "id": ["sum", "min"], "price": "max", "city": ["min", "count"]}) for scan in scans]
        assert repr(found[0].to_pylist()) == repr(found[1].to_pylist())
        assert found[0].schema == found[1].schema


def test_the_tree_is_shown_alike_in_process_and_over_spark(spark, tmp_path):
    table = keyed(tmp_path / "tree", "id BIGINT, city STRING", {"write-only": "true"})
    for low in (0, 50):
        table.write(pa.table({"id": range(low, low + 60), "city": ["Oslo"] * 60}))
    served = Table.open(table.path, spark=spark)
    timed = {"made_millis": 0, "stages": ()}
    assert served.tree("id = 7").model_copy(update=timed) == table.tree("id = 7").model_copy(update=timed)
    assert served.tree("id = 7").total("kept") == 1
    assert "1 of 2 files" in served.report(tmp_path / "tree.html", "id = 7").read_text()
