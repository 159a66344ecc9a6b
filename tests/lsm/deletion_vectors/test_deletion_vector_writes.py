"""Deletion vectors that compaction writes: old versions are marked where they lie, and readers never merge."""

from __future__ import annotations

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from lsm.deletion_vectors.reader import decode_deletion_vector
from lsm.deletion_vectors.writer import encode_deletion_vector
from lsm.keys.sort import Sorted
from lsm.merge.function import LEVEL, Deduplicate, LookupMerge
from lsm.read.split import read_split
from lsm.scan.planner import ScanPlanner
from manifest.entry.index_manifest import DELETION_VECTORS
from manifest.store import FileStore
from tests.examples import some
from tests.lsm.write_kit import compact_all, live, live_files, make, raw, write
from tests.odd_bytes import odd_texts

DDL = "id BIGINT, name STRING, version INT, p INT"
ON = {"deletion_vectors__enabled": "true", "bucket": "1"}


def rows_of(store: FileStore, rows: list[tuple]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(store.schema.names)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, store.schema.arrow, strict=True)]
    return pa.table(arrays, schema=store.schema.arrow)


def read(store: FileStore, **options: str) -> list[tuple]:
    """What a batch scan sees."""
    store = store.with_options({name.replace("__", ".").replace("_", "-"): value for name, value in options.items()})
    plan = ScanPlanner(store).plan(snapshot=store.snapshots.latest())
    batches = [batch for split in plan.splits for batch in read_split(store, split, columns=store.schema.names)]
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def upsert(store: FileStore, *rows: tuple, kinds: list[int] | None = None, **options: Any) -> list[Any]:
    return write(store, rows_of(store, list(rows)), kinds=None if kinds is None else pa.array(kinds, pa.int8()), **options)


def row(key: int, name: str = "", version: int = 0, p: int = 0) -> tuple:
    return key, name, version, p


def vectors(store: FileStore) -> dict[str, int]:
    """Dead rows by data file."""
    entries = [entry for entry in store.index_entries(store.snapshots.latest()) if entry.index_type == DELETION_VECTORS]
    return {vector.data_file: vector.cardinality for entry in entries for vector in entry.vectors}


BATCH = st.lists(
    st.tuples(st.tuples(st.integers(0, 25), odd_texts, st.integers(0, 5), st.integers(0, 1)), st.sampled_from([0, 0, 2, 1, 3])),
    max_size=20,
)
ACTION = st.tuples(BATCH, st.sampled_from(["leave", "inline", "inline", "inline", "compact", "full"]))


@pytest.mark.slow
@settings(
    deadline=None, max_examples=some(6), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)  # shrinking whole histories takes minutes
@given(
    st.lists(ACTION, min_size=1, max_size=9),
    st.sampled_from(["plain", "64 bit", "partitioned", "sequence", "sequence down", "ignore delete"]),
    st.sampled_from([1, 3]),
    st.sampled_from(["128 mb", "1 kb"]),
)
def test_what_is_visible_equals_a_dictionary(actions: list, kind: str, buckets: int, target: str) -> None:
    options = {**ON, "bucket": str(buckets), "target_file_size": target, "num_sorted_run__compaction_trigger": "4"}
    if kind.startswith("sequence"):
        options |= {"sequence__field": "version", "sequence__field__sort_order": "descending" if "down" in kind else "ascending"}
    options |= {"ignore_delete": "true"} if kind == "ignore delete" else {}
    options |= {"deletion_vectors__bitmap64": "true"} if kind == "64 bit" else {}
    with TemporaryDirectory() as directory:
        store = make(Path(directory) / "t", DDL, ("p", "id"), ("p",) if kind == "partitioned" else (), **options)
        model: dict[tuple[int, int], tuple] = {}
        visible: list[tuple] = []
        arrival = itertools.count()
        for drawn, then in actions:
            # A delete that a compaction has forgotten cannot outrank a row that comes later with a smaller sequence field.
            batch = [(row, 0 if kind.startswith("sequence") else row_kind) for row, row_kind in drawn]
            for each, row_kind in batch:
                if kind == "ignore delete" and row_kind in {1, 3}:
                    continue
                version = {"sequence": each[2], "sequence down": -each[2]}.get(kind, 0)
                rank = (version, next(arrival))
                if (each[3], each[0]) not in model or rank > model[each[3], each[0]][0]:
                    model[each[3], each[0]] = (rank, each, row_kind)
            upsert(store, *(each for each, _ in batch), kinds=[k for _, k in batch], write_only=then != "inline")
            present = sorted(each for _, each, row_kind in model.values() if row_kind in {0, 2})
            if then in {"compact", "full"}:
                compact_all(store, full=then == "full")
            if then != "leave" and not any(file.level == 0 for file in live_files(store)):
                visible = present
                assert read(store, deletion_vectors__merge_on_read="false") == visible
            assert read(store) == present
            check_vectors(store)
        compact_all(store)
        compact_all(store)
        assert read(store) == present
        assert vectors(store) == {}


def check_vectors(store: FileStore) -> None:
    """Only live files have vectors; above level 0 no key lives twice, and no delete rests."""
    dead = {}
    for entry in store.index_entries(store.snapshots.latest()):
        path = store.paths.index(entry.file_name, store.partition.decode(entry.partition), entry.bucket)
        data = Path(path).read_bytes()
        assert len(data) == entry.file_size
        for vector in entry.vectors:
            length = vector.length if store.options.deletion_vectors_bitmap64 else vector.length + 8
            dead[vector.data_file] = decode_deletion_vector(data[vector.offset :][:length])
            assert len(dead[vector.data_file]) == vector.cardinality > 0
    assert set(dead) <= {file.file_name for file in live_files(store)}
    seen = set()
    for entry in live(store):
        if entry.file.level == 0:
            continue
        assert entry.file.delete_row_count == 0
        for at, each in enumerate(raw(store, entry).to_pylist()):
            if at in dead.get(entry.file.file_name, ()):
                continue
            key = entry.partition, *(each[name] for name in store.schema.primary_keys)
            assert key not in seen
            seen.add(key)


