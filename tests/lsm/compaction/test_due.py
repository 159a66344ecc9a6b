"""Buckets in which a compaction may be due, found by entries, beside the strategies themselves."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsm.compaction.due import _triggers, compaction_bytes, due_entries
from lsm.levels.sorted_runs import Levels, key_decoder
from lsm.levels.universal import GrowingTrigger, UniversalCompaction
from lsm.write.compaction_job import compact_together
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta, FileKind, ManifestEntry
from manifest.row.binary_row import encode_row
from manifest.store import FileStore
from manifest.types.data_type import DataType, Kind
from pyspark_paimon import Table
from tests.examples import some

TRIGGER = 3
KEY_TYPES = (DataType(Kind.INT, nullable=False),)
OPTIONS: dict[str, dict[str, str]] = {
    "plain": {},
    "lookup": {"changelog-producer": "lookup"},
    "full changelog": {"changelog-producer": "full-compaction"},
    "first row": {"merge-engine": "first-row"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "early": {"compaction.total-size-threshold": "1 mb"},
    "level 0": {"compaction.force-up-level-0": "true"},
}


def make(path: Path, options: dict[str, str], writes: list[tuple[list[int], bool]]) -> Table:
    """Return a table of two partitions and two buckets. A write has ids, and may be followed by a full compaction."""
    chosen = {"bucket": "2", "num-sorted-run.compaction-trigger": str(TRIGGER), "write-only": "true", **options}
    table = Table.create(path, "p INT, id BIGINT, v STRING", primary_keys=["p", "id"], partition_keys=["p"], options=chosen)
    for ids, compacts in writes:
        table.write(pa.table({"p": pa.array([number % 2 for number in ids], pa.int32()), "id": ids, "v": ["x"] * len(ids)}))
        if compacts:
            table.compact(full=True, partitions=[{"p": ids[0] % 2}])
    return table


def buckets(store: FileStore, *, added: int = 0) -> set[tuple[bytes, int]]:
    entries = due_entries(store, store.live_entries(store.snapshots.latest()), added=added)
    return set(zip(entries.partition, entries.bucket.tolist(), strict=True))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@settings(deadline=None, max_examples=some(3), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes=st.lists(st.tuples(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True), st.booleans()), min_size=1, max_size=6))
def test_a_bucket_that_the_strategy_compacts_is_due(
    tmp_path_factory: pytest.TempPathFactory, options: dict[str, str], writes: list[tuple[list[int], bool]]
) -> None:
    table = make(tmp_path_factory.mktemp("due") / "t", options, writes)
    store = FileStore.open(table.path)
    entries = store.live_entries(store.snapshots.latest())
    every = set(zip(entries.partition, entries.bucket.tolist(), strict=True))
    compacted = {bucket for bucket in every if any(message.compact_before for message in compact_together(store, [bucket]))}
    assert compacted <= buckets(store)
    assert buckets(store) <= buckets(store, added=1) <= every
    if not options:
        runs = {bucket: {(level, file if level == 0 else "") for file, level in levels} for bucket, levels in _files(store).items()}
        assert buckets(store) == {bucket for bucket in every if len(runs[bucket]) >= TRIGGER}


def _files(store: FileStore) -> dict[tuple[bytes, int], list[tuple[str, int]]]:
    entries = store.live_entries(store.snapshots.latest())
    found: dict[tuple[bytes, int], list[tuple[str, int]]] = {}
    for partition, bucket, file in zip(entries.partition, entries.bucket.tolist(), entries.files(), strict=True):
        found.setdefault((partition, bucket), []).append((file.file_name, file.level))
    return found


FILES = st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 4, 5]), st.integers(1, 1 << 30)), min_size=1, max_size=12)


@settings(deadline=None)
@given(files_by_bucket=st.lists(FILES, min_size=1, max_size=4))
def test_growing_triggers_by_entries_are_those_of_the_runs(files_by_bucket: list[list[tuple[int, int]]]) -> None:
    strategy, entries, triggers = UniversalCompaction(growth=GrowingTrigger()), [], []
    for bucket, files in enumerate(files_by_bucket):
        metas = [_meta(f"f{bucket}-{position}", position, level, size) for position, (level, size) in enumerate(files)]
        entries += [ManifestEntry(kind=FileKind.ADD, partition=b"", bucket=bucket, total_buckets=4, file=meta) for meta in metas]
        triggers.append(strategy.trigger_of(Levels(key_decoder(KEY_TYPES), metas, 6).runs))
    assert _triggers(strategy, EntryColumns.of(entries), len(files_by_bucket)).tolist() == triggers


def _meta(name: str, position: int, level: int, size: int) -> DataFileMeta:
    key = encode_row([position], KEY_TYPES)
    sequence = {"min_sequence_number": 100 - position, "max_sequence_number": 100 - position}
    return DataFileMeta(file_name=name, file_size=size, row_count=1, level=level, min_key=key, max_key=key, **sequence)


def test_only_due_buckets_count_as_bytes_of_a_compaction(tmp_path: Path) -> None:
    ids = list(range(10))
    quiet = make(tmp_path / "quiet", {"write-only": "false"}, [(ids, False)])
    assert compaction_bytes(FileStore.open(quiet.path)) == 0
    due = make(tmp_path / "due", {"write-only": "false"}, [(ids, False), (ids, False)])
    assert compaction_bytes(FileStore.open(due.path)) == size_of(due)
    one = make(tmp_path / "one", {"write-only": "false"}, [(ids, False), (ids[:1], False)])
    store = FileStore.open(one.path)
    due_files = [file for split in one.scan().plan().splits if len(split.files) == 2 for file in split.files]
    assert 0 < compaction_bytes(store) == sum(file.file_size for file in due_files) < size_of(one)
    waiting = make(tmp_path / "waiting", {}, [(ids, False)] * 5)
    assert compaction_bytes(FileStore.open(waiting.path)) == 0, "write-only tables leave it to compact()"


def size_of(table: Table) -> int:
    return table.scan().plan().file_size


def test_full_compactions_at_each_commit_read_the_whole_table(tmp_path: Path) -> None:
    options = {"write-only": "false", "changelog-producer": "full-compaction"}
    table = make(tmp_path / "t", options, [([1, 2, 3, 4], False)])
    assert compaction_bytes(FileStore.open(table.path)) == size_of(table)


@pytest.mark.parametrize("bucket", ["-1", "2"])
def test_append_tables_compact_buckets_only(tmp_path: Path, bucket: str) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT", options={"bucket": bucket, **({"bucket-key": "id"} if bucket == "2" else {})})
    table.write(pa.table({"id": [1, 2, 3]}))
    store = FileStore.open(table.path)
    assert compaction_bytes(store) == (0 if bucket == "-1" else size_of(table))
    entries = store.live_entries(store.snapshots.latest())
    assert len(due_entries(store, entries)) == len(entries)
