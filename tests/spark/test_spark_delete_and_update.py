"""Deletes and updates in Spark's tasks, and writes that must be visible at once although level 0 is not."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyspark_paimon import CommitConflict, InvalidArgument, Table
from pyspark_paimon.spark.client.engine import SparkEngine
from tests.build import tuples

pytestmark = pytest.mark.spark
DDL = "id BIGINT, n INT, s STRING"
VECTORS = {"deletion-vectors.enabled": "true"}


def make(spark, path, keys=(), **options) -> Table:
    raw = {"bucket": "2"} if keys else {}
    return Table.create(path / "t", DDL, primary_keys=keys, options=raw | options, spark=spark)


def rows(low: int, high: int, text: str = "") -> pa.Table:
    ids = range(low, high)
    return pa.table({"id": list(ids), "n": pa.array([key * 10 for key in ids], pa.int32()), "s": [f"{text}{key}" for key in ids]})


@pytest.mark.parametrize("options", [pytest.param({}, marks=pytest.mark.long), VECTORS], ids=["rewritten", "marked"])
def test_an_append_table_is_changed_by_tasks(spark, tmp_path, options):
    table = make(spark, tmp_path, **options)
    table.write(rows(0, 10))
    assert table.delete("n >= 50").rows == 5
    assert table.update("id IN (1, 2)", values={"s": "new", "n": None}).rows == 2
    assert table.update("id = 99", set={"n": 1}).snapshot_id is None
    assert tuples(table) == [(0, 0, "0"), (1, None, "new"), (2, None, "new"), (3, 30, "3"), (4, 40, "4")]
    assert tuples(Table.open(table.path)) == tuples(table)
    assert Table.open(table.path).snapshots()["commit_kind"].to_pylist() == ["APPEND", "OVERWRITE", "OVERWRITE"]


def test_keyed_rows_are_updated_by_columns_and_values(spark, tmp_path):
    from pyspark.sql import functions as sf

    table = make(spark, tmp_path, ["id"], **VECTORS)
    table.write(rows(0, 4))
    result = table.update(sf.col("id") >= 2, set={"n": sf.col("n") + sf.col("id").cast("int")}, values={"s": "new"})
    assert result.rows == 2
    assert tuples(table) == [(0, 0, "0"), (1, 10, "1"), (2, 22, "new"), (3, 33, "new")]
    assert table.scan(snapshot=result.snapshot_id).count() == 4
    assert table.delete("s = 'new'").rows == 2
    assert tuples(table) == [(0, 0, "0"), (1, 10, "1")]
    with pytest.raises(InvalidArgument, match="Spark Column"):
        table.update("TRUE", set={"n": pc.field("n")})


def test_a_column_needs_keys_or_a_session(spark, tmp_path):
    from pyspark.sql import functions as sf

    table = make(spark, tmp_path)
    table.write(rows(0, 2))
    for opened in (table, Table.open(table.path)):
        with pytest.raises(InvalidArgument, match="Spark Column"):
            opened.update("TRUE", set={"n": sf.col("n") + 1})


def test_rows_of_a_plain_dataframe_write_are_visible_at_once(spark, tmp_path):
    table = make(spark, tmp_path, ["id"], **VECTORS)
    for low, text in ((0, "old"), (2, "new")):
        frame = spark.sql(f"SELECT id, int(id * 10) AS n, concat('{text}', id) AS s FROM range({low}, {low + 4})")
        frame.write.format("paimon").mode("append").save(table.path)
    assert [row[2] for row in tuples(table)] == ["old0", "old1", "new2", "new3", "new4", "new5"]


@pytest.mark.parametrize("options", [{}, pytest.param(VECTORS, marks=pytest.mark.long)], ids=["rewritten", "marked"])
def test_an_update_that_stood_although_a_conflict_was_told_is_not_made_again(spark, tmp_path, monkeypatch, options):
    table = make(spark, tmp_path, **options)
    table.write(rows(0, 2))
    run, told = SparkEngine._run, []

    def conflicting(self, job, commit_id):
        done = run(self, job, commit_id)
        if not told:
            told.append(done)
            raise CommitConflict("as the test wants it")
        return done

    monkeypatch.setattr(SparkEngine, "_run", conflicting)
    result = table.update("n < 7", set={"n": 7}, commit_id="X")
    assert result.snapshot_id == told[0].snapshot_id == 2
    told.clear()
    assert table.delete("n = 7", commit_id="Y").snapshot_id == 3
    assert Table.open(table.path).snapshots().num_rows == 3
    told.clear()
    assert table.write(rows(5, 6), commit_id="Z").snapshot_id == 4
    assert tuples(table) == [(1, 10, "1"), (5, 50, "5")]


def test_an_increment_that_stood_although_a_conflict_was_told_is_not_made_again(spark, tmp_path, monkeypatch):
    from pyspark.sql import functions as sf

    table = make(spark, tmp_path, ["id"])
    table.write(rows(0, 1))
    run, told = SparkEngine._run, []

    def conflicting(self, job, commit_id):
        told.append(run(self, job, commit_id))
        raise CommitConflict("as the test wants it")

    monkeypatch.setattr(SparkEngine, "_run", conflicting)
    result = table.update("TRUE", set={"n": sf.col("n") + 1}, commit_id="X")
    assert (result.snapshot_id, len(told)) == (2, 1)
    assert tuples(table) == [(0, 1, "0")]


def test_rows_are_looked_up_and_deleted_by_keys_in_tasks(spark, tmp_path):
    table = Table.create(tmp_path / "t", "k DOUBLE, s STRING, n INT", ["k", "s"], options={"bucket": "3"}, spark=spark)
    table.write(pa.table({"k": [-0.0, 0.0, 1.0, 1.0], "s": ["a", "a", "a", "a\0"], "n": pa.array([0, 1, 2, 3], pa.int32())}))
    keys = {"k": [1.0, 0.0, 1.0, 2.0], "s": ["a\0", "a", "b", "a"]}
    assert table.lookup(keys, columns=["n"])["n"].to_pylist() == [3, 1]
    found = table.lookup(keys, columns=["s", "n"], missing="null", indicator=True)
    assert found == Table.open(table.path).lookup(keys, columns=["s", "n"], missing="null", indicator=True)
    assert found["n"].to_pylist() == [3, 1, None, None]
    with pytest.raises(InvalidArgument, match="a reader holds files in this process"):
        table.reader()
    assert table.delete(keys=keys).rows == 2
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [0, 2]
    with pytest.raises(InvalidArgument, match="toArrow"):
        table.lookup(spark.createDataFrame([(1.0, "a")], "k DOUBLE, s STRING"))


def test_thousands_of_keys_travel_to_the_tasks(spark, tmp_path):
    table = make(spark, tmp_path, ["id"])
    table.write(rows(0, 6000))
    assert table.lookup({"id": range(9000, 1000, -1)})["id"].to_pylist() == list(range(5999, 1000, -1))
    assert table.delete(keys=pa.table({"id": range(1000, 9000)})).rows == 5000
    assert table.scan().count() == 1000


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "keys"])
def test_rows_are_purged_by_tasks(spark, tmp_path, keys):
    table = make(spark, tmp_path, keys, **VECTORS)
    table.write(rows(0, 10))
    table.delete("id = 3")
    table.create_tag("all")
    done = table.purge("id IN (3, 4)")
    assert (done.rows, done.gone) == (1, False)
    assert [(holder.kind, holder.name) for holder in done.holders] == [("tag", "all")]
    table.delete_tag("all")
    assert table.purge("id IN (3, 4)").gone
    here = Table.open(table.path)
    assert [row[0] for row in tuples(here)] == [0, 1, 2, 5, 6, 7, 8, 9] == [row[0] for row in tuples(table)]
    assert here.purge("id IN (3, 4)", dry_run=True).holders == ()
    assert here.fsck(depth="deep").problems == ()


def test_retained_deletes_are_left_out_by_every_reader_of_spark(spark, tmp_path):
    options = {"sequence.field": "n", "delete.time-retained": "1 d"}
    table = make(spark, tmp_path, ["id"], **options)
    table.write(rows(0, 10))
    table.write(pa.table({"id": [3, 4], "n": pa.array([999, 999], pa.int32()), "s": ["3", "4"], "_row_kind": ["-D", "-D"]}))
    table.compact(full=True)
    table.write(pa.table({"id": [3], "n": pa.array([50], pa.int32()), "s": ["late"]}))
    assert [row[0] for row in tuples(table)] == [0, 1, 2, 5, 6, 7, 8, 9]
    table.compact(full=True)
    assert sum(table.files()["delete_row_count"].to_pylist()) == 2
    assert table.count() == 8
    assert sorted(row.id for row in table.scan().to_spark().collect()) == [0, 1, 2, 5, 6, 7, 8, 9]
    assert spark.read.format("paimon").load(table.path).count() == 8
    assert table.scan("s = 'late'").to_spark().count() == 0
