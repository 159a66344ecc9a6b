"""A newest snapshot file that is damaged or lost: nothing else is lost with it, and a tag brings it back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from paimon_base.errors import CorruptFile
from pyspark_paimon import Table
from tests.build import keyed
from tests.damaged_tables import Surgeon

pytestmark = pytest.mark.local_files
DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_text(""),
    "foreign": lambda path: path.write_text('{"a": 1}'),
    "half": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "the one before": lambda path: path.write_bytes(path.with_name("snapshot-2").read_bytes()),
    "no text": lambda path: path.write_bytes(b"\xff" * 500),
    "gone": lambda path: path.unlink(),
}


def _table(path: Path, damage: str, *, tagged: bool) -> Table:
    """Three snapshots of a row each, of which the newest is damaged."""
    table = keyed(path, "id BIGINT", {"changelog-producer": "input"})
    for key in range(3):
        table.write([{"id": key}])
    table.create_tag("older", 2)
    if tagged:
        table.create_tag("newest")
    DAMAGES[damage](path / "snapshot" / "snapshot-3")
    return Table.open(path)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_tag_brings_the_newest_snapshot_back(tmp_path: Path, damage: str) -> None:
    table = _table(tmp_path / "t", damage, tagged=True)
    for call in (table.count, lambda: table.write([{"id": 9}]), lambda: table.restore(tag="older"), table.expire_snapshots):
        with pytest.raises(CorruptFile, match=r"snapshot-3: .*fsck\(repair=True\).* or roll back to"):
            call()
    assert table.scan(tag="newest").count() == 3
    assert table.scan(tag="older").count() == 2
    assert table.scan(snapshot=2).count() == 2
    assert not table.fsck().clean
    planned = table.fsck(repair=True, dry_run=True)
    assert planned.repairs[0].kind == "restore-snapshot"
    assert not table.fsck().clean
    assert table.fsck("deep", repair=True).clean
    again = Table.open(table.path)
    assert (again.count(), again.snapshots()["snapshot_id"].to_pylist()) == (3, [1, 2, 3])
    assert again.changelog(2, 3).to_arrow().num_rows == 1
    assert again.write([{"id": 9}]).snapshot_id == 4
    assert again.fsck("deep").clean


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("target", ["tag", "snapshot", "branch", "newest"])
def test_a_rollback_or_fast_forward_passes_over_it(tmp_path: Path, damage: str, tagged: bool, target: str) -> None:
    table = _table(tmp_path / "t", damage, tagged=tagged)
    match target:
        case "tag":
            table.rollback_to(tag="older")
        case "snapshot":
            table.rollback_to(2)
        case "branch":
            table.create_branch("b", "older")
            table.fast_forward("b")
        case "newest" if tagged:
            table.rollback_to(tag="newest")
        case _:
            return
    table = Table.open(table.path)
    assert table.count() == (3 if target == "newest" else 2)
    assert table.fsck("deep").clean
    table.write([{"id": 9}])
    assert table.snapshots()["snapshot_id"].to_pylist()[-1] == (4 if target == "newest" else 3)
    table.remove_orphan_files(older_than=2**60)
    assert table.fsck("deep").clean


@pytest.mark.parametrize("damage", [damage for damage in DAMAGES if damage != "gone"])
def test_without_a_tag_it_stays_a_problem(tmp_path: Path, damage: str) -> None:
    table = _table(tmp_path / "t", damage, tagged=False)
    before = (tmp_path / "t" / "snapshot" / "snapshot-3").read_bytes()
    assert [problem.kind for problem in table.fsck("deep", repair=True).problems] == ["snapshot"]
    assert (tmp_path / "t" / "snapshot" / "snapshot-3").read_bytes() == before


def test_a_tag_of_another_commit_than_its_snapshot_is_found(tmp_path: Path) -> None:
    table = _table(tmp_path / "t", "gone", tagged=True)
    (tmp_path / "t" / "snapshot" / "LATEST").write_text("2")  # as an engine leaves it that knows nothing of the lost snapshot
    surgeon = Surgeon(table.path)
    (tmp_path / "t" / "tag" / "tag-newest").rename(tmp_path / "held")
    Table.open(table.path).write([{"id": 9}])
    (tmp_path / "held").rename(tmp_path / "t" / "tag" / "tag-newest")
    assert surgeon.snapshot.id == 2
    (problem,) = Table.open(table.path).fsck().problems
    assert (problem.kind, "of another commit than snapshot 3" in problem.message) == ("tag", True)


def test_a_lost_newest_snapshot_that_a_tag_has_is_missed_without_hints_too(tmp_path: Path) -> None:
    table = _table(tmp_path / "t", "gone", tagged=True)
    (tmp_path / "t" / "snapshot" / "LATEST").unlink()
    for call in (table.count, lambda: table.write([{"id": 9}])):
        with pytest.raises(CorruptFile, match="snapshot-3"):
            call()
    assert table.fsck(repair=True).clean
    assert Table.open(table.path).write([{"id": 9}]).snapshot_id == 4


def test_a_repair_of_a_table_without_its_only_snapshot_goes_on(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT")
    table.write([{"id": 1}])
    table.create_tag("a")
    (tmp_path / "t" / "snapshot" / "snapshot-1").unlink()
    assert [problem.kind for problem in table.fsck(repair=True).problems] == ["snapshot"]
    table.rollback_to(tag="a")
    assert Table.open(table.path).count() == 1
