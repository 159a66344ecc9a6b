from __future__ import annotations

import datetime as dt
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pyspark_paimon import InvalidArgument, NullInKey, SchemaMismatch, SnapshotNotFound, Table, TableExists, TableNotFound, UnknownColumn
from tests.build import tuples

pytestmark = pytest.mark.spark

DDL = "id BIGINT, city STRING, amount DOUBLE"


@pytest.fixture
def table(spark, tmp_path):
    return Table.create(tmp_path / "t", DDL, primary_keys=["id"], options={"bucket": "3"}, spark=spark)


def rows(*values: tuple) -> pa.Table:
    ids, cities, amounts = zip(*values, strict=True) if values else ((), (), ())
    return pa.table({"id": pa.array(ids, pa.int64()), "city": pa.array(cities, pa.string()), "amount": pa.array(amounts, pa.float64())})


def content(table: Table, *args, **kwargs) -> list[tuple]:
    return tuples(table.scan(*args, **kwargs))


def cities(spark, count: int, text: str = "'city ' || id % 7"):
    return spark.range(0, count, 1, 4).selectExpr("id", f"{text} AS city", "cast(id AS double) / 2 AS amount")


def model(count: int) -> list[tuple]:
    return [(i, f"city {i % 7}", i / 2) for i in range(count)]


def test_a_spark_dataframe_is_written_upserted_compacted_and_read_back_in_process_too(spark, table):
    first = table.write(cities(spark, 1000))
    assert (first.rows, first.files, first.snapshot_id) == (1000, 3, 1)
    sizes = Table.open(table.path).files()["file_size"].to_pylist()
    assert (first.counters.rows, first.counters.bytes_written, first.counters.retries) == (1000, sum(sizes), 0)
    second = table.write(cities(spark, 100, "'moved'"))
    assert (second.rows, second.snapshot_id) == (100, 2)
    expected = [(i, "moved" if i < 100 else f"city {i % 7}", i / 2) for i in range(1000)]
    assert content(table) == expected
    done = table.compact(full=True)
    assert (done.files_before, done.files_after, done.buckets, done.attempts) == (6, 3, 3, 1)
    assert (done.snapshot_id, done.rows) == (3, 1000)
    assert done.bytes_read > 0 < done.bytes_written
    assert done.counters.bytes_written == done.bytes_written
    scan = table.scan("id < 10")
    assert scan.to_arrow().num_rows == scan.counters.rows == 10
    assert table.compact(full=True).snapshot_id is None
    assert content(table) == expected
    local = Table.open(table.path)
    assert content(local) == expected
    assert {file["level"] for file in local.files().to_pylist()} == {5}


def test_every_bucket_is_written_by_one_task_of_a_staged_write(spark, table):
    table.write(cities(spark, 5000))
    assert sorted(file["bucket"] for file in table.files().to_pylist()) == [0, 1, 2]


@pytest.mark.parametrize("kind", ["table", "batch", "reader", "pandas", "pandas on spark"])
def test_local_rows_are_written_in_their_order_so_that_the_last_of_a_key_wins(spark, table, kind):
    data = rows((1, "a", 1.0), (2, None, 2.0), (1, "b", None))
    given = {
        "table": lambda: data,
        "batch": lambda: data.combine_chunks().to_batches()[0],
        "reader": lambda: pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=1)),
        "pandas": data.to_pandas,
        "pandas on spark": lambda: pandas_on_spark(spark, data.slice(1)),
    }[kind]()
    assert table.write(given).rows == (2 if kind == "pandas on spark" else 3)
    assert content(table) == [(1, "b", None), (2, None, 2.0)]


def pandas_on_spark(spark, data: pa.Table):
    return spark.createDataFrame(data).pandas_api()


