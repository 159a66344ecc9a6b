"""What a repair mends leaves a whole table with the same rows, and copies; what it must not touch stays as it is, to the byte."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manifest.io import failpoints
from paimon_base.errors import InvalidArgument
from pyspark_paimon import Table
from pyspark_paimon.results.fsck_problem import RepairKind as R
from pyspark_paimon.results.state_results import FsckResult
from tests.damaged_tables import Case, Copies, Surgeon, gone
from tests.plugins.fsck.test_fsck_indexes import DAMAGES as OF_INDEXES
from tests.plugins.fsck.test_fsck_metadata import DAMAGES as OF_METADATA
from tests.plugins.fsck.test_fsck_rows import DAMAGES as OF_ROWS

DAMAGES: dict[str, Case] = {**OF_METADATA, **OF_ROWS, **OF_INDEXES}
MENDED = {
    "the newest snapshot is missing": R.WRITE_HINT,
    "a hint names nothing": R.WRITE_HINT,
    "a hint is no number": R.WRITE_HINT,
    "a hint hides snapshots": R.WRITE_HINT,
    "statistics are missing": R.COUNT_STATISTICS,
    "statistics are cut short": R.COUNT_STATISTICS,
    "a minimum is too great": R.REWRITE_FILE,
    "a maximum is too small": R.REWRITE_FILE,
    "nulls are not counted": R.REWRITE_FILE,
    "a text lies outside": R.REWRITE_FILE,
    "a key lies outside": R.REWRITE_FILE,
}
"""Damage that can be repaired, and how; a file's own state is rewritten, older snapshots keep it until they expire."""
SOME = {
    "a snapshot is missing",
    "a tag names a list that is missing",
    "a manifest is missing",
    "a list hides buckets",
    "a file is added twice",
    "files of a level overlap",
    "a data file is missing",
    "a page is damaged",
    "the smallest key is another",
    "the newest snapshot is missing",
    "a hint hides snapshots",
    "statistics are missing",
    "a minimum is too great",
    "a key lies outside",
}
"""What every run tries."""


def sometimes(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=() if name in SOME else pytest.mark.long) for name in names]


def listing(path: str | Path) -> dict[str, bytes]:
    """Every file of a table."""
    root = Path(path)
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()}


def rows(path: str) -> list[dict[str, object]]:
    table = Table.open(path)
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: tuple(map(repr, row.values())))


def told(result: FsckResult) -> list[str]:
    return [str(problem) for problem in result.problems]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return Copies(tmp_path_factory.mktemp("tables"))


@pytest.mark.slow("the newest snapshot is missing")
@pytest.mark.parametrize("name", sometimes(MENDED))
def test_what_can_be_repaired_is_and_rows_stay(copies: Copies, tmp_path: Path, name: str) -> None:
    case = DAMAGES[name]
    path = copies.copy(case.shape, tmp_path)
    case.damage(Surgeon(path))
    before, wanted = listing(path), rows(path if MENDED[name] is R.WRITE_HINT else str(copies.of(case.shape)))
    table = Table.open(path)
    tried = table.fsck(case.depth, repair=True, dry_run=True)
    assert listing(path) == before
    assert (tried.dry_run, tried.copies, tried.clean) == (True, None, False)
    done = table.fsck(case.depth, repair=True)
    assert [repair.kind for repair in done.repairs] == [MENDED[name]]
    assert [(repair.kind, repair.path) for repair in tried.repairs] == [(repair.kind, repair.path) for repair in done.repairs]
    assert rows(path) == wanted
    if MENDED[name] is R.REWRITE_FILE:
        assert {problem.origin.snapshot for problem in done.problems} == {1}
        table.expire_snapshots(retain_min=1, retain_max=1)
    assert told(table.fsck("deep")) == []
    changed = {file: content for file, content in before.items() if listing(path).get(file) != content}
    for file, content in changed.items():  # what is not as it was is kept, unless an expiry of the table's own took it
        copy = Path(done.copies or path, file)
        assert MENDED[name] is R.REWRITE_FILE or copy.read_bytes() == content, file


