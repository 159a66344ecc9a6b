"""System tables over Spark: as a source by path, and through ``Table``, with filters; and their refusals."""

from __future__ import annotations

import pyarrow as pa
import pytest

from manifest.io.errors import SystemTableReadOnly, UnknownSystemTable
from pyspark_paimon import Table

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    made = Table.create(tmp_path_factory.mktemp("system") / "t", "id INT, v INT", primary_keys=["id"], options={"bucket": "2"})
    for rows in ([1, 2, 3], [3, 4]):
        made.write(pa.table({"id": pa.array(rows, pa.int32()), "v": pa.array(rows, pa.int32())}))
    made.delete("id = 1")
    made.create_branch("trial")
    return made


def lines(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("name", ["files", "audit_log", "branch_trial$options"])
def test_rows_over_spark_are_those_in_process(spark, table, name):
    path = f"{table.path}${name}"
    expected = Table.open(path).scan().to_arrow()
    over_spark = Table.open(path, spark=spark).scan().to_arrow()
    assert over_spark.schema == expected.schema
    assert lines(over_spark) == lines(expected)
    frame = spark.read.format("paimon").load(path)
    assert frame.columns == expected.column_names
    assert frame.count() == expected.num_rows


def test_filters_counts_and_frames(spark, table):
    path = f"{table.path}$files"
    scan = Table.open(path, spark=spark).scan("record_count > 0 AND bucket = 0", columns=["level", "bucket"], order_by="max_key")
    expected = Table.open(path).scan("record_count > 0 AND bucket = 0", columns=["level", "bucket"], order_by="max_key")
    assert scan.count() == expected.count() > 0
    assert scan.to_arrow() == expected.to_arrow()
    assert scan.to_spark().toArrow().to_pylist() == expected.to_arrow().to_pylist()
    assert Table.open(path, spark=spark).scan().aggregate({"record_count": "sum"}).to_pylist() == [{"record_count_sum": 6}]
    frame = spark.read.format("paimon").option("filter", "snapshot_id = 2").option("columns", "commit_kind").load(f"{table.path}$snapshots")
    assert frame.toArrow().to_pylist() == [{"commit_kind": "APPEND"}]
    assert Table.open(f"{table.path}$audit_log", spark=spark).scan("rowkind = '-D' AND id > 0").count() == 1
    assert Table.open(table.path, spark=spark).scan(read_optimized=True).count() == Table.open(f"{table.path}$ro", spark=spark).count() == 0
    assert Table.open(path).scan("bucket = 0").to_spark(spark).count() == expected.count()


def test_they_are_refused_where_they_cannot_serve(spark, table):
    files = Table.open(f"{table.path}$files", spark=spark)
    for change in (
        files.compact,
        lambda: files.write(Table.open(files.path).scan().to_arrow()),
        lambda: files.create_tag("v"),
        files.snapshots,
    ):
        with pytest.raises(SystemTableReadOnly, match=r"t\$files: a system table can only be scanned"):
            change()
    with pytest.raises(UnknownSystemTable, match="did you mean 'files'"):
        Table.open(f"{table.path}$file", spark=spark)
    with pytest.raises(Exception, match='"class": "SystemTableReadOnly"'):
        spark.read.format("paimon").load(files.path).write.format("paimon").mode("append").save(files.path)
