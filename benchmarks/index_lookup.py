"""Lookups on a compacted primary-key table with every kind of file index: milliseconds and bytes, with the indexes and without.

    python -m benchmarks.index_lookup --rows 6000000
    python -m benchmarks.index_lookup --rows 6000000 --table /tmp/lookup     # kept, and used again

Times are the best of several turns on warm caches, indexes on and off in turn. Bytes are those fetched through the file system
seam in a turn of their own: metadata, index payloads, footers and pages. Every answer is checked against the other one.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.figures import Figures, store
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from pyspark_paimon import Table
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.table.scan import Scan

BUCKETS = 4
TURNS = 5
WRITE_ROWS = 1 << 20
NO_INDEX = {"file-index.read.enabled": "false"}
DDL = (
    "id BIGINT, line INT, uid STRING, mode STRING, flag STRING, price DOUBLE, quantity INT, discount DECIMAL(15,2), tax DECIMAL(15,2), "
    "part BIGINT, supplier BIGINT, shipped DATE, committed DATE, received TIMESTAMP(6), attrs MAP<STRING, INT>, comment STRING"
)
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
FLAGS = ("A", "N", "O", "R")


class CountingFileIO(WrappedFileIO):
    """Counts the bytes that are read, and notes the data files that are opened."""

    def __init__(self) -> None:
        super().__init__(LocalFileIO())
        self.bytes = 0
        self.opened: set[str] = set()

    def read(self, path: str) -> bytes:
        data = super().read(path)
        self.bytes += len(data)
        return data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        self.bytes += length
        return super().read_range(path, offset, length)

    def open_input(self, path: str, size: int | None = None) -> Any:
        self.opened.add(path)
        return pa.PythonFile(_Counted(super().open_input(path, size), self), mode="r")


class _Counted:
    """An open file that tells how much was read of it; it has what ``pyarrow.PythonFile`` asks for."""

    closed = False

    def __init__(self, source: Any, counter: CountingFileIO) -> None:
        self._source = source
        self._counter = counter

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._source.read(None if size < 0 else size)
        self._counter.bytes += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._source.seek(offset, whence))

    def tell(self) -> int:
        return int(self._source.tell())

    def close(self) -> None:
        self._source.close()
        self.closed = True


def options(rows: int) -> dict[str, str]:
    """The table's options: bloom, two bitmaps, a range-bitmap, and a bitmap on a map entry."""
    return {
        "bucket": str(BUCKETS),
        "write-only": "true",
        "target-file-size": "1 gb",
        "file-index.bloom-filter.columns": "uid",
        "file-index.bloom-filter.uid.items": str(max(1000, rows // BUCKETS)),
        "file-index.bloom-filter.uid.fpp": "0.01",
        "file-index.bitmap.columns": "mode,flag,attrs[clicks]",
        "file-index.range-bitmap.columns": "price",
    }


def uids(numbers: np.ndarray) -> pa.Array:
    """Unique texts in no order: a permutation of 40 bits as hexadecimal digits."""
    mixed = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    letters = np.stack([digits[(mixed >> np.uint64(4 * at)) & np.uint64(15)] for at in range(9, -1, -1)], axis=1)
    return pa.StringArray.from_buffers(
        len(numbers), pa.py_buffer(np.arange(len(numbers) + 1, dtype=np.int32) * 10), pa.py_buffer(letters.tobytes())
    )


def chosen(codes: np.ndarray, values: Sequence[str]) -> pa.Array:
    """Texts by their numbers."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values)).dictionary_decode()


def rows_from(start: int, end: int, rows: int) -> pa.Table:
    """Rows ``start`` to ``end`` of all, their keys shuffled; one in twenty has no attributes."""
    rng, count = np.random.default_rng(start), end - start
    stride = next(prime for prime in (7_919, 7_927) if rows % prime)
    ids = np.arange(start, end) * stride % rows
    words = np.array(["quick", "brown", "ironic", "final", "deposits", "accounts", "carefully", "furiously"])
    comments = [" ".join(row) for row in words[rng.integers(0, len(words), (4096, 5))].tolist()]
    keys = chosen(np.tile([0, 1], count), ["clicks", "region"])
    items = np.empty(2 * count, np.int32)
    items[0::2], items[1::2] = rng.integers(0, 100_000, count), rng.integers(0, 50, count)
    lists = pa.array(np.arange(count + 1, dtype=np.int32) * 2)
    money = [
        pa.array(rng.integers(0, 1000, count)).cast(pa.decimal128(19, 0)).view(pa.decimal128(19, 2)).cast(pa.decimal128(15, 2))
        for _ in "12"
    ]
    return pa.table(
        {
            "id": ids // 4,
            "line": pa.array(ids % 4, pa.int32()),
            "uid": uids(ids),
            "mode": chosen(rng.integers(0, len(MODES), count), MODES),
            "flag": chosen(rng.integers(0, len(FLAGS), count), FLAGS),
            "price": np.round(rng.random(count) * 100_000, 2),
            "quantity": pa.array(rng.integers(1, 51, count), pa.int32()),
            "discount": money[0],
            "tax": money[1],
            "part": rng.integers(0, 200_000, count),
            "supplier": rng.integers(0, 10_000, count),
            "shipped": pa.array(rng.integers(8000, 11_000, count), pa.int32()).cast(pa.date32()),
            "committed": pa.array(rng.integers(8000, 11_000, count), pa.int32()).cast(pa.date32()),
            "received": pa.array(rng.integers(7 * 10**14, 9 * 10**14, count), pa.timestamp("us")),
            "attrs": pa.MapArray.from_arrays(lists, keys, pa.array(items), mask=pa.array(rng.random(count) < 0.05)),
            "comment": chosen(rng.integers(0, len(comments), count), comments),
        }
    )


def build(path: str, rows: int) -> Table:
    """The table, compacted: one file a bucket."""
    table = Table.create(path, DDL, primary_keys=["id", "line"], options=options(rows))
    step = min(WRITE_ROWS, rows // 2)  # several writes, so that there is something to merge
    for start in range(0, rows, step):
        table.write(rows_from(start, min(rows, start + step), rows))
    table.compact(full=True)
    return table


@dataclass(frozen=True)
class Question:
    """One lookup: a filter, columns (None: all), and what is asked of the scan."""

    name: str
    filter: str
    columns: tuple[str, ...] | None = None
    count: bool = False
    order_by: str | None = None
    limit: int | None = None


def questions(rows: int) -> list[Question]:
    """What is measured."""
    hit, miss = (uids(np.array([number]))[0].as_py() for number in (rows // 3, rows + 12_345))
    value = next(dict(entries)["clicks"] for entries in rows_from(0, min(WRITE_ROWS, rows // 2), rows)["attrs"][:99].to_pylist() if entries)
    narrow = ("id", "price", "quantity")
    return [
        Question("bloom, miss", f"uid = '{miss}'"),
        Question("bloom, hit", f"uid = '{hit}'"),
        Question("map entry =", f"attrs['clicks'] = {value}"),
        Question("two bitmaps ANDed, 16 columns", "mode = 'RAIL' AND flag = 'R'"),
        Question("two bitmaps ANDed, 3 columns", "mode = 'RAIL' AND flag = 'R'", narrow),
        Question("range of 0.1 %, 16 columns", "price >= 50000 AND price < 50100"),
        Question("range of 0.1 %, 3 columns", "price >= 50000 AND price < 50100", narrow),
        Question("count, two bitmaps", "mode = 'RAIL' AND flag = 'R'", count=True),
        Question("count, half of all by range", "price < 50000", count=True),
        Question("key, hit", f"id = {rows // 8} AND line = 2"),
        Question("key, miss", f"id = {rows // 8} AND line = 77"),
        Question("ten greatest prices, 16 columns", "TRUE", order_by="price DESC", limit=10),
        Question("ten greatest with a bitmap's rows", "mode = 'RAIL'", order_by="price DESC", limit=10),
    ]


def scan_of(table: Table, question: Question, *, index: bool) -> Scan:
    """The scan, with the indexes or without."""
    columns = None if question.columns is None else list(question.columns)
    scan = table.scan(question.filter, columns, question.limit, order_by=question.order_by)
    return scan if index else replace(scan, _request=scan._request.model_copy(update={"options": NO_INDEX}))  # noqa: SLF001  # no public way


def answer(scan: Scan, question: Question) -> int:
    """Rows found."""
    return scan.count() if question.count else sum(batch.num_rows for batch in scan.to_batches())


def best_of(*work: Callable[[], int]) -> list[float]:
    """Milliseconds of each, the best of turns in which they follow each other."""
    best = [float("inf")] * len(work)
    for _ in range(TURNS):
        for number, function in enumerate(work):
            started = time.perf_counter()
            function()
            best[number] = min(best[number], (time.perf_counter() - started) * 1000)
    return best


def fetched(path: str, question: Question, *, index: bool) -> tuple[int, int]:
    """Bytes and opened data files of a question to a warm table."""
    counter = CountingFileIO()
    table = Table(LocalEngine(path, file_io=counter))
    table.scan("id = -1").to_arrow()  # manifests are kept
    scan = scan_of(table, question, index=index)
    counter.bytes = 0
    counter.opened.clear()
    answer(scan, question)
    return counter.bytes, len(counter.opened)


def measure(table: Table, rows: int) -> Figures:
    """Ask everything."""
    size = sum(table.files()["file_size"].to_pylist())
    lines = []
    for question in questions(rows):
        with_index, without = (scan_of(table, question, index=index) for index in (True, False))
        found, expected = answer(with_index, question), answer(without, question)
        if found != expected:
            raise SystemExit(f"{question.name}: {found} rows with indexes, {expected} without")
        fast, slow = best_of(lambda: answer(with_index, question), lambda: answer(without, question))  # noqa: B023  # called at once
        few, opened = fetched(table.path, question, index=True)
        many, _ = fetched(table.path, question, index=False)
        line = [
            question.name,
            f"{found:,}",
            f"{fast:.1f}",
            f"{slow:.1f}",
            f"{few / 1e3:,.1f}",
            f"{many / 1e3:,.1f}",
            f"{few / size:.3%}",
            str(opened),
        ]
        lines.append(line)
    columns = ["question", "rows", "ms", "ms without", "kB", "kB without", "share of table", "files opened"]
    return Figures(f"Indexed lookups, {rows:,} rows, 16 columns, {BUCKETS} files, {size / 1e6:.0f} MB", columns, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--table", help="where the table lies, or is made and kept")
    parser.add_argument("--json", type=Path, help="where the figures go, too")
    given = parser.parse_args()
    made = None if given.table else tempfile.mkdtemp()
    path = given.table or f"{made}/t"
    try:
        table = Table.open(path) if Path(path).exists() else build(path, given.rows)
        found = measure(table, given.rows)
        found.show()
        store(given.json, [found])
    finally:
        if made is not None:
            shutil.rmtree(made)


if __name__ == "__main__":
    main()