@pytest.mark.parametrize("name", sometimes(name for name in DAMAGES if name not in MENDED))
def test_what_may_lose_rows_is_left_alone(copies: Copies, tmp_path: Path, name: str) -> None:
    case = DAMAGES[name]
    path = copies.copy(case.shape, tmp_path)
    case.damage(Surgeon(path))
    before = listing(path)
    result = Table.open(path).fsck(case.depth, repair=True)
    assert result.repairs == ()
    assert result.copies is None
    assert {problem.kind for problem in result.problems} == {case.kind}
    assert all(problem.advice for problem in result.problems)
    assert listing(path) == before


def numbered(path: Path, snapshots: int, **options: str) -> Table:
    """One more row in each snapshot, and one file: every snapshot after the first compacts all."""
    table = Table.create(path, "id INT", ["id"], options={"bucket": "1", **options})
    for number in range(snapshots):
        table.write(pa.table({"id": pa.array([number], pa.int32())}))
        table.compact(full=True)
    return table


def only_in(table: Table, snapshot: int) -> Path:
    """A data file that this snapshot has and the newest one lacks."""
    surgeon = Surgeon(table.path, snapshot)
    newest = {entry.file.file_name for entry in Surgeon(table.path).live()}
    return next(surgeon.path_of(entry) for entry in surgeon.live() if entry.file.file_name not in newest)


def test_the_oldest_snapshots_that_lack_files_go_and_can_be_put_back(tmp_path: Path) -> None:
    table = numbered(tmp_path / "t", 3)
    lost = only_in(table, 1)
    content = lost.read_bytes()
    gone(lost)
    before = listing(table.path)
    done = table.fsck(repair=True)
    assert [repair.kind for repair in done.repairs] == [R.FORGET_SNAPSHOTS]
    assert done.clean
    assert table.count() == 3
    first = table.snapshots()["snapshot_id"][0].as_py()
    assert first > 1
    assert {Path(copy).name for copy in done.repairs[0].copies} >= {f"snapshot-{i}" for i in range(1, first)}
    assert all(listing(table.path)[file] == data for file, data in before.items() if not file.startswith("snapshot/"))
    assert table.remove_orphan_files("2000-01-01") == []
    for copy in done.repairs[0].copies:  # the way back
        Path(table.path, "snapshot", Path(copy).name).write_bytes(Path(copy).read_bytes())
    lost.write_bytes(content)
    assert table.scan(snapshot=1).to_arrow().num_rows == 1


@pytest.mark.parametrize("pin", ["tag", "consumer"])
def test_old_snapshots_that_somebody_asks_for_stay(tmp_path: Path, pin: str) -> None:
    table = numbered(tmp_path / "t", 2)
    if pin == "tag":
        table.create_tag("mine", 1)
    else:
        table.reset_consumer("mine", 1)
    gone(only_in(table, 1))
    before = listing(table.path)
    done = table.fsck(repair=True)
    assert (done.repairs, done.clean) == ((), False)
    assert listing(table.path) == before


def test_a_rollback_that_was_cut_off_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = numbered(tmp_path / "t", 2)

    def die(name: str) -> None:
        if name == "inside-rollback":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "point", die)
        with pytest.raises(KeyboardInterrupt):
            table.rollback_to(1)
    assert table.count() == 1
    before = listing(table.path)
    tried = table.fsck(repair=True, dry_run=True)
    assert listing(table.path) == before
    done = table.fsck(repair=True)
    assert [repair.kind for repair in (*tried.repairs, *done.repairs)] == [R.FINISH_ROLLBACK] * 2
    assert table.snapshots()["snapshot_id"].to_pylist() == [1]
    assert table.count() == 1
    assert not Path(table.path, "snapshot", "ROLLBACK").exists()
    kept = {Path(copy).relative_to(done.copies or "").as_posix() for copy in done.repairs[0].copies}
    assert kept >= {"snapshot/ROLLBACK", "snapshot/snapshot-2", "snapshot/snapshot-3", "snapshot/snapshot-4"}
    assert table.fsck("deep").clean


