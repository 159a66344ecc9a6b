"""Copies with history: each state is there, a repeat copies what is new, a cut is finished, and nothing else is touched."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manifest.io.errors import CommitGaveUp, StorageError, TableExists, UnsupportedTable
from manifest.io.file_io import LocalFileIO
from manifest.io.paths import MAIN_BRANCH, ROLLBACK
from manifest.io.wrapped import WrappedFileIO
from paimon_base.errors import InvalidArgument
from pyspark_paimon import Table
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.operations import copy_history
from tests.build import command_line

Create = Callable[..., Table]
KINDS: dict[str, dict[str, Any]] = {
    "keyed": {"options": {"bucket": "2", "changelog-producer": "lookup", "file-index.bloom-filter.columns": "city"}},
    "deletion vectors": {"options": {"bucket": "1", "deletion-vectors.enabled": "true", "file-index.in-manifest-threshold": "1 b"}},
    "dynamic": {
        "options": {"bucket": "-1", "changelog.num-retained.min": "4", "changelog.num-retained.max": "9", "changelog-producer": "input"}
    },
    "data evolution": {
        "primary_keys": [],
        "options": {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"},
    },
}


def states(table: Table) -> dict[str, Any]:
    """Return the rows of each snapshot, tag and branch, and what else has a history."""

    def rows(**place: Any) -> list[Any]:
        return sorted(table.scan(**place).to_arrow().to_pylist(), key=repr)

    branches = table.branches()["branch_name"].to_pylist()
    return {
        "snapshots": {snapshot: rows(snapshot=snapshot) for snapshot in table.snapshots()["snapshot_id"].to_pylist()},
        "tags": {tag: rows(tag=tag) for tag in table.tags()["tag_name"].to_pylist()},
        "branches": {name: sorted(map(repr, Table.open(table.path, branch=name).scan().to_arrow().to_pylist())) for name in branches},
        "schemas": table.schemas().to_pylist(),
        "consumers": table.consumers().to_pylist(),
    }


def change(table: Table, chance: random.Random, number: int) -> None:
    """Make one random change of rows, schema or history."""
    verbs = ["write", "write", "write", "delete", "tag", "untag", "branch", "compact", "expire", "column", "consumer", "replace"]
    match chance.choice(verbs):
        case "delete" if table.primary_keys:
            table.delete(f"id = {chance.randrange(9)}")
        case "tag":
            table.create_tag(f"tag-{number}")
        case "untag" if table.tags().num_rows:
            table.delete_tag(table.tags()["tag_name"][0].as_py())
        case "replace" if table.tags().num_rows:
            table.replace_tag(table.tags()["tag_name"][0].as_py())
        case "branch":
            table.create_branch(f"branch-{number}")
            Table.open(table.path, branch=f"branch-{number}").write([{"id": 100 + number}], missing="null")
        case "compact":
            table.compact(full=True)
        case "expire":
            table.expire_snapshots(retain_max=2, retain_min=1)
        case "column":
            table.add_column(f"column_{number}", "INT")
        case "consumer":
            table.reset_consumer("reader", table.snapshots()["snapshot_id"][-1].as_py())
        case _:
            table.write([{"id": chance.randrange(9), "city": f"city {number}"} for _ in range(3)], missing="null")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_a_repeated_copy_has_every_state(create: Create, table_root: str, kind: str, seed: int) -> None:
    chance, table = random.Random(seed), create("id BIGINT, city STRING", **KINDS[kind])
    table.write([{"id": 1, "city": "Oslo"}])
    for round_number in range(5):
        for step in range(4):
            change(table, chance, round_number * 10 + step)
        table.copy_to(f"{table_root}/copy", history=True)
        copy = Table.open(f"{table_root}/copy")
        assert states(copy) == states(table)
        assert not copy.fsck("deep").problems
        assert table.copy_to(f"{table_root}/copy", history=True).files == 0


def test_a_repeat_copies_only_what_is_new(create: Create, table_root: str) -> None:
    table = create()
    table.write(pa.table({"id": range(10_000)}), missing="null")
    first = table.copy_to(f"{table_root}/copy", history=True)
    table.write([{"id": 1}], missing="null")
    second = table.copy_to(f"{table_root}/copy", history=True)
    assert 0 < second.files <= first.files
    assert second.bytes < first.bytes
    assert (first.snapshot_id, second.snapshot_id) == (1, 2)


def test_a_backup_is_restored_and_written(create: Create, table_root: str) -> None:
    table = create()
    table.write([{"id": 1, "city": "Oslo", "n": 1}], commit_id="load", batch_id=1)
    table.create_tag("first")
    table.delete("id = 1")
    table.copy_to(f"{table_root}/backup", history=True)
    Table.open(f"{table_root}/backup").copy_to(f"{table_root}/restored", history=True)
    restored = Table.open(f"{table_root}/restored")
    assert restored.write([{"id": 1, "city": "Oslo", "n": 1}], commit_id="load", batch_id=1).replayed
    restored.rollback_to(tag="first")
    restored.write([{"id": 2, "city": "Lima", "n": 2}])
    assert (restored.count(), table.count()) == (2, 0)


@pytest.mark.parametrize("history", [False, True])
def test_a_copy_goes_to_another_storage_and_back(tmp_path: Path, history: bool) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT", primary_keys=["id"], options={"bucket": "1", "deletion-vectors.enabled": "true"})
    table.write([{"id": 1}, {"id": 2}])
    table.delete("id = 1")
    store = f"memory://{uuid.uuid4().hex}/copy"
    table.copy_to(store, history=history)
    copy = Table.open(store)
    assert copy.fsck("deep").clean
    copy.copy_to(tmp_path / "back", history=history, storage_options={})
    assert Table.open(tmp_path / "back").scan().to_arrow().to_pylist() == [{"id": 2}]


class CutFileIO(WrappedFileIO):
    """A disk that fails at step ``fails_at``, or calls ``before_read`` before it reads a data file."""

    def __init__(self, fails_at: int | None = None, before_read: Callable[[], object] = lambda: None) -> None:
        super().__init__(LocalFileIO())
        self.fails_at, self.before_read, self.steps = fails_at, before_read, 0

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self.fails_at:
            raise StorageError("cut off")

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:
        self._step()
        super().write(path, data, overwrite=overwrite, durable=durable)

    def delete(self, path: str) -> bool:
        self._step()
        return super().delete(path)

    def open_input(self, path: str, size: int | None = None) -> object:
        self.before_read()
        self._step()
        return super().open_input(path, size)


def made(create: Create, name: str = "t") -> Table:
    table = create(name=name, options={"snapshot.num-retained.min": "1", "write-only": "true"})
    for number in range(4):
        table.write([{"id": number, "city": "Oslo", "n": number}])
    return table


@pytest.mark.slow
@pytest.mark.local_files
def test_a_copy_that_is_cut_anywhere_shows_no_broken_state_and_is_finished(create: Create, table_root: str) -> None:
    table, steps = made(create), 0
    for fails_at in range(1, 100):
        target, file_io = f"{table_root}/copy-{fails_at}", CutFileIO(fails_at)
        table.copy_to(f"{table_root}/older", history=True)
        Table.open(f"{table_root}/older").copy_to(target, history=True)
        table.write([{"id": fails_at, "city": "Lima", "n": 0}])
        table.expire_snapshots(retain_max=3, retain_min=1)
        try:
            Table(LocalEngine(table.path, file_io=file_io)).copy_to(target, history=True)
        except StorageError:
            steps = fails_at
        copy = Table.open(target)
        assert all(copy.scan(snapshot=each).count() for each in copy.snapshots()["snapshot_id"].to_pylist())
        table.copy_to(target, history=True)
        assert states(Table.open(target)) == states(table)
        if steps < fails_at:
            break
    assert steps > 5


@pytest.mark.local_files
def test_snapshots_that_expire_meanwhile_are_left_out(create: Create, table_root: str) -> None:
    table = made(create)

    def expire() -> None:
        Table.open(table.path).expire_snapshots(retain_max=1, retain_min=1)

    Table(LocalEngine(table.path, file_io=CutFileIO(before_read=expire))).copy_to(f"{table_root}/copy", history=True)
    assert states(Table.open(f"{table_root}/copy")) == states(table)
    assert not Table.open(f"{table_root}/copy").fsck("deep").problems


@pytest.mark.local_files
def test_a_tag_that_is_moved_meanwhile_is_copied_with_its_files(create: Create, table_root: str) -> None:
    table = made(create)
    table.create_tag("moving", snapshot=1)
    table.compact(full=True)
    table.expire_snapshots(retain_max=1, retain_min=1)

    moves = iter([lambda: Table.open(table.path).replace_tag("moving")])

    def move() -> None:
        next(moves, lambda: None)()

    Table(LocalEngine(table.path, file_io=CutFileIO(before_read=move))).copy_to(f"{table_root}/copy", history=True)
    assert states(Table.open(f"{table_root}/copy")) == states(table)


@pytest.mark.local_files
def test_a_copy_keeps_what_its_table_lost(create: Create, table_root: str) -> None:
    table = made(create)
    table.copy_to(f"{table_root}/copy", history=True)
    before = states(Table.open(f"{table_root}/copy"))
    Path(table.path, "snapshot", "snapshot-2").unlink()
    for file in Path(table.path).glob("bucket-*/*.parquet"):
        file.unlink()
    table.copy_to(f"{table_root}/copy", history=True)
    assert states(Table.open(f"{table_root}/copy")) == before
    assert not Table.open(f"{table_root}/copy").fsck("deep").problems


@pytest.mark.slow
@pytest.mark.local_files
def test_a_copy_gives_up_where_snapshots_expire_faster(create: Create, table_root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(create)
    monkeypatch.setattr(copy_history, "_ROUNDS", 2)

    def write_and_expire() -> None:
        other = Table.open(table.path)
        other.write([{"id": 1, "city": "x", "n": 0}])
        other.expire_snapshots(retain_max=1, retain_min=1)

    with pytest.raises(CommitGaveUp, match="retain them longer"):
        Table(LocalEngine(table.path, file_io=CutFileIO(before_read=write_and_expire))).copy_to(f"{table_root}/copy", history=True)
    assert Table.open(f"{table_root}/copy").snapshots().num_rows == 0


def test_another_table_or_a_changed_copy_is_not_touched(create: Create, table_root: str) -> None:
    table, other = made(create), made(create, "other")
    before = states(other)
    with pytest.raises(TableExists, match="this is another table"):
        table.copy_to(other.path, history=True)
    assert states(other) == before
    table.copy_to(f"{table_root}/copy", history=True)
    copy = Table.open(f"{table_root}/copy")
    copy.write([{"id": 77, "city": "x", "n": 0}])
    before = states(copy)
    for _ in range(2):
        with pytest.raises(TableExists, match="name another directory"):
            table.copy_to(copy.path, history=True)
        table.write([{"id": 78, "city": "y", "n": 0}])  # the same id for another snapshot
    assert states(copy) == before


@pytest.mark.local_files
def test_a_directory_of_others_is_not_touched(create: Create, tmp_path: Path) -> None:
    table = made(create)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(TableExists, match="no copy of this table is here"):
        table.copy_to(tmp_path / "mine", history=True)
    assert [path.name for path in (tmp_path / "mine").rglob("*")] == ["letter.txt"]


def test_what_cannot_be_copied_says_why(create: Create, table_root: str) -> None:
    table = made(create)
    with pytest.raises(InvalidArgument, match="history=True copies all rows"):
        table.copy_to(f"{table_root}/copy", history=True, filter="id = 1")
    for inside in (f"{table.path}/copy", table.path):
        with pytest.raises(InvalidArgument, match="outside of its table"):
            table.copy_to(inside, history=True)
    table.create_branch("b")
    assert MAIN_BRANCH not in table.branches()["branch_name"].to_pylist()
    with pytest.raises(UnsupportedTable, match="not a branch"):
        Table.open(table.path, branch="b").copy_to(f"{table_root}/copy", history=True)


@pytest.mark.local_files
def test_a_rollback_that_was_cut_off_is_finished_first(create: Create, tmp_path: Path) -> None:
    table = made(create)
    for fails_at in range(1, 100):
        with suppress(StorageError):
            Table(LocalEngine(table.path, file_io=CutFileIO(fails_at))).rollback_to(snapshot=2)
        if Path(table.path, "snapshot", ROLLBACK).exists():
            break
    table.copy_to(tmp_path / "copy", history=True)
    assert Table.open(tmp_path / "copy").snapshots()["snapshot_id"].to_pylist() == [1, 2]
    assert states(Table.open(tmp_path / "copy")) == states(table)


@pytest.mark.local_files
def test_the_command_makes_a_backup(create: Create, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("typer")
    table = made(create)
    assert "copied" in command_line(capsys, "copy", table.path, str(tmp_path / "backup"), "--history")
    assert "0 files and 0 B copied" in command_line(capsys, "copy", table.path, str(tmp_path / "backup"), "--history")
    assert states(Table.open(tmp_path / "backup")) == states(table)
