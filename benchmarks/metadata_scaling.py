"""How plans, commits and expiry grow with the number of files: simulated tables whose data files do not exist.

    make bench-scaling                                                        # among the rest
    python -m benchmarks.metadata_scaling                                     # 10,000, 100,000 and 1,000,000 files
    python -m benchmarks.metadata_scaling --files 10000000 --snapshots 1000   # far beyond one machine's data; minutes and some GB

Files follow four rules: 100 partitions and 10 buckets take turns; each file has keys of a narrow range somewhere; a bucket has about five
files for a key, whatever the size; files come in ``--snapshots`` equal commits, with the table's default options for manifests. Every
step runs in a process of its own: seconds of the processor, and what its memory grew to beyond the imports.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.machine import status_megabytes
from benchmarks.planning import BUCKETS, DDL, PARTITIONS, plan
from fileindex.predicate.tree import And, ColumnRef, Compare, Op, Predicate
from manifest.commit.attempt import CommitAttempt, CommitChange, CommitIdentity
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta
from manifest.expire.snapshots import expire_snapshots
from manifest.io.file_io import LocalFileIO
from manifest.row.binary_row import encode_row
from manifest.schema.manager import SchemaManager
from manifest.schema.validation import build_schema
from manifest.snapshot.snapshot import CommitKind
from manifest.stats.column_stats import SimpleStats
from manifest.store import FileStore

_TINY = "tiny"
"""The folder of a table on which each process tries its step first."""

KEYS = 10**12
FILES_A_KEY = 5
_NAME, _LOW, _HIGH, _DAY = "data-NUMBEROF-0.parquet", 0x1122334455667788, 0x2233445566778899, 0x77665544


def _file(store: FileStore, name: str, day: int, bounds: tuple[int, int], sequence: int = 1) -> DataFileMeta:
    types = [field.type for field in store.schema.fields]
    keys = [encode_row((key,), store.schema.key_types) for key in bounds]
    values = [encode_row((day, key, "city", 0.5, 10**12, 7), types) for key in bounds]
    return DataFileMeta(
        file_name=name,
        file_size=4 << 20,
        row_count=1000,
        min_key=keys[0],
        max_key=keys[1],
        key_stats=SimpleStats(*keys, (0,)),
        value_stats=SimpleStats(*values, (0,) * len(types)),
        min_sequence_number=sequence,
        max_sequence_number=sequence,
        creation_time=0,
        delete_row_count=0,
        file_source=0,
    )


def _message(store: FileStore, day: int, bucket: int, file: DataFileMeta) -> CommitMessage:
    return CommitMessage(partition=store.partition.encode((day,)), bucket=bucket, total_buckets=BUCKETS, new_files=(file,))


class Simulated:
    """Entries of files by number: one encoded entry, in which names, partitions, buckets and keys are put in the place of marks."""

    def __init__(self, store: FileStore, files: int) -> None:
        file = _file(store, _NAME, _DAY, (_LOW, _HIGH))
        (self._record,) = EntryColumns.of(_message(store, _DAY, 63, file).added_entries()).records()
        self._width = KEYS * FILES_A_KEY * PARTITIONS * BUCKETS // files

    def entries(self, first: int, last: int) -> EntryColumns:
        """Files ``first`` to ``last`` - 1."""
        at = np.arange(first, last)
        rows = np.tile(np.frombuffer(self._record, np.uint8), (at.size, 1))
        low = (at * 2_654_435_761) % KEYS
        self._put(rows, _LOW.to_bytes(8, "little"), low.astype("<i8"))
        self._put(rows, _HIGH.to_bytes(8, "little"), (low + self._width).astype("<i8"))
        self._put(rows, _DAY.to_bytes(4, "little"), (at % PARTITIONS).astype("<i4"))
        self._put(rows, b"NUMBEROF", np.char.zfill(at.astype("S8"), 8))
        rows[:, self._record.index(bytes([63 * 2, BUCKETS * 2]))] = at // PARTITIONS % BUCKETS * 2
        return EntryColumns.of_records([row.tobytes() for row in rows])

    def _put(
        self, rows: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], mark: bytes, values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
    ) -> None:
        put = np.ascontiguousarray(values).view(np.uint8).reshape(len(rows), len(mark))
        at = self._record.find(mark)
        while at >= 0:
            rows[:, at : at + len(mark)] = put
            at = self._record.find(mark, at + len(mark))


def make(path: str, files: int, snapshots: int) -> None:
    """A table of ``files`` in so many snapshots."""
    options = {"bucket": str(BUCKETS), "write-only": "true"}
    SchemaManager(LocalFileIO(), path).create(build_schema(DDL, primary_keys=("day", "id"), partition_keys=("day",), options=options))
    store = FileStore.open(path)
    simulated = Simulated(store, files)
    bounds = np.linspace(0, files, snapshots + 1).astype(int).tolist()
    for first, last in pairwise(bounds):
        change = CommitChange(simulated.entries(first, last))
        append(store, change, last)


def append(store: FileStore, change: CommitChange, number: int) -> None:
    """One snapshot more, without a look for conflicts: there is no other writer."""
    identity = CommitIdentity("simulated", number, CommitKind.APPEND)
    snapshot = CommitAttempt(store).prepare(store.snapshots.latest(), change, identity, merging=True)
    if not store.snapshots.try_create(snapshot, list):
        raise RuntimeError(f"snapshot {snapshot.id} was there")
    store.snapshots.tell_created(snapshot.id)


def _plan(predicate: Predicate | None, *, warm: bool = False) -> Callable[[str], tuple[float, int]]:
    def step(path: str) -> tuple[float, int]:
        store = FileStore.open(path)
        if warm:
            plan(store, predicate)
        return _timed(lambda: plan(store, predicate).file_count)

    return step


def _commit(*, warm: bool = False) -> Callable[[str], tuple[float, int]]:
    def step(path: str) -> tuple[float, int]:
        store = FileStore.open(path)

        def one() -> int:
            now = time.time_ns()
            file = _file(store, f"data-{uuid.uuid4()}-0.parquet", 5, (7, 77), now)
            return int(FileStoreCommit(store, str(uuid.uuid4()), fresh=True).commit([_message(store, 5, 3, file)]).snapshot_id or 0)

        if warm:
            one()
        return _timed(one)

    return step


def _expire(path: str) -> tuple[float, int]:
    store = FileStore.open(path)
    return _timed(lambda: expire_snapshots(store, retain_max=5, retain_min=5, older_than_ms=2**52, limit=10).snapshots)


def _timed(work: Callable[[], int]) -> tuple[float, int]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


_DAY_5, _KEY = Compare(ColumnRef("day"), Op.EQ, 5), Compare(ColumnRef("id"), Op.EQ, KEYS // 2)
STEPS: dict[str, Callable[[str], tuple[float, int]]] = {
    "plan, partition + key, cold": _plan(And((_DAY_5, _KEY))),
    "plan, partition + key, warm": _plan(And((_DAY_5, _KEY)), warm=True),
    "plan, key, cold": _plan(_KEY),
    "plan, key, warm": _plan(_KEY, warm=True),
    "plan, partition, cold": _plan(_DAY_5),
    "plan, no filter, cold": _plan(None),
    "commit of one file, cold": _commit(),
    "commit of one file, warm": _commit(warm=True),
    "expire 10 snapshots": _expire,
}


def measured(step: str, path: str) -> tuple[float, float, int]:
    """Seconds, megabytes and what was found, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.metadata_scaling", "--step", step, "--table", path]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer["seconds"], answer["megabytes"], answer["found"]


