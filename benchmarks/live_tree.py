"""Cost of filters and changes between compactions, relative to a compacted table.

    python -m benchmarks.live_tree                            # 2 million rows
    python -m benchmarks.live_tree --rows 2000000,20000000

Both tables have the same rows in 4 buckets. One was compacted after all writes. The other has three upserts of 2,000 rows above its base.
Figures are medians of CPU milliseconds in one process. Answers of the two tables are compared.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.machine import cpu_seconds, machine_class
from pyspark_paimon import Table

SCHEMA = "id BIGINT, code STRING, color STRING, size INT, price BIGINT, note STRING"
OPTIONS = {
    "bucket": "4",
    "write-only": "true",
    "file-index.bloom-filter.columns": "code",
    "file-index.bitmap.columns": "color,size",
}
UPSERTS, UPSERTED, ROUNDS, HITS = 3, 2_000, 7, 9


def rows(ids: np.ndarray[tuple[int], np.dtype[np.int64]], total: int, seed: int) -> pa.Table:
    """Return rows of a table of ``total`` rows: a price near half the id, and values drawn at random."""
    draw, count = np.random.default_rng(seed), len(ids)
    return pa.table(
        {
            "id": ids,
            "code": np.char.add("c", draw.integers(0, total, count).astype("U9")),
            "color": np.char.add("k", draw.integers(0, 40, count).astype("U3")),
            "size": pa.array(draw.integers(0, 60, count), pa.int32()),
            "price": ids // 2 + draw.integers(0, 50, count),
            "note": np.char.add("note ", draw.integers(0, 10**9, count).astype("U12")),
        }
    )


def make(path: Path, total: int, *, compacted: bool) -> Table:
    """Write a table with a compacted base and small upserts."""
    table = Table.create(path, SCHEMA, primary_keys=["id"], options=OPTIONS)
    step = 2_000_000
    for start in range(0, total, step):
        table.write(rows(np.arange(start, min(start + step, total)), total, start))
    table.compact(full=True)
    for number in range(UPSERTS):
        table.write(rows(np.random.default_rng(number).choice(total, UPSERTED, replace=False), total, total + number))
    if compacted:
        table.compact(full=True)
    return table


def questions(table: Table, total: int) -> dict[str, list[str]]:
    """Return filters by name: indexed hits and misses, two bitmaps, and a range.

    A bloom filter has false positives, so one hit alone would measure luck.
    """
    codes = table.scan(f"id < {HITS}").to_arrow()["code"].to_pylist()
    return {
        "bloom hit": [f"code = '{code}'" for code in codes],
        "bloom miss": [f"code = '{code}+'" for code in codes],
        "two bitmaps": ["color = 'k7' AND size = 13"],
        "range": [f"price BETWEEN {total // 4} AND {total // 4 + total // 2000}"],
    }


def measure(works: Sequence[Callable[[], object]]) -> float:
    """Return the median CPU milliseconds."""
    return 1000 * statistics.median(cpu_seconds(work) for _ in range(ROUNDS) for work in works)


def run(total: int, folder: Path) -> None:
    """Print one line for each question and change."""
    live, compacted = (make(folder / str(at), total, compacted=bool(at)) for at in range(2))
    print(f"{total:,} rows; {machine_class()}")
    print(f"{'':14}{'live ms':>10}{'compacted ms':>14}{'ratio':>8}{'rows':>10}")
    for name, conditions in questions(live, total).items():
        found = 0
        for condition in conditions:
            answers = [table.scan(condition).to_arrow().sort_by("id") for table in (live, compacted)]
            assert answers[0].equals(answers[1]), f"{condition}: the tables answer differently"
            found += answers[0].num_rows
        figures = [measure([table.scan(condition).to_arrow for condition in conditions]) for table in (live, compacted)]
        print_line(name, *figures, found)
    codes = live.scan("color = 'k3'", limit=2 * ROUNDS).to_arrow()["code"].to_pylist()
    for name, change, some in (("update", update, codes[:ROUNDS]), ("delete", delete, codes[ROUNDS:])):
        figures = [1000 * statistics.median(cpu_seconds(partial(change, table, code)) for code in some) for table in (live, compacted)]
        print_line(name, *figures, len(some))


def update(table: Table, code: str) -> None:
    """Update the rows with a code."""
    table.update(f"code = '{code}'", set={"size": 61})


def delete(table: Table, code: str) -> None:
    """Delete the rows with a code."""
    table.delete(f"code = '{code}'")


def print_line(name: str, live: float, compacted: float, count: int) -> None:
    """Print a line of the table."""
    print(f"{name:14}{live:10.1f}{compacted:14.1f}{live / compacted:8.2f}{count:10,}", flush=True)


def main() -> None:
    """Measure tables of each size in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="2000000", help="numbers of rows, separated by commas")
    folder = Path(tempfile.mkdtemp(prefix="live-tree-"))
    try:
        for total in map(int, parser.parse_args().rows.split(",")):
            run(total, folder / str(total))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
