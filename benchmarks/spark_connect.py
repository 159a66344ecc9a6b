"""Write, upsert, compact and scan over Spark Connect, beside Spark's own Parquet on the same machine and data.

``python -m benchmarks.spark_connect --rows 5000000 --buckets 2`` prints a table: seconds, million rows a second, and the
ratio to what Spark itself takes in the same run; ``--shapes`` and ``--small`` measure what ``spark_shapes`` says instead, ``--latency`` what ``spark_latency`` says. Spark's writes are Parquet with zstd, once as the rows come and once
repartitioned and sorted by the key, which is what a bucket's files are. Calls that ask for metadata are medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.figures import Figures, store
from benchmarks.spark_latency import COLUMNS as LATENCY_COLUMNS
from benchmarks.spark_latency import run_latency
from benchmarks.spark_shapes import HEADS, run_shapes, run_small
from pyspark_paimon import Table, spark_session

DDL = "id BIGINT, k INT, city STRING, amount DOUBLE, ts TIMESTAMP(6), payload STRING"
CHUNK = 1_000_000


def rows(ids: np.ndarray, seed: int) -> pa.Table:
    """Six columns of about 72 bytes a row in Arrow: ids in random order, 200 cities, a random payload."""
    make = np.random.default_rng(seed)
    count = len(ids)
    words = make.integers(0, 16, (count, 32), dtype=np.uint8) + ord("a")
    payload = pa.Array.from_buffers(
        pa.utf8(), count, [None, pa.py_buffer(np.arange(0, 32 * (count + 1), 32, dtype=np.int32)), pa.py_buffer(words)]
    )
    return pa.table(
        {
            "id": ids,
            "k": make.integers(0, 10_000, count, dtype=np.int32),
            "city": pa.DictionaryArray.from_arrays(make.integers(0, 200, count, dtype=np.int32), [f"city {i:03}" for i in range(200)]).cast(
                pa.utf8()
            ),
            "amount": make.random(count),
            "ts": pa.array(make.integers(1_700_000_000_000_000, 1_800_000_000_000_000, count)).cast(pa.timestamp("us")),
            "payload": payload,
        }
    )


def stage(folder: Path, count: int) -> tuple[Path, Path]:
    """Parquet files of ``count`` rows, and of a fifth as many upserts of which half have new ids."""
    order = np.random.default_rng(1).permutation(count * 11 // 10)
    base, change = folder / "base.parquet", folder / "change.parquet"
    for path, ids, seed in ((base, order[:count], 2), (change, order[count - count // 10 :], 3)):
        first = rows(ids[:1], seed)
        with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
            for start in range(0, len(ids), CHUNK):
                writer.write_table(rows(ids[start : start + CHUNK], seed + start), row_group_size=CHUNK // 4)
    return base, change


def noop(frame: Any) -> None:
    """Have Spark compute every row and throw it away."""
    frame.write.format("noop").mode("overwrite").save()


def native_write(frame: Any, path: Path) -> None:
    """Spark's own write of a frame's rows."""
    frame.write.option("compression", "zstd").mode("overwrite").parquet(str(path))


class Steps:
    """Steps of one run, printed as the rows of a Markdown table while they end."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.rows: list[list[str]] = []
        print("| step | s | M rows/s | beside Spark's own |\n|---|---|---|---|", flush=True)

    def timed(self, name: str, count: int, work: Callable[[], Any], *, beside: str | None = None) -> None:
        """Run ``work`` once; ``beside`` names the earlier step that it is compared with."""
        start = time.perf_counter()
        work()
        seconds = self.seconds[name] = time.perf_counter() - start
        ratio = f"{seconds / self.seconds[beside]:.2f} x {beside}" if beside else ""
        self._tell(name, f"{seconds:.2f}", f"{count / seconds / 1e6:.2f}", ratio)

    def asked(self, name: str, call: Callable[[], Any], times: int = 9) -> None:
        """The median of some calls that read metadata only."""
        taken = []
        for _ in range(times):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
        self._tell(name, f"{statistics.median(taken):.3f}", "", "")

    def _tell(self, *cells: str) -> None:
        self.rows.append(list(cells))
        print(f"| {' | '.join(cells)} |", flush=True)