def report(sizes: list[int], snapshots: int, folder: str) -> None:
    """Make a table of each size and print a line of Markdown for each step."""
    make(f"{folder}/{_TINY}", 100, 20)
    columns: dict[str, list[str]] = {step: [] for step in ("making the table", *STEPS)}
    first: dict[str, float] = {}
    for files in sizes:
        path = f"{folder}/{files}"
        start = time.process_time()
        make(path, files, min(snapshots, files))
        columns["making the table"].append(f"{time.process_time() - start:.1f} s")
        for step in STEPS:
            seconds, megabytes, found = measured(step, path)
            growth = f" ({seconds / first[step]:.1f} x)" if step in first else ""
            first.setdefault(step, seconds)
            columns[step].append(f"{seconds:.3f} s{growth}, +{megabytes:.0f} MB, {found:,}")
        shutil.rmtree(path)
    print(f"| CPU, memory, found | {' | '.join(f'{files:,} files' for files in sizes)} |")
    print("|---" * (len(sizes) + 1) + "|")
    for step, cells in columns.items():
        print(f"| {step} | {' | '.join(cells)} |")


def main() -> None:
    """Measure all steps, or in a process of its own one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", default="10000,100000,1000000", help="sizes, joined by commas")
    parser.add_argument("--snapshots", type=int, default=50)
    parser.add_argument("--folder", help="where the tables are made (default: a temporary folder)")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--table", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        STEPS[arguments.step](str(Path(arguments.table).parent / _TINY))  # whatever is imported on the way
        before = status_megabytes("VmHWM")
        seconds, found = STEPS[arguments.step](arguments.table)
        print(json.dumps({"seconds": seconds, "megabytes": status_megabytes("VmHWM") - before, "found": found}))
        return
    with tempfile.TemporaryDirectory(prefix="metadata-scaling-", dir=arguments.folder) as folder:
        report([int(size) for size in arguments.files.split(",")], arguments.snapshots, str(Path(folder)))


if __name__ == "__main__":
    main()
