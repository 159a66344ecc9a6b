"""Tables of unusual shapes: many columns, deep nesting, MAPs with many keys, many buckets.

    make bench-scaling             # among the rest
    python -m benchmarks.shapes    # a few minutes

Each shape lives in a process of its own: written, written again, compacted, asked by a filter, read whole, and one row more is committed. Seconds
of the processor, and the peak of the process. What files cost by themselves is told by the lines of pyarrow: it alone writes the same rows into
as many files, each in a folder of its own and synced, then into other files what it reads of two, and reads those.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.machine import cpu_seconds, status_megabytes
from pyspark_paimon import Table

ROWS, MAPS, INDEXED = 5_000, 200, 50
_HEADS = ("write", "compaction", "query by a filter", "read of everything", "commit of one row")


@dataclass(frozen=True)
class Shape:
    """Rows, by a function that is called in the measuring process, the table's options, and a filter that few rows satisfy."""

    rows: Callable[[], pa.Table]
    condition: str
    options: dict[str, str] = field(default_factory=dict)


def wide(columns: int) -> pa.Table:
    """Integers, doubles and texts take turns."""
    key = np.arange(ROWS)
    kinds: list[Callable[[int], Any]] = [
        lambda at: (key * 7919 + at) % 1_000,
        lambda at: (key * 31 + at) / 8,
        lambda at: np.char.add(f"text {at} ", (key % 97).astype(str)),
    ]
    return pa.table({"id": key, **{f"c{at}": kinds[at % len(kinds)](at) for at in range(columns)}})


def deep(levels: int) -> pa.Table:
    """A number inside of ROWs and ARRAYs that take turns."""
    array: Any = pa.array(np.arange(ROWS))
    for level in range(levels):
        if level % 2:
            array = pa.ListArray.from_arrays(pa.array(np.arange(ROWS + 1), pa.int32()), array)
        else:
            array = pa.StructArray.from_arrays([array], names=["inner"])
    return pa.table({"id": np.arange(ROWS), "n": np.arange(ROWS) % 1_000, "nested": array})


def maps(keys: int) -> pa.Table:
    """MAPs of texts to numbers, which all have the same keys."""
    offsets = pa.array(np.arange(MAPS + 1) * keys, pa.int32())
    names = pa.array(np.tile(np.char.add("key", np.arange(keys).astype(str)), MAPS))
    numbers = pa.array(np.arange(MAPS * keys) % 1_000)
    return pa.table({"id": np.arange(MAPS), "n": np.arange(MAPS) % 100, "m": pa.MapArray.from_arrays(offsets, names, numbers)})


def plain() -> pa.Table:
    """Twenty times as many rows, of few columns."""
    key = np.arange(20 * ROWS)
    return pa.table({"id": key, "n": key % 1_000, "text": np.char.add("text ", (key % 97).astype(str))})


_INDEXED_KEYS = ",".join(f"m[key{at}]" for at in range(INDEXED))
SHAPES: dict[str, Shape] = {
    **{f"{ROWS:,} rows of {count:,} columns": Shape(partial(wide, count), "c0 = 5") for count in (500, 2_000)},
    **{f"{ROWS:,} rows that nest {levels} deep": Shape(partial(deep, levels), "n = 5") for levels in (10, 20)},
    **{
        f"{MAPS} MAPs of {keys:,} keys, {INDEXED} of them indexed": Shape(
            partial(maps, keys),
            "m['key7'] = 7",
            {"file-index.bitmap.columns": _INDEXED_KEYS},
        )
        for keys in (1_000, 10_000)
    },
    **{
        f"{20 * ROWS:,} rows in {buckets:,} bucket{'s' * (buckets > 1)}": Shape(plain, "n = 5", {"bucket": str(buckets)})
        for buckets in (1, 256, 1_024)
    },
}


FLOORS = {f"the same in {files:,} files, by pyarrow alone": files for files in (256, 1_024)}


def measure(name: str) -> dict[str, Any]:
    """Seconds of each step, and megabytes, of this process."""
    shape = SHAPES[name]
    rows = shape.rows()
    with tempfile.TemporaryDirectory() as folder:
        options = {"bucket": "1", "write-only": "true", **shape.options}
        table = Table.create(f"{folder}/shapes.db/t", rows.schema, primary_keys=["id"], options=options)
        seconds = [cpu_seconds(lambda: table.write(rows))]
        table.write(rows)  # there is something to merge
        seconds.append(cpu_seconds(lambda: table.compact(full=True)))
        seconds.append(cpu_seconds(lambda: table.scan(shape.condition).to_arrow()))
        seconds.append(cpu_seconds(lambda: table.scan().to_arrow()))
        seconds.append(cpu_seconds(lambda: table.write(rows.slice(0, 1))))
    return {"seconds": seconds, "peak": status_megabytes("VmHWM")}


def by_pyarrow(files: int) -> dict[str, Any]:
    """What ``measure`` says, of pyarrow and files alone; it neither filters nor commits."""
    rows = plain()
    ids = rows.column("id")
    for name, values in (("_KEY_id", ids), ("_SEQUENCE_NUMBER", ids), ("_VALUE_KIND", pa.nulls(len(ids), pa.int8()).fill_null(0))):
        rows = rows.append_column(name, values)  # as our files have
    pieces = [rows.slice(at * len(ids) // files, len(ids) // files) for at in range(files)]
    with tempfile.TemporaryDirectory() as folder:

        def write(name: str, made: Callable[[int], pa.Table]) -> None:
            for at in range(files):
                path = Path(folder, str(at), name)
                path.parent.mkdir(exist_ok=True)
                pq.write_table(made(at), path, compression="zstd", write_page_index=True, write_page_checksum=True)
                for synced in (path, path.parent):
                    descriptor = os.open(synced, os.O_RDONLY)
                    os.fsync(descriptor)
                    os.close(descriptor)

        def both(at: int) -> pa.Table:
            return pa.concat_tables([pq.ParquetFile(Path(folder, str(at), name)).read(use_threads=False) for name in ("1", "2")])

        def read() -> None:
            for at in range(files):
                pq.ParquetFile(Path(folder, str(at), "3")).read(use_threads=False)

        seconds: list[float | None] = [cpu_seconds(lambda: write("1", lambda at: pieces[at]))]
        write("2", lambda at: pieces[at])
        seconds += [cpu_seconds(lambda: write("3", both)), None, cpu_seconds(read), None]
    return {"seconds": seconds, "peak": status_megabytes("VmHWM")}


def main() -> None:
    """The command; ``--shape`` measures one, in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.shape:
        print(json.dumps(by_pyarrow(FLOORS[given.shape]) if given.shape in FLOORS else measure(given.shape)))
        return
    print(f"| table | {' | '.join(_HEADS)} | peak |")
    print("|---" + "|---:" * (len(_HEADS) + 1) + "|")
    for name in (*SHAPES, *FLOORS):
        command = [sys.executable, "-m", "benchmarks.shapes", "--shape", name]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        print(
            f"| {name} | {' | '.join('-' if one is None else f'{one:.2f}' for one in told['seconds'])} | {told['peak']:.0f} |", flush=True
        )


if __name__ == "__main__":
    main()
