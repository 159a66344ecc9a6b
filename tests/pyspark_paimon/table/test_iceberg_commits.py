"""Iceberg metadata follows each commit once: after crashes, replays, races, rollbacks and failures it is whole, and nothing is lost."""

from __future__ import annotations

import json
import logging
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from manifest.commit import file_store_commit
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.expire import history_change
from manifest.expire.orphans import remove_orphans
from manifest.iceberg import publish as publication
from manifest.io.failpoints import ICEBERG_POINTS
from manifest.store import FileStore
from pyspark_paimon import Table, UnsupportedOption, UnsupportedTable
from pyspark_paimon.operations.repair import RemoveUnexistingFiles
from tests.iceberg_files import check_files, latest_metadata, live_paths, manifests, versions
from tests.pyspark_paimon.table_worker import finish, start

ICEBERG = {"metadata.iceberg.storage": "table-location"}


def rows(first: int, count: int = 2, city: str = "Oslo") -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "city": [city] * count})


def snapshot_ids(table: Table) -> list[int]:
    return [snapshot["snapshot-id"] for snapshot in latest_metadata(table)["snapshots"]]


@pytest.fixture
def append(create):
    return create("id BIGINT, city STRING", primary_keys=(), options=ICEBERG)


def test_a_table_without_the_option_has_no_metadata(create) -> None:
    table = create("id BIGINT, city STRING", primary_keys=())
    table.write(rows(0))
    assert versions(table) == []
    table.alter_options(ICEBERG)
    table.write(rows(2))
    check_files(table)
    assert snapshot_ids(table) == [2]


def test_a_branch_leaves_the_metadata_alone(append) -> None:
    append.write(rows(0))
    append.create_branch("dev")
    Table.open(append.path, branch="dev").write(rows(2))
    check_files(append)
    assert snapshot_ids(append) == [1]


@pytest.mark.parametrize("point", ICEBERG_POINTS)
@pytest.mark.parametrize("replayed", [False, True])
def test_a_killed_publication_is_completed_by_the_next_commit(append, point, replayed) -> None:
    append.write(rows(0))
    worker = start(append.path, [["rows", ["append", rows(10).to_pylist(), "job-7"]]], fault=point)
    code, _, err = finish(worker)
    assert code == -signal.SIGKILL, err
    table = Table.open(append.path)
    assert table.scan().count() == 4
    assert versions(table) == ([1] if point == "after-iceberg-manifests" else [1, 2])
    if replayed:
        assert table.write(rows(10), commit_id="job-7").replayed
        check_files(table)
        assert snapshot_ids(table) == [1, 2]
    table.write(rows(20))
    check_files(table)
    assert snapshot_ids(table)[-1] == 3
    assert versions(table) == [3]


