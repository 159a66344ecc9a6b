"""Write, upsert, compact and scan a primary-key table in process, beside what pyarrow alone needs for the same bytes.

    python -m benchmarks.write_compact_scan --rows 5000000
    python -m benchmarks.write_compact_scan --rows 5000000 --reader     # fed as a stream, with 64 MB of write buffer

The floor sorts each bucket's rows by key, takes them and writes zstd Parquet (for the compaction: reads, merges and writes),
with as many threads and no metadata, statistics beyond Parquet's own, key columns, hashing or fsync. Peak growth is that of
the resident set during a step, sampled every 5 ms.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_paimon import Table

BUCKETS = 4
DDL = "id BIGINT, k INT, city STRING, amount DOUBLE, ts TIMESTAMP(6), payload STRING"
BATCH = 1 << 16


def rows_for(ids: np.ndarray, seed: int) -> pa.Table:
    """Rows with 200 cities and 32 hexadecimal digits of payload each."""
    rng = np.random.default_rng(seed)
    count = len(ids)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)[rng.integers(0, 16, count * 32, dtype=np.uint8)]
    offsets = np.arange(count + 1, dtype=np.int32) * 32
    cities = pa.array([f"city-{at:03d}" for at in range(200)])
    return pa.table(
        {
            "id": ids,
            "k": pa.array(rng.integers(0, 1000, count), pa.int32()),
            "city": pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 200, count, dtype=np.int32)), cities).dictionary_decode(),
            "amount": rng.random(count) * 1000,
            "ts": pa.array(rng.integers(1_600_000_000_000_000, 1_700_000_000_000_000, count), pa.timestamp("us")),
            "payload": pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(digits)),
        }
    )


@dataclass
class Step:
    """One measured step."""

    name: str
    rows: int
    floor: float | None = None
    wall: float = 0.0
    cpu: float = 0.0
    growth: int = 0
    note: str = ""


@dataclass
class Watch:
    """Samples the resident set of this process."""

    process: psutil.Process = field(default_factory=psutil.Process)
    peak: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self._stop.wait(0.005):
            self.peak = max(self.peak, self.process.memory_info().rss)

    def measure(self, step: Step, work: Callable[[], Any]) -> Any:
        pa.default_memory_pool().release_unused()
        before = self.peak = self.process.memory_info().rss
        self._stop.clear()
        sampler = threading.Thread(target=self.run, daemon=True)
        sampler.start()
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        step.wall, step.cpu = time.perf_counter() - wall, time.process_time() - cpu
        self._stop.set()
        sampler.join()
        step.growth = self.peak - before
        return result


def sorted_take(rows: pa.Table) -> pa.Table:
    """Rows by id, the last of equal ones."""
    rows = rows.combine_chunks()
    ids = rows["id"].chunk(0).to_numpy()
    order = np.argsort(ids, kind="stable")
    ranked = ids[order]
    return rows.take(pa.array(order[np.append(ranked[1:] != ranked[:-1], True)]))


def encode(rows: pa.Table, path: Path) -> None:
    pq.write_table(rows, path, compression="zstd", compression_level=1, use_dictionary=["k", "city"], store_schema=False)


def floor_write(rows: pa.Table, directory: Path, name: str, threads: int) -> float:
    """Seconds of pyarrow for one write into buckets that are contiguous already."""
    size = -(-rows.num_rows // BUCKETS)
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda at: encode(sorted_take(rows.slice(at * size, size)), directory / f"{name}-{at}.parquet"), range(BUCKETS)))
    return time.perf_counter() - start


def floor_compact(directory: Path, names: tuple[str, ...], threads: int) -> float:
    """Seconds of pyarrow for reading, merging and writing the floor's own files."""

    def one(at: int) -> None:
        rows = pa.concat_tables([pq.read_table(directory / f"{name}-{at}.parquet", use_threads=False) for name in names])
        encode(sorted_take(rows), directory / f"compacted-{at}.parquet")

    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(BUCKETS)))
    return time.perf_counter() - start


def floor_read(directory: Path, threads: int) -> float:
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda at: pq.read_table(directory / f"compacted-{at}.parquet", use_threads=False), range(BUCKETS)))
    return time.perf_counter() - start


def in_memory(count: int, directory: Path, threads: int) -> list[Step]:
    """The table is handed in whole; floor and product take turns."""
    ids = np.random.default_rng(1).permutation(count * 4)
    base, half = rows_for(ids[:count], 2), count // 10
    upsert = rows_for(np.concatenate([ids[:half], ids[count : count + half]]), 3)
    table = Table.create(directory / "table", DDL, primary_keys=["id"], options={"bucket": str(BUCKETS), "write-only": "true"})
    watch, steps = Watch(), []

    def step(name: str, rows: int, floor: float | None, work: Callable[[], Any]) -> Any:
        steps.append(Step(name, rows, floor))
        return watch.measure(steps[-1], work)

    step("write", count, floor_write(base, directory, "base", threads), lambda: table.write(base))
    step("upsert", upsert.num_rows, floor_write(upsert, directory, "upsert", threads), lambda: table.write(upsert))
    expected = count + half
    found = step("scan, merging", expected, None, lambda: table.scan().to_arrow()).num_rows
    assert found == expected, f"{found} rows are not {expected}"
    floor = floor_compact(directory, ("base", "upsert"), threads)
    done = step("full compaction", expected, floor, lambda: table.compact(full=True))
    steps[-1].note = f"{done.files_before} files to {done.files_after}"
    found = step("scan, compacted", expected, floor_read(directory, threads), lambda: table.scan().to_arrow()).num_rows
    assert found == expected, f"{found} rows are not {expected}"
    return steps


def streamed(count: int, directory: Path) -> list[Step]:
    """The rows come as a stream and are larger than the write buffer."""
    options = {"bucket": str(BUCKETS), "write-only": "true", "write-buffer-size": "64 mb"}
    table = Table.create(directory / "table", DDL, primary_keys=["id"], options=options)
    ids = np.random.default_rng(1).permutation(count * 4)[:count]

    def batches() -> Iterator[pa.RecordBatch]:
        for at in range(0, count, BATCH):
            yield from rows_for(ids[at : at + BATCH], at).to_batches()

    schema = rows_for(ids[:1], 0).schema
    step = Step("write, streamed", count, note="makes its rows while it runs")
    Watch().measure(step, lambda: table.write(pa.RecordBatchReader.from_batches(schema, batches())))
    return [step]


def report(steps: list[Step]) -> None:
    print(f"{'step':<18}{'rows':>11}{'seconds':>9}{'M rows/s':>10}{'cpu s':>8}{'floor s':>9}{'ratio':>7}{'growth MB':>11}  note")
    for step in steps:
        floor = "" if step.floor is None else f"{step.floor:.2f}"
        ratio = "" if step.floor is None else f"{step.wall / step.floor:.2f}"
        speed = step.rows / step.wall / 1e6
        print(
            f"{step.name:<18}{step.rows:>11,}{step.wall:>9.2f}{speed:>10.2f}{step.cpu:>8.2f}{floor:>9}{ratio:>7}{step.growth / 1e6:>11.0f}  {step.note}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--threads", type=int, default=2, help="of the floor; the product decides for itself")
    parser.add_argument("--reader", action="store_true", help="feed a stream with a write buffer of 64 MB")
    given = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="paimon-benchmark-"))
    try:
        report(streamed(given.rows, directory) if given.reader else in_memory(given.rows, directory, given.threads))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
