"""Changelog files: which rows each producer writes, how the files look, and what becomes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lsm.compaction.changelog import CompactionChangelog
from lsm.incremental.planner import IncrementalMode, IncrementalPlanner
from lsm.incremental.read import read_incremental
from lsm.keys.sort import SortKey
from lsm.merge.function import LookupMerge, merge_function_for, with_level, without_level
from lsm.merge.merge_iterator import merge_rounds
from lsm.write.bucket_writer import WriteJob
from lsm.write.compaction_job import CompactionJob
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.expire.snapshots import expire_snapshots
from manifest.schema.validation import build_schema
from manifest.store import FileStore
from paimon_base.errors import UnsupportedOption
from tests.lsm.write_kit import commit, compact_all, data_files, live_files, make, newest_rows, note_spills, write

KINDS = ("+I", "-U", "+U", "-D")
DDL = "id BIGINT, v INT"


class Log:
    """Stands in for the writer of changelog files."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int]] = []

    def write(self, rows: pa.Table) -> None:
        assert "_LEVEL" not in rows.column_names
        self.rows += [(KINDS[row["_VALUE_KIND"]], row["v"]) for row in rows.to_pylist()]


def told(versions: str, *, settled: int = 1, max_level: int = 5, dedup: bool = False, **options: str) -> tuple[list[str], list[str]]:
    """Changelog and result of one key. ``2:+I1 0:-D3`` are versions by level, kind and value, oldest first."""
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    schema = build_schema(DDL, primary_keys=["id"], options={"bucket": "1", **named})
    fold: Any = merge_function_for(schema)
    first_only = schema.core.merge_engine == "first-row"
    if settled == 1:
        fold = LookupMerge(fold, max_level - 1 if first_only else None)
    else:
        inner = fold
        fold = type("Fold", (), {"fold": lambda _, rows, done: inner.fold(without_level(rows), done)})()
    log = Log()
    observer = CompactionChangelog(log, SortKey(("id",)), settled, ("v",) if dedup else None, first_only)  # type: ignore[arg-type]
    runs = []
    for sequence, version in enumerate(versions.split()):
        level, rest = version.split(":")
        row = {"_SEQUENCE_NUMBER": pa.array([sequence]), "_VALUE_KIND": pa.array([KINDS.index(rest[:2])], pa.int8())}
        row |= {"id": pa.array([1]), "v": pa.array([int(rest[2:])], pa.int32())}
        runs.append(iter([with_level(pa.table(row), int(level))]))
    results: list[str] = []
    for merged in merge_rounds(runs, SortKey(("id",)), fold):
        observer.observe(merged)
        results += [f"{KINDS[row['_VALUE_KIND']]}{row['v']}" for row in merged.result.to_pylist()]
    return [f"{kind}{value}" for kind, value in log.rows], results


@pytest.mark.parametrize(
    ("versions", "changelog", "results"),
    [
        ("2:+I1 1:+I2", [], ["+I2"]),
        ("1:+I1 0:+I2", ["-U1", "+U2"], ["+I2"]),
        ("0:+U2", ["+I2"], ["+U2"]),
        ("3:+I1 0:+U2", ["-U1", "+U2"], ["+U2"]),
        ("3:-D1 0:+I2", ["+I2"], ["+I2"]),
        ("0:-U2", [], ["-U2"]),
        ("3:-D1 0:-D1", [], ["-D1"]),
        ("3:+I1 0:-D1", ["-D1"], ["-D1"]),
        ("3:+I1 0:+I1", ["-U1", "+U1"], ["+I1"]),
        ("3:+I1 2:+I5 0:+I3 0:+I4", ["-U5", "+U4"], ["+I4"]),
    ],
)
def test_lookup_compares_the_shallowest_settled_version_with_the_result(versions: str, changelog: list[str], results: list[str]) -> None:
    assert told(versions) == (changelog, results)


def test_an_update_to_equal_values_is_no_change_where_rows_are_deduplicated() -> None:
    assert told("3:+I1 0:+I1", dedup=True)[0] == []
    assert told("3:+I1 0:+I2", dedup=True)[0] == ["-U1", "+U2"]


def test_lookup_folds_the_shallowest_settled_version_alone() -> None:
    options = {"merge_engine": "aggregation", "fields__v__aggregate_function": "sum"}
    assert told("3:+I1 2:+I1 1:+I2 0:+I2", **options) == (["-U2", "+U4"], ["+I4"])


@pytest.mark.parametrize(
    ("versions", "changelog", "results"),
    [("2:+I1 1:+I2", [], ["+I1"]), ("1:+I1 0:+I2", [], ["+I1"]), ("0:+I1 0:+I2", ["+I1"], ["+I1"]), ("5:+I1 0:+I2", [], [])],
)
def test_first_row_tells_of_new_keys_only(versions: str, changelog: list[str], results: list[str]) -> None:
    assert told(versions, merge_engine="first-row") == (changelog, results)


