"""Blocks of large manifests are left out by what stands in the manifest's header, and never one that holds a wanted file."""

from __future__ import annotations

from pathlib import Path

import fastavro
import numpy as np
import pytest

from fileindex.predicate.tree import And, ColumnRef, Compare, In, Op, Or
from lsm.scan.planner import ScanPlanner
from manifest.avro.container import read_header
from manifest.commit.attempt import CommitAttempt, CommitChange, CommitIdentity
from manifest.commit.conflicts import bucket_count_conflicts
from manifest.entry import manifest_blocks
from manifest.entry.cache import nothing_held
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta
from manifest.entry.live import EntryFilter
from manifest.entry.manifest_blocks import BLOCK_RANGES, BlockRanges
from manifest.io.errors import CommitConflict
from manifest.io.file_io import LocalFileIO
from manifest.row.binary_row import encode_row
from manifest.schema.manager import SchemaManager
from manifest.schema.validation import build_schema
from manifest.snapshot.snapshot import CommitKind
from manifest.stats.column_stats import SimpleStats
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import Thresholds, use_thresholds
from tests.manifest.commit_kit import committer, message

FILES, PARTS, BUCKETS = 600, 5, 4
LONG = "é" * 40


class Counting(LocalFileIO):
    """Counts bytes of manifests that are read."""

    read_bytes = 0

    def read(self, path):
        found = super().read(path)
        Counting.read_bytes += len(found) if "/manifest-" in path else 0
        return found

    def read_many(self, paths):
        return map(self.read, paths)

    def read_range(self, path, offset, length):
        Counting.read_bytes += length
        return super().read_range(path, offset, length)


def key_of(kind, number):
    return number if kind == "INT" else f"{LONG}{number:05d}" if number % 2 else f"{number:05d}"


def a_file(store, kind, at, *, key=None):
    number = (at * 7919) % 10_000 if key is None else key
    keys = sorted((key_of(kind, number), key_of(kind, number + 20)), key=lambda v: v.encode() if isinstance(v, str) else v)
    low, high = (encode_row((key,), store.key.types) for key in keys)
    return DataFileMeta(
        file_name=f"data-{at:05d}-0.parquet",
        file_size=1000,
        row_count=10,
        min_key=low,
        max_key=high,
        key_stats=SimpleStats(low, high, (0,)),
        min_sequence_number=at * 10,
        max_sequence_number=at * 10 + 9,
        creation_time=0,
        delete_row_count=0,
        file_source=0,
    )


