"""Data evolution over Spark: updates, merges and compactions keep the ids of rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_paimon import Table, sql

pytestmark = pytest.mark.spark


def test_columns_are_updated_merged_and_joined(spark, tmp_path):
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    plain = Table.create(tmp_path / "t", "id INT, n INT, s STRING", options=options)
    for first in (0, 10):
        ids = range(first, first + 10)
        plain.write(pa.table({"id": pa.array(ids, pa.int32()), "n": pa.array([0] * 10, pa.int32()), "s": [f"s{i}" for i in ids]}))
    table = Table.open(plain.path, spark=spark)
    assert table.update("id IN (3, 13)", set={"n": "n + id"}).rows == 2
    sql(spark, f"UPDATE paimon.`{table.path}` SET s = upper(s) WHERE id = 4")
    source = spark.sql("SELECT 5 AS id, 'm' AS s UNION ALL SELECT 50, 'new'")
    done = table.merge(source, on="id").when_matched_update({"s": "s.s"}).when_not_matched_insert({"id": "s.id", "s": "s.s"}).execute()
    assert (done.updated, done.inserted) == (1, 1)
    assert table.compact(full=True).files_after == 1
    found = {row.id: (row.n, row.s) for row in table.scan().to_spark().collect()}
    assert found == {i: (i if i in {3, 13} else 0, {4: "S4", 5: "m"}.get(i, f"s{i}")) for i in range(20)} | {50: (None, "new")}
    rows = Table.open(f"{plain.path}$row_tracking").scan(columns=["id", "_ROW_ID"]).to_arrow().to_pylist()
    assert {row["id"]: row["_ROW_ID"] for row in rows} == {i: i for i in range(20)} | {50: 20}
    assert plain.fsck(depth="deep").problems == ()


def test_blobs_are_written_and_read(spark, tmp_path):
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob.target-file-size": "1 kb"}
    plain = Table.create(tmp_path / "t", "id INT, p BLOB", options=options)
    table = Table.open(plain.path, spark=spark)
    rows = [{"id": i, "p": None if i % 3 == 0 else bytes([i]) * (i * 100)} for i in range(10)]
    table.write(rows)
    spark.sql("SELECT 10 AS id, X'ABCD' AS p").write.format("paimon").mode("append").save(plain.path)
    sql(spark, f"INSERT INTO paimon.`{plain.path}` VALUES (11, NULL)")
    table.update("id = 4", set={"id": "-4"})
    table.compact(full=True)
    rows[4]["id"] = -4
    wanted = sorted([*rows, {"id": 10, "p": b"\xab\xcd"}, {"id": 11, "p": None}], key=lambda row: row["id"])
    assert plain.scan(order_by="id").to_arrow().to_pylist() == wanted
    found = table.scan().to_spark().orderBy("id").collect()
    assert [{"id": row.id, "p": None if row.p is None else bytes(row.p)} for row in found] == wanted
    assert plain.fsck(depth="deep").problems == ()
