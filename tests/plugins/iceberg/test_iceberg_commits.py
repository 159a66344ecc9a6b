"""Iceberg metadata follows each commit once: after crashes, replays, races, rollbacks and failures it is whole, and nothing is lost."""

from __future__ import annotations

import json
import logging
import random
import shutil
import signal
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from manifest.commit.file_store_commit import FileStoreCommit
from manifest.expire.orphans import remove_orphans
from manifest.io.failpoints import ICEBERG_POINTS
from manifest.store import FileStore
from pyspark_paimon import Table, UnsupportedOption, UnsupportedTable
from pyspark_paimon.operations.missing_files import RemoveUnexistingFiles
from pyspark_paimon.plugins.iceberg import publish
from pyspark_paimon.plugins.iceberg import publish as publication
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    """Write no metadata."""
    patch.setattr(publish, "publish", lambda store, **_: None)


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
        append._engine.run(removal)
    assert latest_metadata(append)["current-snapshot-id"] == 2
    append._engine.run(removal)
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


NASTY = [None, True, -1, 0, 2**31, 2**70, 1.5, "", "x", "file:/etc", [], {}, [None], [[]], {"a": None}, [{}]]
"""Values that foreign JSON may have in any place."""


def _places(value, path=()):
    """Yield the path of every member and item of a JSON value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from _places(inner, (*path, key))


def _changed(value, path, change):
    copied = json.loads(json.dumps(value))
    parent = copied
    for key in path[:-1]:
        parent = parent[key]
    change(parent, path[-1])
    return json.dumps(copied).encode()


def _damages(path: Path, rng: random.Random):
    """Yield (name, content) of damaged forms of a file of Iceberg metadata."""
    data = path.read_bytes()
    for cut in (0, 1, len(data) // 2, len(data) - 1):
        yield f"cut at {cut}", data[:cut]
    yield "zeros", bytes(len(data))
    yield "digits", b"9" * 5000
    yield "nested", b"[" * 100_000
    yield "an object in an object", b'{"a":' * 100_000
    for _ in range(12):
        at = rng.randrange(len(data))
        yield f"byte {at}", data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        yield f"number at {at}", data[:at] + b"\xff\xff\xff\xff\x0f" + data[at + 5 :]
    for other in sorted(path.parent.iterdir()):
        if other.suffix == path.suffix and other != path:
            yield f"content of {other.suffix}", other.read_bytes()
    if path.suffix == ".json":
        json_ = json.loads(data)
        for place in _places(json_):
            yield f"without {place}", _changed(json_, place, lambda parent, key: parent.pop(key))
            for value in rng.sample(NASTY, 2):
                yield f"{place} is {value!r}", _changed(json_, place, lambda parent, key, value=value: parent.__setitem__(key, value))


@pytest.mark.slow
@pytest.mark.local_files
@pytest.mark.parametrize("layout", ["append", "keyed", "vectors"])
@pytest.mark.sampled(3)
def test_no_damaged_file_of_iceberg_fails_a_write(tmp_path, layout) -> None:
    """The commit stands, no error leaves the call, and a later commit leaves whole metadata."""
    keys = () if layout == "append" else ("id",)
    options = {**ICEBERG, "metadata.iceberg.previous-versions-max": "5"}
    if layout == "vectors":
        options |= {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true", "metadata.iceberg.format-version": "3"}
    table = Table.create(
        tmp_path / "t", "id BIGINT, city STRING", primary_keys=keys, options={**options, **({"bucket": "1"} if keys else {})}
    )
    for first in range(3):
        table.write(rows(first))
        if keys:
            table.compact(full=True)
    rng = random.Random(layout)
    shutil.copytree(table.path, tmp_path / "whole")
    home = tmp_path / "whole" / "metadata"
    names = [max(home.glob(pattern)).name for pattern in ("*.metadata.json", "snap-*.avro", "*-m*.avro", "version-hint.text")]
    for name in names + [path.name for path in sorted(home.glob("*.puffin"))[-1:]]:
        damages = list(_damages(home / name, rng))
        for damage, content in damages[:8] + rng.sample(damages[8:], min(len(damages) - 8, 30)):
            shutil.rmtree(tmp_path / "t")
            table = Table.open(shutil.copytree(tmp_path / "whole", tmp_path / "t"))
            (tmp_path / "t" / "metadata" / name).write_bytes(content)
            before = table.snapshots().num_rows
            assert table.write(rows(100)).snapshot_id is not None, (name, damage)
            assert table.snapshots().num_rows > before
            table.write(rows(200))
            if keys:
                table.compact(full=True)
            assert latest_metadata(table)["current-snapshot-id"] == table.snapshots()["snapshot_id"].to_pylist()[-1], (name, damage)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("step", ["before the list", "before the version", "before the hint"])
def test_no_metadata_of_a_snapshot_that_another_process_rolls_back_stays(append, monkeypatch, step, again) -> None:
    append.write(rows(0))
    other = Table.open(append.path)
    acted: list[str] = []

    def act() -> None:
        if not acted:
            acted.append(step)
            other.rollback_to(1)
            if again:
                other.write(rows(50))

    run, finish_, write_list = publication._Publication.run, publication._Publication._finish, publication.IcebergManifests.write_list

    def run_beside(self, **named):
        if step == "before the list":
            monkeypatch.setattr(publication.IcebergManifests, "write_list", lambda s, m: (act(), write_list(s, m))[1])
        return run(self, **named)

    if step == "before the version":
        monkeypatch.setattr(publication.failpoints, "point", lambda name: act() if name == "after-iceberg-manifests" else None)
    elif step == "before the hint":
        monkeypatch.setattr(publication._Publication, "_finish", lambda self: (act(), finish_(self))[1])
    monkeypatch.setattr(publication._Publication, "run", run_beside)
    append.write(rows(10))
    assert acted
    table = Table.open(append.path)
    check_files(table)
    assert latest_metadata(table)["current-snapshot-id"] == table.snapshots()["snapshot_id"].to_pylist()[-1]
