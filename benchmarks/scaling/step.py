"""The worker: one step on one table in a process of its own, which says what ``benchmarks.contenders.worker`` says.

Inputs are streamed from their files, and rows that are read are added up and dropped, at every size: decoding the inputs is part of a
write's time (``decode`` measures it alone), and memory that grows with the table shows.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.contenders.worker import Job, clocked, say
from benchmarks.scaling.data import CLASSES, KEY, Sums, chosen, versions
from pyspark_paimon import Table

REPEATS = 7
_BATCH = 1 << 16


@dataclass(frozen=True)
class Step(Job):
    """``op``: what to do; ``first`` to ``last``: commits; ``size``: their rows; ``name``: what the floor calls its files."""

    first: int = 0
    last: int = 0
    size: int = 0
    name: str = ""


def stream(paths: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """The rows of files, one after the other."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(_BATCH, use_threads=False)


def drained(batches: Iterable[pa.RecordBatch]) -> dict[str, int]:
    """Number of rows and sums, as the answer of a read; the rows are dropped."""
    total = Sums(0, 0, 0)
    for batch in batches:
        total += Sums.of(batch)
    return vars(total)


def write(step: Step) -> Callable[[], Any]:
    schema = pq.read_schema(step.inputs[0])
    table = Table.create(step.path, schema, primary_keys=KEY, options=step.options) if step.create else Table.open(step.path)

    def work() -> None:
        table.write(pa.RecordBatchReader.from_batches(schema, stream(step.inputs)))

    return work


def compact(step: Step) -> Callable[[], Any]:
    table = Table.open(step.path)

    def work() -> None:
        table.compact(full=True)

    return work


def read(step: Step) -> Callable[[], Any]:
    return lambda: drained(Table.open(step.path).scan().to_batches())


def decode(step: Step) -> Callable[[], Any]:
    return lambda: drained(stream(step.inputs))


def floor_files(step: Step, name: str, remainder: int) -> list[str]:
    """Of the floor's files, those of a bucket."""
    return [str(Path(step.path) / f"{each}-{remainder}.parquet") for each in name.split("+")]


def _buckets(work: Callable[[int], Any], threads: int) -> list[Any]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, range(CLASSES)))


def _each_bucket(work: Callable[[int], None], threads: int) -> None:
    _buckets(work, threads)


def _sorted(rows: pa.Table) -> pa.Table:
    """By key, the last of equal ones."""
    rows = rows.combine_chunks()
    least = rows["l_linenumber"].to_numpy()
    keys = rows["l_orderkey"].to_numpy()
    order = np.lexsort((least, keys))
    keys, least = keys[order], least[order]
    last = np.append((keys[1:] != keys[:-1]) | (least[1:] != least[:-1]), True)
    return rows.take(pa.array(order[last]))


def _encode(rows: pa.Table, path: str) -> None:
    pq.write_table(rows, path, compression="zstd", compression_level=1)


def floor_write(step: Step) -> Callable[[], Any]:
    Path(step.path).mkdir(parents=True, exist_ok=True)

    def one(remainder: int) -> None:
        rows = pa.concat_tables(pq.read_table(path, use_threads=False) for path in step.inputs[remainder::CLASSES])
        _encode(_sorted(rows), floor_files(step, step.name, remainder)[0])

    return partial(_each_bucket, one, step.threads)


def _merged(step: Step, remainder: int) -> pa.Table:
    return _sorted(pa.concat_tables(pq.read_table(path, use_threads=False) for path in floor_files(step, step.name, remainder)))


def floor_compact(step: Step) -> Callable[[], Any]:
    def one(remainder: int) -> None:
        _encode(_merged(step, remainder), floor_files(step, "compacted", remainder)[0])

    return partial(_each_bucket, one, step.threads)


def floor_read(step: Step) -> Callable[[], Any]:
    """Merging files of a bucket if there are several of them."""

    def one(remainder: int) -> Sums:
        if "+" in step.name:
            return Sums.of(_merged(step, remainder))
        return Sums(**drained(stream(floor_files(step, step.name, remainder))))

    return lambda: vars(sum(_buckets(one, step.threads), Sums(0, 0, 0)))


