"""Filters on TIMESTAMP_LTZ keep the rows that ``DataFrame.where`` keeps, in whatever zone the session is."""

from __future__ import annotations

import datetime as dt

import pytest
from pyspark.sql import functions as sf

import pyspark_paimon
from pyspark_paimon import Table

pytestmark = pytest.mark.spark

EDGES = [
    "2024-03-31T00:45:00", "2024-03-31T01:15:00", "2024-10-27T00:30:00", "2024-10-27T01:30:00", "2024-03-10T07:30:00", "2024-11-03T05:30:00",
    "2024-11-03T06:30:00", "2024-04-06T15:15:00", "2023-12-31T23:30:00", "2024-01-01T05:10:00", "1969-12-31T22:15:00", "1900-01-01T00:00:00",
]  # fmt: skip
FILTERS = [
    "hour(z) = 2", "hour(z) BETWEEN 1 AND 3", "CAST(z AS DATE) = DATE '2024-03-31'", "CAST(z AS DATE) <> DATE '2024-10-27'",
    "CAST(z AS DATE) < DATE '2024-01-01'", "year(z) = 2024", "month(z) <> 3", "z >= TIMESTAMP '2024-03-31 02:30:00'", "z < '2024-10-27 02:15:00'",
    "z = TIMESTAMP '2024-10-27 01:30:00 UTC'", "z <= TIMESTAMP '2024-10-27 02:30:00 Europe/Berlin'", "z > DATE '2024-01-01'",
    "CAST(z AS TIMESTAMP_NTZ) = t", "CAST(t AS TIMESTAMP) = z", "z = t", "t > z", "date_trunc('hour', z) = TIMESTAMP '2024-10-27 02:00:00'",
    "date_trunc('day', z) < z", "datediff(z, DATE '2024-03-31') = 0", "date_add(z, 1) = DATE '2024-11-04'", "hour(t) = 1",
    "t = TIMESTAMP_NTZ '2024-03-31 01:15:00'", "coalesce(z, t) > TIMESTAMP '2024-06-01 00:00:00'", "z IN (TIMESTAMP '2024-11-03 01:30:00')",
    "NOT (CAST(z AS DATE) >= DATE '2024-03-31')", "dayofweek(z) = 1 OR minute(z) = 45",
]  # fmt: skip
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "+05:30"]


@pytest.fixture
def zone(spark, request):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


def make(spark, path) -> Table:
    table = Table.create(
        path / "t", "id BIGINT, z TIMESTAMP_LTZ(6), t TIMESTAMP(6)", primary_keys=["id"], options={"bucket": "1"}, spark=spark
    )
    instants = [dt.datetime.fromisoformat(text) for text in EDGES]
    table.write([{"id": at, "z": one.replace(tzinfo=dt.UTC), "t": one} for at, one in enumerate(instants)])
    return table


@pytest.mark.parametrize(
    ("zone", "filters"),
    [
        *((zone, FILTERS[at % 3 :: 3]) for at, zone in enumerate(ZONES)),
        *(pytest.param(zone, FILTERS, marks=pytest.mark.long) for zone in ZONES),
    ],
    ids=[*ZONES, *(f"{zone}, every filter" for zone in ZONES)],
    indirect=["zone"],
)
def test_a_filter_keeps_the_rows_that_where_keeps(spark, tmp_path, zone, filters):
    table = make(spark, tmp_path)
    frame = spark.read.format("pyspark_paimon").load(table.path)
    wrong = []
    for text in filters:
        expected = sorted(row.id for row in frame.where(text).select("id").collect())
        found = {
            "over Spark": table.scan(text, columns=["id"]).to_arrow()["id"].to_pylist(),
            "as a Column": table.scan(sf.expr(text), columns=["id"]).to_arrow()["id"].to_pylist(),
        }
        with pyspark_paimon.time_zone(zone):
            found["in process"] = Table.open(table.path).scan(text, columns=["id"]).to_arrow()["id"].to_pylist()
        wrong += [(text, way, sorted(ids), expected) for way, ids in found.items() if sorted(ids) != expected]
    assert not wrong


@pytest.mark.parametrize("zone", ["Europe/Berlin"], indirect=True)
def test_changes_and_statements_read_the_sessions_clocks(spark, tmp_path, zone):
    table = make(spark, tmp_path)

    def counted(condition: str) -> int:
        return spark.read.format("pyspark_paimon").load(table.path).where(condition).count()

    gone = counted("CAST(z AS DATE) = DATE '2024-10-27'")
    assert table.delete("CAST(z AS DATE) = DATE '2024-10-27'").rows == gone == 2
    held = counted("hour(z) = 3")
    pyspark_paimon.sql(spark, f"DELETE FROM paimon.`{table.path}` WHERE hour(z) = 3")
    assert table.count() == len(EDGES) - gone - held
    changed = counted("z >= TIMESTAMP '2024-03-31 03:10:00'")
    source = spark.createDataFrame([(at,) for at in range(len(EDGES))], "id BIGINT")
    merge = table.merge(source, on="id").when_matched_update({"t": "CAST(t.z AS TIMESTAMP_NTZ)"}, "t.z >= TIMESTAMP '2024-03-31 03:10:00'")
    assert merge.execute().updated == changed
    assert table.scan("CAST(z AS TIMESTAMP_NTZ) = t").count() == counted("CAST(z AS TIMESTAMP_NTZ) = t") >= changed
