"""Primary-key tables that open buckets as keys come."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lsm.bucket.dynamic import read_hashes
from lsm.commit.rebucket import rebucket
from lsm.commit.row_transaction import resequence
from lsm.read.split import read_split
from lsm.scan.planner import ScanPlanner
from lsm.write.bucket_writer import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage
from manifest.commit.transaction import EVALUATIONS, Transaction
from manifest.io.errors import CommitConflict
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from tests.lsm.write_kit import compact_all, live, make

KEYS_0_TO_4 = np.frombuffer(bytes.fromhex("ee18d2a5 5759f99e 4fe4bbf0 d206e547 564770ca"), ">i4").tolist()


def rows(ids: range | list[int], text: str = "x") -> pa.Table:
    return pa.table({"id": pa.array(list(ids), pa.int32()), "v": [f"{text}{i}" for i in ids]})


def prepared(store: FileStore, table: pa.Table, **settings: object) -> list[CommitMessage]:
    with TableWrite(store, WriteJob(**settings)) as job:
        job.write(table)
        return job.prepare_commit()


def committed(store: FileStore, messages: list[CommitMessage], user: str = "test") -> list[CommitMessage]:
    commit = FileStoreCommit(store, user, resequence=resequence(store), fresh=True)
    transaction = Transaction(commit.abort)
    transaction.run(
        lambda current: current.work.extend(messages),
        commit.commit,
        rework=partial(rebucket, store, commit_id=user),
        evaluations=EVALUATIONS if store.schema.bucket_mode.assigns_keys else 1,
    )
    return list(transaction.work)


def content(store: FileStore) -> dict[int, str]:
    plan = ScanPlanner(store).plan(None, snapshot=store.snapshots.latest())
    found: dict[int, str] = {}
    for split in plan.splits:
        for batch in read_split(store, split, columns=("id", "v")):
            for key, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                assert key not in found, "a key lives in two buckets"
                found[key] = value
    return found


def test_the_hash_index_holds_the_hashes_of_the_keys(tmp_path: Path) -> None:
    store = make(tmp_path, "id INT, v STRING", ("id",))
    committed(store, prepared(store, rows(range(5))))
    (entry,) = store.index_entries(store.snapshots.latest())
    assert (entry.index_type, entry.bucket, entry.row_count, entry.file_size) == ("HASH", 0, 5, 20)
    assert read_hashes(store, entry).tolist() == sorted(KEYS_0_TO_4)
    assert [live_entry.total_buckets for live_entry in live(store)] == [-1]


@pytest.mark.parametrize("at", range(20))
def test_a_wrong_hash_is_noticed(tmp_path: Path, at: int) -> None:
    store = make(tmp_path, "id INT, v STRING", ("id",))
    committed(store, prepared(store, rows(range(5))))
    (entry,) = store.index_entries(store.snapshots.latest())
    (file,) = (tmp_path / "t" / "index").iterdir() if (tmp_path / "t" / "index").exists() else tmp_path.rglob(entry.file_name)
    content = bytearray(file.read_bytes())
    content[at] ^= 1 << at % 8
    file.write_bytes(content)
    with pytest.raises(CorruptFile, match=entry.file_name):
        read_hashes(store, entry)


@pytest.mark.parametrize("kept", [0, 4, 17, 24])
def test_hashes_of_another_engine_are_as_many_as_the_index_manifest_says(tmp_path: Path, kept: int) -> None:
    store = make(tmp_path, "id INT, v STRING", ("id",))
    committed(store, prepared(store, rows(range(5))))
    (entry,) = store.index_entries(store.snapshots.latest())
    (file,) = tmp_path.rglob(entry.file_name)
    foreign = file.with_name("index-4d2b8c1e-0")  # its name has no checksum
    entry = entry.model_copy(update={"file_name": foreign.name})
    foreign.write_bytes(file.read_bytes())
    assert read_hashes(store, entry).tolist() == sorted(KEYS_0_TO_4)
    foreign.write_bytes((file.read_bytes() * 2)[:kept])
    with pytest.raises(CorruptFile, match=f"index-4d2b8c1e-0.* has {kept} bytes for 5 hashes"):
        read_hashes(store, entry)


def test_keys_stay_in_their_bucket_and_new_ones_open_others(tmp_path: Path) -> None:
    store = make(tmp_path, "id INT, v STRING", ("id",), dynamic_bucket__target_row_num="4")
    committed(store, prepared(store, rows(range(6))))
    committed(store, prepared(store, rows(range(3, 13), "y")))
    assert content(store) == {i: f"{'y' if i >= 3 else 'x'}{i}" for i in range(13)}
    entries = store.index_entries(store.snapshots.latest())
    assert sorted(entry.row_count for entry in entries) == [1, 4, 4, 4]
    compact_all(store)
    assert store.index_entries(store.snapshots.latest()) == entries
    assert len(content(store)) == 13


def test_an_upsert_of_known_keys_keeps_the_index_file(tmp_path: Path) -> None:
    store = make(tmp_path, "id INT, v STRING", ("id",))
    committed(store, prepared(store, rows(range(3))))
    before = store.index_entries(store.snapshots.latest())
    committed(store, prepared(store, rows([1], "y")))
    assert store.index_entries(store.snapshots.latest()) == before


def test_partitions_have_buckets_of_their_own(tmp_path: Path) -> None:
    store = make(tmp_path, "p STRING, id INT, v STRING", ("p", "id"), ("p",), dynamic_bucket__target_row_num="2")
    table = pa.table({"p": ["a", "a", "a", "b"], "id": pa.array([1, 2, 3, 1], pa.int32()), "v": list("wxyz")})
    committed(store, prepared(store, table))
    assert sorted((store.partition.decode(entry.partition), entry.bucket) for entry in live(store)) == [
        (("a",), 0),
        (("a",), 1),
        (("b",), 0),
    ]


@pytest.mark.parametrize("other", [rows([7], "b"), rows([3], "b"), rows(range(2, 9), "b")], ids=["other key", "same new key", "overlap"])
def test_a_race_for_new_keys_assigns_them_again(tmp_path: Path, other: pa.Table) -> None:
    store = make(tmp_path, "id INT, v STRING", ("id",), dynamic_bucket__target_row_num="2", write_only="true")
    committed(store, prepared(store, rows(range(3))))
    mine = prepared(store, rows(range(2, 6), "a"), commit_id="mine")
    committed(store, prepared(store, other, commit_id="other"), "other")
    state = content(store)
    with pytest.raises(CommitConflict):
        FileStoreCommit(store, "mine", resequence=resequence(store)).commit(mine)
    published = committed(store, mine, "mine")
    assert content(store) == state | {i: f"a{i}" for i in range(2, 6)}
    named = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    gone = {file.file_name for message in mine for file in message.new_files}
    assert not gone & named
    assert {file.file_name for message in published for file in message.new_files} <= named


@pytest.mark.slow
def test_writers_that_own_buckets_do_not_meet(tmp_path: Path) -> None:
    from lsm.bucket.dynamic import BucketWriters

    store = make(tmp_path, "id INT, v STRING", ("id",), dynamic_bucket__target_row_num="2")
    messages = [
        message
        for task in (0, 1)
        for message in prepared(store, rows(range(task * 5, task * 5 + 5)), bucket_writers=BucketWriters(task, 2, 2))
    ]
    assert sorted(message.bucket for message in messages) == [0, 1, 2, 3, 4, 5]
    committed(store, messages)
    assert sorted(content(store)) == list(range(10))


def test_an_overwrite_starts_the_hash_index_anew(tmp_path: Path) -> None:
    store = make(tmp_path, "id INT, v STRING", ("id",), dynamic_bucket__target_row_num="2")
    committed(store, prepared(store, rows(range(9))))
    messages = prepared(store, rows([100], "n"), overwrites=True)
    FileStoreCommit(store, "over").overwrite(messages)
    assert content(store) == {100: "n100"}
    assert [(entry.bucket, entry.row_count) for entry in store.index_entries(store.snapshots.latest())] == [(0, 1)]
    committed(store, prepared(store, rows(range(3), "z")))
    assert content(store) == {100: "n100", 0: "z0", 1: "z1", 2: "z2"}


def test_a_hash_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    store = make(tmp_path, "id INT, v STRING", ("id",))
    committed(store, prepared(store, rows(range(5))))
    (entry,) = store.index_entries(store.snapshots.latest())
    path = tmp_path / "index" / entry.file_name
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(CorruptFile, match=entry.file_name):
        prepared(store, rows([1]))


def test_many_random_writes_equal_a_dictionary(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    store = make(tmp_path, "id INT, v STRING", ("id",), dynamic_bucket__target_row_num="7", num_sorted_run__compaction_trigger="3")
    model: dict[int, str] = {}
    for turn in range(12):
        keys = chance.integers(0, 80, chance.integers(1, 20)).tolist()
        committed(store, prepared(store, rows(keys, f"t{turn}-")))
        model |= {key: f"t{turn}-{key}" for key in keys}
        assert content(store) == model
    assert max(entry.row_count for entry in store.index_entries(store.snapshots.latest())) <= 7