def run(spark: Any, folder: Path, count: int, buckets: int) -> Steps:
    """All steps, after a small write has started the workers."""
    source, upserts = (spark.read.parquet(str(path)) for path in stage(folder, count))
    warm = Table.create(folder / "warm", DDL, primary_keys=["id"], options={"bucket": "2"}, spark=spark)
    warm.write(source.limit(10_000))
    warm.compact(full=True)
    noop(warm.scan().to_spark())
    changed = upserts.count()
    steps = Steps()
    steps.timed("Parquet write", count, lambda: native_write(source, folder / "native"))
    by_key = source.repartition(buckets, "id").sortWithinPartitions("id")
    steps.timed("repartition + sort + Parquet write", count, lambda: native_write(by_key, folder / "sorted"))
    options = {"bucket": str(buckets), "num-sorted-run.compaction-trigger": "10"}
    table = Table.create(folder / "t", DDL, primary_keys=["id"], options=options, spark=spark)
    steps.timed("write", count, lambda: table.write(source), beside="repartition + sort + Parquet write")
    steps.timed("upsert", changed, lambda: table.write(upserts))
    total = table.scan().count()
    steps.timed("Parquet scan to noop", count, lambda: noop(spark.read.parquet(str(folder / "native"))))
    steps.timed("merged scan to noop", total, lambda: noop(table.scan().to_spark()), beside="Parquet scan to noop")
    steps.timed("merged count", total, lambda: table.scan().count())
    steps.timed("merged scan, k = 777", total, lambda: noop(table.scan("k = 777").to_spark()))
    steps.timed("full compaction", total, lambda: table.compact(full=True), beside="write")
    steps.timed("compacted scan to noop", total, lambda: noop(table.scan().to_spark()), beside="Parquet scan to noop")
    steps.timed("compacted scan, k = 777, to Arrow", total, lambda: table.scan("k = 777").to_arrow())
    steps.timed("all rows to Arrow in the client", total, lambda: table.scan().to_arrow())
    steps.timed("write of Arrow rows of the client", CHUNK, lambda: table.write(rows(np.arange(CHUNK), 4)))
    steps.asked("open", lambda: Table.open(folder / "t", spark=spark))
    lookup = table.scan("id = 777")
    steps.asked("plan", lookup.plan)
    steps.asked("explain, without reading", lambda: lookup.explain(analyze=False))
    steps.asked("explain, with reading", lookup.explain)
    steps.asked("snapshots", table.snapshots)
    return steps


def main() -> None:
    """Make the rows and a session, and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--buckets", type=int, default=2)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="4g")
    parser.add_argument("--shapes", action="store_true", help="write into tables of several shapes, with indexes, instead")
    parser.add_argument("--small", action="store_true", help="time the first command and writes of 1,000 rows instead")
    parser.add_argument("--latency", action="store_true", help="time small operations on a table of --rows rows instead")
    parser.add_argument("--times", type=int, default=15, help="calls of each operation with --latency")
    parser.add_argument("--json", type=Path, help="where the figures go, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="paimon-bench-") as name:
        folder = Path(name)

        def connect() -> Any:
            return spark_session(
                master=given.master, conf={"spark.driver.memory": given.memory, "spark.sql.files.maxPartitionBytes": "16mb"}
            )

        if given.small:
            figures = Figures(
                f"Spark Connect, small writes, {given.master}", HEADS[:-1], [row[:-1] for row in run_small(connect, folder).rows]
            )
        elif given.latency:
            title = f"Spark Connect, latency, {given.rows:,} rows, 4 buckets, {given.master}"
            figures = Figures(title, LATENCY_COLUMNS, run_latency(connect(), folder, given.rows, given.times).rows)
        elif given.shapes:
            spark, (source, _) = connect(), stage(folder, given.rows)
            figures = Figures(
                f"Spark Connect, {given.rows:,} rows by shape, {given.master}", HEADS, run_shapes(spark, folder, source, native_write).rows
            )
        else:
            title = f"Spark Connect, {given.rows:,} rows, {given.master}, beside Spark's own Parquet"
            figures = Figures(
                title, ["step", "s", "M rows/s", "beside Spark's own"], run(connect(), folder, given.rows, given.buckets).rows
            )
    store(given.json, [figures])


if __name__ == "__main__":
    main()
