"""Keys across partitions over Spark: a key lives in one partition, whoever writes it and from wherever its rows come."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_paimon import Table, UnmergeableRows

pytestmark = pytest.mark.spark

DDL = "id BIGINT, day INT, v STRING"
SMALL = {"dynamic-bucket.target-row-num": "20", "dynamic-bucket.assigner-parallelism": "3"}


def made(path, spark, **options):
    return Table.create(path, DDL, primary_keys=["id"], partition_keys=["day"], options={**SMALL, **options}, spark=spark)


def content(path):
    table = Table.open(path)
    found = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key lives in two partitions"
    assert table.fsck(depth="deep").problems == ()
    return {row["id"]: (row["day"], row["v"]) for row in found}


def frame(spark, first, last, day, text):
    return spark.range(first, last, 1, 3).selectExpr("id", f"cast({day} AS int) AS day", f"concat('{text}', id) AS v")


def test_rows_move_whoever_writes_them(spark, tmp_path):
    path, model = tmp_path / "t", {}
    table = made(path, spark)
    table.write(frame(spark, 0, 60, "id % 2", "a"))
    model |= {i: (i % 2, f"a{i}") for i in range(60)}
    table.write(frame(spark, 40, 90, "5", "b"))
    model |= {i: (5, f"b{i}") for i in range(40, 90)}
    assert content(path) == model
    frame(spark, 50, 70, "6", "c").write.format("paimon").mode("append").save(str(path))
    model |= {i: (6, f"c{i}") for i in range(50, 70)}
    assert content(path) == model


@pytest.mark.long
def test_rows_move_by_local_rows_updates_and_merges(spark, tmp_path):
    path = tmp_path / "t"
    table = made(path, spark)
    table.write(frame(spark, 0, 60, "id % 2", "a"))
    ids = list(range(10))
    table.write(pa.table({"id": pa.array(ids, pa.int64()), "day": pa.array([7] * 10, pa.int32()), "v": [f"d{i}" for i in ids]}))
    model = {i: (i % 2, f"a{i}") for i in range(60)} | {i: (7, f"d{i}") for i in ids}
    assert content(path) == model
    assert table.update("id < 5", {"day": 8}).rows == 5
    table.delete("day = 1 AND id < 30")
    model = {i: ((8, v) if i < 5 else (day, v)) for i, (day, v) in model.items() if not (day == 1 and i < 30)}
    source = frame(spark, 58, 62, "9", "m")
    table.merge(source, on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    model |= {i: (9, f"m{i}") for i in range(58, 62)}
    table.compact(full=True)
    assert content(path) == model


@pytest.mark.long
def test_an_overwrite_replaces_partitions_whose_keys_live_nowhere_else(spark, tmp_path):
    path = tmp_path / "t"
    table = made(path, spark)
    table.write(frame(spark, 0, 30, "id % 3", "a"))
    table.write(frame(spark, 100, 120, "0", "b"), mode="overwrite")
    expected = {i: (i % 3, f"a{i}") for i in range(30) if i % 3} | {i: (0, f"b{i}") for i in range(100, 120)}
    assert content(path) == expected
    with pytest.raises(UnmergeableRows, match="does not replace"):
        table.write(frame(spark, 1, 2, "0", "c"), mode="overwrite")
    assert content(path) == expected
    table.write(frame(spark, 1, 40, "1", "d"), mode="overwrite", options={"dynamic-partition-overwrite": "false"})
    assert content(path) == {i: (1, f"d{i}") for i in range(1, 40)}


@pytest.mark.long
@pytest.mark.parametrize("engine", ["partial-update", "first-row"])
def test_engines_that_keep_a_key_where_it_is(spark, tmp_path, engine):
    path = tmp_path / "t"
    table = made(path, spark, **{"merge-engine": engine})
    table.write(frame(spark, 0, 40, "id % 2", "a"))
    table.write(frame(spark, 20, 60, "5", "b"))
    frame(spark, 50, 80, "6", "c").write.format("paimon").mode("append").save(str(path))
    new = engine == "partial-update"
    expected = {i: (i % 2, f"{'b' if new and i >= 20 else 'a'}{i}") for i in range(40)}
    expected |= {i: (5, f"{'c' if new and i >= 50 else 'b'}{i}") for i in range(40, 60)} | {i: (6, f"c{i}") for i in range(60, 80)}
    assert content(path) == expected
