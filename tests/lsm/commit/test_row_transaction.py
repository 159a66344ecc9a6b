"""A transaction that changes rows: once, reworked where keys got other buckets, and nothing is left of what failed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from lsm.commit.rebucket import rebucket
from lsm.commit.row_transaction import CommittedRows, RowTransaction, resequence
from lsm.write.bucket_writer import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.transaction import Round
from manifest.expire.orphans import list_orphans
from manifest.io.errors import CommitConflict
from manifest.store import FileStore
from tests.lsm.write_kit import live, make

ALWAYS = 2**62


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "v": [f"v{i}" for i in ids]})


def add(store: FileStore, ids: tuple[int, ...], current: Round[CommitMessage]) -> None:
    with TableWrite(store, WriteJob(commit_id="w")) as write:
        write.write(rows(*ids))
        current.work.extend(write.prepare_commit())


def run(store: FileStore, user: str, *ids: int, after_round: int = 0) -> CommittedRows:
    """Add rows; a rival opens the same bucket after the first evaluation if ``after_round`` is 1."""
    commit = FileStoreCommit(store, user, resequence=resequence(store))

    def evaluate(current: Round[CommitMessage]) -> None:
        add(store, ids, current)
        if current.number == after_round:
            run(store, "rival", *(i + 100 for i in ids))

    return RowTransaction(commit, f"{user}-compact").run(evaluate, commit.commit, rework=partial(rebucket, store, commit_id=user))


@pytest.fixture
def dynamic(tmp_path: Path) -> FileStore:
    return make(tmp_path, "id INT, v STRING", ("id",), dynamic_bucket__target_row_num="3", write_only="true")


def test_an_earlier_run_counts_and_nothing_is_evaluated(dynamic: FileStore) -> None:
    first = run(dynamic, "w", 1, 2)
    commit = FileStoreCommit(dynamic, "w")

    def evaluate(current: Round[CommitMessage]) -> None:
        pytest.fail("the rows are in the table")

    again = RowTransaction(commit, "w-compact").run(evaluate, commit.commit)
    assert (first.rounds, again.rounds, again.messages) == (1, 0, [])
    assert (again.result.snapshot_id, again.result.replayed) == (first.result.snapshot_id, True)


def test_rows_that_lost_their_buckets_are_reworked_and_their_first_files_go(dynamic: FileStore) -> None:
    done = run(dynamic, "w", 1, 2, after_round=1)
    assert done.rounds == 2
    assert sum(entry.file.row_count for entry in live(dynamic)) == 4
    assert list_orphans(dynamic, ALWAYS) == []


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_failed_publication_leaves_no_files(dynamic: FileStore, error: BaseException) -> None:
    def publish(messages: list[CommitMessage]) -> CommitResult:
        raise error

    with pytest.raises(type(error)):
        RowTransaction(FileStoreCommit(dynamic, "w"), "w-compact").run(partial(add, dynamic, (1, 2)), publish)
    assert list_orphans(dynamic, ALWAYS) == []


def test_a_conflict_without_rework_evaluates_again_on_files_of_its_own(dynamic: FileStore) -> None:
    commit, lost = FileStoreCommit(dynamic, "w"), [CommitConflict("once")]

    def publish(messages: list[CommitMessage]) -> CommitResult:
        if lost:
            raise lost.pop()
        return commit.commit(messages)

    done = RowTransaction(commit, "w-compact").run(partial(add, dynamic, (1, 2)), publish)
    assert (done.rounds, sum(entry.file.row_count for entry in live(dynamic))) == (2, 2)
    assert list_orphans(dynamic, ALWAYS) == []
