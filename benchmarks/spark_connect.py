"""Write, upsert, compact and scan over Spark Connect, beside Spark's own Parquet on the same machine and data.

``python -m benchmarks.spark_connect --rows 5000000 --buckets 2`` prints a line per step: seconds and million rows a second.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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


def timed(name: str, count: int, work: Callable[[], Any]) -> float:
    """Run ``work`` and print what it took."""
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    print(f"{name:34} {seconds:7.2f} s {count / seconds / 1e6:6.2f} M rows/s", flush=True)
    return seconds


def noop(frame: Any) -> None:
    """Have Spark compute every row and throw it away."""
    frame.write.format("noop").mode("overwrite").save()


def main() -> None:
    """Run all steps once, after a small write has started the workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--buckets", type=int, default=2)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="4g")
    given = parser.parse_args()
    count = given.rows
    with tempfile.TemporaryDirectory(prefix="paimon-bench-") as name:
        folder = Path(name)
        base, change = stage(folder, count)
        spark = spark_session(master=given.master, conf={"spark.driver.memory": given.memory, "spark.sql.files.maxPartitionBytes": "16mb"})
        source, upserts = spark.read.parquet(str(base)), spark.read.parquet(str(change))
        warm = Table.create(folder / "warm", DDL, primary_keys=["id"], options={"bucket": "2"}, spark=spark)
        warm.write(source.limit(10_000))
        warm.compact(full=True)
        noop(warm.scan().to_spark())
        changed = upserts.count()
        native = timed(
            "native parquet write (zstd)",
            count,
            lambda: source.write.option("compression", "zstd").mode("overwrite").parquet(str(folder / "native")),
        )
        options = {"bucket": str(given.buckets), "num-sorted-run.compaction-trigger": "10"}
        table = Table.create(folder / "t", DDL, primary_keys=["id"], options=options, spark=spark)
        ours = timed("write", count, lambda: table.write(source))
        timed("upsert", changed, lambda: table.write(upserts))
        total = table.scan().count()
        timed("merged scan -> noop", total, lambda: noop(table.scan().to_spark()))
        timed("merged count", total, lambda: table.scan().count())
        timed("full compaction", total, lambda: table.compact(full=True))
        timed("scan after compaction -> noop", total, lambda: noop(table.scan().to_spark()))
        timed("native parquet scan -> noop", count, lambda: noop(spark.read.parquet(str(folder / "native"))))
        timed("filter k = 777", total, lambda: table.scan("k = 777").to_arrow())
        timed("all rows to Arrow in the client", total, lambda: table.scan().to_arrow())
        local = rows(np.arange(CHUNK), 4)
        timed("write of Arrow rows of the client", CHUNK, lambda: table.write(local))
        print(f"write: {ours / native:.2f} times Spark's own Parquet write")


if __name__ == "__main__":
    main()
