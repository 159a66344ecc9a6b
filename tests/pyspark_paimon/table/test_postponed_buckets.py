"""Postponed buckets: writes give rows the buckets that their partition has, ``compact()`` those that came without."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from lsm.bucket.hash import bucket_ids
from pyspark_paimon import Table, UnsupportedOption, UnsupportedTable

WAITING = Path(__file__).parent.parent.parent / "golden_postponed" / "table"
DDL = "id INT, s STRING, p STRING"


def made(path, **options):
    every = {"bucket": "-2", **{key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}}
    return Table.create(path, DDL, primary_keys=["p", "id"], partition_keys=["p"], options=every)


def rows(p, ids, text):
    return pa.table({"id": pa.array(list(ids), pa.int32()), "s": [f"{text}{i}" for i in ids], "p": [p] * len(list(ids))})


def found(table):
    return {(row["p"], row["id"]): row["s"] for row in table.scan().to_arrow().to_pylist()}


def totals(table):
    entries = Table.open(f"{table.path}$files").scan(columns=["partition", "bucket"]).to_arrow().to_pylist()
    return {(row["partition"], row["bucket"]) for row in entries}


def test_writes_go_to_the_buckets_of_the_partition(tmp_path):
    table = made(tmp_path / "t", postpone__default_bucket_num="3")
    table.write(rows("x", range(40), "a"))
    assert totals(table) == {("{x}", bucket) for bucket in range(3)}
    table.alter_options({"postpone.default-bucket-num": "2"})
    table = Table.open(tmp_path / "t")
    table.write(pa.concat_tables([rows("x", range(20, 60), "b"), rows("y", range(30), "c")]))
    assert totals(table) == {*(("{x}", bucket) for bucket in range(3)), *(("{y}", bucket) for bucket in range(2))}
    expected = {("x", i): f"a{i}" for i in range(20)} | {("x", i): f"b{i}" for i in range(20, 60)} | {("y", i): f"c{i}" for i in range(30)}
    assert found(table) == expected
    table.delete("p = 'x' AND id < 5")
    table.update("id = 7", values={"s": "seven"})
    table.compact(full=True)
    expected = {key: "seven" if key[1] == 7 else text for key, text in expected.items() if key[0] != "x" or key[1] >= 5}
    assert found(table) == expected
    assert table.fsck(depth="deep").problems == ()
    assert table.lookup([{"p": "x", "id": 33}])["s"].to_pylist() == ["b33"]
    table.write(rows("y", [1], "z"), mode="overwrite")
    assert {key: text for key, text in found(table).items() if key[0] == "y"} == {("y", 1): "z1"}


def test_rows_are_where_other_engines_look_for_them(tmp_path):
    table = made(tmp_path / "t", postpone__default_bucket_num="4")
    table.write(rows("x", range(50), "a"))
    schema = table.table_schema
    for split in table.scan().plan().splits:
        (batch,) = [pa.Table.from_batches(list(table.scan().read(split)))]
        assert set(bucket_ids(batch, schema, 4).tolist()) == {split.bucket}
        assert split.total_buckets == 4


def test_rows_that_wait_are_shown_by_a_compaction(tmp_path):
    """The engine's files hold a delete, an older and a newer version of a key; we have written of it, too."""
    shutil.copytree(WAITING, tmp_path / "t")
    table = Table.open(tmp_path / "t")
    assert found(table) == {}
    table.write(rows("x", [1, 9], "ours"))
    assert found(table) == {("x", 1): "ours1", ("x", 9): "ours9"}
    done = table.compact()
    assert done.snapshot_id is not None
    assert found(table) == {("x", 1): "a2", ("x", 3): "c", ("x", 9): "ours9", ("y", 1): "q"}, (
        "what waited counts as newer: it came to light later"
    )
    assert not {bucket for _, bucket in totals(table)} & {-2}
    assert table.compact().snapshot_id is None or found(table)[("x", 1)] == "a2"
    assert table.fsck(depth="deep").problems == ()


def test_only_the_partitions_that_are_meant(tmp_path):
    shutil.copytree(WAITING, tmp_path / "t")
    table = Table.open(tmp_path / "t")
    table.compact(partitions=[{"p": "y"}])
    assert found(table) == {("y", 1): "q"}


def test_writers_beside_a_compaction_lose_nothing(tmp_path):
    shutil.copytree(WAITING, tmp_path / "t")

    def write(at):
        Table.open(tmp_path / "t").write(rows("x", range(100 + at * 5, 105 + at * 5), "w"))

    def compact(_):
        Table.open(tmp_path / "t").compact()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda at: (compact if at % 3 == 2 else write)(at), range(6)))
    Table.open(tmp_path / "t").compact()
    expected = {("x", i): f"w{i}" for at in (0, 1, 3, 4) for i in range(100 + at * 5, 105 + at * 5)}
    assert found(Table.open(tmp_path / "t")) == {**expected, ("x", 1): "a2", ("x", 3): "c", ("y", 1): "q"}


def test_what_does_not_go_with_it_is_refused(tmp_path):
    with pytest.raises(UnsupportedOption, match="needs a primary key"):
        Table.create(tmp_path / "a", DDL, options={"bucket": "-2"})
    with pytest.raises(UnsupportedOption, match="bucket-key"):
        made(tmp_path / "b", bucket_key="id")
    with pytest.raises(UnsupportedOption, match=r"postpone\.default-bucket-num"):
        made(tmp_path / "c", postpone__default_bucket_num="0")
    shutil.copytree(WAITING, tmp_path / "t")
    with pytest.raises(UnsupportedTable, match="changelog-producer 'input'"):
        Table.open(tmp_path / "t").compact(options={"changelog-producer": "input"})
