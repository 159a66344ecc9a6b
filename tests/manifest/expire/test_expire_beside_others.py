"""Removing files while others expire snapshots or delete tags, and states that no reader may take for the table."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manifest.entry.live import live
from manifest.io.errors import CommitConflict, SnapshotNotFound, TableExists
from manifest.io.file_io import LocalFileIO
from paimon_base.errors import CorruptFile, InvalidArgument
from pyspark_paimon import Table
from tests.build import ids, keyed

FOREVER = 2**62
COLUMNS = "id INT NOT NULL, v STRING"


def rows(*keys: int) -> pa.Table:
    return pa.table({"id": pa.array(keys, pa.int32()), "v": ["x"] * len(keys)})


def made(path: Path, commits: int, **options: str) -> Table:
    table = keyed(path, COLUMNS, {"write-only": "true", **options})
    for key in range(commits):
        table.write(rows(key))
    return table


@pytest.fixture(scope="module")
def long_histories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of 60 commits: ``compacted``, and with their ``changelogs``."""
    home = tmp_path_factory.mktemp("histories")
    made(home / "compacted", 60).compact(full=True)
    made(home / "changelogs", 60, **{"changelog-producer": "input", "changelog.num-retained.min": "70", "changelog.num-retained.max": "80"})
    return home