def commits(step: Step) -> dict[str, Any]:
    """Commits ``first + 1`` to ``last`` of ``size`` rows each: seconds of each, and the resident set after it."""
    base = pa.concat_tables(pq.read_table(path) for path in step.inputs).combine_chunks()
    table, process = Table.open(step.path), psutil.Process()
    walls, cpus, resident = [], [], []
    say("ready")
    for commit in range(step.first + 1, step.last + 1):
        rows = versions(base.take(pa.array(chosen(commit, base.num_rows, step.size))), commit)
        _, wall, cpu = clocked(lambda: table.write(rows))  # noqa: B023  # called at once
        walls.append(wall)
        cpus.append(cpu)
        resident.append(process.memory_info().rss)
    say("done")
    return {"seconds": walls, "cpu": cpus, "queries": {"resident": resident}}


def look(step: Step) -> dict[str, Any]:
    """Plans, key lookups and the size of the metadata; each on a table opened afresh."""
    rows = pq.ParquetFile(step.inputs[0]).read_row_group(0, columns=list(KEY)).slice(0, REPEATS).to_pylist()
    hits = [f"l_orderkey = {row['l_orderkey']} AND l_linenumber = {row['l_linenumber']}" for row in rows]

    def files(text: str | None) -> int:
        return sum(len(split.files) for split in Table.open(step.path).scan(text).plan().splits)

    def found_rows(text: str) -> int:
        return int(Table.open(step.path).scan(text).to_arrow().num_rows)

    asked: dict[str, list[Callable[[], int]]] = {
        "plan": [partial(files, None)] * REPEATS,
        "plan of a key": [partial(files, text) for text in hits],
        "key lookup, hit": [partial(found_rows, text) for text in hits],
        "key lookup, miss": [partial(found_rows, f"{text}99") for text in hits],
    }
    asked["key lookup, hit"][0]()
    found: dict[str, Any] = {}
    say("ready")
    for name, questions in asked.items():
        answers = [clocked(question) for question in questions]
        found[name] = {
            "seconds": [wall for _, wall, _ in answers],
            "cpu": [cpu for *_, cpu in answers],
            "answers": [each for each, *_ in answers],
        }
    say("done")
    return {"seconds": [], "cpu": [], "queries": {**found, "state": state(step)}}


def state(step: Step) -> dict[str, int]:
    """Files and bytes on disk, and those of the newest snapshot."""
    from manifest.store import FileStore

    store, root = FileStore.open(step.path), Path(step.path)
    newest = store.snapshots.latest()
    assert newest is not None
    metas = store.manifest_metas(newest)
    metadata = [path.stat().st_size for path in (root / "manifest").iterdir()]
    data = [path.stat().st_size for path in root.rglob("bucket-*/data-*")]
    return {
        "live files": len(store.live_entries(newest)),
        "live manifests": len(metas),
        "live manifest bytes": sum(meta.file_size for meta in metas),
        "snapshots": len(list((root / "snapshot").glob("snapshot-*"))),
        "metadata files": len(metadata),
        "metadata bytes": sum(metadata),
        "data files": len(data),
        "data bytes": sum(data),
    }


TIMED: dict[str, Callable[[Step], Callable[[], Any]]] = {
    "write": write,
    "compact": compact,
    "read": read,
    "decode": decode,
    "floor_write": floor_write,
    "floor_compact": floor_compact,
    "floor_read": floor_read,
}
TOLD: dict[str, Callable[[Step], dict[str, Any]]] = {"commits": commits, "look": look}


def _warm_up() -> None:
    """What is imported late is imported now."""
    with tempfile.TemporaryDirectory() as folder:
        rows = pa.table({name: pa.array([1, 2], pa.int64()) for name in (*KEY, "l_partkey")})
        table = Table.create(Path(folder) / "t", rows.schema, primary_keys=KEY, options={"bucket": "2"})
        table.write(rows)
        table.write(rows)
        table.compact(full=True)
        drained(table.scan("l_orderkey = 1").to_batches())


def main() -> None:
    step = Step(**json.loads(sys.argv[1]))
    pa.set_cpu_count(step.threads)
    _warm_up()
    if step.op in TOLD:
        say("result", answer=None, **TOLD[step.op](step))
        return
    work = TIMED[step.op](step)
    pa.default_memory_pool().release_unused()
    say("ready")
    answer, wall, cpu = clocked(work)
    say("done")
    say("result", seconds=[wall], cpu=[cpu], answer=answer)


if __name__ == "__main__":
    main()
