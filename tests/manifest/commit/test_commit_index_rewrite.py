"""Commits that describe data files anew: file by file, in conflict with nothing but what removed a file."""

from __future__ import annotations

import pytest

from manifest.expire.orphans import list_orphans
from manifest.expire.snapshots import expire_snapshots
from manifest.snapshot.snapshot import CommitKind
from tests.manifest.commit_kit import committer, data_file, live_names, make_table, message

FAR = 2**62


def described(store, file, *, side=None, embedded=None):
    """The same data file with another index; a side file is written."""
    new = file.model_copy(update={"extra_files": () if side is None else (side,), "embedded_index": embedded})
    for path in store.physical_files(bytes(12), 0, new):
        if not store.file_io.exists(path):
            store.file_io.write(path, b"index")
    return new


def rewrite(store, pairs, *, user=None, base=None, **fields):
    before, after = zip(*pairs, strict=True)
    made = message(store, before=before, after=after, base_snapshot_id=base or store.snapshots.latest().id, **fields)
    return committer(store, user).rewrite_indexes([made], 1)


def indexes(store):
    return {
        entry.file.file_name: (entry.file.embedded_index, entry.file.extra_files)
        for entry in store.live_entries(store.snapshots.latest()).entries()
    }


@pytest.fixture
def table(tmp_path):
    """An append table with files a and b."""
    store = make_table(tmp_path / "t", keys=())
    files = {name: data_file(store, name=f"data-{name}.parquet") for name in "ab"}
    committer(store).commit([message(store, new=files.values(), total=-1)])
    return store, files


def test_entries_change_in_a_compact_snapshot_without_a_row(table):
    store, files = table
    done = rewrite(store, [(files["a"], described(store, files["a"], embedded=b"x"))], total=-1)
    latest = store.snapshots.latest()
    assert done.compact_snapshot_id == latest.id == 2
    assert (latest.commit_kind, latest.delta_record_count, latest.total_record_count) == (CommitKind.COMPACT, 0, 20)
    assert indexes(store) == {"data-a.parquet": (b"x", ()), "data-b.parquet": (None, ())}


def test_a_file_that_is_gone_drops_out_alone_with_its_side_file(table):
    store, files = table
    pairs = [(file, described(store, file, side=f"{file.file_name}-1.index")) for file in files.values()]
    other = data_file(store, name="data-c.parquet")
    committer(store).commit([message(store, before=[files["a"]], after=[other], total=-1)])
    done = rewrite(store, pairs, total=-1)
    assert done.lost_compactions == ((bytes(12), 0),)
    assert indexes(store) == {"data-b.parquet": (None, ("data-b.parquet-1.index",)), "data-c.parquet": (None, ())}
    assert [orphan.path for orphan in list_orphans(store, FAR) if orphan.path.endswith(".index")] == []


def test_nothing_is_committed_if_every_file_is_gone(table):
    store, files = table
    pairs = [(files["a"], described(store, files["a"], embedded=b"x"))]
    committer(store).commit([message(store, before=[files["a"]], after=[], total=-1)])
    assert rewrite(store, pairs, total=-1).compact_snapshot_id is None
    assert store.snapshots.latest().id == 2


def test_of_two_rewrites_of_a_file_the_first_stands(table):
    store, files = table
    first, second = (described(store, files["a"], side=f"data-a.parquet-{name}-1.index") for name in ("one", "two"))
    assert not rewrite(store, [(files["a"], first)], total=-1).compact_lost
    assert rewrite(store, [(files["a"], second)], total=-1).compact_lost
    assert indexes(store)["data-a.parquet"] == (None, ("data-a.parquet-one-1.index",))
    assert [name for name in store.live_entries(store.snapshots.latest()).physical_names() if name.endswith(".index")] == [
        "data-a.parquet-one-1.index"
    ]
    left = [status.name for status in store.file_io.list(store.paths.bucket_dir((), 0)) if status.name.endswith(".index")]
    assert left == ["data-a.parquet-one-1.index"]


def test_an_entry_that_was_deleted_before_can_come_back(table):
    store, files = table
    plain, indexed = files["a"], described(store, files["a"], embedded=b"x")
    for turn in range(3):
        rewrite(store, [(plain, indexed)], total=-1)
        assert indexes(store)["data-a.parquet"] == (b"x", ()), turn
        rewrite(store, [(indexed, plain)], total=-1)
        assert indexes(store)["data-a.parquet"] == (None, ()), turn
    assert live_names(store) == ["data-a.parquet", "data-b.parquet"]
    for snapshot in store.snapshots.backwards():
        assert live_names(store, snapshot) == ["data-a.parquet", "data-b.parquet"]


def test_a_repeated_commit_is_none(table):
    store, files = table
    pairs = [(files["a"], described(store, files["a"], side="data-a.parquet-1.index"))]
    first = rewrite(store, pairs, user="u", total=-1)
    again = rewrite(store, pairs, user="u", base=1, total=-1)
    assert (again.compact_snapshot_id, again.replayed, store.snapshots.latest().id) == (first.compact_snapshot_id, True, 2)
    assert indexes(store)["data-a.parquet"] == (None, ("data-a.parquet-1.index",))


def test_expiry_keeps_the_data_file_and_the_new_side_file(table):
    store, files = table
    first = described(store, files["a"], side="data-a.parquet-1.index")
    second = described(store, first, side="data-a.parquet-2.index")
    rewrite(store, [(files["a"], first)], total=-1)
    rewrite(store, [(first, second)], total=-1)
    expire_snapshots(store, retain_min=1, retain_max=1, older_than_ms=FAR)
    here = {status.name for status in store.file_io.list(store.paths.bucket_dir((), 0))}
    assert here == {"data-a.parquet", "data-b.parquet", "data-a.parquet-2.index"}
    assert list_orphans(store, FAR) == []


def test_abort_deletes_the_side_file_and_never_the_data_file(table):
    store, files = table
    new = described(store, files["a"], side="data-a.parquet-1.index")
    made = message(store, before=[files["a"]], after=[new], total=-1, base_snapshot_id=1)
    assert [path.rpartition("/")[2] for path in committer(store).abort([made])] == ["data-a.parquet-1.index"]
    rewrite(store, [(files["a"], described(store, files["a"], side="data-a.parquet-1.index"))], total=-1)
    assert committer(store).abort([made.model_copy(update={"base_snapshot_id": 2})]) == []