def test_many_local_rows_travel_as_streams_and_keep_their_order_per_key(spark, tmp_path):
    table = Table.create(tmp_path / "t", "id INT, v INT", primary_keys=["id"], options={"bucket": "5"}, spark=spark)
    ids = np.random.default_rng(7).integers(0, 5000, 200_000).astype(np.int32)
    data = pa.table({"id": ids, "v": np.arange(200_000, dtype=np.int32)})
    assert table.write(data).rows == 200_000
    last = pd.DataFrame({"id": ids, "v": np.arange(200_000)}).groupby("id").v.max()
    got = table.scan().to_arrow().sort_by("id")
    assert got.column("id").to_pylist() == last.index.tolist()
    assert got.column("v").to_pylist() == last.tolist()


def test_no_rows_make_no_snapshot(spark, table):
    assert table.write(rows()).snapshot_id is None
    assert table.write(cities(spark, 0)).snapshot_id is None
    assert table.scan().count() == 0
    assert content(table) == []
    assert table.scan().to_spark().collect() == []


def test_order_by_decides_among_equal_keys_of_a_distributed_dataframe(spark, table):
    data = spark.range(0, 200, 1, 4).selectExpr("id % 10 AS id", "'at ' || id AS city", "cast(pmod(id * 7, 200) AS double) AS amount")
    table.write(data, order_by="amount")
    assert content(table) == [
        (key, f"at {i}", float(i * 7 % 200)) for key in range(10) for i in [max(range(key, 200, 10), key=lambda i: i * 7 % 200)]
    ]
    with pytest.raises(UnknownColumn, match="missing"):
        table.write(cities(spark, 3), order_by="missing")


def test_a_sequence_field_decides_whatever_the_order_of_arrival(spark, tmp_path):
    options = {"bucket": "2", "sequence.field": "stamp"}
    table = Table.create(tmp_path / "t", "id BIGINT, stamp BIGINT", primary_keys=["id"], options=options, spark=spark)
    table.write(spark.range(0, 300, 1, 4).selectExpr("id % 3 AS id", "300 - id AS stamp"))
    table.write(spark.range(3).selectExpr("id", "1L AS stamp"))
    assert content(table) == [(0, 300), (1, 299), (2, 298)]


@pytest.mark.parametrize("local", [False, True], ids=["dataframe", "arrow"])
def test_rows_of_kind_minus_d_delete(spark, table, local):
    table.write(rows((1, "a", 1.0), (2, "b", 2.0)))
    change = rows((1, "a", 1.0), (3, "c", 3.0)).append_column("_row_kind", pa.array(["-D", "+I"]))
    table.write(change if local else spark.createDataFrame(change))
    assert content(table) == [(2, "b", 2.0), (3, "c", 3.0)]
    assert table.scan().count() == 2