@pytest.mark.parametrize(
    ("versions", "changelog"),
    [
        ("0:+I1", ["+I1"]),
        ("0:-D1", []),
        ("3:+I1", []),
        ("0:+I1 0:+I2", ["+I2"]),
        ("0:+I1 0:-D1", []),
        ("3:+I3 0:+I-3", ["-U3", "+U-3"]),
        ("3:+I3 0:-D3", ["-D3"]),
        ("3:+I3 0:-U3", ["-D3"]),
        ("3:+I3 0:+I3", ["-U3", "+U3"]),
        ("3:+I3 1:+I4 0:+I5", ["-U3", "+U5"]),
        ("1:+I4 0:+I5", ["+I5"]),
    ],
)
def test_full_compaction_compares_the_deepest_level_with_the_result(versions: str, changelog: list[str]) -> None:
    assert told(versions, settled=3)[0] == changelog


def rows(*given: tuple[int, int | None]) -> pa.Table:
    return pa.table({"id": pa.array([key for key, _ in given], pa.int64()), "v": pa.array([value for _, value in given], pa.int32())})


def kinds(text: str) -> pa.Array:
    return pa.array([KINDS.index(kind) for kind in text.split()], pa.int8())


def changes(store: FileStore, first: int, last: int) -> Counter[tuple]:
    """(kind, id, v) of the changelog after snapshot ``first`` up to ``last``."""
    found: Counter[tuple] = Counter()
    for split in IncrementalPlanner(store, first, last).plan(IncrementalMode.CHANGELOG).splits:
        for batch in read_incremental(store, split, columns=("_row_kind", "id", "v")):
            found.update(tuple(row.values()) for row in batch.to_pylist())
    return found


@pytest.mark.parametrize("buffer", ["256 mb", "1 kb"], ids=["in memory", "spilled"])
def test_input_keeps_every_row_as_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buffer: str, set_thresholds: Callable[..., None]
) -> None:
    spilled_sizes = note_spills(monkeypatch)
    set_thresholds(route_rows=1)  # every batch goes to its bucket at once
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", changelog_producer="input", write_buffer_size=buffer, write_only="true")
    rng = np.random.default_rng(3)
    written = [(int(key), int(value)) for key, value in zip(rng.integers(0, 500, 6000), rng.integers(0, 9, 6000), strict=True)]
    with TableWrite(store) as job:
        for at in range(0, 6000, 500):
            job.write(rows(*written[at : at + 500]))
        messages = job.prepare_commit()
        assert (sum(spilled_sizes) > 0) == (buffer == "1 kb")
    commit(store, messages)
    snapshot = store.snapshots.latest()
    assert snapshot is not None
    assert (snapshot.changelog_record_count, snapshot.delta_record_count) == (6000, len({key for key, _ in written}))
    assert changes(store, 0, 1) == Counter(("+I", key, value) for key, value in written)
    assert {row["id"]: row["v"] for row in newest_rows(store)} == dict(written)
    (file,) = messages[0].changelog_files
    physical = pq.ParquetFile(f"{store.root}/bucket-0/{file.file_name}").read()
    order = list(zip(physical["id"].to_pylist(), physical["_SEQUENCE_NUMBER"].to_pylist(), strict=True))
    assert order == sorted(order)
    assert (file.row_count, file.level, file.min_sequence_number, file.max_sequence_number) == (6000, 0, 0, 5999)


def test_changelog_files_have_a_prefix_and_a_codec_of_their_own_and_no_index(tmp_path: Path) -> None:
    store = make(
        tmp_path / "t",
        DDL,
        ("id",),
        bucket="1",
        changelog_producer="input",
        changelog_file__prefix="log-",
        changelog_file__compression="snappy",
        changelog_file__stats_mode="none",
        file_index__bloom_filter__columns="v",
        file_index__in_manifest_threshold="1 b",
        write_only="true",
    )
    (message,) = write(store, rows((1, 1), (2, 2), (1, 3)))
    (file,), (data,) = message.changelog_files, message.new_files
    assert file.file_name.startswith("log-")
    assert (file.extra_files, file.embedded_index, file.value_stats.null_counts) == ((), None, ())
    assert data.extra_files
    assert data.value_stats.null_counts
    codec = pq.ParquetFile(f"{store.root}/bucket-0/{file.file_name}").metadata.row_group(0).column(0).compression
    assert codec == "SNAPPY"
    assert (file.row_count, data.row_count, file.file_source) == (3, 2, 0)


