"""Primary keys without the partition columns: a key lives in one partition, wherever its rows say they belong."""

import json
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from fileindex.predicate.tree import FALSE
from lsm.commit.rebucket import rebucket
from lsm.write.bucket_writer import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.io.errors import CommitConflict, UnmergeableRows
from manifest.store import FileStore
from pyspark_paimon import InvalidArgument, Table, UnsupportedOption
from tests.examples import some
from tests.lsm.cross_partition_model import COLUMNS, ENGINES, KEYS, Places

DDL = "id INT, name STRING, day INT, v INT, w STRING"
ARROW = pa.schema([("id", pa.int32()), ("name", pa.string()), ("day", pa.int32()), ("v", pa.int32()), ("w", pa.string())])


def made(path, engine="deduplicate", **options):
    every = {**ENGINES[engine], **{key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}}
    return Table.create(path, DDL, primary_keys=KEYS, partition_keys=["day"], options=every)


def rows(*values):
    return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in values], ARROW)


def found(table):
    every = table.scan().to_arrow().to_pylist()
    by_key = {(row["id"], row["name"]): row for row in every}
    assert len(by_key) == len(every), "a key lives in two partitions"
    return by_key


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.sampled(2)
def test_a_key_lives_in_one_partition(engine, tmp_path):
    chance = random.Random(engine)
    table = made(tmp_path / "t", engine, dynamic_bucket__target_row_num="9", num_sorted_run__compaction_trigger="3")
    places = Places(engine)
    for _ in range(some(3)):
        batch = places.batch(chance)
        signs = pa.array([row["_kind"] for row in batch])
        table.write(pa.Table.from_pylist(batch, ARROW).append_column("_row_kind", signs))
        assert found(table) == places.rows
        if chance.random() < 0.3:
            table.compact(full=chance.random() < 0.5)
            assert found(table) == places.rows
    assert table.fsck(depth="deep").problems == ()
    buckets = Table.open(f"{table.path}$files").scan(columns=["partition", "bucket"]).to_arrow().to_pylist()
    assert max(row["bucket"] for row in buckets) > 0


def test_rows_move_by_update_delete_and_merge(tmp_path):
    table = made(tmp_path / "t")
    table.write(rows(*((i, "a", 1, i, "x") for i in range(6))))
    table.update("id < 2", {"day": 2})
    table.delete("id = 2")
    table.delete(keys={"id": [0], "name": ["a"]})
    source = rows((1, "a", 3, 10, "s"), (7, "a", 3, 70, "s"))
    table.merge(source, on=["id", "name"]).when_matched_update_all().when_not_matched_insert_all().execute()
    table.write(rows((3, "a", None, 33, None), (3, "a", 5, 34, None), (4, "a", 1, 40, None)))
    expected = {1: (3, 10), 3: (5, 34), 4: (1, 40), 5: (1, 5), 7: (3, 70)}
    assert {row["id"]: (row["day"], row["v"]) for row in found(table).values()} == expected
    assert table.lookup([{"id": 3, "name": "a"}])["day"].to_pylist() == [5]
    with pytest.raises(InvalidArgument, match="partition"):
        made(tmp_path / "p", "partial-update").merge(source, on=["id", "name"]).when_matched_update({"day": 1}).execute()
    before = table.write(rows((1, "a", 3, 11, "s"))).snapshot_id
    table.write(rows((1, "a", 1, 0, None)), mode="overwrite", options={"dynamic-partition-overwrite": "false"})
    assert [row["v"] for row in found(table).values()] == [0]
    table.restore(before)
    assert table.fsck(depth="deep").problems == ()
    assert len(found(table)) == 5


def assigned(store, commit_id, *values, kinds=None):
    with TableWrite(store, WriteJob(commit_id=commit_id)) as write:
        write.write(rows(*values), kinds=kinds and pa.array(kinds, pa.int8()))
        return write.prepare_commit()


@pytest.mark.parametrize("engine", ENGINES)
def test_two_writers_that_move_a_key_are_one_after_the_other(engine, tmp_path):
    table = made(tmp_path / "t", engine)
    table.write(rows((1, "a", 1, 5, "x")))
    store = FileStore.open(str(tmp_path / "t"))
    late = assigned(store, "late", (1, "a", 2, 7, "late"), (2, "a", 2, 8, "late"))
    table.write(rows((1, "a", 3, 9, "early"), (2, "a", 3, 10, "early")))
    commit = FileStoreCommit(store, "late")
    with pytest.raises(CommitConflict):
        commit.commit(late)
    again = rebucket(store, late, "late")
    commit.commit(again)
    one, two = (found(table)[id_, "a"] for id_ in (1, 2))
    expected = {
        "deduplicate": ((2, 7, "late"), (2, 8, "late")),
        "partial-update": ((1, 7, "late"), (3, 8, "late")),
        "aggregation": ((1, 21, "late"), (3, 18, "late")),
        "first-row": ((1, 5, "x"), (3, 10, "early")),
    }[engine]
    assert tuple((row["day"], row["v"], row["w"]) for row in (one, two)) == expected
    assert table.fsck(depth="deep").problems == ()


