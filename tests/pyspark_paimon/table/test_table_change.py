"""Deleting, compacting, expiring and altering through ``Table`` in process."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from lsm.write.compaction_job import CompactionJob
from manifest.store import FileStore
from pyspark_paimon import InvalidArgument, InvalidFilter, Table, UnsupportedOption
from pyspark_paimon.jobs import change_rows
from pyspark_paimon.operations import compact


def rows(ids, city="x") -> pa.Table:
    return pa.table({"id": list(ids), "city": [city] * len(ids), "n": pa.array([i % 3 for i in ids], pa.int32())})


def ids(table: Table, text=None) -> list[int]:
    return sorted(table.scan(text).to_arrow()["id"].to_pylist())


def test_delete_removes_what_the_filter_selects(create) -> None:
    table = create(options={"bucket": "2"})
    table.write(rows(range(10)))
    result = table.delete("n = 1 AND id < 8")
    assert (result.rows, result.snapshot_id) == (3, 2)
    assert ids(table) == [0, 2, 3, 5, 6, 8, 9]
    assert ids(table, "n = 1") == []
    assert table.scan(snapshot=1).count() == 10


def test_delete_of_nothing_commits_nothing(create) -> None:
    table = create()
    assert table.delete("id = 1").snapshot_id is None
    table.write(rows(range(3)))
    assert table.delete("id = 7").snapshot_id is None
    assert table.snapshots().num_rows == 1


def test_delete_everything_and_write_again(create) -> None:
    table = create()
    table.write(rows(range(3)))
    assert table.delete("TRUE").rows == 3
    assert table.scan().count() == 0
    table.write(rows([1]))
    table.compact(full=True)
    assert ids(table) == [1]
    assert table.files()["delete_row_count"].to_pylist() == [0]


def test_delete_needs_a_filter(create) -> None:
    with pytest.raises(InvalidArgument, match="'TRUE'"):
        create(name="keyed").delete(None)
    with pytest.raises(InvalidFilter):
        create(name="third").delete("id = ")


def test_delete_obeys_a_sequence_field(create) -> None:
    table = create(options={"sequence.field": "n"})
    table.write(pa.table({"id": [1], "city": ["new"], "n": pa.array([9], pa.int32())}))
    table.delete("city = 'new'")
    assert ids(table) == []


def test_a_delete_that_lost_a_race_is_evaluated_again(create, monkeypatch) -> None:
    """Between evaluation and commit another row that matches arrives in the same bucket: it must go too, or the delete fail."""
    table = create()
    table.write(rows([1, 2]))
    interfered = []
    original = change_rows.TableWrite

    def racing(*arguments, **keywords):
        if not interfered:
            interfered.append(True)
            Table.open(table.path).write(rows([4, 7]))
        return original(*arguments, **keywords)

    monkeypatch.setattr(change_rows, "TableWrite", racing)

    deleted = table.delete("n = 1")
    assert ids(table) == [2]
    assert deleted.rows == 3
    assert table.list_orphan_files(older_than=2**61) == []


def test_compact_merges_runs_and_drops_deletes(create) -> None:
    table = create(options={"bucket": "2"})
    for generation in range(3):
        table.write(rows(range(20), str(generation)))
    table.delete("id >= 10")
    before = table.files().num_rows
    result = table.compact(full=True)
    assert (result.files_before, result.files_after, result.buckets, result.attempts) == (before, 2, 2, 1)
    assert result.bytes_read > result.bytes_written > 0
    assert result.snapshot_id == table.scan().snapshot_id
    assert set(table.files()["level"].to_pylist()) == {5}
    assert ids(table) == list(range(10))
    again = table.compact(full=True)
    assert (again.snapshot_id, again.files_before, again.files_after) == (None, 0, 0)


def test_compact_picks_by_itself_when_not_full(create) -> None:
    table = create(options={"num-sorted-run.compaction-trigger": "3", "write-only": "true"})
    table.write(rows(range(5)))
    assert table.compact().snapshot_id is None
    for _ in range(3):
        table.write(rows(range(5)))
    assert table.compact().files_before == 4
    assert ids(table) == list(range(5))


def test_compact_of_named_partitions_leaves_the_others(create) -> None:
    table = create("id BIGINT, city STRING, n INT", primary_keys=("id", "city"), partition_keys=("city",))
    for city in ("a", "b", "a", "b"):
        table.write(rows(range(4), city))
    assert table.compact(full=True, partitions=[{"city": "a"}]).buckets == 1
    levels = table.files().select(["partition", "level"]).to_pylist()
    assert [row["level"] for row in levels if row["partition"] == "city=a"] == [5]
    assert [row["level"] for row in levels if row["partition"] == "city=b"] == [0, 0]


def test_small_files_of_an_append_table_are_joined(create) -> None:
    table = create(primary_keys=())
    for at in range(6):
        table.write(rows([at]))
    result = table.compact(full=True)
    assert (result.files_before, result.files_after) == (6, 1)
    assert ids(table) == list(range(6))


def test_a_compaction_that_lost_a_race_is_tried_again(create, monkeypatch) -> None:
    table = create(options={"write-only": "true"})
    for _ in range(3):
        table.write(rows(range(10)))
    original, calls = compact.compaction_job.compact_together, []

    def racing(*arguments, **keywords):
        message = original(*arguments, **keywords)
        calls.append(message)
        if len(calls) == 1:
            monkeypatch.setattr(compact.compaction_job, "compact_together", original)
            Table.open(table.path).compact(full=True)
            Table.open(table.path).write(rows([77]))
        return message

    monkeypatch.setattr(compact.compaction_job, "compact_together", racing)
    result = table.compact(full=True)
    assert result.attempts == 2
    assert set(table.files()["level"].to_pylist()) == {5}
    assert ids(table) == [*range(10), 77]
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert table.list_orphan_files(older_than=2**61) == []


@pytest.mark.parametrize("small", [0, 2**40])
def test_of_a_compaction_that_fails_in_one_bucket_nothing_remains(create, monkeypatch, set_thresholds, small) -> None:
    table = create(options={"write-only": "true", "bucket": "4"})
    for _ in range(2):
        table.write(rows(range(100)))
    compact, before = CompactionJob.compact, table.files().num_rows

    def failing(self, partition, bucket, *, full=False):
        if bucket == 2:
            raise OSError("this bucket fails")
        compact(self, partition, bucket, full=full)

    set_thresholds(small_bucket_bytes=small)
    monkeypatch.setattr(CompactionJob, "compact", failing)
    with pytest.raises(OSError, match="this bucket"):
        table.compact(full=True)
    assert table.list_orphan_files(older_than=2**61) == []
    assert (table.files().num_rows, ids(table)) == (before, list(range(100)))
    monkeypatch.setattr(CompactionJob, "compact", compact)
    result = table.compact(full=True)
    assert (result.files_before, result.files_after, result.buckets) == (8, 4, 4)


def test_inline_compaction_keeps_the_number_of_runs_small(create) -> None:
    table = create(options={"num-sorted-run.compaction-trigger": "3"})
    compacted = [table.write(rows(range(at, at + 10))).compact_snapshot_id for at in range(8)]
    assert any(snapshot is not None for snapshot in compacted)
    assert table.files().num_rows <= 4
    assert ids(table) == list(range(17))


def test_snapshots_expire_by_the_options_after_a_commit(create) -> None:
    table = create(options={"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2", "num-sorted-run.compaction-trigger": "9"})
    for at in range(5):
        table.write(rows([at]))
    assert table.snapshots()["snapshot_id"].to_pylist() == [4, 5]
    assert ids(table) == list(range(5))


def test_orphans_are_listed_and_removed_by_age(create) -> None:
    table = create()
    table.write(rows([1]))
    store = FileStore.open(table.path)
    orphan = f"{store.paths.bucket_dir((), 0)}/data-lost-0.parquet"
    store.file_io.write(orphan, b"x" * 10)
    now = datetime.now(UTC)
    assert table.list_orphan_files() == []
    assert [(found.path, found.size) for found in table.list_orphan_files(now + timedelta(hours=1))] == [(orphan, 10)]
    assert store.file_io.exists(orphan)
    assert [found.path for found in table.remove_orphan_files(now + timedelta(hours=1))] == [orphan]
    assert not store.file_io.exists(orphan)
    assert ids(table) == [1]


def test_options_are_altered_and_removed(create) -> None:
    table = create()
    assert table.alter_options({"target-file-size": "1 mb", "write-only": "true"}) is table
    table.alter_options({"write-only": None})
    assert table.options == {"bucket": "1", "target-file-size": "1 mb"}
    assert table.table_schema.id == 2
    for bad in ({"no-such": "1"}, {"merge-engine": "aggregation"}, {"target-file-size": "big"}):
        with pytest.raises(UnsupportedOption):
            table.alter_options(bad)
    assert table.table_schema.id == 2


def test_readers_are_not_disturbed_by_writers(create) -> None:
    """Scans that run while rows are upserted and compacted see one snapshot each: all rows of one generation."""
    table = create(options={"bucket": "2", "num-sorted-run.compaction-trigger": "2"})
    table.write(rows(range(50), "0"))
    stop = threading.Event()
    seen: list[set[str]] = []

    def read() -> None:
        while not stop.is_set():
            seen.append(set(Table.open(table.path).scan().to_arrow()["city"].to_pylist()))

    reader = threading.Thread(target=read)
    reader.start()
    for generation in range(1, 6):
        table.write(rows(range(50), str(generation)))
        time.sleep(0.01)
    stop.set()
    reader.join()
    assert seen
    assert all(len(generations) == 1 for generations in seen)
