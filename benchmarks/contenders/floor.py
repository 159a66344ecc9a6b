"""The floor: what pyarrow and numpy need for the same work when done naively: sort, take, Parquet; read, sort, keep the last, write.

Four buckets by key, one file a write in each, no metadata, no statistics beyond Parquet's own. A plan is the bare decoding of the
Paimon table's manifests by fastavro; a lookup is a filtered read of the compacted files by ``pyarrow.dataset``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.contenders.worker import Ask, Contender, Filter, Job, Query, Timed, serve

BUCKETS = 4
RUN_BITS = 6
"""Of a row's code: which of its bucket's runs it is from."""


def codes(rows: pa.Table) -> np.ndarray:
    """A number that orders as the key does; less than 2**57."""
    key: np.ndarray = rows.column(0).to_numpy()
    return (key << 3) | rows["l_linenumber"].to_numpy() if "l_linenumber" in rows.column_names else key


def encode(rows: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, compression="zstd", compression_level=1)


def over_buckets(threads: int, work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, range(BUCKETS)))


def write_rows(job: Job, rows: pa.Table, name: str) -> None:
    code = codes(rows)
    bucket = code >> 3 & BUCKETS - 1

    def one(at: int) -> None:
        mine = np.flatnonzero(bucket == at)
        encode(rows.take(pa.array(mine[np.argsort(code[mine])])), Path(job.path) / f"bucket-{at}" / name)

    over_buckets(job.threads, one)


def files(path: str, bucket: int) -> list[Path]:
    return sorted((Path(path) / f"bucket-{bucket}").glob("*.parquet"))


def merged(paths: Iterable[Path]) -> pa.Table:
    """The rows of a bucket: of each key that of the last file."""
    parts = [pq.read_table(path, use_threads=False) for path in paths]
    if len(parts) == 1:
        return parts[0]
    code = np.concatenate([codes(part) << RUN_BITS | run for run, part in enumerate(parts)])
    order = np.argsort(code)
    ranked = code[order] >> RUN_BITS
    return pa.concat_tables(parts).combine_chunks().take(pa.array(order[np.append(ranked[1:] != ranked[:-1], True)]))


def write(job: Job) -> Timed:
    rows = job.tables()
    first = len(files(job.path, 0))

    def work() -> None:
        for at, each in enumerate(rows):
            write_rows(job, each, f"{first + at:03d}.parquet")

    return Timed(work, lambda _: pa.concat_tables(over_buckets(job.threads, lambda at: merged(files(job.path, at)))))


def compact(job: Job) -> Timed:
    def one(at: int) -> None:
        before = files(job.path, at)
        encode(merged(before), Path(job.path) / f"bucket-{at}" / "compacted")
        for path in before:
            path.unlink()
        (Path(job.path) / f"bucket-{at}" / "compacted").rename(before[0])

    return Timed(
        lambda: over_buckets(job.threads, one),
        lambda _: pa.concat_tables(over_buckets(job.threads, lambda at: merged(files(job.path, at)))),
    )


def read(job: Job) -> Timed:
    return Timed(lambda: pa.concat_tables(over_buckets(job.threads, lambda at: merged(files(job.path, at)))), lambda found: found)


def lookup(job: Job) -> Ask:
    from benchmarks.queries import literal_of

    def ask(query: Query, conditions: Filter) -> Any:
        data = ds.dataset([str(path) for at in range(BUCKETS) for path in files(job.path, at)])
        expression: Any = None
        for column, op, literal in conditions:
            field, value = ds.field(column), literal_of(data.schema.field(column).type, literal)
            one = field == value if op == "=" else field >= value if op == ">=" else field <= value
            expression = one if expression is None else expression & one
        return data.count_rows(filter=expression) if query.count else data.to_table(columns=query.columns, filter=expression)

    return ask


def plan(job: Job) -> Ask:
    from manifest.avro.container import read_container

    def ask(_: Query, __: Filter) -> int:
        decoded = 0
        for path in (Path(job.path) / "manifest").glob("manifest-*"):
            if not path.name.startswith("manifest-list"):
                decoded += len(read_container(str(path), path.read_bytes()).records())
        return decoded

    return ask


CONTENDER = Contender(
    "floor",
    {"write": write, "compact": compact, "read": read, "lookup": lookup, "plan": plan},
    lacks={"indexed": "writes no indexes", "commits_compacting": "compacts when told to"},
    note="a plan decodes all manifests whatever the filter",
)

if __name__ == "__main__":
    serve(CONTENDER, ["numpy"])