@pytest.mark.local_files
def test_what_a_killed_publication_left_is_an_orphan(append) -> None:
    append.write(rows(0))
    finish(start(append.path, [["rows", ["append", rows(10).to_pylist(), "job-7"]]], fault="after-iceberg-manifests"))
    table = Table.open(append.path)
    table.write(rows(20))
    before = live_paths(table)
    gone = remove_orphans(FileStore.open(table.path), time.time_ns() // 10**6 + 60_000)
    assert sorted(orphan.path.rpartition("/")[2].partition("-")[0] == "snap" for orphan in gone) == [False, True]
    assert all("/metadata/" in orphan.path for orphan in gone)
    assert live_paths(table) == before
    assert table.fsck("deep").problems == ()


def test_a_dry_rollback_changes_nothing(append) -> None:
    for at in range(4):
        append.write(rows(10 * at))
    before = latest_metadata(append)
    would = append.rollback_to(snapshot=2, dry_run=True)
    assert latest_metadata(append) == before
    assert would.snapshots == append.rollback_to(snapshot=2).snapshots
    check_files(append)


def test_missed_snapshots_are_caught_up_by_their_changes(append, monkeypatch) -> None:
    append.write(rows(0, 5))
    kept = [one["manifest_path"] for one in manifests(append)]
    with monkeypatch.context() as patch:
        patch.setattr(FileStoreCommit, "_write_iceberg", lambda self, newest, **_: None)
        append.write(rows(5, 5))
        append.delete("id = 5")
        append.write(rows(100, 5))
    assert versions(append) == [1]
    append.write(rows(200, 5))
    check_files(append)
    assert snapshot_ids(append) == [1, 5]
    assert {*kept} <= {one["manifest_path"] for one in manifests(append)}


def test_missed_snapshots_that_expired_are_read_whole(append, monkeypatch) -> None:
    append.write(rows(0, 5))
    uuid = latest_metadata(append)["table-uuid"]
    with monkeypatch.context() as patch:
        patch.setattr(FileStoreCommit, "_write_iceberg", lambda self, newest, **_: None)
        for at in range(3):
            append.write(rows(10 * at, 5))
        append.expire_snapshots(retain_min=1, retain_max=1)
    append.write(rows(200, 5))
    check_files(append)
    assert snapshot_ids(append) == [5]
    assert latest_metadata(append)["table-uuid"] == uuid


def test_a_failure_is_logged_and_the_commit_stands(append, monkeypatch, caplog) -> None:
    append.write(rows(0))

    def fail(*_: object) -> None:
        raise OSError("no storage")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(publication.IcebergManifests, "write_list", fail)
        assert append.write(rows(2)).snapshot_id == 2
    assert "the next commit does it" in caplog.text
    assert append.scan().count() == 4
    names = {found.name for found in FileStore.open(append.path).file_io.list(f"{append.path}/metadata")}
    assert len([name for name in names if "-m" in name]) == 1, "manifests of the failed publication are deleted"
    append.write(rows(4))
    check_files(append)


def test_a_lost_race_writes_no_second_version(append, monkeypatch) -> None:
    """Another process publishes the same snapshot between our look and our write."""
    append.write(rows(0))
    store = FileStore.open(append.path)
    inner = publication._Publication._build
    rivals: list[int] = []

    def build(self: publication._Publication, base: object) -> bytes:
        data = inner(self, base)
        if not rivals:
            rivals.append(1)
            publication.publish(FileStore.open(append.path))
        return data

    with monkeypatch.context() as patch:
        patch.setattr(publication._Publication, "_build", build)
        append.write(rows(2))
    check_files(append)
    needed = {one["manifest_path"].rpartition("/")[2] for one in manifests(append)}
    names = {found.name for found in store.file_io.list(f"{store.root}/metadata")}
    assert {name for name in names if "-m" in name} == needed
    assert snapshot_ids(append) == [1, 2]


def test_a_late_publication_leaves_the_hint_at_the_newest_version(append, monkeypatch) -> None:
    append.write(rows(0))
    inner = publication._Publication._finish
    late: list[int] = []

    def finish_late(self: publication._Publication) -> None:
        if not late:
            late.append(1)
            Table.open(append.path).write(rows(10))
        inner(self)

    with monkeypatch.context() as patch:
        patch.setattr(publication._Publication, "_finish", finish_late)
        append.write(rows(2))
    check_files(append)
    assert snapshot_ids(append)[-1] == 3


@pytest.mark.local_files
def test_writers_at_once_leave_whole_metadata(append) -> None:
    append.write(rows(0))

    def write(first: int) -> None:
        table = Table.open(append.path)
        for at in range(4):
            table.write(rows(first + 10 * at))

    threads = [threading.Thread(target=write, args=(1000 * number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_files(append)
    assert append.scan().count() == 26


@pytest.mark.parametrize("target", [1, 3])
def test_a_rollback_takes_the_metadata_along(append, target) -> None:
    for at in range(5):
        append.write(rows(10 * at))
    uuid = latest_metadata(append)["table-uuid"]
    append.rollback_to(snapshot=target)
    check_files(append)
    append.write(rows(100, 3, "Rome"))
    check_files(append)
    assert latest_metadata(append)["table-uuid"] == uuid
    append.delete("id = 100")
    check_files(append)


def unpublished(patch: pytest.MonkeyPatch) -> None:
    """Write no metadata: the modules keep what they found in ``publication``."""
    for module in (file_store_commit, history_change):
        patch.setattr(module, "iceberg", SimpleNamespace(publish_or_log=lambda store, **_: None))


def test_a_killed_rollback_does_not_hide_new_commits(append, monkeypatch) -> None:
    """Versions of removed snapshots stay; the ids are used again."""
    for at in range(4):
        append.write(rows(10 * at))
    before = versions(append)
    with monkeypatch.context() as patch:
        unpublished(patch)
        append.rollback_to(snapshot=2)
    assert versions(append) == before
    append.write(rows(100, 3, "Rome"))
    check_files(append)
    append.write(rows(200, 3, "Rome"))
    check_files(append)
    append.write(rows(300, 3, "Rome"))
    check_files(append)


@pytest.mark.local_files
def test_a_repeated_removal_of_missing_files_writes_the_metadata(append, monkeypatch) -> None:
    append.write(rows(0))
    append.write(rows(10))
    lost = next(Path(append.path).glob("bucket-0/data-*"))
    lost.unlink()
    removal = RemoveUnexistingFiles(commit_id="once")
    with monkeypatch.context() as patch:
        unpublished(patch)
        append._backend.run(removal)
    assert latest_metadata(append)["current-snapshot-id"] == 2
    append._backend.run(removal)
    assert latest_metadata(append)["current-snapshot-id"] == 3
    check_files(append)


@pytest.mark.local_files
def test_a_table_made_again_gets_a_new_id(tmp_path) -> None:
    def make() -> Table:
        options = {"metadata.iceberg.storage": "hadoop-catalog"}
        table = Table.create(tmp_path / "sales.db" / "t", "id BIGINT, city STRING", options=options)
        table.write(rows(0))
        return table

    first = latest_metadata(make(), "../../iceberg/sales/t/metadata")
    import shutil

    shutil.rmtree(tmp_path / "sales.db")
    second = latest_metadata(make(), "../../iceberg/sales/t/metadata")
    assert first["table-uuid"] != second["table-uuid"]
    assert first["snapshots"][0]["manifest-list"] != second["snapshots"][0]["manifest-list"]


@pytest.mark.local_files
def test_a_moved_table_gets_metadata_of_its_new_place(append, tmp_path) -> None:
    append.write(rows(0))
    (tmp_path / "t").rename(tmp_path / "moved")
    moved = Table.open(tmp_path / "moved")
    moved.write(rows(2))
    check_files(moved)
    assert latest_metadata(moved)["location"] == str(tmp_path / "moved")


def test_a_purge_leaves_no_value_in_the_metadata(create) -> None:
    options = {**ICEBERG, "metadata.iceberg.manifest-compression": "null", "metadata.iceberg.delete-after-commit.enabled": "false"}
    table = create("id BIGINT, city STRING", primary_keys=(), options=options)
    for at, city in enumerate(("Oslo", "secret", "Rome")):
        table.write(rows(10 * at, 2, city))
    table.delete("id = 0")
    assert table.purge("city = 'secret'").gone
    check_files(table)
    store = FileStore.open(table.path)
    paths = [f"{store.root}/metadata/{found.name}" for found in store.file_io.list(f"{store.root}/metadata")]
    assert not [path for path in paths if b"secret" in store.file_io.read(path)]
    table.write(rows(50))
    check_files(table)


def test_a_lost_manifest_is_written_anew(append) -> None:
    append.write(rows(0))
    append.write(rows(2))
    store = FileStore.open(append.path)
    store.file_io.delete(manifests(append)[0]["manifest_path"])
    append.delete("id = 2")
    check_files(append)


def test_wrong_counts_are_found_and_the_metadata_written_anew(append, caplog) -> None:
    append.write(rows(0))
    store = FileStore.open(append.path)
    metadata = latest_metadata(append)
    path = f"{store.root}/metadata/v1.metadata.json"
    empty = publication.IcebergManifests(
        store.file_io, f"{store.root}/metadata", "", store.partition, publication.IcebergOptions.of(store.options), 1 << 20, {}
    )
    metadata["snapshots"][0]["manifest-list"] = empty.write_list([])
    store.file_io.write(path, json.dumps(metadata).encode(), overwrite=True)
    with caplog.at_level(logging.WARNING):
        append.write(rows(2))
    assert "had 2 of 4 rows" in caplog.text
    check_files(append)


@pytest.mark.parametrize(
    ("columns", "options", "named"),
    [
        ("id BIGINT, at TIME(3)", {}, "column 'at' is TIME"),
        ("id BIGINT, v VARIANT", {}, "column 'v' is VARIANT"),
        ("id BIGINT, r ROW<a ARRAY<TIMESTAMP(9)>>", {}, r"column 'r' is TIMESTAMP\(9\)"),
        ("id BIGINT, t TIMESTAMP(0)", {}, r"column 't' is TIMESTAMP\(0\)"),
        ("id BIGINT, m MULTISET<STRING>", {}, "column 'm' is MULTISET"),
        ("id BIGINT", {"file.format": "orc"}, "needs Parquet files, not orc"),
        ("id BIGINT", {"deletion-vectors.enabled": "true"}, "needs 'metadata.iceberg.format-version' 3"),
        ("id BIGINT", {"deletion-vectors.enabled": "true", "metadata.iceberg.format-version": "3"}, "needs 'deletion-vectors.bitmap64'"),
        ("id BIGINT", {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}, "data-evolution.enabled"),
        ("id BIGINT", {"metadata.iceberg.storage": "hive-catalog"}, "hive-catalog"),
        ("id BIGINT", {"metadata.iceberg.storage": "rest-catalog"}, "rest-catalog"),
        ("id BIGINT", {"metadata.iceberg.format-version": "4"}, "metadata.iceberg.format-version"),
        ("id BIGINT", {"metadata.iceberg.previous-versions-max": "-1"}, "previous-versions-max"),
        ("id BIGINT", {"metadata.iceberg.manifest-legacy-version": "maybe"}, "neither true nor false"),
    ],
)
def test_what_readers_cannot_see_is_refused(create, columns, options, named) -> None:
    with pytest.raises(UnsupportedOption, match=named):
        create(columns, primary_keys=(), options={**ICEBERG, **options})


def test_a_decimal_partition_is_refused(create) -> None:
    with pytest.raises(UnsupportedOption, match="partition column 'p'"):
        create("id BIGINT, p DECIMAL(4, 1)", primary_keys=(), partition_keys=["p"], options=ICEBERG)


def test_types_that_iceberg_cannot_widen_are_refused(append) -> None:
    append.add_column("n", "INT")
    with pytest.raises(UnsupportedOption, match="column 'n' cannot change from INT to STRING"):
        append.change_type("n", "STRING")
    append.change_type("n", "BIGINT")
    with pytest.raises(UnsupportedOption, match="column 'at' is TIME"):
        append.add_column("at", "TIME")
    assert append.schema.field("n").type == pa.int64()


def test_files_of_another_type_or_format_are_named(create, caplog) -> None:
    table = create("id BIGINT, n INT", primary_keys=(), options={"file.format": "orc"})
    table.write(pa.table({"id": [1], "n": pa.array([1], pa.int32())}))
    table.alter_options({"file.format": "parquet", **ICEBERG})
    with caplog.at_level(logging.WARNING):
        table.write(pa.table({"id": [2], "n": pa.array([1], pa.int32())}))
    assert "is orc: compact the table fully" in caplog.text
    caplog.clear()
    table.alter_options({"metadata.iceberg.storage": "disabled"})
    table.delete("id = 1")
    table.change_type("n", "STRING")
    table.alter_options(ICEBERG)
    with caplog.at_level(logging.WARNING):
        table.write(pa.table({"id": [3], "n": ["x"]}))
    assert "column 'n' of" in caplog.text
    table.delete("id = 2")
    check_files(table)


def test_types_changed_without_metadata_leave_no_unreadable_file(create, caplog) -> None:
    """The option may be off while a column changes its type, and no snapshot may follow before it is on again."""
    table = create("id BIGINT, v INT", primary_keys=(), options=ICEBERG)
    table.write(pa.table({"id": [1], "v": pa.array([1], pa.int32())}))
    table.alter_options({"metadata.iceberg.storage": "disabled"})
    table.change_type("v", "STRING")
    table.alter_options(ICEBERG)
    with caplog.at_level(logging.WARNING):
        table.write(pa.table({"id": [2], "v": ["2"]}))
    assert "column 'v' of" in caplog.text
    assert latest_metadata(table)["current-snapshot-id"] == 1
    table.compact(full=True)
    check_files(table)
    assert latest_metadata(table)["current-snapshot-id"] == 3


def test_a_hadoop_catalog_needs_a_database(create) -> None:
    table = create("id BIGINT, city STRING", primary_keys=(), options={"metadata.iceberg.storage": "hadoop-catalog"})
    with pytest.raises(UnsupportedTable, match="hadoop-catalog needs a table of a database"):
        table.write(rows(0))
    assert table.snapshots().num_rows == 0
