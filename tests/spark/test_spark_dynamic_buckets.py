"""Dynamic buckets over Spark: keys keep their bucket, whoever writes them and from wherever they come."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lsm.bucket.hash import bucket_hashes
from manifest.store import FileStore
from pyspark_paimon import Table
from pyspark_paimon.spark.client.bucket_expr import BucketKey, with_hash

pytestmark = pytest.mark.spark

DDL = "id BIGINT, city STRING"
SMALL = {"dynamic-bucket.target-row-num": "20", "dynamic-bucket.assigner-parallelism": "2"}


def rows(*ids: int, city: str = "x") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "city": [f"{city}{i}" for i in ids]})


def content(path: object) -> dict[int, str]:
    table = Table.open(path)
    found = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key lives in two buckets"
    return {row["id"]: row["city"] for row in found}


def frame(spark, first: int, last: int, city: str):
    return spark.range(first, last, 1, 3).selectExpr("id", f"concat('{city}', id) AS city")


@pytest.mark.slow
def test_writes_of_dataframes_local_rows_and_processes_share_one_assignment(spark, tmp_path):
    path = tmp_path / "t"
    table = Table.create(path, DDL, primary_keys=["id"], options=SMALL, spark=spark)
    model: dict[int, str] = {}
    table.write(frame(spark, 0, 50, "a"))
    model |= {i: f"a{i}" for i in range(50)}
    Table.open(path).write(rows(*range(40, 70), city="b"))
    model |= {i: f"b{i}" for i in range(40, 70)}
    table.write(rows(*range(60, 90), city="c"))
    model |= {i: f"c{i}" for i in range(60, 90)}
    table.write(frame(spark, 30, 120, "d"))
    model |= {i: f"d{i}" for i in range(30, 120)}
    assert content(path) == model
    table.compact(full=True)
    assert table.delete("id >= 100").rows == 20
    assert content(path) == {key: value for key, value in model.items() if key < 100}
    store = FileStore.open(path)
    entries = store.index_entries(store.snapshots.latest())
    assert sum(entry.row_count for entry in entries) == 120
    assert max(entry.row_count for entry in entries) <= 20


@pytest.mark.long
def test_partitions_assign_their_keys_on_their_own(spark, tmp_path):
    path = tmp_path / "t"
    table = Table.create(path, "p STRING, id STRING, v INT", primary_keys=["p", "id"], partition_keys=["p"], options=SMALL, spark=spark)
    source = spark.range(0, 90).selectExpr("concat('p', id % 2) AS p", "concat('key-', id div 2) AS id", "cast(id AS int) AS v")
    table.write(source)
    table.write(source.where("v % 3 = 0").selectExpr("p", "id", "v + 1000 AS v"))
    found = Table.open(path).scan().to_arrow().to_pylist()
    assert sorted(row["v"] % 1000 for row in found) == list(range(90))
    assert all((row["v"] >= 1000) == (row["v"] % 1000 % 3 == 0) for row in found)


def test_a_plain_dataframe_write_finds_the_keys_buckets(spark, tmp_path):
    path = tmp_path / "t"
    Table.create(path, DDL, primary_keys=["id"], options=SMALL, spark=spark).write(rows(*range(30)))
    frame(spark, 10, 60, "z").write.format("paimon").mode("append").save(str(path))
    assert content(path) == {i: f"{'z' if i >= 10 else 'x'}{i}" for i in range(60)}


@pytest.mark.long
def test_an_overwrite_over_spark_starts_anew(spark, tmp_path):
    path = tmp_path / "t"
    table = Table.create(path, DDL, primary_keys=["id"], options=SMALL, spark=spark)
    table.write(frame(spark, 0, 50, "a"))
    table.write(frame(spark, 40, 60, "b"), mode="overwrite")
    table.write(frame(spark, 55, 65, "c"))
    assert content(path) == {i: f"{'c' if i >= 55 else 'b'}{i}" for i in range(40, 65)}


def test_a_key_that_spark_cannot_hash_is_assigned_on_the_driver(spark, tmp_path):
    path = tmp_path / "t"
    table = Table.create(path, "id DECIMAL(30, 2), city STRING", primary_keys=["id"], options=SMALL, spark=spark)
    source = spark.range(0, 40).selectExpr("cast(id AS decimal(30, 2)) AS id", "concat('a', id) AS city")
    table.write(source)
    table.write(source.where("id >= 20").selectExpr("id", "'b' AS city"))
    assert sorted(content(path).values()) == sorted([f"a{i}" for i in range(20)] + ["b"] * 20)


def test_the_hash_in_sql_is_the_hash_of_the_index_files(spark):
    from manifest.types.data_type import DataType
    from sparkexpr.values.column_type import ColumnType, Kind

    values = ["", "a", "seven b", "eight by", "a longer text than that", "日本"]
    source = spark.createDataFrame(pa.table({"k": values}))
    keys = [BucketKey("k", ColumnType(Kind.VARCHAR))]
    found = {row["k"]: row["h"] for row in with_hash(source, keys, "h").collect()}
    assert [found[value] for value in values] == bucket_hashes([pa.array(values)], [DataType(Kind.VARCHAR)]).tolist()


@pytest.mark.parametrize("local", [pytest.param(False, marks=pytest.mark.long), True], ids=["dataframe", "local rows"])
def test_a_race_for_new_keys_is_run_again(spark, tmp_path, monkeypatch, local):
    from pyspark_paimon.spark.client.engine import SparkEngine

    path = tmp_path / "t"
    table = Table.create(path, DDL, primary_keys=["id"], options=SMALL, spark=spark)
    table.write(rows(*range(15)))
    rival, run, runs = Table.open(path), SparkEngine._run, []

    def beaten_once(self, job, commit_id):
        runs.append(job)
        if len(runs) == 1:
            rival.write(rows(*range(10, 40), city="r"))
        return run(self, job, commit_id)

    monkeypatch.setattr(SparkEngine, "_run", beaten_once)
    table.write(rows(*range(20, 50), city="m") if local else frame(spark, 20, 50, "m"))
    assert len(runs) == (1 if local else 2), "local rows are assigned by their task, after the rival"
    expected = {i: f"x{i}" for i in range(10)} | {i: f"r{i}" for i in range(10, 20)} | {i: f"m{i}" for i in range(20, 50)}
    assert content(path) == expected
