# Partition values and tags are wall clock times.
# ruff: noqa: DTZ001, DTZ005
"""Less usual upkeep: manifests, due tags, branches' names, consumers, success files, tags by time."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from manifest.io.errors import SnapshotNotFound
from paimon_base.errors import CorruptFile, InvalidArgument, UnsupportedOption
from pyspark_paimon import Table
from pyspark_paimon.operations.history.tags import CreateTag
from tests.build import keyed

ONE = {"bucket": "1", "write-only": "true"}


def rows_of(table: Table, **scan: Any) -> list[dict[str, Any]]:
    return sorted(table.scan(**scan).to_arrow().to_pylist(), key=lambda row: row["id"])


def manifests_of(table: Table) -> int:
    store = table._engine.store()
    return len(store.manifest_metas(store.snapshots.latest()))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table.create(tmp_path / "t", "id BIGINT, n INT", primary_keys=["id"], options={**ONE, "manifest.merge-min-count": "100"})
    for number in range(6):
        made.write([{"id": number, "n": number}, {"id": 100, "n": number}])
    return made


def test_manifests_merge_without_a_change_of_rows(table: Table) -> None:
    table.compact(full=True)
    table.write([{"id": 7, "n": 7}])
    before, states = manifests_of(table), {i: rows_of(table, snapshot=i) for i in table.snapshots()["snapshot_id"].to_pylist()}
    done = table.compact_manifests()
    assert done.snapshot_id == max(states) + 1
    assert before > 6
    assert manifests_of(table) == 1
    assert rows_of(table) == states[max(states)]
    assert {i: rows_of(table, snapshot=i) for i in states} == states
    newest = table.history(1).to_pylist()[0]
    assert newest["operation"] == "compact-manifests"
    assert table.compact_manifests().snapshot_id is None
    assert table.fsck("deep").clean


def test_no_manifest_of_an_empty_table_is_due(tmp_path: Path) -> None:
    assert Table.create(tmp_path / "t", "id BIGINT", options={"bucket": "-1"}).compact_manifests().snapshot_id is None


@pytest.mark.parametrize("expired", [False, True])
def test_a_tag_by_time_names_the_oldest_state_since(table: Table, expired: bool) -> None:
    table.create_tag("third", 3)
    times = dict(zip(*(table.snapshots()[name].to_pylist() for name in ("snapshot_id", "commit_time")), strict=True))
    if expired:
        table.expire_snapshots(retain_min=1, retain_max=1, older_than=datetime.now() + timedelta(days=1))
        assert table.create_tag("a", timestamp=times[1]).snapshot_id == 3
        assert table.create_tag("b", timestamp=times[4] + timedelta(milliseconds=1)).snapshot_id == 6
    else:
        for snapshot_id, time in times.items():
            same = min(i for i, other in times.items() if other == time)
            assert table.create_tag(f"at-{snapshot_id}", timestamp=time).snapshot_id == same
    with pytest.raises(SnapshotNotFound, match="no snapshot was committed at or after"):
        table.create_tag("late", timestamp=times[6] + timedelta(milliseconds=1))
    with pytest.raises(InvalidArgument, match="a snapshot or a timestamp, not both"):
        table.create_tag("both", 1, timestamp=times[1])
    assert CreateTag.model_validate_json(CreateTag(name="a", since_millis=5).model_dump_json()).since_millis == 5


def test_due_tags_are_created_without_a_commit(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "id BIGINT", {"tag.automatic-creation": "batch"})
    table.write([{"id": 1}])
    (name,) = table.tags()["tag_name"].to_pylist()
    table.delete_tag(name)
    assert table.create_due_tags().tags == (name,)
    assert table.create_due_tags().tags == ()
    plain = Table.create(tmp_path / "plain", "id BIGINT")
    with pytest.raises(UnsupportedOption, match=r"'tag\.automatic-creation': is not set on .*plain"):
        plain.create_due_tags()


def test_a_renamed_branch_keeps_its_history(table: Table) -> None:
    table.create_tag("base")
    table.create_branch("trial", "base")
    table.create_branch("other")
    Table.open(table.path, branch="trial").write([{"id": 50, "n": 1}])
    for old, new, error, words in (
        ("nothing", "x", SnapshotNotFound, "there is no branch 'nothing'"),
        ("trial", "other", InvalidArgument, "branch 'other' exists"),
        ("trial", "main", InvalidArgument, "main"),
        ("trial", "7", InvalidArgument, "7"),
    ):
        with pytest.raises(error, match=words):
            table.rename_branch(old, new)
    table.rename_branch("trial", "next")
    assert table.branches()["branch_name"].to_pylist() == ["next", "other"]
    branch = Table.open(table.path, branch="next")
    assert branch.lookup({"id": 50})["n"].to_pylist() == [1]
    branch.write([{"id": 51, "n": 2}])
    table.fast_forward("next")
    assert table.lookup([50, 51])["n"].to_pylist() == [1, 2]
    assert table.fsck("deep").clean


@pytest.mark.parametrize(
    ("including", "excluding", "left"),
    [
        (None, None, []),
        ("a.*", None, ["b", "ba"]),
        (None, "a", ["a"]),
        ("a.*", "a1", ["a1", "b", "ba"]),
        ("nothing", None, ["a", "a1", "a2", "b", "ba"]),
    ],
)
def test_consumers_are_cleared_by_whole_names(table: Table, including: str | None, excluding: str | None, left: list[str]) -> None:
    for name in ("a", "a1", "a2", "b", "ba"):
        table.reset_consumer(name, 1)
    table.clear_consumers(including, excluding)
    assert sorted(table.consumers()["consumer_id"].to_pylist()) == left


def test_a_wrong_pattern_clears_nothing(table: Table) -> None:
    table.reset_consumer("a", 1)
    with pytest.raises(InvalidArgument, match="clear_consumers: excluding is not a regular expression"):
        table.clear_consumers(None, "(")
    assert table.consumers().num_rows == 1


def test_success_files_keep_their_creation_time(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT, day STRING, h INT", partition_keys=["day", "h"])
    table.write([{"id": 1, "day": "mon", "h": 1}, {"id": 2, "day": "mon", "h": 2}, {"id": 3, "day": "tue", "h": 1}])
    assert table.mark_partitions_done([{"day": "mon"}]).partitions == ("day=mon/h=1", "day=mon/h=2")
    folder = Path(table.path)
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("_SUCCESS")) == [
        "day=mon/h=1/_SUCCESS",
        "day=mon/h=2/_SUCCESS",
    ]
    file = folder / "day=mon/h=1/_SUCCESS"
    file.write_text('{"creationTime": 5, "modificationTime": 6}')
    table.mark_partitions_done([{"day": "mon", "h": 1}])
    content = json.loads(file.read_text())
    assert content["creationTime"] == 5
    assert content["modificationTime"] > 6
    table.remove_orphan_files(datetime.now() + timedelta(days=1))
    assert file.exists()
    assert table.fsck("deep").clean
    assert table.count() == 3
    file.write_text("[]")
    with pytest.raises(CorruptFile, match="is not a success file; delete it"):
        table.mark_partitions_done([{"day": "mon", "h": 1}])
    with pytest.raises(InvalidArgument, match="no partition is given"):
        table.mark_partitions_done([])
    assert table.mark_partitions_done([{"day": "sun"}]).partitions == ()
    table.alter_options({"partition.mark-done-action": "success-file,done-partition"})
    with pytest.raises(UnsupportedOption, match="'done-partition' is not supported, only 'success-file'; nothing was marked"):
        table.mark_partitions_done([{"day": "tue"}])


def test_tags_expire_by_the_time_of_their_creation(table: Table) -> None:
    table.create_tag("plain", 1)
    table.create_tag("kept", 2, time_retained=timedelta(days=9))
    assert table.expire_tags().tags == ()
    assert table.expire_tags(datetime.now() - timedelta(hours=1)).tags == ()
    assert table.expire_tags(datetime.now() + timedelta(hours=1), dry_run=True).tags == ("kept", "plain")
    assert table.expire_tags(datetime.now() + timedelta(hours=1)).tags == ("kept", "plain")
    assert table.tags().num_rows == 0


def test_partitions_expire_by_options_of_the_call(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT, day STRING", partition_keys=["day"])
    table.write([{"id": 1, "day": "31.01.2024"}, {"id": 2, "day": "31.01.2026"}])
    options = {"partition.timestamp-formatter": "dd.MM.yyyy"}
    assert table.expire_partitions(datetime(2025, 1, 1), options=options).partitions == ("day=31.01.2024",)
    with pytest.raises(UnsupportedOption, match="nonsense"):
        table.expire_partitions(datetime(2025, 1, 1), options={"nonsense": "1"})
