"""Changelogs that outlive their snapshots: what an expiry leaves, what is read of it, when it goes, and that nothing else stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manifest.io.errors import SnapshotExpired
from paimon_base.errors import UnsupportedOption
from pyspark_paimon import Table

GOLDEN = Path(__file__).parents[2] / "golden_changelogs"
FUTURE = 4_000_000_000_000
LONGER = {
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "2",
    "changelog.num-retained.max": "50",
    "changelog.num-retained.min": "1",
}


def made(path: Path, key: bool = True, **options: str) -> Table:
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    shape: dict[str, Any] = {"primary_keys": ["id"]} if key else {}
    return Table.create(path, "id INT, v INT", **shape, options={**({"bucket": "1"} if key else {}), **LONGER, **named})


def put(table: Table, *rows: tuple[int, int]) -> None:
    table.write(pa.table([pa.array(column, pa.int32()) for column in zip(*rows, strict=True)], names=["id", "v"]))


def changes(table: Table, *points: int, **more: Any) -> list[tuple[str, int, int]]:
    found = table.changelog(*points, **more).to_arrow().to_pylist()
    return [(row["_row_kind"], row["id"], row["v"]) for row in found]


def files(table: Table) -> set[str]:
    home = Path(table.path)
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file() and not path.name.startswith(".")}


def whole(table: Table) -> None:
    assert table.fsck(depth="deep").problems == ()
    assert table.list_orphan_files(FUTURE) == []


@pytest.mark.parametrize("producer", ["input", "lookup"])
def test_the_changelog_is_read_after_its_snapshot_has_expired(tmp_path: Path, producer: str) -> None:
    table = made(tmp_path / "t", changelog_producer=producer)
    for turn in range(1, 5):
        put(table, (1, turn), (turn, 0) if turn > 1 else (9, 9))
    newest = table.snapshots()["snapshot_id"].to_pylist()
    assert min(newest) > 1
    told = changes(table, 0, 1 if producer == "input" else 2)
    assert sorted(told) == [("+I", 1, 1), ("+I", 9, 9)]
    everything = changes(table, 0)
    assert ("+U", 1, 3) in everything if producer == "lookup" else ("+I", 1, 3) in everything
    with pytest.raises(SnapshotExpired):
        changes(table, 1, mode="diff")
    whole(table)


def test_without_a_producer_appended_rows_are_the_changelog(tmp_path: Path) -> None:
    table = made(tmp_path / "t", key=False, compaction__min__file_num="2")
    for turn in range(1, 5):
        put(table, (turn, turn))
    table.compact(full=True)
    assert 1 not in table.snapshots()["snapshot_id"].to_pylist()
    assert sorted(changes(table, 0)) == [("+I", turn, turn) for turn in range(1, 5)]
    assert changes(table, 0, 1) == [("+I", 1, 1)]
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [1, 2, 3, 4]
    whole(table)


@pytest.mark.slow
@pytest.mark.parametrize("producer", ["none", "input"])
def test_changelogs_expire_by_their_own_options_and_leave_nothing(tmp_path: Path, producer: str) -> None:
    table = made(tmp_path / "t", changelog_producer=producer, num_sorted_run__compaction_trigger="2", changelog__num_retained__max="5")
    for turn in range(12):
        put(table, (turn % 3, turn))
    kept = sorted(int(name.rpartition("-")[2]) for name in files(table) if name.startswith("changelog/changelog-"))
    newest = max(table.snapshots()["snapshot_id"].to_pylist())
    assert newest - 5 < kept[0]
    assert len(kept) <= 4
    assert (tmp_path / "t" / "changelog" / "LATEST").read_text() == str(kept[-1])
    assert (tmp_path / "t" / "changelog" / "EARLIEST").read_text() == str(kept[0])
    with pytest.raises(SnapshotExpired):
        changes(table, 0, mode="delta" if producer == "none" else "changelog")
    whole(table)


def test_a_stream_goes_on_in_kept_changelogs(tmp_path: Path) -> None:
    table = made(tmp_path / "t", changelog_producer="input")
    put(table, (1, 1))
    for turn in range(2, 5):
        put(table, (1, turn))
    assert 1 not in table.snapshots()["snapshot_id"].to_pylist()
    batches = list(table.follow(start="from-snapshot", snapshot=1))
    assert [value for batch in batches for value in batch.rows["v"].to_pylist()] == [1, 2, 3, 4]


def test_an_overwrite_among_kept_changelogs_is_no_gap_that_nobody_notices(tmp_path: Path) -> None:
    table = made(tmp_path / "t", changelog_producer="input")
    put(table, (1, 1))
    table.write(pa.table({"id": pa.array([2], pa.int32()), "v": pa.array([2], pa.int32())}), mode="overwrite")
    for turn in range(3, 6):
        put(table, (turn, turn))
    with pytest.raises(SnapshotExpired, match="mode='changelog'"):
        changes(table, 1)
    assert [row[1] for row in changes(table, 0, 2, mode="changelog")] == [1]


def test_a_rollback_forgets_changelogs_behind_it(tmp_path: Path) -> None:
    table = made(tmp_path / "t", changelog_producer="input")
    put(table, (1, 1))
    table.create_tag("first")
    for turn in range(2, 6):
        put(table, (1, turn))
    table.rollback_to(tag="first")
    assert [name for name in files(table) if name.startswith("changelog/")] == ["changelog/changelog-1"]
    put(table, (1, 7))
    assert [row["v"] for row in table.scan().to_arrow().to_pylist()] == [7]
    for turn in range(8, 12):
        put(table, (1, turn))
    assert [row[2] for row in changes(table, 0)] == [1, 7, 8, 9, 10, 11]
    whole(table)


def test_limits_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOption, match=r"changelog\.num-retained\.min.*greater"):
        made(tmp_path / "t", changelog__num_retained__min="90")


def test_changelogs_that_the_engine_kept(tmp_path: Path) -> None:
    table = Table.open(shutil.copytree(GOLDEN / "table", tmp_path / "t"))
    first = min(int(file.name.rpartition("-")[2]) for file in (tmp_path / "t" / "changelog").glob("changelog-*"))
    wanted = sorted((row["_kind"], row["id"], row["v"]) for row in json.loads((GOLDEN / "expected.json").read_text()))
    assert first > 1
    assert sorted(changes(table, first - 1)) == wanted
    log = Table.open(f"{tmp_path}/t$audit_log").scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["v"]) for row in log if row["rowkind"] == "+I") == [(0, 6), (1, 7), (2, 5)]
    whole(table)
    put(table, (4, 4))
    assert [row[1:] for row in changes(table, first + 3)][-1] == (4, 4)
    whole(table)
