"""Numbered batches of a job: each is in the table once, whatever is repeated, killed or expired."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from manifest.commit.repeated_commits import announce, earlier_commit
from manifest.io import failpoints
from manifest.store import FileStore
from pyspark_paimon import CommitReplayed, CorruptFile, InvalidArgument, Table
from tests.build import ids


def numbers(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([0] * len(ids), pa.int32())})


@pytest.fixture(params=[(), ("id",)], ids=["append", "keys"])
def table(create, request) -> Table:
    return create("id BIGINT, n INT", primary_keys=request.param, options={"snapshot.expire.limit": "0"})


def expire(table: Table, others: int = 2) -> None:
    """Others write, and everything older expires."""
    for at in range(others):
        table.write(numbers(1000 + at))
    table.expire_snapshots(retain_min=1, retain_max=1, limit=100)


def test_a_repeated_batch_is_answered_and_not_written_again(table) -> None:
    first = table.write(numbers(1, 2), commit_id="job", batch_id=0)
    table.write(numbers(3), commit_id="job", batch_id=1)
    again = table.write(numbers(1, 2), commit_id="job", batch_id=0)
    assert (again.replayed, again.snapshot_id, first.replayed) == (True, first.snapshot_id, False)
    assert table.write(numbers(3), commit_id="job", batch_id=1).replayed
    assert ids(table) == [1, 2, 3]
    snapshots = FileStore.open(table.path).snapshots
    assert [(s.commit_user, s.commit_identifier) for s in snapshots.since(0)] == [("job", 0), ("job", 1)]


def test_jobs_do_not_mistake_each_others_batches(table) -> None:
    table.write(numbers(1), commit_id="one", batch_id=7)
    table.write(numbers(2), commit_id="two", batch_id=3)
    table.write(numbers(3), commit_id="one")
    assert not table.write(numbers(4), commit_id="two", batch_id=4).replayed
    assert ids(table) == [1, 2, 3, 4]


def test_an_older_batch_stays_known_after_its_snapshot_has_expired(table) -> None:
    table.write(numbers(1), commit_id="job", batch_id=0)
    table.write(numbers(2), commit_id="job", batch_id=1)
    expire(table)
    assert table.write(numbers(1), commit_id="job", batch_id=0).replayed
    assert ids(table) == [1, 2, 1000, 1001]


@pytest.mark.local_files
def test_the_last_batch_is_refused_when_nobody_can_tell_any_more(table) -> None:
    table.write(numbers(1), commit_id="job", batch_id=0)
    expire(table)
    with pytest.raises(CommitReplayed, match="batch 0 of 'job' was started after snapshot 0") as refused:
        table.write(numbers(1), commit_id="job", batch_id=0)
    assert ids(table) == [1, 1000, 1001]
    assert not table.write(numbers(2), commit_id="job", batch_id=1).replayed, "the next one was never begun"
    assert str(Path(table.path) / "writer" / "writer-job") in str(refused.value)


def test_a_batch_that_was_killed_before_its_commit_is_written(table, monkeypatch) -> None:
    table.write(numbers(1))

    def killed(name: str) -> None:
        if name == "after-data-files":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "point", killed)
        with pytest.raises(KeyboardInterrupt):
            table.write(numbers(2), commit_id="job", batch_id=5)
    store = FileStore.open(table.path)
    announce(store, "job", 5)
    table.write(numbers(3))
    assert earlier_commit(FileStore.open(table.path), "job", 5) is None
    assert not table.write(numbers(2), commit_id="job", batch_id=5).replayed
    assert ids(table) == [1, 2, 3]


def test_an_overwrite_is_a_batch_too(table) -> None:
    table.write(numbers(1, 2))
    table.write(numbers(5), mode="overwrite", commit_id="job", batch_id=0)
    table.write(numbers(6))
    assert table.write(numbers(5), mode="overwrite", commit_id="job", batch_id=0).replayed
    assert ids(table) == [5, 6]


def test_rows_that_wait_for_a_compaction_are_shown_and_the_next_batch_is_not_taken_for_done(create) -> None:
    table = create("id BIGINT, n INT", options={"deletion-vectors.enabled": "true"})
    for batch in range(3):
        assert not table.write(numbers(batch, 10), commit_id="job", batch_id=batch).replayed
        assert ids(table) == [*range(batch + 1), 10]


@pytest.mark.parametrize(("job", "batch"), [(None, 1), ("job", -1), ("job", "1"), ("job", True), ("job", 2**63 - 1), ("a/b", 1)])
def test_what_names_no_batch_is_refused(table, job, batch) -> None:
    with pytest.raises(InvalidArgument):
        table.write(numbers(1), commit_id=job, batch_id=batch)
    assert ids(table) == []


@pytest.mark.local_files
def test_a_damaged_announcement_is_named(table) -> None:
    table.write(numbers(1), commit_id="job", batch_id=0)
    expire(table)
    path = Path(table.path) / "writer" / "writer-job"
    assert json.loads(path.read_text()).items() >= {"commitIdentifier": 0, "baseSnapshot": 0}.items()
    path.write_text("{")
    with pytest.raises(CorruptFile, match="writer-job"):
        table.write(numbers(2), commit_id="job", batch_id=1)
