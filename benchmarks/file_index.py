"""Building and asking every file index, beside what bare numpy, pyroaring, xxhash and pyarrow need for the same sets.

    python -m benchmarks.file_index                       # a million rows an index
    python -m benchmarks.file_index --append 6000000      # and the indexes of an append write of so many rows

Times are processor time of the best of three turns, the floor and the product in turn. A floor computes the same: the same
hashes and bits, the same sets serialised, the same distinct values in order; but lays out no format, no header, no container.
A probe is one equality (a range of a hundredth for bsi and range-bitmap) on a container in memory, half of them hits; beside
it a scan of the bare column by numpy or pyarrow.
"""

from __future__ import annotations

import argparse
import time
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pyroaring import BitMap

from benchmarks.figures import Figures, store
from fileindex.build.options import FileIndexOptions, parse_column
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import ContainerReader, write_index_container
from fileindex.predicate.tree import And, Compare, Op, Predicate
from fileindex.query.evaluate import evaluate
from fileindex.query.metrics import IndexMetrics
from sparkexpr.values.column_type import ColumnType, Kind

BATCH = 1 << 17
TURNS = 3
PROBES = 20
INT, LONG, TEXT = ColumnType(Kind.INT), ColumnType(Kind.BIGINT), ColumnType(Kind.VARCHAR)
MAP = ColumnType(Kind.MAP, key=TEXT, value=INT)
RNG = np.random.default_rng(7)


@dataclass(frozen=True)
class Data:
    """A column to index: ``probe(number)`` gives literals, of which the even numbers' occur."""

    name: str
    kind: ColumnType
    array: Any
    probe: Callable[[int], Any]
    key: str | None = None

    @property
    def column(self) -> str:
        return "a" if self.key is None else f"a[{self.key}]"


@dataclass
class Line:
    """One measured index."""

    index: str
    data: str
    build: float
    floor: float
    size: int
    probe: float
    scan: float
    read: float