def test_a_late_writer_whose_files_have_deletes_and_rows_moves_both_keys(tmp_path):
    table = made(tmp_path / "t")
    table.write(rows((1, "a", 1, 5, "x"), (2, "a", 2, 5, "x"), (4, "a", 1, 5, "x")))
    store = FileStore.open(str(tmp_path / "t"))
    late = assigned(store, "late", (1, "a", 2, 7, "late"), (2, "a", 1, 8, "late"), (4, "a", 1, 5, "x"), kinds=[0, 0, 3])
    assert {file.delete_row_count < file.row_count for message in late for file in message.new_files} == {True}
    table.write(rows((3, "a", 3, 9, "early")))
    FileStoreCommit(store, "late").commit(rebucket(store, late, "late"))
    assert {row["id"]: (row["day"], row["v"]) for row in found(table).values()} == {1: (2, 7), 2: (1, 8), 3: (3, 9)}


def test_rows_that_joined_a_key_which_is_gone_are_not_guessed(tmp_path):
    table = made(tmp_path / "t", "aggregation", aggregation__remove_record_on_delete="true")
    table.write(rows((1, "a", 1, 5, "x")))
    store = FileStore.open(str(tmp_path / "t"))
    late = assigned(store, "late", (1, "a", 2, 7, "late"))
    table.delete("id = 1")
    with pytest.raises(CommitConflict, match="Write again"):
        rebucket(store, late, "late")
    FileStoreCommit(store, "late").abort(late)
    assert table.fsck(depth="deep").problems == ()


@pytest.mark.slow
def test_writers_at_once_leave_every_key_once(tmp_path):
    made(tmp_path / "t")

    def writer(day):
        table = Table.open(tmp_path / "t")
        for turn in range(4):
            table.write(rows(*((i, "a", day, turn, None) for i in range(20))))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(writer, range(3)))
    table = Table.open(tmp_path / "t")
    assert {row["id"] for row in found(table).values()} == set(range(20))
    assert len({row["day"] for row in found(table).values()}) == 1


def test_a_key_that_lives_twice_is_told(tmp_path):
    table = made(tmp_path / "t")
    store = FileStore.open(str(tmp_path / "t"))
    for day in (1, 2):  # as writers do that do not look for it
        with TableWrite(store, WriteJob(commit_id=f"u{day}", finds_keys=False)) as write:
            write.write(rows((1, "a", day, 1, None)))
            FileStoreCommit(store, f"u{day}").commit(write.prepare_commit())
    with pytest.raises(UnmergeableRows, match=r"id = 1, name = 'a' lives in two partitions, \(1,\) and \(2,\)"):
        table.write(rows((1, "a", 1, 2, None)))
    assert table.fsck().problems == ()
    (problem,) = table.fsck(depth="deep").problems
    assert (problem.kind, problem.path) == ("key-partition", table.path)
    assert "id = 1, name = 'a' lives in partitions (1,) and (2,)" in problem.message
    table.drop_partitions([{"day": 2}])
    assert table.fsck(depth="deep").problems == ()
    table.write(rows((1, "a", 3, 2, None)))
    assert [row["day"] for row in found(table).values()] == [3]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"sequence.field": "v"}, "sequence.field"),
        ({"bucket": "2"}, "bucket"),
        ({"bucket": "-2"}, "bucket"),
        ({"ignore-delete": "true"}, "ignore-delete"),
    ],
)
def test_what_would_leave_a_key_twice_is_refused(options, named, tmp_path):
    with pytest.raises(UnsupportedOption, match=f"option '{named}'.*partition column 'day'"):
        Table.create(tmp_path / "t", DDL, primary_keys=KEYS, partition_keys=["day"], options=options)


def test_partitions_are_overwritten_by_keys_that_live_nowhere_else(tmp_path):
    table = made(tmp_path / "t")
    table.write(rows(*((i, "a", i % 3, i, None) for i in range(9))))
    table.write(rows((0, "a", 0, 10, None), (20, "a", 0, 20, None), (20, "a", 0, 21, None)), mode="overwrite")
    expected = {i: i for i in range(9) if i % 3} | {0: 10, 20: 21}
    assert {row["id"]: row["v"] for row in found(table).values()} == expected
    for how in ({"partition": {"day": 0}}, {}):
        with pytest.raises(
            UnmergeableRows, match=r"key id = 1, name = 'a' lives in partition \(1,\), which this overwrite does not replace"
        ):
            table.write(rows((1, "a", 0, 11, None)), mode="overwrite", **how)
    assert {row["id"]: row["v"] for row in found(table).values()} == expected
    assert table.fsck(depth="deep").problems == ()


