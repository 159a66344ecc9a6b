"""A table's life under a hard limit of memory: rows are streamed in, compacted, looked up, a tenth is deleted, and what is left is read.

    make bench-memory                                                   # 50,000,000 rows under 1.5 GB, then the same in Spark's workers
    python -m benchmarks.memory_limit --rows 5000000 --limit-mb 1500    # in process only
    python -m benchmarks.memory_limit --rows 5000000 --spark            # in the workers of an embedded Spark Connect server only

The limit is the kernel's (``RLIMIT_DATA``): a step that needs more fails, and nobody has to look at the right moment. It counts what a process
may write to and nobody else sees (heaps, stacks of threads, anonymous maps), used or not. ``RLIMIT_AS`` would count programs and files that are
only mapped, too, and address space that an allocator keeps for later: over a gigabyte before the first row. For the same reason Arrow allocates
by ``malloc`` here: its own allocator keeps a gigabyte of writable space, of which a few megabytes are used. And malloc is told to give what is
large back at once (``ALLOCATOR``): else its free places between what lives, which nobody else can use, come to half as much as what lives.
Spark's ``spark.executor.pyspark.memory`` is ``RLIMIT_AS``; its workers get ours from the module that the server's Python starts with.

All steps run in one process, one after the other; each says its seconds of the processor and what was resident at most.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.environments import ROOT
from benchmarks.machine import status_megabytes
from pyspark_paimon import Table, spark_session

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("city", pa.string()),
        pa.field("name", pa.string()),
        pa.field("amount", pa.float64()),
        pa.field("at", pa.timestamp("us")),
        pa.field("n", pa.int32()),
        pa.field("flag", pa.bool_()),
        pa.field("note", pa.string()),
    ]
)
BATCH = 1 << 16
STEP = 7_368_787
"""A prime: ids come in an order that has nothing of theirs."""
CITIES = 10
LOOKUPS = 20
COMMITS = 5
"""Rows come in so many: ranges of ids overlap, and the compaction has something to merge."""
ALLOCATOR = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
"""The environment of a process under the limit."""
_LIMIT = "BENCHMARK_LIMIT_BYTES"


def rows(count: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Rows ``first`` to ``last`` - 1, of about 90 bytes each, of a table of ``count``, in which each id from 0 to ``count`` - 1 is once."""
    make = np.random.default_rng(first)
    for start in range(first, last, BATCH):
        at = np.arange(start, min(start + BATCH, last))
        ids = at * STEP % count
        columns = [
            pa.array(ids),
            pa.DictionaryArray.from_arrays(pa.array((ids % CITIES).astype(np.int32)), [f"city {one}" for one in range(CITIES)]).cast(
                pa.string()
            ),
            _letters(make, at.size, 12),
            pa.array(ids * 0.5),
            pa.array(1_700_000_000_000_000 + at * 1000).cast(pa.timestamp("us")),
            pa.array((ids % 1000).astype(np.int32)),
            pa.array(ids % 3 == 0),
            _letters(make, at.size, 32),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _letters(make: np.random.Generator, count: int, width: int) -> pa.Array:
    letters = make.integers(ord("a"), ord("q"), (count, width), dtype=np.uint8)
    offsets = np.arange(0, width * (count + 1), width, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])


