"""Changes and compactions asked of a table over Spark: the same answers as in process."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_paimon import InvalidArgument, SnapshotNotFound, Table
from tests.build import events

pytestmark = pytest.mark.spark
DDL = "id BIGINT, city STRING, n INT"


def changes(scan) -> list[tuple]:
    return sorted(tuple(row.values()) for row in scan.to_arrow().select(["_row_kind", "id", "n"]).to_pylist())


@pytest.mark.parametrize("producer", [pytest.param("input", marks=pytest.mark.long), "lookup"])
def test_a_write_over_spark_makes_a_changelog(spark, tmp_path, producer) -> None:
    over_spark = Table.create(
        tmp_path / "t", DDL, primary_keys=["id"], options={"bucket": "2", "changelog-producer": producer}, spark=spark
    )
    over_spark.write(events(("+I", 1, 10), ("+I", 2, 20), ("+I", 3, 30)))
    start = over_spark.snapshots()["snapshot_id"][-1].as_py()
    over_spark.write(events(("+U", 1, 11), ("-D", 2, 20), ("+I", 4, 40)))
    told = {"input": [("+I", 4, 40), ("+U", 1, 11), ("-D", 2, 20)]}
    expected = told.get(producer, [("+I", 4, 40), ("+U", 1, 11), ("-D", 2, 20), ("-U", 1, 10)])
    for table in (over_spark, Table.open(over_spark.path)):
        assert changes(table.changelog(start)) == expected
        assert changes(table.changelog(start, filter="n = 11")) == [("+U", 1, 11)]
        assert table.changelog(start).count() == len(expected)
        assert len(changes(table.scan(incremental=(0, start), incremental_mode="delta"))) == 3


def test_changes_are_a_dataframe_and_a_plan(spark, tmp_path) -> None:
    table = Table.create(tmp_path / "t", DDL, primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    table.write(events(("+I", 1, 10), ("+I", 2, 20)))
    table.write(events(("+U", 1, 11), ("-D", 2, 20)))
    scan = table.changelog(1, columns=["n"])
    assert scan.to_spark().columns == ["n", "_row_kind"]
    assert sorted(tuple(row) for row in scan.to_spark().collect()) == [(10, "-U"), (11, "+U"), (20, "-D")]
    assert sorted(tuple(row) for row in Table.open(table.path).changelog(1, columns=["n"]).to_spark(spark).collect()) == [
        (10, "-U"),
        (11, "+U"),
        (20, "-D"),
    ]
    (split,) = scan.plan().splits
    assert (split.mode, len(split.before), len(split.files)) == ("diff", 1, 2)
    with pytest.raises(InvalidArgument, match="forward"):
        table.changelog(2, 1)
    with pytest.raises(SnapshotNotFound):
        table.changelog(1, 9)


def test_paimons_own_read_options_name_a_range(spark, tmp_path) -> None:
    table = Table.create(tmp_path / "t", DDL, primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    table.write(events(("+I", 1, 10), ("+I", 2, 20)))
    table.write(events(("+U", 1, 11), ("-D", 2, 20)))
    read = spark.read.format("paimon").option("incremental-between", "1,2")
    frame = read.load(table.path)
    assert frame.columns == ["id", "city", "n", "_row_kind"]
    assert sorted(tuple(row) for row in frame.select("_row_kind", "n").where("n < 20").collect()) == [("+U", 11)]
    compared = read.option("incremental-between-scan-mode", "diff").option("columns", "n").option("filter", "n < 20").load(table.path)
    assert sorted(tuple(row) for row in compared.collect()) == [(10, "-U"), (11, "+U")]
    with pytest.raises(Exception, match="two snapshots or tags"):
        spark.read.format("paimon").option("incremental-between", "1").load(table.path).collect()


def test_rows_are_sorted_and_partitions_compacted_by_tasks(spark, tmp_path) -> None:
    table = Table.create(tmp_path / "t", "a INT, day STRING", partition_keys=["day"], spark=spark)
    for at in range(3):
        numbers = [(at * 37 + i * 17) % 101 for i in range(50)]
        table.write(pa.table({"a": pa.array(numbers, pa.int32()), "day": [f"d{i % 2}" for i in range(50)]}))
    before = sorted(map(str, table.scan().to_arrow().to_pylist()))
    done = table.compact(order_by="a", strategy="hilbert", filter="day = 'd1'")
    assert (done.buckets, done.files_before, done.files_after) == (1, 3, 1)
    local = Table.open(table.path)
    assert sorted(map(str, local.scan().to_arrow().to_pylist())) == before
    values = local.scan("day = 'd1'", columns=["a"]).to_arrow()["a"].to_pylist()
    assert values == sorted(values)
