"""Latency of small operations over Spark Connect: steps of ``benchmarks.spark_connect --latency``.

Each operation runs a few times to warm up, then several times. The table gives the median wall time, and the CPU time a call of the client,
the server and all Python workers. Spark's own Parquet files with the same rows stand beside it.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.machine import tree_cpu_seconds
from pyspark_paimon import Table, sql

COLUMNS = ["operation", "wall ms, p50", "CPU ms", "Parquet in Spark, wall ms", "CPU ms"]
_DDL = "id BIGINT, k INT, code STRING, amount DOUBLE"
_OPTIONS = {"bucket": "4", "file-index.bloom-filter.columns": "code", "num-sorted-run.compaction-trigger": "10"}
_WARM_UPS = 3


def latencies(calls: Sequence[Callable[[], Any]], times: int) -> list[tuple[float, float]]:
    """Return the median wall time and the mean CPU time of each call, in milliseconds.

    The calls take turns: Spark compiles its own code for minutes, so what runs later is faster.
    """
    for _ in range(_WARM_UPS):
        for call in calls:
            call()
    walls, cpus = [list[float]() for _ in calls], [0.0 for _ in calls]
    for _ in range(times):
        for number, call in enumerate(calls):
            start, before = time.perf_counter(), tree_cpu_seconds()
            call()
            cpus[number] += tree_cpu_seconds() - before
            walls[number].append(time.perf_counter() - start)
    return [(statistics.median(wall) * 1000, cpu / times * 1000) for wall, cpu in zip(walls, cpus, strict=True)]


class Latencies:
    """Rows of the table, printed as they are measured."""

    def __init__(self, times: int) -> None:
        self.rows: list[list[str]] = []
        self._times = times
        print(f"| {' | '.join(COLUMNS)} |\n|---|---:|---:|---:|---:|", flush=True)

    def add(self, name: str, call: Callable[[], Any], parquet: Callable[[], Any] | None = None) -> None:
        """Measure an operation, and the same on Parquet files."""
        figures = [figure for pair in latencies([call, *([parquet] if parquet else [])], self._times) for figure in pair]
        self.rows.append([name, *(f"{figure:,.0f}" for figure in figures), *[""] * (4 - len(figures))])
        print(f"| {' | '.join(self.rows[-1])} |", flush=True)


def rows(count: int) -> pa.Table:
    """Return ``count`` rows with ids in order, and one of 50,000 codes each."""
    make = np.random.default_rng(1)
    codes = pa.array([f"code-{number:06}" for number in range(50_000)])
    return pa.table({
        "id": np.arange(count),
        "k": make.integers(0, 10_000, count, dtype=np.int32),
        "code": codes.take(pa.array(make.integers(0, 50_000, count))),
        "amount": make.random(count),
    })  # fmt: skip


def run_latency(spark: Any, folder: Path, count: int, times: int) -> Latencies:
    """Measure all operations on a table of ``count`` rows."""
    stored = rows(count)
    table = Table.create(folder / "t", _DDL, primary_keys=["id"], options=_OPTIONS, spark=spark)
    table.write(stored)
    table.compact(full=True)
    files = str(folder / "parquet")
    spark.createDataFrame(stored).repartition(4, "id").sortWithinPartitions("id").write.parquet(files)
    key, ids = count // 3, itertools.count(count * 2)
    keys = pa.table({"id": np.arange(0, count, count // 1000)})
    hit, small = stored["code"][key].as_py(), stored.slice(0, 1000)

    def parquet(condition: str) -> Callable[[], Any]:
        return lambda: spark.read.parquet(files).filter(condition).toArrow()

    def query(text: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
        return lambda: sql(spark, text.format(f"paimon.`{table.path}`")).toArrow(), lambda: spark.sql(
            text.format(f"parquet.`{files}`")
        ).toArrow()

    found = Latencies(times)
    found.add("open a table, ask for its schema", lambda: Table.open(folder / "t", spark=spark).schema)
    found.add("scan of a key, to Arrow", lambda: table.scan(f"id = {key}").to_arrow(), parquet(f"id = {key}"))
    found.add("scan of a key, collected by Spark", lambda: table.scan(f"id = {key}").to_spark().collect(), parquet(f"id = {key}"))
    found.add("SQL: the row of a key", *query(f"SELECT * FROM {{}} WHERE id = {key}"))
    found.add("SQL: 10 of 1,000 rows, ordered", *query("SELECT id, amount FROM {} WHERE id < 1000 ORDER BY amount DESC LIMIT 10"))
    found.add("count of all rows", table.scan().count, lambda: spark.read.parquet(files).count())
    found.add("Bloom filter, hit", lambda: table.scan(f"code = '{hit}'").to_arrow(), parquet(f"code = '{hit}'"))
    found.add("Bloom filter, miss", lambda: table.scan("code = 'code-999999'").to_arrow(), parquet("code = 'code-999999'"))
    found.add("1,000 rows by a range of keys", lambda: table.scan("id < 1000").to_arrow(), parquet("id < 1000"))
    found.add("lookup of 1 key", lambda: table.lookup({"id": [key]}))
    found.add("lookup of 1,000 keys", lambda: table.lookup(keys))
    found.add("explain()", lambda: table.scan(f"id = {key}").explain())
    found.add("compact, nothing due", table.compact)
    target = str(folder / "appended")
    one = pa.table({"id": [0], "k": pa.array([1], pa.int32()), "code": ["x"], "amount": [0.5]})
    found.add(
        "write of 1 row",
        lambda: table.write(one.set_column(0, "id", pa.array([next(ids)]))),
        lambda: spark.createDataFrame(one).write.mode("append").parquet(target),
    )
    found.add("write of 1,000 rows", lambda: table.write(small), lambda: spark.createDataFrame(small).write.mode("append").parquet(target))
    spark.sql(f"CREATE TABLE parquet_rows ({_DDL}) USING parquet LOCATION '{folder / 'inserted'}'")
    insert = "INSERT INTO {} VALUES ({}, 1, 'x', 0.5)"
    found.add(
        "SQL: INSERT of 1 row",
        lambda: sql(spark, insert.format(f"paimon.`{table.path}`", next(ids))),
        lambda: spark.sql(insert.format("parquet_rows", next(ids))),
    )
    spark.sql("DROP TABLE parquet_rows")
    single = spark.createDataFrame(one)
    found.add("write of 1 row of a DataFrame", lambda: table.write(single), lambda: single.write.mode("append").parquet(target))
    frame = spark.createDataFrame(small)
    found.add("write of 1,000 rows of a DataFrame", lambda: table.write(frame), lambda: frame.write.mode("append").parquet(target))
    found.add("update of 1 key", lambda: table.update(f"id = {key}", {"amount": 1.5}))
    found.add("delete of 1 key", lambda: table.delete(f"id = {next(ids) - 1}"))
    return found


__all__ = ["COLUMNS", "Latencies", "run_latency"]