def test_index_files_that_nothing_names_go_if_they_are_old(tmp_path: Path) -> None:
    table = numbered(tmp_path / "t", 1)
    bucket = Path(table.path, "bucket-0")
    old = [Path(table.path, "index", "index-left-0"), bucket / "data-left-0.parquet.index"]
    young = [Path(table.path, "index", "index-running-0"), bucket / "data-left-0.parquet"]
    for file in (*old, *young):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"left")
    for file in (*old, young[1]):
        os.utime(file, (1, 1))
    done = table.fsck("quick", repair=True)
    assert sorted(repair.path for repair in done.repairs) == sorted(map(str, old))
    assert [Path(repair.copies[0]).read_bytes() for repair in done.repairs] == [b"left"] * 2
    assert [file.exists() for file in (*old, *young)] == [False, False, True, True]


def test_what_waits_on_level_0_is_compacted(tmp_path: Path) -> None:
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
    table = Table.create(tmp_path / "t", "id INT", ["id"], options=options)
    table.write(pa.table({"id": pa.array([1, 2], pa.int32())}))
    table.write(pa.table({"id": pa.array([2, 3], pa.int32())}))
    assert [repair.kind for repair in table.fsck(repair=True, dry_run=True).repairs] == [R.COMPACT]
    assert table.snapshots().num_rows == 2
    done = table.fsck("deep", repair=True)
    assert ([repair.kind for repair in done.repairs], done.clean, done.copies) == ([R.COMPACT], True, None)
    assert table.scan(options={"deletion-vectors.merge-on-read": "false"}).count() == 3
    assert table.fsck(repair=True).repairs == ()


def test_branches_are_repaired_too_and_copies_have_places_of_their_own(copies: Copies, tmp_path: Path) -> None:
    path = copies.copy("branched", tmp_path)
    hints = [Path(path, "snapshot", "LATEST"), Path(path, "branch", "branch-side", "snapshot", "LATEST")]
    for hint in hints:
        hint.write_text("77")
    done = Table.open(path).fsck(repair=True)
    assert done.clean
    assert [Path(repair.copies[0]).read_text() for repair in done.repairs] == ["77", "77"]
    assert [int(hint.read_text()) for hint in hints] == [2, 2]


@pytest.mark.long  # the writer waits for its turn as long as writers do
def test_a_commit_between_the_look_and_the_repair_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint that is written names an older snapshot then, as hints may, and everybody finds the newest."""
    table = numbered(tmp_path / "t", 1)
    Path(table.path, "snapshot", "LATEST").write_text("77")
    from pyspark_paimon.plugins.fsck import repair as module

    class Slow(module.Repairs):
        def _copy(self, path: str) -> str | None:
            if self.store.snapshots.latest_id() == 2:
                Table.open(table.path).write(pa.table({"id": pa.array([9], pa.int32())}))
            return super()._copy(path)

    monkeypatch.setattr(module, "Repairs", Slow)
    assert table.fsck(repair=True).clean
    assert Table.open(table.path).count() == 2


def test_dry_run_goes_with_repair(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="repair=True"):
        numbered(tmp_path / "t", 1).fsck(dry_run=True)


def test_a_store_that_cannot_take_the_copies_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = numbered(tmp_path / "t", 1)
    Path(table.path, "snapshot", "LATEST").write_text("77")
    Path(table.path, "_repair").write_text("in the way")
    before = listing(table.path)
    with pytest.raises(OSError, match="_repair"):
        table.fsck(repair=True)
    assert listing(table.path) == before