@pytest.mark.parametrize("local", [False, True], ids=["dataframe", "arrow"])
def test_a_delete_needs_no_more_than_its_key(spark, tmp_path, local):
    table = Table.create(tmp_path / "t", "id BIGINT, n INT NOT NULL, s STRING", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    table.write({"id": [1, 2], "n": [1, 2], "s": [None, None]})
    gone = pa.table({"id": [1], "_row_kind": ["-D"]})
    table.write(gone if local else spark.createDataFrame(gone))
    assert content(table) == [(2, 2, None)]
    with pytest.raises(SchemaMismatch, match="column 'n' is missing"):
        table.write(gone.drop_columns("_row_kind") if local else spark.range(1))


def test_a_repeated_commit_id_is_answered_and_not_written_again(spark, table):
    identity = str(uuid.uuid4())
    first = table.write(cities(spark, 10), commit_id=identity)
    again = table.write(cities(spark, 20), commit_id=identity)
    assert (again.snapshot_id, again.replayed, first.replayed) == (1, True, False)
    assert again.rows == 10
    assert table.scan().count() == 10


def test_scans_filter_project_limit_and_travel_as_in_process(spark, table):
    table.write(cities(spark, 500))
    table.write(cities(spark, 50, "'new'"))
    local = Table.open(table.path)
    for arguments in [
        ("city = 'new' OR id IN (77, 78)",),
        ("id BETWEEN 40 AND 60 AND NOT city = 'new'", ["amount", "id"]),
        ("amount > 240.5", ["city"]),
        ("id = 33",),
    ]:
        assert sorted(tuple(row) for row in table.scan(*arguments).to_spark().collect()) == content(local, *arguments)
    assert content(table, "id = 33 OR city = 'new'") == content(local, "id = 33 OR city = 'new'")
    assert table.scan("amount > 240.5").count() == local.scan("amount > 240.5").count() == 18
    assert content(table, snapshot=1) == model(500)
    assert len(content(table, limit=7)) == table.scan(limit=7).to_spark().count() == table.scan(limit=7).count() == 7
    assert table.scan(columns=["amount"]).to_arrow().schema.equals(pa.schema([("amount", pa.float64())]))
    with pytest.raises(SnapshotNotFound):
        table.scan(snapshot=99)


def test_a_scan_stays_on_its_snapshot_while_others_commit(spark, table):
    table.write(cities(spark, 10))
    scan = table.scan()
    frame = scan.to_spark()
    table.write(cities(spark, 20))
    assert (frame.count(), scan.count(), table.scan().count()) == (10, 10, 20)
    assert frame.join(frame, "id").count() == 10


def test_a_count_without_filter_asks_the_metadata_only_where_they_are_exact(spark, table):
    table.write(cities(spark, 100))
    table.write(cities(spark, 150, "'again'"))
    assert table.scan().count() == 150
    table.compact(full=True)
    assert table.scan().count() == 150
    assert table.scan("city = 'again'").count() == 150


def test_plan_explain_files_and_snapshots_are_the_servers(spark, table):
    table.write(cities(spark, 100))
    local = Table.open(table.path)
    plan, same = table.scan("id = 3").plan(), local.scan("id = 3").plan()
    assert plan.splits == same.splits
    assert [(stage.name, stage.kept, stage.dropped) for stage in plan.report] == [(s.name, s.kept, s.dropped) for s in same.report]
    assert table.files().equals(local.files())
    assert table.snapshots().equals(local.snapshots())
    assert str(table.scan("id = 3").explain()).splitlines()[0] == str(local.scan("id = 3").explain()).splitlines()[0]


def test_a_primary_key_table_of_partitions_is_overwritten_whole_by_partition_and_dynamically(spark, tmp_path):
    table = Table.create(
        tmp_path / "t",
        "day DATE, id INT, v STRING",
        primary_keys=["day", "id"],
        partition_keys=["day"],
        options={"bucket": "2"},
        spark=spark,
    )
    days = [dt.date(2026, 1, day) for day in (1, 2, 3)]

    def frame(*values: tuple):
        return spark.createDataFrame(pa.table({"day": [v[0] for v in values], "id": [v[1] for v in values], "v": [v[2] for v in values]}))

    table.write(frame(*((day, i, "old") for day in days for i in range(3))))
    table.write(frame((days[0], 7, "dynamic")), mode="overwrite")
    assert content(table) == [(days[0], 7, "dynamic"), *((day, i, "old") for day in days[1:] for i in range(3))]
    table.write(frame((days[1], 8, "static")), mode="overwrite", partition={"day": days[1]})
    assert content(table) == [(days[0], 7, "dynamic"), (days[1], 8, "static"), *((days[2], i, "old") for i in range(3))]
    with pytest.raises(InvalidArgument, match="outside"):
        table.write(frame((days[2], 9, "wrong")), mode="overwrite", partition={"day": days[1]})
    table.write(frame((days[2], 9, "all")), mode="overwrite", options={"dynamic-partition-overwrite": "false"})
    assert content(table) == [(days[2], 9, "all")]


def test_an_append_table_takes_rows_from_everywhere_and_compacts_small_files(spark, tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, v STRING", spark=spark)
    table.write(spark.range(0, 100, 1, 4).selectExpr("id", "'spark' AS v"))
    table.write(pa.table({"id": [100, 101], "v": ["arrow", None]}))
    table.write(spark.range(102, 110, 1, 2).selectExpr("id", "'spark' AS v"))
    before = table.files().num_rows
    assert content(table, columns=["id"]) == [(i,) for i in range(110)]
    assert table.compact(full=True).files_before == before
    assert table.files().num_rows < before
    assert table.scan("v = 'arrow' OR v IS NULL").count() == 2


def test_a_key_that_spark_cannot_bucket_is_written_all_the_same(spark, tmp_path):
    table = Table.create(tmp_path / "t", "id DECIMAL(30, 2), v INT", primary_keys=["id"], options={"bucket": "4"}, spark=spark)
    table.write(
        spark.range(0, 40, 1, 4).selectExpr("cast(id AS decimal(30,2)) / 4 AS id", "1 AS v").selectExpr("cast(id AS decimal(30,2)) id", "v")
    )
    table.write(spark.range(0, 10, 1, 2).selectExpr("cast(id AS decimal(30,2)) id", "2 AS v"))
    got = content(Table.open(table.path))
    assert len(got) == 40
    assert sum(v == 2 for _, v in got) == 10
    table.compact(full=True)
    assert content(table) == got


def test_rows_can_be_deleted_and_options_altered_and_snapshots_expired(spark, table):
    table.write(cities(spark, 100))
    assert table.delete("id >= 90 OR city = 'city 0'").rows == 23
    assert table.scan().count() == 77
    assert table.delete("city = 'nowhere'").snapshot_id is None
    assert table.alter_options({"write-only": "true"}).options["write-only"] == "true"
    table.write(cities(spark, 1))
    assert table.expire_snapshots(retain_max=1, retain_min=1).snapshots == 2
    assert table.snapshots().column("snapshot_id").to_pylist() == [3]
    assert table.list_orphan_files(older_than=0) == []


def test_errors_of_the_server_come_back_as_themselves(spark, table, tmp_path):
    with pytest.raises(TableExists, match="already"):
        Table.create(table.path, DDL, spark=spark)
    with pytest.raises(TableNotFound, match="nowhere"):
        Table.open(tmp_path / "nowhere", spark=spark)
    with pytest.raises(SchemaMismatch, match="'town'"):
        table.write(cities(spark, 3).withColumnRenamed("city", "town"))
    with pytest.raises(SchemaMismatch, match="'amount'"):
        table.write(cities(spark, 3).selectExpr("id", "city", "city AS amount"))
    with pytest.raises(NullInKey, match="'id'"):
        table.write(cities(spark, 3).selectExpr("nullif(id, 2) AS id", "city", "amount"))
    with pytest.raises(NullInKey, match="'id'"):
        table.write(rows((None, "a", 1.0)))
    with pytest.raises(UnknownColumn, match="'town'"):
        table.scan("town = 'x'")
    assert table.snapshots().num_rows == 0


def test_a_value_that_does_not_fit_its_column_is_refused_by_name(spark, tmp_path):
    table = Table.create(tmp_path / "t", "id INT, v TINYINT", primary_keys=["id"], options={"bucket": "2"}, spark=spark)
    with pytest.raises(SchemaMismatch, match="'id'"):
        table.write(spark.range(3).selectExpr("id + 3000000000 AS id", "1 AS v"))
    with pytest.raises(SchemaMismatch, match="'v'"):
        table.write(spark.range(3).selectExpr("id", "1000 AS v"))
    table.write(spark.range(3).selectExpr("id", "cast(id AS double) AS v"))
    assert content(table) == [(0, 0), (1, 1), (2, 2)]


def test_a_failed_task_leaves_nothing_visible_and_no_file(spark, table, tmp_path):
    table.write(cities(spark, 10))
    before = set(tmp_path.rglob("*.parquet"))
    failing = cities(spark, 1000).selectExpr("id", "city", "if(id = 999, raise_error('no luck'), amount) AS amount")
    with pytest.raises(Exception, match="no luck"):
        table.write(failing)
    assert content(table) == model(10)
    assert set(tmp_path.rglob("*.parquet")) == before