def _timed(name: str, work: Callable[[], Any]) -> Any:
    """Run a step; print its name, seconds of the processor and of the clock, and megabytes at most, as a row of Markdown."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak begins anew
    cpu, clock = time.process_time(), time.monotonic()
    found = work()
    cpu, clock = time.process_time() - cpu, time.monotonic() - clock
    print(f"| {name} | {cpu:.1f} | {clock:.1f} | {status_megabytes('VmHWM'):.0f} | {status_megabytes('VmData'):.0f} |", flush=True)
    return found


def summed(batches: Iterable[pa.RecordBatch]) -> tuple[int, int]:
    """Number of rows and sum of their ids."""
    count = total = 0
    for batch in batches:
        count += batch.num_rows
        total += pc.sum(batch.column("id")).as_py() or 0
    return count, total


def _expected(count: int) -> tuple[int, int]:
    """Rows and ids when those of city 3 are gone."""
    gone = range(3, count, CITIES)
    return count - len(gone), count * (count - 1) // 2 - sum(gone)


def _check(found: Any, wanted: Any) -> None:
    if found != wanted:
        raise SystemExit(f"found {found}, not {wanted}")


def _written(table: Table, count: int) -> None:
    for first, last in pairwise(np.linspace(0, count, COMMITS + 1).astype(int).tolist()):
        table.write(pa.RecordBatchReader.from_batches(SCHEMA, rows(count, first, last)))


def _looked_up(table: Table, count: int) -> None:
    for one in np.random.default_rng(1).integers(0, count, LOOKUPS).tolist():
        _check(table.scan(f"id = {one}", columns=["amount"]).to_arrow()["amount"].to_pylist(), [one * 0.5])


def in_process(folder: str, count: int, buckets: int) -> None:
    """All steps, in this process."""
    print("| step | CPU s | s | MB resident at most | MB of data now |\n|---|---|---|---|---|", flush=True)
    options = {"bucket": str(buckets), "write-only": "true"}
    table = Table.create(f"{folder}/t", SCHEMA, primary_keys=["id"], options=options)
    _timed(f"{COMMITS} writes", lambda: _written(table, count))
    _timed("full compaction", lambda: table.compact(full=True))
    _timed(f"{LOOKUPS} lookups", lambda: _looked_up(table, count))
    _timed("delete a tenth", lambda: table.delete("city = 'city 3'"))
    _check(_timed("merged read", lambda: summed(table.scan(columns=["id", "note"]).to_batches())), _expected(count))
    _timed("compaction of the deletes", lambda: table.compact(full=True))
    _check(_timed("read of all columns", lambda: summed(table.scan().to_batches())), _expected(count))


def in_workers(folder: str, count: int, buckets: int, limit: int) -> None:
    """The same by Spark: rows are made by Spark, written, compacted and scanned in Python workers that are under the limit."""
    Path(folder, "sitecustomize.py").write_text(_IN_WORKER, encoding="utf-8")
    os.environ.update({"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}", _LIMIT: str(limit), "BENCHMARK_PEAKS": folder})
    spark = spark_session(master="local[2]", conf={"spark.driver.memory": "3g"})
    options = {"bucket": str(buckets), "write-only": "true"}
    table = Table.create(f"{folder}/t", SCHEMA, primary_keys=["id"], options=options, spark=spark)
    letters = "substring(translate(sha2(cast(id as string), 256), '0123456789', 'ghijklmnop'), 1, {})"
    frame = spark.range(0, count, 1, 16).selectExpr(
        f"id * {STEP}L % {count}L as id", f"concat('city ', (id * {STEP}L % {count}L) % {CITIES}) as city",
        f"{letters.format(12)} as name", f"(id * {STEP}L % {count}L) * 0.5D as amount", "timestamp_micros(1700000000000000 + id * 1000) as at",
        f"cast((id * {STEP}L % {count}L) % 1000 as int) as n", f"(id * {STEP}L % {count}L) % 3 = 0 as flag", f"{letters.format(32)} as note",
    )  # fmt: skip
    frame = frame.withColumn("at", frame["at"].cast("timestamp_ntz"))
    print("| step, on Spark | s | MB resident at most in a worker |\n|---|---|---|", flush=True)

    def timed(name: str, work: Callable[[], Any]) -> Any:
        for old in Path(folder).glob("peak-*"):
            old.unlink()
        clock = time.monotonic()
        found = work()
        peaks = [int(path.read_text(encoding="utf-8") or 0) for path in Path(folder).glob("peak-*")]
        print(f"| {name} | {time.monotonic() - clock:.1f} | {max(peaks, default=0) >> 10} of {len(peaks)} workers |", flush=True)
        return found

    timed("write", lambda: table.write(frame))
    timed("delete a tenth", lambda: table.delete("city = 'city 3'"))
    timed("full compaction", lambda: table.compact(full=True))  # before there is something to merge it would only move files
    sums = timed("scan", lambda: table.scan().to_spark().selectExpr("count(*)", "sum(id)", "sum(length(note))").collect())
    _check(tuple(sums[0])[:2], _expected(count))


_IN_WORKER = f"""
import atexit, os, resource, sys, threading, time

def _watch():
    peak = os.path.join(os.environ["BENCHMARK_PEAKS"], "peak-%d" % os.getpid())
    while True:
        with open("/proc/self/status") as status:
            told = status.read().partition("VmHWM:")[2].split()[0]
        with open(peak, "w") as file:
            file.write(told)
        time.sleep(0.05)

def _limit():
    bytes_ = int(os.environ["{_LIMIT}"])
    resource.setrlimit(resource.RLIMIT_DATA, (bytes_, bytes_))
    threading.Thread(target=_watch, daemon=True).start()

if "{_LIMIT}" in os.environ and any(name.startswith("pyspark") for name in getattr(sys, "orig_argv", [])):
    _limit()
    os.register_at_fork(after_in_child=_limit)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--buckets", type=int, default=8)
    parser.add_argument("--limit-mb", type=int, default=1500, help="megabytes (of 10**6 bytes) that a process may have")
    parser.add_argument("--spark", action="store_true", help="in the Python workers of an embedded server")
    parser.add_argument("--folder", help="where the table is made (default: a temporary folder)")
    parser.add_argument("--under-limit", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    limit = given.limit_mb * 10**6
    if given.under_limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        in_process(given.folder, given.rows, given.buckets)
        return
    print(f"{given.rows:,} rows of {len(SCHEMA)} columns, {given.buckets} buckets, RLIMIT_DATA {given.limit_mb} MB", flush=True)
    os.environ.update(ALLOCATOR)
    with tempfile.TemporaryDirectory(prefix="memory-limit-", dir=given.folder, ignore_cleanup_errors=True) as folder:
        if given.spark:
            in_workers(folder, given.rows, given.buckets, limit)
            return
        command = [sys.executable, "-m", "benchmarks.memory_limit", "--under-limit", "--folder", folder]
        sizes = ["--rows", str(given.rows), "--buckets", str(given.buckets), "--limit-mb", str(given.limit_mb)]
        raise SystemExit(subprocess.run([*command, *sizes], cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    main()
