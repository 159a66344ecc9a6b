"""Postponed buckets over Spark: tasks give rows the buckets of their partition, a compaction those that came without."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table

pytestmark = pytest.mark.spark

WAITING = Path(__file__).parent.parent / "golden_postponed" / "table"
DDL = "id BIGINT, p STRING, s STRING"


def content(path):
    table = Table.open(path)
    found = table.scan().to_arrow().to_pylist()
    assert len({(row["p"], row["id"]) for row in found}) == len(found), "a key lives in two buckets"
    assert table.fsck(depth="deep").problems == ()
    return {(row["p"], row["id"]): row["s"] for row in found}


def totals(path):
    rows = Table.open(f"{path}$files").scan(columns=["partition", "bucket"]).to_arrow().to_pylist()
    return {(row["partition"], row["bucket"]) for row in rows}


def test_a_compaction_gives_waiting_rows_their_buckets(spark, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(WAITING, path)
    table = Table.open(path, spark=spark)
    assert table.compact().snapshot_id is not None
    assert content(path) == {("x", 1): "a2", ("x", 3): "c", ("y", 1): "q"}
    assert all(bucket >= 0 for _, bucket in totals(path))
    spark.sql("SELECT 3 AS id, 'spark' AS s, 'x' AS p").write.format("paimon").mode("append").save(str(path))
    assert content(path)["x", 3] == "spark"


@pytest.mark.long
def test_rows_go_to_the_buckets_of_their_partition(spark, tmp_path):
    path, options = tmp_path / "t", {"bucket": "-2", "postpone.default-bucket-num": "3", "dynamic-bucket.assigner-parallelism": "2"}
    table = Table.create(path, DDL, primary_keys=["p", "id"], partition_keys=["p"], options=options, spark=spark)

    def frame(first, last, p, text):
        return spark.range(first, last, 1, 3).selectExpr("id", f"'{p}' AS p", f"concat('{text}', id) AS s")

    table.write(frame(0, 60, "x", "a"))
    table.alter_options({"postpone.default-bucket-num": "2"})
    table = Table.open(path, spark=spark)
    table.write(frame(40, 90, "x", "b").unionAll(frame(0, 30, "y", "c")))
    model = {("x", i): f"a{i}" for i in range(40)} | {("x", i): f"b{i}" for i in range(40, 90)} | {("y", i): f"c{i}" for i in range(30)}
    assert content(path) == model
    assert totals(path) == {*(("{x}", bucket) for bucket in range(3)), *(("{y}", bucket) for bucket in range(2))}
    ids = list(range(5))
    table.write(pa.table({"id": pa.array(ids, pa.int64()), "p": ["y"] * 5, "s": [f"d{i}" for i in ids]}))
    table.delete("p = 'x' AND id < 10")
    table.update("p = 'x' AND id = 20", values={"s": "new"})
    table.compact(full=True)
    model = {key: s for key, s in model.items() if key[0] != "x" or key[1] >= 10}
    assert content(path) == model | {("y", i): f"d{i}" for i in ids} | {("x", 20): "new"}
    table.write(frame(7, 8, "y", "e"), mode="overwrite")
    assert {key: s for key, s in content(path).items() if key[0] == "y"} == {("y", 7): "e7"}