def test_partial_overwrite_replaces_keys_of_other_named_partitions(tmp_path):
    schema = "a INT, b INT, id INT, v INT"
    table = Table.create(str(tmp_path / "t"), schema, primary_keys=["id"], partition_keys=["a", "b"], options={"bucket": "-1"})
    table.write([{"a": 1, "b": 0, "id": 7, "v": 1}, {"a": 1, "b": 1, "id": 8, "v": 1}])
    table.write([{"a": 0, "b": 0, "id": 7, "v": 2}], mode="overwrite", partition={"b": 0})
    expected = [{"a": 0, "b": 0, "id": 7, "v": 2}, {"a": 1, "b": 1, "id": 8, "v": 1}]
    assert table.scan(order_by="id").to_arrow().to_pylist() == expected
    with pytest.raises(UnmergeableRows, match=r"id = 8 lives in partition \(1, 1\)"):
        table.write([{"a": 3, "b": 0, "id": 8, "v": 3}], mode="overwrite", partition={"b": 0})
    assert table.scan(order_by="id").to_arrow().to_pylist() == expected


@pytest.mark.parametrize("engine", ["first-row", "partial-update"])
def test_dynamic_overwrite_refuses_keys_of_partitions_that_get_no_row(tmp_path, engine):
    options = {"bucket": "-1", "merge-engine": engine}
    table = Table.create(str(tmp_path / "t"), "p INT, id INT, v INT", primary_keys=["id"], partition_keys=["p"], options=options)
    table.write([{"p": 2, "id": 1, "v": 1}])
    # The first row of key 0 decides its partition, so that no row goes to partition 2, which holds key 1.
    more = [{"p": 0, "id": 0, "v": 2}, {"p": 2, "id": 0, "v": 3}, {"p": 3, "id": 1, "v": 4}]
    with pytest.raises(UnmergeableRows, match=r"id = 1 lives in partition \(2,\)"):
        table.write(more, mode="overwrite")
    assert table.scan().to_arrow().to_pylist() == [{"p": 2, "id": 1, "v": 1}]
    table.write([*more, {"p": 2, "id": 5, "v": 5}], mode="overwrite")
    assert {row["id"]: row["p"] for row in table.scan().to_arrow().to_pylist()} == {0: 0, 1: 3, 5: 2}


def test_an_overwrite_of_a_partition_sees_what_comes_beside_it(tmp_path):
    table = made(tmp_path / "t")
    table.write(rows((1, "a", 1, 1, None)))
    store = FileStore.open(str(tmp_path / "t"))
    with TableWrite(store, WriteJob(commit_id="o", overwrites=True, replaces=FALSE)) as write:
        write.write(rows((5, "a", 1, 2, None)))
        made_of_it = write.prepare_commit()
    table.write(rows((5, "a", 2, 3, None)))
    commit = FileStoreCommit(store, "o")
    with pytest.raises(CommitConflict, match="moved to other partitions"):
        commit.overwrite(made_of_it, dynamic=True)
    with pytest.raises(UnmergeableRows, match="lives in partition"):
        rebucket(store, made_of_it, "o", overwrite=True, replaces=FALSE)
    commit.abort(made_of_it)
    assert {row["id"]: row["day"] for row in found(table).values()} == {1: 1, 5: 2}


@pytest.mark.parametrize("engine", ENGINES)
def test_tables_of_the_engine_are_read_and_written_on(engine, tmp_path):
    home = Path(__file__).parent.parent.parent / "golden_cross_partition" / engine
    expected = [json.loads(line) for line in (home / "expected.jsonl").read_text().splitlines()]
    shutil.copytree(home / "table", tmp_path / "t")
    table = Table.open(tmp_path / "t")
    assert found(table) == {(row["id"], row["name"]): row for row in expected}
    one = expected[0]
    table.write(rows((one["id"], one["name"], 9, 1000, "moved")))
    after = found(table)[one["id"], one["name"]]
    assert after["day"] == (9 if engine == "deduplicate" else one["day"])
    assert (after["w"] == "moved") == (engine != "first-row")
    assert len(found(table)) == len(expected)
    assert table.fsck(depth="deep").problems == ()


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_changes_of_a_key_that_moves_come_in_their_order(producer, tmp_path):
    """Partitions are read in the order of their bytes, negative days last; a key must not be deleted after its new row."""
    table = made(tmp_path / "t", changelog_producer=producer)
    days = [-1, 1, -2, 0]
    for step, day in enumerate(days):
        table.write(rows(*((number, "a", day if number % 2 else -day, step, None) for number in range(6))))
    states = {0: {}} | {
        snapshot: {row["id"]: row for row in table.scan(snapshot=snapshot).to_arrow().to_pylist()}
        for snapshot, kind in zip(*table.snapshots().select(["snapshot_id", "commit_kind"]).to_pydict().values(), strict=True)
        if producer in {"none", "input"} or kind == "COMPACT"  # else the rows are not in the changelog yet
    }
    assert len(states) > 3
    for first, before in states.items():
        for last, after in states.items():
            if last <= first:
                continue
            changed = dict(before)
            for row in table.changelog(first, last).to_arrow().to_pylist():
                kind = row.pop("_row_kind")
                if kind.startswith("-"):
                    changed.pop(row["id"], None)
                else:
                    changed[row["id"]] = row
            assert changed == after, (first, last)