@pytest.fixture(scope="module", params=["INT", "STRING"])
def large(request, tmp_path_factory):
    """A table of one commit of many files, whose manifest has many blocks."""
    path = str(tmp_path_factory.mktemp("blocks") / "t")
    options = {"bucket": str(BUCKETS), "write-only": "true", "manifest.compression": "deflate"}  # which fastavro alone can read
    ddl = f"id {request.param} NOT NULL, part INT NOT NULL"
    SchemaManager(LocalFileIO(), path).create(build_schema(ddl, primary_keys=("id", "part"), partition_keys=("part",), options=options))
    store = FileStore.open(path)
    made = [
        message(store, [a_file(store, request.param, at)], partition=store.partition.encode((at % PARTS,)), bucket=at // PARTS % BUCKETS)
        for at in range(FILES)
    ]
    change = CommitChange(EntryColumns.of(entry for one in made for entry in one.added_entries()))
    with use_thresholds(manifest_block_bytes=2000):
        snapshot = CommitAttempt(store).prepare(None, change, CommitIdentity("u", 1, CommitKind.APPEND), merging=True)
    assert store.snapshots.try_create(snapshot, list)
    with use_thresholds(narrowed_manifest_bytes=0):
        yield path, request.param


def opened(path):
    return FileStore.open(path, Counting(), cache=nothing_held())


def manifest_of(store):
    (meta,) = store.manifest_metas(store.snapshots.latest())
    return store.paths.manifest(meta.file_name), meta


def planned(path, predicate, **how):
    Counting.read_bytes = 0
    store = opened(path)
    plan = ScanPlanner(store).plan(predicate, snapshot=store.snapshots.latest(), **how)
    return sorted(file.file_name for split in plan.splits for file in split.files), Counting.read_bytes


def filters(kind):
    part, key = ColumnRef("part"), ColumnRef("id")
    value, far = key_of(kind, 7919), key_of(kind, 9_001)
    return [
        Compare(part, Op.EQ, 3),
        Compare(key, Op.EQ, value),
        And((Compare(part, Op.EQ, 1), Compare(key, Op.EQ, value))),
        And((Compare(part, Op.GE, 3), Compare(key, Op.LT, key_of(kind, 400)))),
        In(key, (value, far)),
        Or((Compare(part, Op.EQ, 2), Compare(key, Op.EQ, far))),
        Or((And((Compare(part, Op.EQ, 2), Compare(key, Op.GT, far))), And((Compare(part, Op.EQ, 4), Compare(key, Op.LE, value))))),
        And((Compare(part, Op.EQ, 77), Compare(key, Op.EQ, value))),
    ]


def test_a_plan_by_partition_bucket_or_key_finds_what_a_whole_read_finds_and_reads_less(large):
    path, kind = large
    for predicate in filters(kind):
        some, read = planned(path, predicate)
        with use_thresholds(narrowed_manifest_bytes=1 << 40):
            every, read_whole = planned(path, predicate)
        with use_thresholds(shared_entries=0):
            narrowed = [planned(path, predicate)[0] for _ in range(2)]
        assert [some, *narrowed] == [every] * 3
        assert read < read_whole + Thresholds().manifest_head_bytes
    partition = opened(path).partition.encode((2,))
    some, _ = planned(path, None, partitions=[partition])
    assert len(some) == FILES // PARTS


def test_few_blocks_are_decoded_for_one_bucket(large):
    path, _ = large
    store = opened(path)
    name, meta = manifest_of(store)
    wanted = EntryFilter(partitions={store.partition.encode((3,))}, buckets={1})
    Counting.read_bytes = 0
    found = manifest_blocks.some_entries(
        store.file_io, name, meta, store.cache.files, lambda ranges: wanted.blocks(ranges, store.partition)
    )
    assert FILES // PARTS // BUCKETS <= len(found) < FILES / 8
    assert len(wanted.entries(found, store.partition)) == FILES // PARTS // BUCKETS
    assert sorted(store.live_entries(store.snapshots.latest(), wanted).file_name) == sorted(
        row for row, p, b in _all(path) if b == 1 and p == store.partition.encode((3,))
    )


def _all(path):
    entries = opened(path).live_entries(opened(path).snapshots.latest())
    return list(zip(entries.file_name, entries.partition, entries.bucket.tolist(), strict=True))


def test_other_readers_of_avro_pass_over_the_ranges(large):
    path, _ = large
    name, meta = manifest_of(opened(path))
    with Path(name).open("rb") as file:
        reader = fastavro.reader(file)
        assert BLOCK_RANGES.decode() in reader.metadata
        assert sum(1 for _ in reader) == meta.num_added_files


def test_what_is_damaged_is_never_passed_over(large):
    """A block that is decoded, or ranges that are not those that were written, end in an error that names the manifest."""
    path, _ = large
    name, _ = manifest_of(opened(path))
    whole = LocalFileIO().read(name)
    metadata, begin = read_header(whole)
    try:
        for at in (whole.index(metadata[BLOCK_RANGES]) + 50, begin + 40, len(whole) - 40):
            LocalFileIO().write(name, whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :], overwrite=True)
            broken = 0
            for part in range(PARTS):
                try:
                    planned(path, Compare(ColumnRef("part"), Op.EQ, part))
                except CorruptFile as error:
                    broken += name in str(error)
            assert broken >= 1
    finally:
        LocalFileIO().write(name, whole, overwrite=True)
    assert BlockRanges.from_text("manifest-of-another-name", metadata) is None
    assert BlockRanges.from_text(name.rpartition("/")[2], metadata) is not None


def test_a_commit_decodes_its_buckets_and_still_sees_other_bucket_counts(large):
    path, kind = large
    store = opened(path)
    partition = store.partition.encode((0,))
    with pytest.raises(CommitConflict, match="has 4 buckets, the commit was written for 8"):
        committer(store).commit([message(store, [a_file(store, kind, 10**6)], partition=partition, bucket=7, total=8)])
    base = store.live_entries(store.snapshots.latest(), EntryFilter(partitions={partition}, buckets={1}, bucket_counts={BUCKETS}))
    assert set(base.bucket.tolist()) == {1}
    assert not bucket_count_conflicts(base, base)
    assert np.unique(store.live_entries(store.snapshots.latest(), EntryFilter(buckets={1}, bucket_counts={8})).bucket).size == BUCKETS
