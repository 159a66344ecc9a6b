"""Lookups of a value outside of the key: secondary indexes beside file indexes, no index, and DuckDB with an ART index.

    python -m benchmarks.secondary_index                        # 6,000,000 rows, 200 files, 6 levels
    python -m benchmarks.secondary_index --rows 600000 --files 20

All tables hold the same rows. A lookup is ``=`` on a text column with a million values. Figures are CPU milliseconds of this process, medians; *first* is
the first lookup of a process that forgot its cache. Building is a full compaction of the same level-0 files.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.machine import cpu_seconds
from pyspark_paimon import Table, cache_clear

ROWS, FILES, LEVELS, LOOKUPS, BATCHES = 6_000_000, 200, 6, 30, 12
COLUMNS = "id BIGINT, tail STRING, carrier STRING, delay INT, fare DOUBLE"
VECTORS = {"bucket": "1", "deletion-vectors.enabled": "true", "num-levels": str(LEVELS + 1), "write-only": "true"}
KINDS: dict[str, dict[str, str]] = {
    "pk-btree": {"pk-btree.index.columns": "tail"},
    "pk-bitmap": {"pk-bitmap.index.columns": "tail"},
    "file bloom-filter": {"file-index.bloom-filter.columns": "tail"},
    "file bitmap": {"file-index.bitmap.columns": "tail"},
    "no index": {},
}


def rows(ids: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    """Return rows with the keys ``ids``. A key's values are always the same."""
    tails = pa.array(ids * 7_919 % 1_000_003)
    return pa.table(
        {
            "id": ids,
            "tail": pa.compute.binary_join_element_wise("N", tails.cast(pa.string()), ""),
            "carrier": pa.compute.binary_join_element_wise("carrier", pa.array(ids % 300).cast(pa.string()), " "),
            "delay": pa.array((ids % 977).astype(np.int32)),
            "fare": ids % 100_003 / 7,
        }
    )


@dataclass(frozen=True)
class Measured:
    """One way to find the rows of a value. CPU milliseconds."""

    name: str
    build: float
    first: float
    again: float
    reads: str
    index_bytes: int


def built(path: Path, options: dict[str, str], row_count: int, files: int) -> tuple[Table, float]:
    """Return a table with ``files`` files over several levels, and the CPU seconds of its compactions."""
    size = f"{max(1, row_count * 22 // files)} b"  # rows take about 22 bytes in a file
    table = Table.create(str(path), COLUMNS, primary_keys=["id"], options={**VECTORS, "target-file-size": size, **options})
    order = np.random.default_rng(1).permutation(row_count)
    # Most rows are on the deepest level, as in a table that grows.
    shares = [0.8, *[0.2 / (LEVELS - 1)] * (LEVELS - 1)]
    bounds = [0, *np.cumsum([int(share * row_count) for share in shares]).tolist()]
    seconds = 0.0
    for level, (first, last) in enumerate(itertools.pairwise(bounds)):
        for part in np.array_split(order[first:last], BATCHES if level == 0 else 2):
            table.write(rows(np.sort(part)))
        seconds += cpu_seconds(partial(table.compact, full=level == 0, options={"num-sorted-run.compaction-trigger": "2"}))
    return table, seconds


def values(row_count: int) -> Iterator[str]:
    """Yield values to look up."""
    for number in np.random.default_rng(2).integers(0, row_count, LOOKUPS).tolist():
        yield f"N{number * 7_919 % 1_000_003}"


def timed(lookup: Callable[[str], int], row_count: int, *, forget: bool) -> float:
    """Return the CPU milliseconds of a lookup."""
    taken = []
    for value in values(row_count):
        if forget:
            cache_clear()
        counts = list[int]()
        taken.append(cpu_seconds(lambda: counts.append(lookup(value))) * 1000)  # noqa: B023  # called at once
        assert counts[0], value
    return statistics.median(taken)


def measure(name: str, folder: Path, row_count: int, files: int) -> Measured:
    """Build a table, and look values up."""
    table, build = built(folder / name.replace(" ", "-"), KINDS[name], row_count, files)

    def lookup(value: str) -> int:
        return table.scan(f"tail = '{value}'").to_arrow().num_rows

    first, again = timed(lookup, row_count, forget=True), timed(lookup, row_count, forget=False)
    cache_clear()
    stages = {stage.name: stage.note for stage in table.scan(f"tail = '{next(values(row_count))}'").explain().stages}
    health = table.index_health()
    size = pa.compute.sum(health["index_size_in_bytes"]).as_py() or 0
    levels = sorted(set(table.files().column("level").to_pylist()))
    reads = stages.get("secondary index", stages.get("file index", ""))
    return Measured(name, build, first, again, f"{table.files().num_rows} files on levels {levels}; {reads}", size)


def duckdb_art(folder: Path, row_count: int) -> Measured:
    """The same rows in DuckDB, with an index of the column."""
    import duckdb  # an extra of benchmarks

    connection = duckdb.connect(str(folder / "art.duckdb"), config={"threads": 1})
    data: Any = rows(np.arange(row_count))  # noqa: F841  # DuckDB finds it by its name
    connection.execute("CREATE TABLE t AS SELECT * FROM data")
    build = cpu_seconds(lambda: connection.execute("CREATE INDEX by_tail ON t (tail)").execute("CHECKPOINT"))

    def lookup(value: str) -> int:
        return connection.execute("SELECT * FROM t WHERE tail = ?", [value]).to_arrow_table().num_rows

    again = timed(lookup, row_count, forget=False)
    return Measured("DuckDB, ART index", build, float("nan"), again, "", 0)


def main() -> None:
    """Print the figures as a table of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--files", type=int, default=FILES)
    given = parser.parse_args()
    print("| | compactions, s | first lookup, ms | again, ms | index, MiB | |\n|---|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in KINDS:
            show(measure(name, Path(folder), given.rows, given.files))
        show(duckdb_art(Path(folder), given.rows))


def show(one: Measured) -> None:
    """Print a row."""
    print(
        f"| {one.name} | {one.build:.1f} | {one.first:.1f} | {one.again:.1f} | {one.index_bytes / (1 << 20):.1f} | {one.reads} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
