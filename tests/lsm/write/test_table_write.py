"""Writing tables, against a dictionary that does what the writes say."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lsm.write.bucket_writer import WriteJob
from lsm.write.compaction_job import CompactionJob
from lsm.write.table_write import TableWrite
from manifest.commit.message import CommitMessage
from manifest.io.errors import CommitConflict, OutOfDisk, SchemaMismatch, UnsupportedTable
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.row.binary_row import encode_row
from manifest.store import FileStore
from tests.examples import some
from tests.lsm.write_kit import (
    commit,
    compact_all,
    compact_bucket,
    data_files,
    live,
    live_files,
    make,
    newest_rows,
    note_spills,
    path_of,
    raw,
    write,
)
from tests.odd_bytes import odd_texts

DDL = "id BIGINT, name STRING, version INT, p INT"


def rows_of(store: FileStore, rows: list[tuple]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(store.schema.names)
    return pa.table(
        [pa.array(list(column), field.type) for column, field in zip(columns, store.schema.arrow, strict=True)], schema=store.schema.arrow
    )


def as_tuples(rows: list[dict]) -> list[tuple]:
    return sorted(tuple(row.values()) for row in rows)


BATCH = st.lists(
    st.tuples(st.tuples(st.integers(0, 25), odd_texts, st.integers(0, 5), st.integers(0, 1)), st.sampled_from([0, 0, 2, 1, 3])),
    max_size=30,
)
ACTION = st.tuples(BATCH, st.sampled_from(["leave", "inline", "compact", "full"]))


@settings(
    deadline=None, max_examples=some(12), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)  # shrinking whole histories takes minutes
@given(
    st.lists(ACTION, min_size=1, max_size=7),
    st.sampled_from(["plain", "partitioned", "sequence", "sequence down", "ignore delete", "thin"]),
    st.sampled_from([1, 3]),
    st.sampled_from(["128 mb", "1 kb"]),
)
def test_upserts_deletes_and_compactions_equal_a_dictionary(actions: list, kind: str, buckets: int, target: str) -> None:
    options = {"bucket": str(buckets), "target_file_size": target, "num_sorted_run__compaction_trigger": "3"}
    if kind.startswith("sequence"):
        options |= {"sequence__field": "version", "sequence__field__sort_order": "descending" if "down" in kind else "ascending"}
    options |= {"ignore_delete": "true"} if kind == "ignore delete" else {}
    options |= {"data_file__thin_mode": "true"} if kind == "thin" else {}
    with TemporaryDirectory() as directory:
        partitions = ("p",) if kind == "partitioned" else ()
        store = make(Path(directory) / "t", DDL, ("p", "id"), partitions, **options)
        model: dict[tuple[int, int], tuple] = {}
        arrival = itertools.count()
        for drawn, then in actions:
            # A delete that a compaction has forgotten cannot outrank a row that comes later with a smaller sequence field.
            batch = [(row, 0 if kind.startswith("sequence") else row_kind) for row, row_kind in drawn]
            for row, row_kind in batch:
                if kind == "ignore delete" and row_kind in {1, 3}:
                    continue
                version = {"sequence": row[2], "sequence down": -row[2]}.get(kind, 0)
                rank = (version, next(arrival))
                if (row[3], row[0]) not in model or rank > model[row[3], row[0]][0]:
                    model[row[3], row[0]] = (rank, row, row_kind)
            write(
                store,
                rows_of(store, [row for row, _ in batch]),
                kinds=pa.array([k for _, k in batch], pa.int8()),
                write_only=then != "inline",
            )
            if then in {"compact", "full"}:
                compact_all(store, full=then == "full")
            check_files(store)
            assert as_tuples(newest_rows(store)) == sorted(row for _, row, row_kind in model.values() if row_kind in {0, 2})
        compact_all(store)
        assert all(f.delete_row_count == 0 for f in live_files(store))
        assert as_tuples(newest_rows(store)) == sorted(row for _, row, row_kind in model.values() if row_kind in {0, 2})


def check_files(store: FileStore) -> None:
    """What a manifest promises of a file is so, and no file is without a promise."""
    promised = set()
    for entry in live(store):
        table, meta = raw(store, entry), entry.file
        keys = list(zip(*(table[name].to_pylist() for name in store.schema.trimmed_primary_keys), strict=True))
        assert keys == sorted(set(keys))
        types = store.schema.key_types
        assert (meta.min_key, meta.max_key) == (encode_row(keys[0], types), encode_row(keys[-1], types))
        sequences, kinds = table["_SEQUENCE_NUMBER"].to_pylist(), table["_VALUE_KIND"].to_pylist()
        assert (meta.min_sequence_number, meta.max_sequence_number) == (min(sequences), max(sequences))
        assert meta.delete_row_count == sum(kind in {1, 3} for kind in kinds)
        assert meta.row_count == table.num_rows
        assert meta.file_size == Path(path_of(store, entry)).stat().st_size
        promised |= set(meta.file_names)
    kept = {f.file_name for snapshot in store.snapshots.ids() for f in store_files(store, snapshot)}
    assert promised <= kept
    assert set(data_files(store)) == kept


def store_files(store: FileStore, snapshot: int) -> list:
    return [entry.file for entry in store.live_entries(store.snapshots.get(snapshot)).entries()]


def test_of_equal_keys_in_one_write_the_last_row_wins_and_takes_its_number(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1")
    write(store, rows_of(store, [(1, "a", 0, 0), (2, "b", 0, 0), (1, "c", 0, 0)]))
    (entry,) = live(store)
    table = raw(store, entry)
    assert (table["name"].to_pylist(), table["_SEQUENCE_NUMBER"].to_pylist(), table["_KEY_id"].to_pylist()) == (["c", "b"], [2, 1], [1, 2])


def test_sequence_numbers_go_on_from_the_buckets_greatest(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1")
    for _ in range(2):
        messages = write(store, rows_of(store, [(1, "a", 0, 0), (2, "b", 0, 0)]))
    assert [(f.min_sequence_number, f.max_sequence_number) for f in messages[0].new_files] == [(2, 3)]
    assert messages[0].base_snapshot_id == 1


def test_a_lone_delete_is_kept_and_counted(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1")
    write(store, rows_of(store, [(1, "a", 0, 0), (2, "b", 0, 0), (3, "c", 0, 0)]), kinds=pa.array([0, 3, 1], pa.int8()))
    (file,) = live_files(store)
    assert (file.row_count, file.delete_row_count, file.level, file.file_source) == (3, 2, 0, 0)


def many(store: FileStore, count: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id": rng.integers(0, count, count),
            "name": [f"name {i % 97:03d} {'x' * (i % 40)}" for i in range(count)],
            "version": pa.array(rng.integers(0, 9, count), pa.int32()),
            "p": pa.array(rng.integers(0, 3, count), pa.int32()),
        }
    )


def batches(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    return (table.slice(at, rows) for at in range(0, table.num_rows, rows))


def test_many_small_writes_are_counted_once_each(tmp_path: Path, set_thresholds: Callable[..., None]) -> None:
    set_thresholds(route_rows=1000)
    store = make(tmp_path / "t", DDL, ("id",), bucket="1")
    routed: list[int] = []
    with TableWrite(store) as write:
        real = write._route
        write._route = lambda: (routed.append(write._waiting_rows), real())
        for batch in batches(many(store, 5000), 300):
            write.write(batch)
        assert routed == [1200] * 4
        write.write(many(store, 10).slice(0, 0))
        write.prepare_commit()
    assert (sum(routed), write._waiting_rows, write._waiting_bytes) == (5000, 0, 0)


@pytest.mark.parametrize("sequence", [None, "version"])
@pytest.mark.sizes
def test_spilling_changes_nothing_but_where_rows_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_thresholds: Callable[..., None], sequence: str | None
) -> None:
    set_thresholds(route_rows=500)
    (tmp_path / "spill").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spill"))
    set_thresholds(spill_fan_in=3)
    more = {} if sequence is None else {"sequence__field": sequence}
    small = make(tmp_path / "small", DDL, ("id",), bucket="3", write_buffer_size="64 kb", **more)
    large = make(tmp_path / "large", DDL, ("id",), bucket="3", **more)
    table = many(small, 20_000)
    kinds = pa.array((np.arange(20_000) % 7 == 0) * 3, pa.int8())
    spilled_sizes = note_spills(monkeypatch)
    spilled_bytes = []
    for store in (small, large):
        with TableWrite(store) as job:
            for part, of_part in zip(batches(table, 250), (kinds.slice(at, 250) for at in range(0, 20_000, 250)), strict=True):
                job.write(part, kinds=of_part)
            commit(store, job.prepare_commit())
            spilled_bytes.append(sum(spilled_sizes))
            spilled_sizes.clear()
    assert spilled_bytes[0] > 0 == spilled_bytes[1]
    assert [len(live(store)) for store in (small, large)] == [3, 3]
    for one, other in zip(sorted(live(small), key=lambda e: e.bucket), sorted(live(large), key=lambda e: e.bucket), strict=True):
        assert raw(small, one).equals(raw(large, other))
    assert list((tmp_path / "spill").iterdir()) == []


def test_one_table_in_memory_is_never_spilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spilled_sizes = note_spills(monkeypatch)
    store = make(tmp_path / "t", DDL, ("id",), bucket="2", write_buffer_size="1 kb")
    with TableWrite(store) as job:
        job.write(many(store, 200_000))
        job.prepare_commit()
    assert spilled_sizes == []


def test_files_roll_at_the_target_size_into_one_sorted_run(tmp_path: Path) -> None:
    index = {"file_index__bloom-filter__columns": "name", "file_index__bloom-filter__name__items": "1000"}
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", target_file_size="20 kb", **index)
    write(store, many(store, 30_000))
    entries = sorted(live(store), key=lambda e: raw(store, e)["id"][0].as_py())
    assert len(entries) > 5
    ids = [raw(store, entry)["id"].to_pylist() for entry in entries]
    assert list(itertools.chain.from_iterable(ids)) == sorted(set(itertools.chain.from_iterable(ids)))
    assert all(5_000 < entry.file.file_size < 40_000 for entry in entries[:-1])
    beside = [(entry.file.file_name + ".index",) for entry in entries]
    # The last file has few values, and so a small index.
    assert [entry.file.extra_files for entry in entries] == [*beside[:-1], () if entries[-1].file.embedded_index else beside[-1]]
    stats = {entry.file.value_stats.null_counts for entry in entries}
    assert stats == {(0, 0, 0, 0)}


def test_a_row_limit_rolls_too(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1")
    messages = write(store.with_options({"target-file-row-num": "300"}), many(store, 2000))
    assert {f.row_count for f in messages[0].new_files[:-1]} == {300}


def test_a_small_index_is_embedded(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", file_index__bitmap__columns="p", file_index__in_manifest_threshold="10 kb")
    write(store, many(store, 100))
    (file,) = live_files(store)
    assert file.embedded_index is not None
    assert file.extra_files == ()


def test_a_write_compacts_inline_unless_it_is_write_only(tmp_path: Path) -> None:
    options = {"bucket": "1", "num_sorted_run__compaction_trigger": "3"}
    store = make(tmp_path / "inline", DDL, ("id",), **options)
    for _ in range(2):
        assert not write(store, many(store, 100))[0].has_compaction
    (third,) = write(store, many(store, 100))
    assert (len(third.new_files), len(third.compact_before), len(third.compact_after)) == (1, 3, 1)
    assert third.new_files[0] in third.compact_before
    assert store.snapshots.latest().commit_kind == "COMPACT"
    assert [f.level for f in live_files(store)] == [3]
    other = make(tmp_path / "writeonly", DDL, ("id",), write_only="true", **options)
    for _ in range(4):
        assert not write(other, many(other, 100))[0].has_compaction


def test_a_write_finds_the_runs_that_write_only_jobs_left(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1")
    for seed in range(10):
        write(store, many(store, 200, seed), write_only=True)
    (message,) = write(store, many(store, 5))
    assert (len(message.new_files), len(message.compact_before), len(message.compact_after)) == (1, 11, 1)


def test_full_compaction_at_every_commit_by_option(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", full_compaction__delta_commits="5")
    write(store, many(store, 100))
    (second,) = write(store, many(store, 100))
    assert len(second.compact_before) == 2
    assert [f.level for f in live_files(store)] == [5]


def test_a_compacted_bucket_has_nothing_more_to_do(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="2")
    write(store, many(store, 1000))
    assert len(compact_all(store)) == 2
    assert compact_all(store) == []
    assert compact_bucket(store, encode_row((), ()), 0) is None


def test_partitions_have_their_own_directories_and_serialised_rows(tmp_path: Path) -> None:
    store = make(tmp_path / "t", "id BIGINT, day DATE, city STRING, n INT", ("city", "day", "id"), ("city", "day"), bucket="2")
    table = pa.table(
        {
            "id": [1, 2, 3, 4],
            "day": pa.array([1, 1, 2, 2], pa.int32()).cast(pa.date32()),
            "city": ["a/b", "x", "a/b", "x"],
            "n": [1, 2, 3, 4],
        }
    )
    messages = write(store, table.set_column(3, "n", table["n"].cast(pa.int32())))
    assert {store.partition.decode(m.partition) for m in messages} == {("a/b", 1), ("a/b", 2), ("x", 1), ("x", 2)}
    assert {str(p.parent.parent.relative_to(tmp_path / "t")) for p in (tmp_path / "t").rglob("*.parquet")} == {
        f"city={city}/day=1970-01-0{day}" for city in ("a%2Fb", "x") for day in (2, 3)
    }
    assert as_tuples(newest_rows(store)) == as_tuples(table.to_pylist())


def test_file_names_lead_with_the_commit_and_never_meet(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", data_file__prefix="mine-")
    names = set()
    for _ in range(2):
        with TableWrite(store, WriteJob(commit_id="commit-7")) as job:
            job.write(many(store, 10))
            names |= {f.file_name for message in job.prepare_commit() for f in message.new_files}
    assert len(names) == 2
    assert all(name.startswith("mine-commit-7-") and name.endswith(".parquet") for name in names)


class Failing(WrappedFileIO):
    """A store whose disk is full once ``after`` files have been opened, or on a file whose name ends in ``suffix``."""

    def __init__(self, after: int = 10**6, suffix: str = "?") -> None:
        super().__init__(LocalFileIO())
        self.after, self.suffix = after, suffix

    def open_output(self, path: str):
        self.after -= 1
        stream = super().open_output(path)
        return stream if self.after >= 0 else FullDisk(stream)

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:
        if path.endswith(self.suffix):
            LocalFileIO().write(path, data[: len(data) // 2])
            raise OutOfDisk(28, "no space left", path)
        super().write(path, data, overwrite=overwrite, durable=durable)


class FullDisk:
    """Takes a few bytes, then no more."""

    def __init__(self, stream) -> None:
        self._stream, self._left = stream, 500
        self.closed = False

    def write(self, data) -> int:
        self._left -= len(data)
        if self._left < 0:
            raise OSError(28, "No space left on device")
        return self._stream.write(data)

    def tell(self) -> int:
        return self._stream.tell()

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self.closed = True
        self._stream.close()


@pytest.mark.parametrize("failing", [Failing(after=0), Failing(after=1), Failing(suffix=".index")], ids=["first", "second", "index"])
@pytest.mark.parametrize("stage", ["write", "compaction", "append"])
def test_a_full_disk_is_named_and_leaves_no_file(tmp_path: Path, failing: Failing, stage: str) -> None:
    index = {"file_index__bloom-filter__columns": "name", "file_index__bloom-filter__name__items": "1000"}
    keys = () if stage == "append" else ("id",)
    buckets = {} if stage == "append" else {"bucket": "2"}
    store = make(tmp_path / "t", DDL, keys, target_file_size="20 kb", **buckets, **index)
    if stage == "compaction":
        write(store, many(store, 8000), write_only=True)
        write(store, many(store, 8000, 1), write_only=True)
    before = data_files(store)
    broken = FileStore(Failing(failing.after, failing.suffix), store.root, store.schema)
    rows = many(store, 16000)
    with pytest.raises(OutOfDisk, match="space"):
        attempt_compaction(broken) if stage == "compaction" else attempt(broken, rows)
    assert data_files(store) == before


def attempt(store: FileStore, rows: pa.Table) -> None:
    with TableWrite(store) as job:
        job.write(rows)
        job.prepare_commit()


def attempt_compaction(store: FileStore, *, gives_up: bool = False) -> None:
    with CompactionJob(store) as job:
        job.compact(encode_row((), ()), 0, full=True)
        job.prepare_commit()
        if gives_up:
            raise ZeroDivisionError


class LateAndFailing(WrappedFileIO):
    """One bucket's disk is full at once, the others' files come later."""

    def __init__(self, bucket: int) -> None:
        super().__init__(LocalFileIO())
        self._full = f"/bucket-{bucket}/"

    def open_output(self, path: str):
        if self._full in path:
            raise OutOfDisk(28, "no space left", path)
        time.sleep(0.1)
        return super().open_output(path)


@pytest.mark.parametrize("bucket", [0, 1])
def test_buckets_that_are_still_written_when_another_fails_leave_no_file(tmp_path: Path, bucket: int) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="2")
    broken = FileStore(LateAndFailing(bucket), store.root, store.schema)
    with pytest.raises(OutOfDisk):
        attempt(broken, many(store, 100))
    assert data_files(store) == []


def test_leaving_with_an_error_deletes_what_was_handed_over_to_nobody(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="2")
    write(store, many(store, 100), write_only=True)
    before = data_files(store)
    with pytest.raises(ZeroDivisionError):
        attempt_compaction(store, gives_up=True)
    assert data_files(store) == before


def test_rows_that_do_not_fit_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1")
    with pytest.raises(SchemaMismatch, match="missing"), TableWrite(store) as job:
        job.write(pa.table({"name": ["a"]}))
    with pytest.raises(SchemaMismatch, match="kinds"), TableWrite(store) as job:
        job.write(many(store, 2), kinds=pa.array([0, 4]))
    append = make(tmp_path / "a", DDL)
    with pytest.raises(SchemaMismatch, match="append"), TableWrite(append) as job:
        job.write(many(append, 1), kinds=pa.array([3]))
    assert data_files(store) == data_files(append) == []


def test_a_table_that_asks_for_more_than_is_built_is_refused(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1")
    with pytest.raises(UnsupportedTable, match="merge-engine"):
        TableWrite(store.with_options({"merge-engine": "newest-row"}))


def test_another_bucket_count_needs_an_overwrite(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1")
    write(store, many(store, 10))
    wider = store.with_options({"bucket": "2"})
    with pytest.raises(UnsupportedTable, match="1 buckets"):
        attempt(wider, many(store, 10))
    with TableWrite(wider, WriteJob(overwrites=True)) as job:
        job.write(many(store, 10))
        messages = job.prepare_commit()
    assert min(file.min_sequence_number for message in messages for file in message.new_files) == 0


def test_a_write_that_lost_a_race_is_resequenced_above_the_winner(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", target_file_size="20 kb")

    def prepared(name: str, count: int) -> list[CommitMessage]:
        with TableWrite(store) as job:
            job.write(rows_of(store, [(i, name, 0, 0) for i in range(count)]))
            return job.prepare_commit()

    slow, fast = prepared("slow", 5000), prepared("fast", 10)
    commit(store, fast, 1)
    commit(store, slow, 2)
    assert {row["name"] for row in newest_rows(store)} == {"slow"}
    ranges = sorted((f.min_sequence_number, f.max_sequence_number) for f in live_files(store))
    assert ranges[0] == (0, 9)
    assert (ranges[1][0], ranges[-1][1]) == (10, 5009)
    check_files(store)


def test_without_resequencing_the_lost_race_is_a_conflict(tmp_path: Path) -> None:
    from manifest.commit.file_store_commit import FileStoreCommit

    store = make(tmp_path / "t", DDL, ("id",), bucket="1")
    prepared = []
    for _ in range(2):
        with TableWrite(store) as job:
            job.write(many(store, 10))
            prepared.append(job.prepare_commit())
    FileStoreCommit(store, "a").commit(prepared[0])
    with pytest.raises(CommitConflict, match="newer rows"):
        FileStoreCommit(store, "b").commit(prepared[1])
