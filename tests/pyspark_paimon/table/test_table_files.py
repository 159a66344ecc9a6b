"""Whole files: copied into another table, purged with all that holds them, removed where they are missing, behind a gap of the history."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pytest

from manifest.io import output_file
from manifest.io.errors import CommitConflict, OutOfDisk, SnapshotExpired, StorageError, TableExists, UnsupportedTable
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from paimon_base.errors import CorruptFile, InvalidArgument
from pyspark_paimon import Catalog, Table
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.operations.change_rows import DeleteRows
from pyspark_paimon.operations.expire import RemoveOrphans
from pyspark_paimon.operations.purge import ForgetHistory

Create = Callable[..., Table]
KINDS: dict[str, dict[str, object]] = {
    "keyed": {"primary_keys": ["id", "day"], "options": {"bucket": "2", "file-index.bloom-filter.columns": "city"}},
    "deletion vectors": {"primary_keys": ["id", "day"], "options": {"bucket": "2", "deletion-vectors.enabled": "true"}},
    "dynamic": {"primary_keys": ["id", "day"], "options": {"bucket": "-1"}},
    "across partitions": {"primary_keys": ["id"], "options": {"bucket": "-1"}},
    "postponed": {"primary_keys": ["id", "day"], "options": {"bucket": "-2"}},
    "append": {"primary_keys": [], "options": {"bucket": "-1", "deletion-vectors.enabled": "true"}},
    "buckets": {"primary_keys": [], "options": {"bucket": "2", "bucket-key": "id"}},
    "row ids": {"primary_keys": [], "options": {"bucket": "-1", "row-tracking.enabled": "true"}},
}


def made(create: Create, kind: str, name: str = "t") -> Table:
    table = create("id BIGINT, day STRING, city STRING", name=name, partition_keys=["day"], **KINDS[kind])
    for at in range(3):
        ids = range(at * 10, at * 10 + 14)
        table.write(pa.table({"id": ids, "day": ["a" if one % 3 else "b" for one in ids], "city": [f"city {at}.{one}" for one in ids]}))
    if kind not in {"row ids", "buckets"}:
        table.delete("id IN (3, 5, 21)")
    return table


def rows(table: Table, wanted: str | None = None) -> list[dict[str, object]]:
    return sorted(table.scan(wanted).to_arrow().to_pylist(), key=repr)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wanted", [None, "day = 'a'", "day = 'none'"])
def test_a_copy_has_the_rows_and_is_a_table_of_its_own(create: Create, table_root: str, kind: str, wanted: str | None) -> None:
    table = made(create, kind)
    table.rename_column("city", "town")
    done = table.copy_to(f"{table_root}/copy", filter=wanted)
    copy = Table.open(f"{table_root}/copy")
    assert rows(copy) == rows(table, wanted)
    assert table.tags().num_rows == 0
    assert copy.fsck("deep").clean
    assert (done.files, copy.schemas().num_rows) == (copy.files().num_rows, table.schemas().num_rows)
    before = rows(table)
    more = pa.table({"id": [100, 1], "day": ["a", "a"], "town": ["new", "again"]})
    copy.write(more)
    assert rows(table) == before
    table.delete("TRUE") if kind not in {"row ids", "buckets"} else table.drop_partitions([{"day": "a"}, {"day": "b"}])
    expected = len(before) if wanted is None else sum(row["day"] == "a" for row in before) * (wanted == "day = 'a'")
    again = {"append": expected + 2, "buckets": expected + 2, "row ids": expected + 2}.get(kind, expected + 1 + (expected == 0))
    assert copy.count() == again


class FaultyStreams(WrappedFileIO):
    """A file system whose streams fail once, at the operation with number ``fails_at``."""

    def __init__(self, number: int, error: OSError) -> None:
        super().__init__(LocalFileIO())
        self.fails_at, self.error, self.operations = number, error, 0

    def step(self) -> None:
        self.operations += 1
        if self.operations == self.fails_at:
            raise self.error

    def open_input(self, path: str, size: int | None = None) -> object:
        return FaultyStream(self, super().open_input(path, size))

    def open_output(self, path: str) -> object:
        return FaultyStream(self, super().open_output(path))


class FaultyStream:
    def __init__(self, file_io: FaultyStreams, stream: Any) -> None:
        self.file_io, self.stream = file_io, stream

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stream.close()

    def read(self, size: int) -> bytes:
        self.file_io.step()
        return bytes(self.stream.read(size))

    def write(self, data: bytes) -> None:
        self.file_io.step()
        self.stream.write(data)

    def tell(self) -> int:
        self.file_io.step()
        return int(self.stream.tell())

    def close(self) -> None:
        if not self.stream.closed:
            self.stream.close()
            self.file_io.step()


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_copy_that_fails_at_any_byte_says_where_and_leaves_nothing(tmp_path: Path, number: int) -> None:
    def create(ddl: str, name: str, **arguments: Any) -> Table:
        return Table.create(tmp_path / name, ddl, **arguments)

    table = made(create, "append")
    for fails_at in count(1):
        file_io = FaultyStreams(fails_at, OSError(number, os.strerror(number)))
        failure: StorageError | None = None
        try:
            Table(LocalEngine(table.path, file_io=file_io)).copy_to(tmp_path / "copy")
        except StorageError as error:
            failure = error
        if failure is None:
            break
        assert isinstance(failure, OutOfDisk) == (number == errno.ENOSPC)
        assert str(failure.filename).startswith((f"{table.path}/", f"{tmp_path}/copy/"))
        assert [path.name for path in (tmp_path / "copy").rglob("*") if path.is_file()] == ["schema-0"]
        assert table.tags().num_rows == 0
    assert fails_at > 20
    assert rows(Table.open(tmp_path / "copy")) == rows(table)


def test_new_rows_of_a_copy_get_unused_ids(create: Create, table_root: str) -> None:
    made(create, "row ids").copy_to(f"{table_root}/copy")
    copy = Table.open(f"{table_root}/copy")
    copy.write(pa.table({"id": [1], "day": ["a"], "city": ["x"]}))
    ids = Table.open(f"{table_root}/copy$row_tracking").scan().to_arrow()["_ROW_ID"].to_pylist()
    assert len(ids) == len(set(ids)) == 43
    assert Table.open(f"{table_root}/copy$snapshots").scan().to_arrow()["next_row_id"].to_pylist() == [42, 43]


def test_an_empty_table_is_copied_with_its_schemas(create: Create, table_root: str) -> None:
    table = create("id BIGINT, city STRING")
    table.add_column("n", "INT")
    assert table.copy_to(f"{table_root}/copy").snapshot_id is None
    assert Table.open(f"{table_root}/copy").table_schema == table.table_schema


def test_what_is_there_is_not_touched(create: Create, table_root: str) -> None:
    table, other = made(create, "keyed"), made(create, "append", "other")
    before = rows(other)
    with pytest.raises(TableExists, match="nothing was copied"):
        table.copy_to(other.path)
    assert rows(other) == before
    with pytest.raises(InvalidArgument, match="must use partition columns only"):
        table.copy_to(f"{table_root}/copy", filter="id = 1")
    with pytest.raises(InvalidArgument, match="not a branch"):
        table.copy_to(f"{table_root}/copy$branch_b")


def test_a_table_that_reads_another_branch_is_not_copied(create: Create, table_root: str) -> None:
    table = made(create, "keyed")
    table.create_branch("b")
    table.alter_options({"scan.fallback-branch": "b"})
    with pytest.raises(UnsupportedTable, match="names a branch, which a copy does not have"):
        table.copy_to(f"{table_root}/copy")


def test_a_copy_would_prefer_the_columns_of_its_older_files(create: Create, table_root: str) -> None:
    options = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table = create("id BIGINT, city STRING", primary_keys=[], options=options)
    for at in range(3):
        table.write({"id": [at], "city": ["x"]})
    with pytest.raises(UnsupportedTable, match="sequence numbers, and those start again in a copy"):
        table.copy_to(f"{table_root}/copy")


@pytest.mark.local_files
def test_a_failed_copy_commits_nothing_and_is_repeated(create: Create, table_root: str) -> None:
    table = made(create, "keyed")
    lost = max(Path(table.path).rglob("data-*.parquet"))
    content = lost.read_bytes()
    lost.write_bytes(content[:-1])
    with pytest.raises(CorruptFile, match="nothing was committed"):
        table.copy_to(f"{table_root}/copy")
    lost.unlink()
    with pytest.raises(CorruptFile, match="is missing"):
        table.copy_to(f"{table_root}/copy")
    left = Table.open(f"{table_root}/copy")
    assert (left.snapshots().num_rows, table.tags().num_rows) == (0, 0)
    assert not list(Path(left.path).rglob("data-*"))
    lost.write_bytes(content)
    table.copy_to(f"{table_root}/copy")
    assert rows(left) == rows(table)


@pytest.mark.local_files
def test_a_killed_copy_is_not_taken_for_a_table_to_copy_into(create: Create, table_root: str, monkeypatch) -> None:
    table = made(create, "keyed")

    class Killed(BaseException):
        pass

    def finish(self: output_file.OutputFile) -> int:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(output_file.OutputFile, "finish", finish)
        patched.setattr(output_file.OutputFile, "abort", lambda self: None)
        with pytest.raises(Killed):
            table.copy_to(f"{table_root}/copy")
    with pytest.raises(TableExists, match="an interrupted copy"):
        table.copy_to(f"{table_root}/copy")
    assert Table.open(f"{table_root}/copy").count() == 0


@pytest.mark.local_files
def test_of_a_catalog_by_name(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("db")
    catalog.create_table("db.t", "id BIGINT").write({"id": [1, 2]})
    assert catalog.copy_table("db.t", "db.u").snapshot_id == 1
    assert catalog.table("db.u").count() == 2
    with pytest.raises(TableExists):
        catalog.copy_table("db.t", "db.u")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "row ids"])
def test_purged_files_are_gone_with_all_that_held_them(create: Create, kind: str) -> None:
    table = made(create, kind)
    table.create_tag("v1", 1)
    table.create_branch("b", "v1")
    table.reset_consumer("nightly", 1)
    dry = table.purge_files(dry_run=True)
    assert {holder.kind for holder in dry.holders} >= {"tag", "branch", "snapshot", "consumer"}
    assert table.tags().num_rows == 1
    assert table.purge_files().gone
    assert [view.num_rows for view in (table.tags(), table.branches(), table.consumers(), table.files())] == [0, 0, 0, 0]
    assert table.snapshots().num_rows == 1
    table.write(pa.table({"id": [1], "day": ["a"], "city": ["x"]}))
    assert table.fsck().clean
    table.create_branch("c")
    branch = Table.open(table.path, branch="c")
    with pytest.raises(InvalidArgument, match="is a branch"):
        branch.purge_files()


@pytest.mark.local_files
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "postponed"])
def test_missing_files_leave_the_newest_state(create: Create, kind: str) -> None:
    table = made(create, kind)
    table.create_tag("before")
    assert table.remove_unexisting_files().paths == ()
    whole = rows(table)
    lost = sorted(Path(table.path).glob("day=a/bucket-*/data-*.parquet"))
    for file in lost:
        file.unlink()
    live = {name.rpartition("/")[2] for name in table.files()["file_name"].to_pylist()}
    expected = sorted(str(file) for file in lost if file.name in live)
    with pytest.raises(CorruptFile):
        table.scan().to_arrow()
    dry, newest = table.remove_unexisting_files(dry_run=True), table.snapshots().num_rows
    assert (sorted(dry.paths), dry.snapshot_id, table.snapshots().num_rows) == (expected, None, newest)
    done = table.remove_unexisting_files()
    assert (sorted(done.paths), done.rows, done.snapshot_id) == (expected, dry.rows, newest + 1)
    assert rows(table) == [row for row in whole if row["day"] == "b"]
    assert not [problem for problem in table.fsck("deep").problems if problem.origin.tag is None and problem.origin.snapshot == newest + 1]
    assert table.remove_unexisting_files().snapshot_id is None
    table.write(pa.table({"id": [1], "day": ["a"], "city": ["x"]}))
    assert [row["city"] for row in rows(table, "day = 'a'")] == ["x"]


@pytest.mark.local_files
def test_columns_of_missing_files_cannot_be_removed(create: Create) -> None:
    options = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table = create("id BIGINT, city STRING", primary_keys=[], options=options)
    with pytest.raises(UnsupportedTable, match="in several files"):
        table.remove_unexisting_files()


@pytest.mark.local_files
def test_the_first_snapshot_behind_a_gap_becomes_the_oldest(create: Create) -> None:
    table = made(create, "keyed")
    for at in range(4):
        table.write(pa.table({"id": [at], "day": ["a"], "city": ["x"]}))
    newest, folder = table.snapshots()["snapshot_id"][-1].as_py(), Path(table.path, "snapshot")
    table.create_tag("first", 1)
    whole, first = rows(table), sorted(table.scan(tag="first").to_arrow()["id"].to_pylist())
    with pytest.raises(InvalidArgument, match="follows no gap"):
        table.repair_earliest_snapshot(3)
    (folder / "snapshot-4").unlink()
    for wrong, words in ((4, "does not exist"), (99, "does not exist"), (3, "snapshot 4 is missing"), (1, "snapshot 4 is missing")):
        with pytest.raises(InvalidArgument, match=words):
            table.repair_earliest_snapshot(wrong)
    table.reset_consumer("nightly", 2)
    with pytest.raises(InvalidArgument, match="a consumer has yet to read snapshot 2"):
        table.repair_earliest_snapshot(5)
    table.reset_consumer("nightly")
    assert table.repair_earliest_snapshot(5, dry_run=True).snapshots == 3
    assert (folder / "snapshot-1").exists()
    done = table.repair_earliest_snapshot(5)
    assert (done.snapshots, done.repairs[0].copies[0].rpartition("/")[2]) == (3, "snapshot-1")
    assert table.snapshots()["snapshot_id"].to_pylist() == list(range(5, newest + 1))
    assert (folder / "EARLIEST").read_text() == "5"
    assert rows(table) == whole
    assert sorted(table.scan(tag="first").to_arrow()["id"].to_pylist()) == first
    with pytest.raises(SnapshotExpired):
        table.scan(snapshot=2)
    assert table.fsck("deep").clean
    assert table.repair_earliest_snapshot(5).snapshots == 0
    assert table.expire_snapshots(retain_max=1, retain_min=1).snapshots == newest - 5


@pytest.mark.parametrize("step", [DeleteRows, ForgetHistory, RemoveOrphans])
def test_an_interrupted_purge_is_finished_by_the_next_one(create: Create, monkeypatch, step: type) -> None:
    table = made(create, "keyed")
    table.create_tag("v1", 1)

    def fail(*_: object) -> None:
        raise CommitConflict("interrupted")

    with monkeypatch.context() as patched:
        patched.setattr(step, "run", fail)
        with pytest.raises(CommitConflict, match="interrupted"):
            table.purge_files()
    assert table.count() == (0 if step is not DeleteRows else 31)
    assert table.purge_files().gone
    assert (table.count(), table.snapshots().num_rows, table.tags().num_rows) == (0, 1, 0)


@pytest.mark.parametrize("options", [{"merge-engine": "first-row"}, {"merge-engine": "partial-update"}, {"ignore-delete": "true"}])
def test_a_table_whose_rows_cannot_be_deleted_keeps_its_tags(create: Create, options: dict[str, str]) -> None:
    table = create("id BIGINT, v INT", primary_keys=["id"], options={"bucket": "1", **options})
    table.write({"id": [1], "v": [1]})
    table.create_tag("keep")
    table.create_branch("other", "keep")
    with pytest.raises(UnsupportedTable):
        table.purge_files()
    assert (table.count(), table.tags().num_rows, table.branches().num_rows) == (1, 1, 1)