def test_deletes_are_counted_in_changelog_files(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", changelog_producer="input", write_only="true")
    (message,) = write(store, rows((1, 1), (1, 1), (2, 2), (2, 3)), kinds=kinds("+I -D -U +U"))
    assert message.changelog_files[0].delete_row_count == 2
    assert changes(store, 0, 1) == Counter([("+I", 1, 1), ("-D", 1, 1), ("-U", 2, 2), ("+U", 2, 3)])


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_every_write_tells_what_it_changed(tmp_path: Path, producer: str) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", changelog_producer=producer)
    write(store, rows((1, 1), (2, 2), (1, 3)))
    write(store, rows((2, 2), (3, 3), (3, 3)), kinds=kinds("-D +I -D"))
    write(store, rows((1, 4), (2, 5)))
    assert changes(store, 0, 2) == Counter([("+I", 1, 3), ("+I", 2, 2)])
    assert changes(store, 2, 4) == Counter([("-D", 2, 2)])
    assert changes(store, 4, 6) == Counter([("-U", 1, 3), ("+U", 1, 4), ("+I", 2, 5)])
    (split,) = IncrementalPlanner(store, 0, 6).plan(IncrementalMode.CHANGELOG).splits
    assert [file.level for file in split.files] == [5, 5, 5]  # that of the compaction's output
    found = [(s.commit_kind.value, s.changelog_record_count) for s in map(store.snapshots.get, range(1, 7))]
    assert found == [("APPEND", None), ("COMPACT", 2), ("APPEND", None), ("COMPACT", 1), ("APPEND", None), ("COMPACT", 3)]


def test_a_write_that_does_not_compact_is_told_by_the_compaction_after_it(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", changelog_producer="full-compaction", write_only="true")
    write(store, rows((1, 1), (2, 2)))
    compact_all(store)
    write(store, rows((1, 5)))
    write(store, rows((1, 6), (3, 3)))
    assert changes(store, 2, 4) == Counter()
    compact_all(store)
    assert changes(store, 4, 5) == Counter([("-U", 1, 1), ("+U", 1, 6), ("+I", 3, 3)])


def test_a_file_that_moves_to_the_deepest_level_is_told_too(tmp_path: Path) -> None:
    settings = {"changelog_producer": "full-compaction", "target_file_size": "1 kb", "write_only": "true"}
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", **settings)
    write(store, rows(*((key, key) for key in range(3000))))
    moved = {file.file_name for file in live_files(store)}
    compact_all(store)
    assert moved & {file.file_name for file in live_files(store)}
    assert changes(store, 1, 2) == Counter(("+I", key, key) for key in range(3000))


def test_an_overwrite_has_no_changelog(tmp_path: Path) -> None:
    for producer in ("input", "lookup", "full-compaction"):
        store = make(tmp_path / producer, DDL, ("id",), bucket="1", changelog_producer=producer)
        write(store, rows((1, 1)))
        with TableWrite(store, WriteJob(overwrites=True)) as job:
            job.write(rows((2, 2)))
            messages = job.prepare_commit()
        FileStoreCommit(store, "other").overwrite(messages)
        assert [row["id"] for row in newest_rows(store)] == [2]
        assert sum("changelog-" in name for name in data_files(store)) == 1


def test_an_aborted_write_leaves_no_changelog_file(tmp_path: Path) -> None:
    for producer in ("input", "lookup", "full-compaction"):
        store = make(tmp_path / producer, DDL, ("id",), bucket="1", changelog_producer=producer)
        write(store, rows((1, 1)))
        before = data_files(store)
        with TableWrite(store) as job:
            job.write(rows((1, 2), (3, 3)))
            messages = job.prepare_commit()
        assert len(data_files(store)) > len(before)
        FileStoreCommit(store, "gone").abort(messages)
        assert data_files(store) == before
        write(store, rows((1, 2), (3, 3)), write_only=True)
        before = data_files(store)
        with pytest.raises(ZeroDivisionError):
            compact_and_fail(store, before)
        assert data_files(store) == before


def compact_and_fail(store: FileStore, before: list[str]) -> None:
    with CompactionJob(store) as job:
        job.compact(store.partition.encode(()), 0, full=True)
        assert len(data_files(store)) > len(before)
        raise ZeroDivisionError


def test_changelog_files_go_with_their_snapshot(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, ("id",), bucket="1", changelog_producer="input", write_only="true")
    for value in range(3):
        write(store, rows((1, value)))
    expire_snapshots(store, retain_min=1, retain_max=1)
    assert sum("changelog-" in name for name in data_files(store)) == 1
    assert changes(store, 2, 3) == Counter([("+I", 1, 2)])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"changelog_producer": "always"}, "changelog-producer"),
        ({"changelog_producer": "input", "merge_engine": "first-row"}, "changelog-producer"),
        ({"changelog_producer": "full-compaction", "force_lookup": "true"}, "changelog-producer"),
        ({"changelog_producer": "lookup", "streaming_read_overwrite": "true"}, "changelog-producer"),
        ({"changelog_producer__row_deduplicate_ignore_fields": "w"}, "changelog-producer.row-deduplicate-ignore-fields"),
        ({"changelog_file__format": "csv"}, "changelog-file.format"),
        ({"changelog_file__compression": "brotli"}, "changelog-file.compression"),
    ],
)
def test_what_cannot_be_told_is_refused_by_name(tmp_path: Path, options: dict[str, str], named: str) -> None:
    with pytest.raises(UnsupportedOption) as refused:
        make(tmp_path / "t", DDL, ("id",), bucket="1", **options)
    assert refused.value.option == named


def test_an_append_table_has_no_producer(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOption, match="primary key"):
        make(tmp_path / "t", DDL, changelog_producer="input")
