"""Plan a table of many data files, with no filter, by partition, by partition and key, and by key, beside a bare decoder.

    python -m benchmarks.planning                # 10,000 files: 100 partitions, 10 buckets, 10 commits, 50 manifests
    python -m benchmarks.planning --commits 40   # 40,000 files

The data files do not exist: their metadata is committed as a writer would. ``cold`` opens the table afresh, ``warm`` plans again
on an opened one, whose manifests are held in memory. The floor reads and decodes the same manifests with fastavro, into
dictionaries, and does nothing with them. Times are milliseconds of the processor, the best of ``--repeats``.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from fileindex.predicate.tree import And, ColumnRef, Compare, Op, Predicate
from lsm.scan.plan import ScanPlan
from lsm.scan.planner import ScanPlanner
from manifest.avro.container import read_container
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage
from manifest.entry.cache import nothing_held
from manifest.entry.data_file import DataFileMeta
from manifest.io.file_io import LocalFileIO
from manifest.row.binary_row import encode_row
from manifest.schema.manager import SchemaManager
from manifest.schema.validation import build_schema
from manifest.stats.column_stats import SimpleStats
from manifest.store import FileStore

DDL = "day INT NOT NULL, id BIGINT NOT NULL, city STRING, amount DOUBLE, ts TIMESTAMP(6), n INT"
PARTITIONS, BUCKETS, ROWS = 100, 10, 1000
PARTITIONS_A_MANIFEST = 20


def make_table(path: str, commits: int, *, ordered: bool) -> FileStore:
    """A file per partition, bucket and commit; keys are spread over all files, or ``ordered`` by time of arrival."""
    options = {
        "bucket": str(BUCKETS),
        "write-only": "true",
        "manifest.merge-min-count": "100000",
        "manifest.full-compaction-threshold-size": "1 gb",
    }
    schema = build_schema(DDL, primary_keys=("day", "id"), partition_keys=("day",), options=options)
    SchemaManager(LocalFileIO(), path).create(schema)
    store = FileStore.open(path)
    rng = np.random.default_rng(7)
    for commit in range(commits):
        for first in range(0, PARTITIONS, PARTITIONS_A_MANIFEST):
            messages = [
                _message(store, day, bucket, commit, int(rng.integers(0, 10**9)) + (10**10 * commit if ordered else 0))
                for day in range(first, first + PARTITIONS_A_MANIFEST)
                for bucket in range(BUCKETS)
            ]
            FileStoreCommit(store, str(uuid.uuid4())).commit(messages)
    return FileStore.open(path)


def _message(store: FileStore, day: int, bucket: int, commit: int, key: int) -> CommitMessage:
    schema = store.schema
    types = [field.type for field in schema.fields]
    low, high = (encode_row((k,), schema.key_types) for k in (key, key + 10**9))
    least = encode_row((day, key, f"city-{bucket:04d}-in-the-north", 0.5 * commit, commit * 10**12, commit * 10), types)
    most = encode_row(
        (day, key + 10**9, f"city-{bucket:04d}-in-the-south", 0.5 * commit + 1, commit * 10**12 + 10**11, commit * 10 + 9), types
    )
    file = DataFileMeta(
        file_name=f"data-{uuid.uuid4()}-0.parquet",
        file_size=4 << 20,
        row_count=ROWS,
        min_key=low,
        max_key=high,
        key_stats=SimpleStats(low, high, (0,)),
        value_stats=SimpleStats(least, most, (0,) * len(types)),
        min_sequence_number=commit * ROWS,
        max_sequence_number=commit * ROWS + ROWS - 1,
        creation_time=0,
        delete_row_count=0,
        file_source=0,
    )
    return CommitMessage(partition=store.partition.encode((day,)), bucket=bucket, total_buckets=BUCKETS, new_files=(file,))


def best(repeats: int, work: Callable[[], object]) -> float:
    """Milliseconds of the processor."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append((time.process_time() - start) * 1000)
    return min(found)


def decode_bare(path: str) -> int:
    """Read and decode every manifest of the newest snapshot with fastavro: the number of entries."""
    store = FileStore.open(path)
    snapshot = store.snapshots.latest()
    assert snapshot is not None
    paths = [store.paths.manifest(meta.file_name) for meta in store.manifest_metas(snapshot)]
    return sum(len(read_container(path, Path(path).read_bytes()).records()) for path in paths)


def plan(store: FileStore, predicate: Predicate | None) -> ScanPlan:
    """A plan of the newest snapshot."""
    return ScanPlanner(store).plan(predicate, snapshot=store.snapshots.latest())


def plan_afresh(path: str, predicate: Predicate | None) -> ScanPlan:
    """Open the table with nothing of it in memory, then plan."""
    return plan(FileStore.open(path, cache=nothing_held()), predicate)


def report(path: str, repeats: int) -> None:
    """Print the table of one layout."""
    day, key = Compare(ColumnRef("day"), Op.EQ, 5), Compare(ColumnRef("id"), Op.EQ, 10**9 + 77)
    cases = {"none": None, "partition": day, "partition + key": And((day, key)), "key": key}
    floor = best(repeats, partial(decode_bare, path))
    print(f"  bare fastavro decode {floor:8.1f} ms")
    print(f"  {'filter':<16}{'files':>8}{'cold':>10}{'warm':>10}{'cold / decode':>15}  stages of a cold plan (ms)")
    for name, predicate in cases.items():
        cold = best(repeats, partial(plan_afresh, path, predicate))
        opened = FileStore.open(path)
        first = plan(opened, predicate)
        warm = best(repeats, partial(plan, opened, predicate))
        stages = ", ".join(f"{stage.name} {stage.millis:.1f}" for stage in first.report if stage.millis >= 0.5)
        print(f"  {name:<16}{first.file_count:>8}{cold:>10.1f}{warm:>10.1f}{cold / floor:>15.2f}  {stages}")


def main() -> None:
    """Make both layouts and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=10, help="each adds 1,000 files in 5 manifests")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    for ordered in (False, True):
        folder = tempfile.mkdtemp(prefix="planning-")
        try:
            make_table(f"{folder}/t", arguments.commits, ordered=ordered)
            spread = "keys arrive in order, ranges skip manifests" if ordered else "keys are spread over all files"
            print(f"{arguments.commits * PARTITIONS * BUCKETS:,} files, {spread}")
            report(f"{folder}/t", arguments.repeats)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