def test_an_upsert_after_a_full_compaction_marks_the_old_row_and_rewrites_nothing_else(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), **ON)
    upsert(store, *(row(key) for key in range(1000)))
    compact_all(store)
    (old,) = live_files(store)
    upsert(store, row(7, "new"))
    assert vectors(store) == {old.file_name: 1}
    assert old.file_name in {file.file_name for file in live_files(store)}
    assert read(store)[7] == row(7, "new")
    assert len(read(store)) == 1000


def test_a_delete_leaves_nothing_but_a_mark(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), **ON)
    upsert(store, row(1), row(2))
    compact_all(store)
    upsert(store, row(2), kinds=[3])
    assert [(file.level, file.row_count) for file in live_files(store)] == [(5, 2)]
    assert list(vectors(store).values()) == [1]
    assert read(store) == [row(1)]


def test_level_0_is_merged_on_read_unless_it_is_to_be_hidden_until_it_is_compacted(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), **ON)
    upsert(store, row(1, "old"), row(2))
    upsert(store, row(1, "new"), row(3), write_only=True)
    assert read(store, deletion_vectors__merge_on_read="false") == [row(1, "old"), row(2)]
    assert read(store) == [row(1, "new"), row(2), row(3)]
    compact_all(store, full=False)
    assert read(store, deletion_vectors__merge_on_read="false") == read(store) == [row(1, "new"), row(2), row(3)]


def test_an_older_user_sequence_keeps_winning_from_a_deeper_level(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), **ON, sequence__field="version")
    upsert(store, row(1, "great", 9), row(2, "small", 1))
    compact_all(store)
    upsert(store, row(1, "late", 3), row(2, "late", 3))
    assert read(store) == [row(1, "great", 9), row(2, "late", 3)]


@pytest.mark.sizes
def test_a_full_compaction_rewrites_the_files_with_marks_and_only_those(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), **ON, target_file_size="4 kb")
    upsert(store, *(row(key, f"{key * 7919 % 100000:x}" * 4, key) for key in range(3000)))
    compact_all(store)
    before = {file.file_name for file in live_files(store)}
    assert len(before) == 3
    upsert(store, row(1), kinds=[3])
    (marked,) = vectors(store)
    compact_all(store)
    assert before - {file.file_name for file in live_files(store)} == {marked}
    assert vectors(store) == {}
    assert store.snapshots.latest().index_manifest is None
    assert len(read(store)) == 2999


def test_an_overwrite_is_visible_at_once_and_leaves_no_old_marks(tmp_path: Path) -> None:
    from lsm.write.bucket_writer import WriteJob
    from lsm.write.table_write import TableWrite
    from manifest.commit.file_store_commit import FileStoreCommit

    store = make(tmp_path / "t", DDL, ("id",), **ON)
    upsert(store, *(row(key) for key in range(10)))
    compact_all(store)
    upsert(store, row(3, "new"))
    with TableWrite(store, WriteJob(overwrites=True)) as job:
        job.write(rows_of(store, [row(3, "newest"), row(4), row(4)]), kinds=pa.array([0, 0, 3], pa.int8()))
        messages = job.prepare_commit()
    FileStoreCommit(store, "test-2").overwrite(messages)
    assert read(store) == [row(3, "newest")]
    assert vectors(store) == {}


@given(st.sets(st.integers(0, 2**32 - 1), max_size=50), st.booleans())
def test_what_is_encoded_is_decoded(rows: set[int], bits64: bool) -> None:
    assert decode_deletion_vector(encode_deletion_vector(BitMap(rows), bits64=bits64)) == BitMap(rows)


@pytest.mark.parametrize(
    ("bits64", "dump"),
    [
        (False, "0000001a5e43f2d03a300000010000000000020010000000030004000500238d0859"),
        (True, "00000026d1d339640100000000000000000000003a3000000100000000000200100000000300040005008a81c48b"),
    ],
)
def test_rows_three_to_five_encode_to_the_javas_bytes(bits64: bool, dump: str) -> None:
    assert encode_deletion_vector(BitMap([3, 4, 5]), bits64=bits64).hex() == dump


def test_of_versions_above_level_0_only_the_shallowest_takes_part() -> None:
    versions = pa.table(
        {
            "_VALUE_KIND": pa.array([0] * 5, pa.int8()),
            "v": ["below", "above", "one", "two", "other"],
            LEVEL: pa.array([3, 1, 0, -1, 4], pa.int8()),
        }
    )

    class Joined(Deduplicate):
        def fold(self, rows: Any, done: Sorted) -> Any:
            ends = [*done.starts[1:].tolist(), len(done.order)]
            return [
                "".join(rows["v"][i].as_py() for i in done.order[a:b].tolist()) for a, b in zip(done.starts.tolist(), ends, strict=True)
            ]

    import numpy as np

    assert LookupMerge(Joined()).fold(versions, Sorted(np.array([0, 1, 2, 3, 4]), np.array([0, 4]))) == ["aboveonetwo", "other"]
    assert LookupMerge(Joined(), 2).fold(versions, Sorted(np.array([1, 2, 3, 4]), np.array([0, 3]))) == ["aboveonetwo"]