@pytest.fixture(scope="module")
def short_histories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of six commits: ``plain``, and ``tagged``, where the tag is older than the snapshots."""
    home = tmp_path_factory.mktemp("histories")
    made(home / "plain", 6)
    table = made(home / "tagged", 6)
    table.create_tag("old", 2)
    table.expire_snapshots(retain_min=1, retain_max=2, older_than=FOREVER)
    return home


def copied(source: Path, path: Path) -> Table:
    return Table.open(shutil.copytree(source, path))


def keys(table: Table) -> list[int]:
    return ids(Table.open(table.path))


@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("number", range(1, 60, 3))
@pytest.mark.sampled(3)
def test_orphans_are_removed_beside_an_expiry(tmp_path, short_histories, monkeypatch, number, tagged):
    """Another process expires or deletes a tag before the ``number``-th read of a metadata file."""
    table = copied(short_histories / ("tagged" if tagged else "plain"), tmp_path / "t")
    orphan = tmp_path / "t/bucket-0/data-left.parquet"
    orphan.write_bytes(b"x")
    read, count = LocalFileIO.read, 0

    def counted(self: LocalFileIO, path: str) -> bytes:
        nonlocal count
        count += 1
        if count == number:
            if tagged:
                Table.open(tmp_path / "t").delete_tag("old")
            else:
                Table.open(tmp_path / "t").expire_snapshots(retain_min=1, retain_max=1, older_than=FOREVER)
        return read(self, path)

    monkeypatch.setattr(LocalFileIO, "read", counted)
    Table.open(tmp_path / "t").remove_orphan_files(older_than=FOREVER)
    monkeypatch.undo()
    assert not orphan.exists()
    assert keys(table) == list(range(6))
    assert not Table.open(tmp_path / "t").fsck(depth="deep").problems


def test_a_missing_manifest_of_a_state_that_is_there_still_stops_the_removal(tmp_path):
    table = made(tmp_path / "t", 3)
    for path in tmp_path.glob("t/manifest/manifest-list-*"):
        path.unlink()
        break
    (tmp_path / "t/bucket-0/data-left.parquet").write_bytes(b"x")
    with pytest.raises(CorruptFile, match="is missing"):
        table.remove_orphan_files(older_than=FOREVER)
    assert (tmp_path / "t/bucket-0/data-left.parquet").exists()


@pytest.mark.parametrize("commits", [2, 3])
@pytest.mark.parametrize("act", ["scan", "count", "write", "lookup", "compact"])
def test_a_table_without_its_snapshots_is_not_an_empty_one(tmp_path, act, commits):
    table = made(tmp_path / "t", commits)
    shutil.rmtree(tmp_path / "t/snapshot")
    acts = {
        "scan": lambda t: t.scan().to_arrow(),
        "count": lambda t: t.scan().count(),
        "write": lambda t: t.write(rows(1)),
        "lookup": lambda t: t.lookup(rows(1).select(["id"])),
        "compact": lambda t: t.write(rows(1), options={"write-only": "false"}),
    }
    with pytest.raises(CorruptFile, match="snapshot: has no snapshot"):
        acts[act](Table.open(tmp_path / "t"))
    found = table.fsck().problems
    assert [(problem.kind.value, problem.path) for problem in found] == [("snapshot", str(tmp_path / "t/snapshot"))]


def test_a_table_with_a_tag_and_no_snapshot_can_be_rolled_back_to_the_tag(tmp_path):
    table = made(tmp_path / "t", 1)
    table.create_tag("kept")
    shutil.rmtree(tmp_path / "t/snapshot")
    with pytest.raises(CorruptFile, match="tag 'kept' exists"):
        keys(table)
    Table.open(tmp_path / "t").rollback_to(tag="kept")
    assert keys(table) == [0]


def test_remains_of_a_first_write_that_was_killed_leave_the_table_empty(tmp_path):
    table = made(tmp_path / "t", 1)
    shutil.rmtree(tmp_path / "t/snapshot")
    assert keys(table) == []
    assert not table.fsck().problems
    table.write(rows(5))
    assert keys(table) == [5]


def test_a_directory_with_snapshots_and_no_schema_is_no_place_for_a_table(tmp_path):
    made(tmp_path / "t", 2)
    shutil.rmtree(tmp_path / "t/schema")
    with pytest.raises(TableExists, match="left snapshots"):
        keyed(tmp_path / "t", COLUMNS)


def test_a_data_file_that_is_added_twice_is_found_by_readers(tmp_path):
    table = made(tmp_path / "t", 2)
    store = table._engine.store()
    newest = store.snapshots.latest()
    entries = store.delta_entries(newest)
    assert live(entries) is entries
    metas = store.manifest_metas(newest)
    name, size = store.manifest_lists.write([*metas, *store.manifests.write(entries.entries())])
    snapshot = newest.model_copy(update={"id": 3, "base_manifest_list": name, "base_manifest_list_size": size})
    empty, size = store.manifest_lists.write([])
    assert store.snapshots.try_create(snapshot.model_copy(update={"delta_manifest_list": empty, "delta_manifest_list_size": size}))
    for act in (lambda t: t.scan().to_arrow(), lambda t: t.scan().aggregate({"id": ["sum"]}), lambda t: t.write(rows(7))):
        with pytest.raises(CorruptFile, match=r"manifest-.*adds data file data-.*parquet, which is in the table already"):
            act(Table.open(tmp_path / "t"))


@pytest.mark.parametrize("at_once", [1, 7, 1000])
@pytest.mark.parametrize("limit", [None, 10])
def test_an_explicit_expiry_goes_to_its_end(tmp_path, long_histories, set_thresholds, limit, at_once):
    set_thresholds(expired_at_once=at_once)
    table = copied(long_histories / "compacted", tmp_path / "t")
    would = table.expire_snapshots(retain_min=1, retain_max=1, older_than=FOREVER, limit=limit, dry_run=True)
    done = table.expire_snapshots(retain_min=1, retain_max=1, older_than=FOREVER, limit=limit)
    assert (done.snapshots, done.data_files) == ((60, 60) if limit is None else (10, 0))
    assert (would.snapshots, would.data_files, would.manifests) == (done.snapshots, done.data_files, done.manifests)
    assert table.snapshots().num_rows == 61 - done.snapshots
    assert keys(table) == list(range(60))
    assert not table.fsck().problems


@pytest.mark.parametrize("at_once", [1, 7, 1000])
@pytest.mark.slow
def test_an_explicit_expiry_of_changelogs_goes_to_its_end(tmp_path, long_histories, set_thresholds, at_once):
    set_thresholds(expired_at_once=at_once)
    table = copied(long_histories / "changelogs", tmp_path / "t")
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=FOREVER)
    assert len(list((tmp_path / "t/changelog").glob("changelog-*"))) == 59
    table.alter_options({"changelog.num-retained.min": "2", "changelog.num-retained.max": "3", "snapshot.num-retained.min": "1"})
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=FOREVER)
    assert len(list((tmp_path / "t/changelog").glob("changelog-*"))) <= 2
    assert not table.fsck().problems


def test_a_limit_is_a_number_of_snapshots(tmp_path):
    with pytest.raises(InvalidArgument, match="limit"):
        made(tmp_path / "t", 1).expire_snapshots(limit=0)


def test_manifest_lists_that_are_being_written_prove_nothing(tmp_path):
    table = made(tmp_path / "t", 0)
    (tmp_path / "t/manifest").mkdir(exist_ok=True)
    for number in range(4):
        (tmp_path / f"t/manifest/manifest-list-{number}").write_bytes(b"Obj"[:number])
    assert keys(table) == []
    table.write(rows(5))
    assert keys(table) == [5]


@pytest.mark.parametrize("act", ["replace", "delete"])
def test_a_tag_that_changes_while_it_is_renamed_is_not_lost(tmp_path, monkeypatch, act):
    table = made(tmp_path / "t", 3)
    table.create_tag("old", 1)
    create, waiting = LocalFileIO.create_exclusive, [True]

    def created(self: LocalFileIO, path: str, data: bytes, **options: Any) -> bool:
        done = create(self, path, data, **options)
        if path.endswith("tag-new") and waiting and waiting.pop():
            other = Table.open(tmp_path / "t")
            other.replace_tag("old", 3) if act == "replace" else other.delete_tag("old")
        return done

    monkeypatch.setattr(LocalFileIO, "create_exclusive", created)
    with pytest.raises(CommitConflict if act == "replace" else SnapshotNotFound, match="while it was renamed"):
        table.rename_tag("old", "new")
    monkeypatch.undo()
    found = {row["tag_name"]: row["snapshot_id"] for row in table.tags().to_pylist()}
    assert found == ({"old": 3} if act == "replace" else {})
