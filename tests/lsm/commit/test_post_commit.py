"""What follows a commit of rows whose tasks owned no bucket."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lsm.commit.post_commit
from lsm.commit.post_commit import compact_after_commit
from lsm.commit.row_transaction import resequence
from lsm.write.bucket_writer import WriteJob
from lsm.write.compaction_job import CompactionJob, compact_together
from lsm.write.table_write import TableWrite
from manifest.commit.commit_markers import list_markers
from manifest.commit.conflicts import BucketId
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.io.errors import OutOfDisk
from manifest.snapshot.snapshot import BATCH_IDENTIFIER, CommitKind
from manifest.store import FileStore
from tests.lsm.write_kit import data_files, live_files, make, newest_rows

DDL = "id BIGINT, v STRING"
EAGER = {"num_sorted_run__compaction_trigger": "2"}


def unowned(store: FileStore, user: str, ids: range, v: str, *, fresh: bool = False) -> tuple[CommitResult, list[CommitMessage]]:
    """Commit rows as a plain Spark write does: three writers a bucket, level 0 only."""
    messages = []
    for at, part in enumerate((ids[::3], ids[1::3], ids[2::3])):
        with TableWrite(store, WriteJob(write_only=True, commit_id=user, first_sequence=at << 32)) as write:
            write.write(pa.table({"id": list(part), "v": [v] * len(part)}))
            messages += write.prepare_commit()
    return FileStoreCommit(store, user, fresh=fresh, resequence=resequence(store)).commit(messages), messages


def kinds(store: FileStore) -> list[CommitKind]:
    return [store.snapshots.get(snapshot_id).commit_kind for snapshot_id in store.snapshots.ids()]


@pytest.mark.sizes
def test_buckets_with_new_files_are_compacted_where_the_strategy_picks_something(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="3", **EAGER)
    result, messages = unowned(store, "a", range(400), "x", fresh=True)
    assert {file.level for file in live_files(store)} == {0}
    done = compact_after_commit(store, "a", result, messages, threads=2)
    assert (done.snapshot_id, done.compact_snapshot_id, done.compact_lost) == (1, 2, False)
    assert not list_markers(store, "a", BATCH_IDENTIFIER), "a note is for what was lost"
    assert kinds(store) == [CommitKind.APPEND, CommitKind.COMPACT]
    assert {file.level for file in live_files(store)} == {store.options.max_level}
    assert [row["id"] for row in newest_rows(store)] == sorted(range(400), key=lambda i: str({"id": i, "v": "x"}))


def test_a_patient_strategy_leaves_level_0_and_makes_no_snapshot(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1")
    result, messages = unowned(store, "a", range(10), "x")
    assert compact_after_commit(store, "a", result, messages) == result
    assert kinds(store) == [CommitKind.APPEND]


@pytest.mark.parametrize("how", ["table", "call"])
def test_write_only_leaves_compaction_to_others(tmp_path: Path, how: str) -> None:
    options = {**EAGER, **({"write_only": "true"} if how == "table" else {})}
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", **options)
    if how == "call":
        store = FileStore.open(store.root, dynamic_options={"write-only": "true"})
    result, messages = unowned(store, "a", range(10), "x")
    assert compact_after_commit(store, "a", result, messages) == result


def test_a_commit_that_was_there_before_is_not_followed_again(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", **EAGER)
    _, messages = unowned(store, "a", range(10), "x")
    again = FileStoreCommit(store, "a").commit(messages)
    assert again.replayed
    assert compact_after_commit(store, "a", again, messages) == again


def test_more_buckets_than_are_committed_together_take_a_snapshot_each_time(tmp_path: Path, set_thresholds: Callable[..., None]) -> None:
    set_thresholds(buckets_a_commit=2)
    store = make(tmp_path / "t", DDL, ("id",), bucket="5", **EAGER)
    result, messages = unowned(store, "a", range(400), "x")
    done = compact_after_commit(store, "a", result, messages)
    assert kinds(store) == [CommitKind.APPEND, *[CommitKind.COMPACT] * 3]
    assert done.compact_snapshot_id == 4
    assert {file.level for file in live_files(store)} == {store.options.max_level}


def test_a_lost_race_leaves_the_rows_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="2", **EAGER)
    result, messages = unowned(store, "a", range(60), "x", fresh=True)

    def beaten(store: FileStore, buckets: list[BucketId], **how: object) -> list[CommitMessage]:
        made = compact_together(store, buckets, **how)  # type: ignore[arg-type]
        if buckets[0][1] == 1:
            FileStoreCommit(store, "rival").commit(compact_together(store, buckets))
        return made

    monkeypatch.setattr(lsm.commit.post_commit, "compact_together", beaten)
    done = compact_after_commit(store, "a", result, messages)
    assert [bucket for _, bucket in done.lost_compactions] == [1]
    assert set(list_markers(store, "a", BATCH_IDENTIFIER).values()) == {0}, (
        "a repetition is known for one also after snapshot 1 has expired"
    )
    assert len(newest_rows(store)) == 60
    assert len(data_files(store)) == 6 + 2, "what the loser made is gone"


def test_a_bucket_whose_compaction_fails_fails_neither_the_commit_nor_the_other_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="2", **EAGER)
    result, messages = unowned(store, "a", range(60), "x")
    before = data_files(store)

    def full(self: CompactionJob, partition: bytes, bucket: int, *, full: bool = False) -> None:
        if bucket == 1:
            raise OutOfDisk(28, "no space left", "here")
        compact(self, partition, bucket, full=full)

    compact = CompactionJob.compact
    monkeypatch.setattr(CompactionJob, "compact", full)
    done = compact_after_commit(store, "a", result, messages)
    assert (done.snapshot_id, done.compact_snapshot_id) == (1, 2)
    assert [bucket for _, bucket in done.lost_compactions] == [1]
    assert "the compaction after it failed" in caplog.text
    assert [file for file in data_files(store) if "bucket-1" in file] == [file for file in before if "bucket-1" in file]
    assert kinds(store) == [CommitKind.APPEND, CommitKind.COMPACT]


def test_rows_that_others_see_by_compaction_only_are_compacted(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="2", deletion_vectors__enabled="true")
    result, messages = unowned(store, "a", range(60), "x")
    done = compact_after_commit(store, "a", result, messages)
    assert (done.snapshot_id, done.compact_snapshot_id) == (1, store.snapshots.latest_id()) == (1, 2)
    assert all(file.level > 0 for file in live_files(store))


def test_files_of_buckets_that_were_done_when_another_failed_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="4", **EAGER)
    prepare = TableWrite._prepare
    made: list[CommitMessage] = []

    def failing(self: TableWrite, writer: object) -> CommitMessage:
        if len(made) == 3:
            raise OSError("the last bucket fails")
        made.append(prepare(self, writer))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(TableWrite, "_prepare", failing)

    def write() -> None:
        with TableWrite(store, WriteJob(threads=1)) as job:
            job.write(pa.table({"id": list(range(100)), "v": ["x"] * 100}))
            job.prepare_commit()

    with pytest.raises(OSError, match="the last bucket"):
        write()
    assert all(message.new_files for message in made)
    assert data_files(store) == []


def test_hash_indexes_of_buckets_that_were_done_are_deleted_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import lsm.write.bucket_assignment

    store = make(tmp_path / "t", DDL, ("id",), bucket="-1", dynamic_bucket__target_row_num="10")
    write_hashes, made = lsm.write.bucket_assignment.dynamic.write_hashes, []

    def failing(*arguments: object) -> object:
        if len(made) == 2:
            raise OSError("no third index")
        made.append(write_hashes(*arguments))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(lsm.write.bucket_assignment.dynamic, "write_hashes", failing)

    def write() -> None:
        with TableWrite(store) as job:
            job.write(pa.table({"id": list(range(40)), "v": ["x"] * 40}))
            job.prepare_commit()

    with pytest.raises(OSError, match="no third"):
        write()
    assert data_files(store) == []
    assert not list((tmp_path / "t" / "index").glob("index-*"))
