"""Going back without forgetting: a new snapshot has an older state, of every kind of table; tags move and change names."""

from __future__ import annotations

import pyarrow as pa
import pytest

from manifest.io.errors import SnapshotNotFound
from paimon_base.errors import InvalidArgument
from pyspark_paimon import Table
from tests.build import keyed

KINDS = {
    "fixed": ({"bucket": "2"}, ["id"], []),
    "dynamic": ({"bucket": "-1", "dynamic-bucket.target-row-num": "5"}, ["id"], []),
    "vectors": ({"bucket": "2", "deletion-vectors.enabled": "true"}, ["id"], []),
    "partitioned": ({"bucket": "1"}, ["part", "id"], ["part"]),
    "append": ({}, [], []),
    "append-vectors": ({"deletion-vectors.enabled": "true"}, [], []),
}


def rows_of(table, **travel):
    return table.scan(**travel).to_arrow().sort_by("id").to_pylist()


def write(table, ids, city):
    return table.write(pa.table({"id": list(ids), "part": pa.array([i % 3 for i in ids], pa.int32()), "city": [f"{city}{i}" for i in ids]}))


@pytest.fixture(params=KINDS)
def table(request, tmp_path):
    options, keys, partitions = KINDS[request.param]
    return Table.create(
        str(tmp_path / "t"),
        "id BIGINT NOT NULL, part INT NOT NULL, city STRING",
        primary_keys=keys,
        partition_keys=partitions,
        options={**options, "snapshot.num-retained.min": "100", "snapshot.num-retained.max": "200"},
    )


def history(table):
    """Writes, deletes, a compaction and an overwrite; the rows after each snapshot."""
    write(table, range(20), "a")
    table.delete("id % 5 = 0")
    write(table, range(15, 30), "b")
    table.compact(full=True)
    table.delete("city LIKE 'b%' AND id > 25")
    table.write(rows_as_table([7, 8], "c"), mode="overwrite")
    return {snapshot: rows_of(table, snapshot=snapshot) for snapshot in table.snapshots()["snapshot_id"].to_pylist()}


def rows_as_table(ids, city):
    return pa.table({"id": ids, "part": pa.array([i % 3 for i in ids], pa.int32()), "city": [f"{city}{i}" for i in ids]})


@pytest.mark.slow
def test_every_state_comes_back_and_the_history_stays(table):
    states = history(table)
    for snapshot, rows in reversed(states.items()):
        restored = table.restore(snapshot)
        assert rows_of(table) == rows, snapshot
        assert table.count() == len(rows)
        assert restored.snapshot_id is None or table.snapshots()["commit_kind"].to_pylist()[-1] == "OVERWRITE"
    assert {snapshot: rows_of(table, snapshot=snapshot) for snapshot in states} == states
    assert table.fsck("deep").problems == ()
    assert table.tags().num_rows == 0


def test_what_was_restored_is_written_compacted_and_expired_as_any_state(table):
    states = history(table)
    first = min(states)
    table.restore(first)
    again = Table.open(table.path)
    write(again, [3, 50], "new")
    kept = [(row["id"], row["city"]) for row in states[first] if row["id"] != 3 or not table.primary_keys]
    wanted = sorted([*kept, (3, "new3"), (50, "new50")])
    assert sorted((row["id"], row["city"]) for row in rows_of(again)) == wanted
    again.delete("id = 4")
    again.compact(full=True)
    again.expire_snapshots(retain_min=1, retain_max=1, older_than=4_102_444_800_000)
    again.remove_orphan_files(older_than=4_102_444_800_000)
    wanted = [row for row in wanted if row[0] != 4]
    assert sorted((row["id"], row["city"]) for row in rows_of(Table.open(table.path))) == wanted
    assert again.fsck("deep").problems == ()


def test_what_comes_back_outlives_the_snapshot_that_had_deleted_it(table):
    states = history(table)
    first = min(states)
    table.restore(first)
    table.compact(full=True)
    kept = table.snapshots()["snapshot_id"].to_pylist()
    table.delete("id = 4")
    table.compact(full=True)
    table.expire_snapshots(
        retain_min=len(table.snapshots()["snapshot_id"].to_pylist()) - kept.index(max(states)), older_than=4_102_444_800_000
    )
    for snapshot in table.snapshots()["snapshot_id"].to_pylist():
        if snapshot in kept and snapshot > max(states):
            assert rows_of(table, snapshot=snapshot) == states[first]
    assert table.fsck("deep").problems == ()


def test_columns_that_changed_since_keep_what_they_had(tmp_path):
    table = keyed(tmp_path / "t", "id BIGINT NOT NULL, a INT, b STRING")
    table.write(pa.table({"id": [1, 2], "a": pa.array([10, None], pa.int32()), "b": ["x", "y"]}))
    table = table.rename_column("a", "renamed").drop_column("b").add_column("c", "STRING")
    table.write(pa.table({"id": [1, 3], "renamed": pa.array([7, 8], pa.int32()), "c": ["p", "q"]}))
    table.restore(1)
    assert rows_of(table) == [{"id": 1, "renamed": 10, "c": None}, {"id": 2, "renamed": None, "c": None}]


def test_a_tag_whose_snapshot_expired_is_restored(table):
    write(table, range(5), "a")
    table.create_tag("base")
    wanted = rows_of(table)
    write(table, range(3, 9), "b")
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=4_102_444_800_000)
    assert 1 not in table.snapshots()["snapshot_id"].to_pylist()
    table.restore(tag="base")
    assert rows_of(table) == wanted
    table.delete_tag("base")
    assert rows_of(Table.open(table.path)) == wanted
    assert table.fsck("deep").problems == ()


def test_restore_takes_one_wish_and_is_done_once(table):
    write(table, range(5), "a")
    write(table, range(9), "b")
    for wrong in ({}, {"snapshot": 1, "tag": "x"}):
        with pytest.raises(InvalidArgument, match="exactly one of"):
            table.restore(**wrong)
    with pytest.raises(SnapshotNotFound):
        table.restore(99)
    done = table.restore(1, commit_id="back")
    assert table.restore(1, commit_id="back").snapshot_id == done.snapshot_id
    assert table.restore(timestamp="2100-01-01").snapshot_id is None  # nothing to do


def test_tags_move_and_change_names(table):
    write(table, range(3), "a")
    write(table, range(3, 6), "b")
    table.create_tag("t", 1)
    with pytest.raises(SnapshotNotFound):
        table.replace_tag("none")
    assert table.replace_tag("t").snapshot_id == table.snapshots()["snapshot_id"].to_pylist()[-1]
    assert table.scan(tag="t").count() == 6
    table.create_tag("other", 1)
    with pytest.raises(InvalidArgument, match="exists"):
        table.rename_tag("t", "other")
    table.rename_tag("t", "newest")
    assert sorted(table.tags()["tag_name"].to_pylist()) == ["newest", "other"]
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=4_102_444_800_000)
    table.replace_tag("other")  # its old snapshot is gone, and so are its files
    assert table.fsck("deep").problems == ()
    assert table.list_orphan_files(older_than=4_102_444_800_000) == []