def datasets(rows: int) -> list[Data]:
    low, mid = RNG.integers(0, 200, rows).astype(np.int32), RNG.integers(0, 100_000, rows).astype(np.int32)
    unique = RNG.permutation(rows * 4)[:rows].astype(np.int64)
    cities = pa.array([f"city-{number:03d}" for number in range(200)])
    city = pa.DictionaryArray.from_arrays(pa.array(low), cities).dictionary_decode()
    users = pa.array([f"user-{number:09d}" for number in unique.tolist()])
    two = pa.array(np.arange(0, 2 * rows + 1, 2, dtype=np.int32))
    keys = pa.DictionaryArray.from_arrays(pa.array(np.tile(np.array([0, 1], np.int32), rows)), pa.array(["clicks", "price"]))
    maps = pa.MapArray.from_arrays(two, keys.dictionary_decode(), pa.array(np.repeat(low, 2)))
    return [
        Data("int, 200 values", INT, pa.array(low), lambda at: at // 2 if at % 2 == 0 else 1000 + at),
        Data("int, 100k values", INT, pa.array(mid), lambda at: int(mid[at]) if at % 2 == 0 else 200_000 + at),
        Data("bigint, unique", LONG, pa.array(unique), lambda at: int(unique[at]) if at % 2 == 0 else -at),
        Data("string, 200 values", TEXT, city, lambda at: f"city-{at:03d}" if at % 2 == 0 else f"town-{at}"),
        Data("string, unique", TEXT, users, lambda at: users[at].as_py() if at % 2 == 0 else f"guest-{at}"),
        Data("map key, 200 values", MAP, maps, lambda at: at // 2 if at % 2 == 0 else 1000 + at, key="clicks"),
    ]


def indexes_of(data: Data) -> list[str]:
    return ["bloom-filter", "bitmap", "range-bitmap", *(["bsi"] if data.kind.kind is not Kind.VARCHAR else [])]


def options(index: str, data: Data, rows: int) -> FileIndexOptions:
    raw = {f"file-index.{index}.columns": data.column}
    if index == "bloom-filter":
        raw[f"file-index.bloom-filter.{data.column}.items"] = str(rows)
    return FileIndexOptions.parse(raw, {"a": data.kind})


def build(spec: FileIndexOptions, types: dict[str, ColumnType], table: pa.Table) -> bytes:
    writer = DataFileIndexWriter.create(spec, types)
    assert writer is not None
    for batch in table.to_batches(max_chunksize=BATCH):
        writer.write(batch)
    return write_index_container(writer.finish())


def seconds(*work: Callable[[], Any]) -> list[float]:
    """Processor time of each, the best of several turns in which they follow each other."""
    best = [float("inf")] * len(work)
    for _ in range(TURNS):
        for number, function in enumerate(work):
            start = time.process_time()
            function()
            best[number] = min(best[number], time.process_time() - start)
    return best


def bare_values(array: Any, key: str | None) -> Any:
    return array if key is None else pc.map_lookup(array, pa.scalar(key), "last")


def bare_codes(values: Any) -> tuple[Any, np.ndarray]:
    """Distinct values in order, and for each row the number of its value."""
    if pa.types.is_integer(values.type):
        return np.unique(values.to_numpy(zero_copy_only=False), return_inverse=True)
    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return encoded.dictionary.take(pa.array(order)), ranks[encoded.indices.to_numpy()]


def bare_set(rows: np.ndarray) -> bytes:
    found = BitMap(array("I", rows.astype(np.uint32).tobytes()))  # its quickest constructor
    found.run_optimize()
    return found.serialize()


def floor_bloom(values: Any, items: int) -> bytes:
    if pa.types.is_string(values.type):
        repetitive = pc.count_distinct(values[:1000]).as_py() < 500
        texts = (values.dictionary_encode().dictionary if repetitive else values).cast(pa.binary()).to_pylist()
        hashes = np.fromiter(map(xxhash.xxh64_intdigest, texts), np.uint64, len(texts)).view(np.int64)
    else:
        x = values.to_numpy(zero_copy_only=False).astype(np.int64)
        x = ~x + (x << 21)
        x ^= x >> 24
        x = x + (x << 3) + (x << 8)
        x ^= x >> 14
        x = x + (x << 2) + (x << 4)
        x ^= x >> 28
        hashes = x + (x << 31)
    bits = int(-items * np.log(0.1) / np.log(2) ** 2) // 8 * 8 + 8
    flags = np.zeros(bits, bool)
    at, stride = hashes.astype(np.int32), (hashes >> 32).astype(np.int32)
    for _ in range(3):
        at = at + stride
        flags[(at ^ (at >> 31)) % bits] = True
    return np.packbits(flags, bitorder="little").tobytes()


def floor_bitmap(values: Any) -> list[bytes]:
    distinct, codes = bare_codes(values)
    order = np.argsort(codes.astype(np.uint16) if len(distinct) < 1 << 16 else codes, kind="stable")
    counts = np.bincount(codes, minlength=len(distinct))
    ends = np.cumsum(counts)
    return [bare_set(order[ends[code] - counts[code] : ends[code]]) for code in np.flatnonzero(counts > 1).tolist()]


def floor_slices(numbers: np.ndarray) -> list[bytes]:
    bits = int(numbers.max()).bit_length()
    return [bare_set(np.arange(len(numbers))), *(bare_set(np.flatnonzero(numbers >> bit & 1)) for bit in range(bits))]


def floor_of(index: str, data: Data, rows: int) -> Callable[[], Any]:
    def run() -> Any:
        values = bare_values(data.array, data.key)
        match index:
            case "bloom-filter":
                return floor_bloom(values, rows)
            case "bitmap":
                return floor_bitmap(values)
            case "bsi":
                return floor_slices(values.to_numpy(zero_copy_only=False))
            case _:
                return floor_slices(bare_codes(values)[1])

    return run


def questions(index: str, data: Data) -> list[Predicate]:
    column = parse_column(data.column)
    literals = [data.probe(number) for number in range(PROBES)]
    if index in {"bsi", "range-bitmap"} and isinstance(literals[0], int):
        return [And((Compare(column, Op.GE, low), Compare(column, Op.LE, low + max(1, abs(low) // 100)))) for low in literals]
    return [Compare(column, Op.EQ, literal) for literal in literals]


def probe(container: bytes, data: Data, rows: int, asked: list[Predicate]) -> int:
    """Bytes that the probes read; each opens the container anew."""
    notes = IndexMetrics()
    for predicate in asked:
        evaluate(predicate, ContainerReader.of(container), {"a": data.kind}, rows, notes)
    assert not notes.warnings, notes.warnings
    return notes.bytes_read


def scan(data: Data) -> None:
    for number in range(PROBES):
        values = bare_values(data.array, data.key)
        if isinstance(data.probe(number), int):
            np.flatnonzero(values.to_numpy(zero_copy_only=False) == data.probe(number))
        else:
            np.flatnonzero(pc.equal(values, data.probe(number)).to_numpy(zero_copy_only=False))


def measured(index: str, data: Data, rows: int) -> Line:
    table, types = pa.table({"a": data.array}), {"a": data.kind}
    spec, asked = options(index, data, rows), questions(index, data)
    ours, floor = seconds(lambda: build(spec, types, table), floor_of(index, data, rows))
    container = build(spec, types, table)
    probing, scanning = seconds(lambda: probe(container, data, rows, asked), lambda: scan(data))
    read, millions = probe(container, data, rows, asked) / PROBES, rows / 1e6
    return Line(index, data.name, ours / millions, floor / millions, len(container), probing / PROBES, scanning / PROBES, read)


APPEND = {
    "file-index.bloom-filter.columns": "id",
    "file-index.bitmap.columns": "city,flag",
    "file-index.range-bitmap.columns": "price",
}
APPEND_TYPES = {"id": LONG, "city": TEXT, "flag": INT, "price": INT}


def append_rows(rows: int) -> pa.Table:
    cities = pa.array([f"city-{number:03d}" for number in range(200)])
    return pa.table(
        {
            "id": pa.array(RNG.permutation(rows * 4)[:rows].astype(np.int64)),
            "city": pa.DictionaryArray.from_arrays(pa.array(RNG.integers(0, 200, rows, dtype=np.int32)), cities).dictionary_decode(),
            "flag": pa.array(RNG.integers(0, 1000, rows).astype(np.int32)),
            "price": pa.array(RNG.integers(0, 100_000, rows).astype(np.int32)),
        }
    )


def append(rows: int, files: int, threads: int) -> tuple[float, float, float, float]:
    """Wall and processor seconds of the indexes of an append write in so many files, then of the floor."""
    table, size = append_rows(rows), -(-rows // files)
    parts = [table.slice(at * size, size).combine_chunks() for at in range(files)]
    spec = FileIndexOptions.parse({**APPEND, "file-index.bloom-filter.id.items": str(size)}, APPEND_TYPES)

    def floor(part: pa.Table) -> None:
        columns = {name: part[name].chunk(0) for name in part.column_names}
        floor_bloom(columns["id"], size)
        floor_bitmap(columns["city"])
        floor_bitmap(columns["flag"])
        floor_slices(bare_codes(columns["price"])[1])

    found: list[float] = []
    for work in (lambda part: build(spec, APPEND_TYPES, part), floor):
        best = (float("inf"), float("inf"))
        for _ in range(TURNS):
            wall, cpu = time.perf_counter(), time.process_time()
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(work, parts))
            best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
        found += best
    return found[0], found[1], found[2], found[3]


def figures_of(lines: list[Line]) -> Figures:
    rows = [
        [
            f"{line.index}, {line.data}",
            f"{line.build * 1e3:.0f}",
            f"{line.floor * 1e3:.0f}",
            f"{line.build / line.floor:.2f}",
            f"{line.size / 1e6:.2f} MB",
            f"{line.probe * 1e3:.2f}",
            f"{line.scan * 1e3:.2f}",
            f"{line.read / 1e3:.1f} kB",
        ]
        for line in lines
    ]
    columns = ["index, column", "build ms", "floor ms", "ratio", "size", "probe ms", "scan ms", "read"]
    return Figures("File indexes: building per million rows, probing one container", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each column; 0 leaves the single indexes out")
    parser.add_argument("--append", type=int, default=0, help="rows of an append write with bloom, two bitmaps and a range-bitmap")
    parser.add_argument("--files", type=int, default=4, help="files of that write")
    parser.add_argument("--threads", type=int, default=2, help="that build them")
    parser.add_argument("--json", type=Path, help="where the figures go, too")
    given = parser.parse_args()
    tables = []
    if given.rows:
        tables.append(figures_of([measured(index, data, given.rows) for data in datasets(given.rows) for index in indexes_of(data)]))
    if given.append:
        wall, cpu, floor_wall, floor_cpu = append(given.append, given.files, given.threads)
        title = f"Indexes of an append write of {given.append:,} rows: bloom (id), bitmaps (city, flag), range-bitmap (price)"
        rows = [
            ["product", f"{wall:.2f}", f"{cpu:.2f}"],
            ["floor", f"{floor_wall:.2f}", f"{floor_cpu:.2f}"],
            ["ratio", f"{wall / floor_wall:.2f}", f"{cpu / floor_cpu:.2f}"],
        ]
        tables.append(Figures(title, ["", "wall s", "cpu s"], rows))
    for each in tables:
        each.show()
    store(given.json, tables)


if __name__ == "__main__":
    main()
