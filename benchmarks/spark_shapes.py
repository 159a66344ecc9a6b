"""How writes over Spark Connect cost by the shape of their table, and small ones: steps of ``benchmarks.spark_connect``.

``--shapes`` writes the same rows, 8 columns with four indexes, into fixed buckets, into one bucket, and into 500 partitions of 4
buckets, beside what Spark itself takes to repartition, sort and write them as Parquet. ``--small`` tells the first command of a
session and writes of 1,000 rows, with Spark's own number of shuffle partitions. Beside seconds stand the CPU seconds of all
processes below this one, and the peak memory of the largest Python process among them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from benchmarks.machine import tree_cpu_seconds
from pyspark_paimon import Table

SHAPED = "id BIGINT, k INT, city STRING, amount DOUBLE, ts TIMESTAMP(6), payload STRING, part INT, flag BOOLEAN"
INDEXES = {
    "file-index.bloom-filter.columns": "id,payload",
    "file-index.bitmap.columns": "city",
    "file-index.range-bitmap.columns": "k",
}
SHAPES: dict[str, tuple[list[str], dict[str, str]]] = {
    "fixed buckets": ([], {"bucket": "8"}),
    "one bucket": ([], {"bucket": "1"}),
    "500 partitions x 4 buckets": (["part"], {"bucket": "4"}),
}
HEADS = ["step", "s", "CPU s", "worker MB", "beside repartition + sort + Parquet"]


class Watch:
    """CPU seconds of all processes below this one, and memory of the Python processes, looked at ten times a second."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.peak = 0

    @contextmanager
    def looking(self) -> Iterator[Watch]:
        """Look until the block ends."""
        began, self.peak = tree_cpu_seconds(), 0
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.1):
                self._look()

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            over.set()
            thread.join()
            self._look()
            self.cpu = tree_cpu_seconds() - began

    def _look(self) -> None:
        for process in [(me := psutil.Process()), *me.children(recursive=True)]:
            with suppress(psutil.Error), process.oneshot():
                if "python" in process.name() and process.pid != me.pid:
                    self.peak = max(self.peak, process.memory_info().rss)


class ShapeSteps:
    """Steps that are printed as the rows of a Markdown table while they end."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.reference = 0.0
        print(f"| {' | '.join(HEADS)} |\n|---|---:|---:|---:|---:|", flush=True)

    def timed(self, name: str, work: Callable[[], Any]) -> float:
        """Run ``work`` once; its seconds."""
        with Watch().looking() as watch:
            start = time.perf_counter()
            work()
            seconds = time.perf_counter() - start
        ratio = f"{seconds / self.reference:.2f}" if self.reference else ""
        self.rows.append([name, f"{seconds:.1f}", f"{watch.cpu:.1f}", f"{watch.peak >> 20}", ratio])
        print(f"| {' | '.join(self.rows[-1])} |", flush=True)
        return seconds


def run_shapes(spark: Any, folder: Path, source: Path, native_write: Callable[[Any, Path], None]) -> ShapeSteps:
    """Every shape, after a small write has started the workers."""
    frame = spark.read.parquet(str(source)).selectExpr("*", "int(id % 500) AS part", "k % 2 = 0 AS flag")
    warm = Table.create(folder / "warm", SHAPED, primary_keys=["id"], options={"bucket": "2"}, spark=spark)
    warm.write(frame.limit(10_000))
    steps = ShapeSteps()
    by_key = frame.repartition(8, "id").sortWithinPartitions("id")
    steps.reference = steps.timed("repartition(8) + sort + Parquet", lambda: native_write(by_key, folder / "sorted"))
    for name, (partition, options) in SHAPES.items():
        made = {"primary_keys": [*partition, "id"], "partition_keys": partition, "options": {**options, **INDEXES}}
        table = Table.create(folder / name.replace(" ", "-"), SHAPED, **made, spark=spark)
        steps.timed(f"write, {name}", lambda table=table: table.write(frame))
    return steps


def run_small(connect: Callable[[], Any], folder: Path) -> ShapeSteps:
    """The first command of a session, then writes of 1,000 rows of the client and of a DataFrame, the third of each."""
    spark, steps = connect(), ShapeSteps()
    ids = pa.table({"id": range(1000), "p": pa.array([number % 10 for number in range(1000)], pa.int32()), "v": ["x"] * 1000})
    shapes: dict[str, tuple[list[str], dict[str, str]]] = {
        "2 fixed buckets": ([], {"bucket": "2"}),
        "10 partitions": (["p"], {"bucket": "1"}),
        "dynamic buckets": ([], {"bucket": "-1"}),
    }
    first = True
    for name, (partition, options) in shapes.items():
        made = {"primary_keys": [*partition, "id"], "partition_keys": partition, "options": options}

        def create(name: str = name, made: dict[str, Any] = made) -> Table:
            return Table.create(folder / name.replace(" ", "-"), "id BIGINT, p INT, v STRING", **made, spark=spark)

        if first:
            steps.timed("first command: create a table", create)
        table = Table.open(folder / name.replace(" ", "-"), spark=spark) if first else create()
        if first:
            steps.timed("first write, of 1,000 rows", lambda table=table: table.write(ids))
        first = False
        frame = spark.createDataFrame(ids)
        for rows, told in ((ids, "1,000 rows of the client"), (frame, "1,000 rows of a DataFrame")):
            for _ in range(2):
                table.write(rows)
            steps.timed(f"{told}, {name}", lambda rows=rows, table=table: table.write(rows))
    return steps


__all__ = ["HEADS", "run_shapes", "run_small"]
