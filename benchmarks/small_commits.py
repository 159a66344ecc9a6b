"""Many small commits on a large base: write amplification, sorted runs, and the cost of commits and reads.

    python -m benchmarks.small_commits                        # 2,000 commits of 500 rows on 336,776 rows
    python -m benchmarks.small_commits --commits 300

Two tables take the same rows: one with the trigger that grows with the bucket (the default), one with Paimon's fixed trigger of 5. Write
amplification is bytes of all files after the base by bytes of flushes. Figures are CPU milliseconds of this process, medians of the last 50 commits.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.machine import cpu_seconds
from manifest.entry.data_file import FileSource
from pyspark_paimon import Table

BASE, ROWS, COMMITS, KEYS, WINDOW, READS = 336_776, 500, 2_000, 20, 50, 5
SHOWN = (50, 100, 300, 600, 1_000, 1_500, 2_000)
TRIGGERS: dict[str, dict[str, str]] = {"growing": {}, "fixed at 5": {"num-sorted-run.compaction-trigger": "5"}}


def rows(ids: np.ndarray[tuple[int], np.dtype[np.int64]], draw: np.random.Generator) -> pa.Table:
    """Return rows with the keys ``ids``."""
    count = len(ids)
    return pa.table(
        {
            "id": ids,
            "distance": draw.random(count),
            "delay": draw.random(count),
            "carrier": [f"carrier {key % 300}" for key in ids.tolist()],
            "seats": pa.array(draw.integers(0, 1_000, count).astype(np.int32)),
        }
    )


@dataclass
class Series:
    """One table, and what its commits cost so far."""

    table: Table
    draw: np.random.Generator
    flushed: int = 0
    written: int = 0
    names: set[str] = field(default_factory=set)
    commits: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, path: Path, options: dict[str, str]) -> Series:
        """Return a table with its base on the deepest level."""
        schema = "id BIGINT, distance DOUBLE, delay DOUBLE, carrier STRING, seats INT"
        options = {"bucket": "1", "snapshot.num-retained.min": "5", "snapshot.num-retained.max": "10", **options}
        series = cls(Table.create(path, schema, primary_keys=["id"], options=options), np.random.default_rng(1))
        series.table.write(rows(np.arange(BASE), series.draw))
        series.table.compact(full=True)
        series.names = {name for name, *_ in series.files()}
        return series

    def files(self) -> list[tuple[str, int, int, int]]:
        """Return name, level, bytes and source of the live files."""
        files = [file for split in self.table.scan().plan().splits for file in split.files]
        return [(file.file_name, file.level, file.file_size, int(file.file_source or 0)) for file in files]

    def commit(self) -> None:
        """Upsert rows with random keys, and count the new files."""
        batch = rows(np.sort(self.draw.choice(BASE, ROWS, replace=False)), self.draw)
        self.commits.append(_milliseconds(lambda: self.table.write(batch)))
        for name, _, size, source in self.files():
            if name not in self.names:
                self.names.add(name)
                self.written += size
                self.flushed += size if source == FileSource.APPEND else 0

    def line(self, name: str) -> str:
        """Return a row of the table of results."""
        levels = [level for _, level, *_ in self.files()]
        runs = levels.count(0) + len(set(levels) - {0})
        keys = {"id": [int(key) for key in self.draw.choice(BASE, KEYS)]}
        self.table.scan().to_arrow()  # the first read of new memory would cost the table that is read first
        read = statistics.median(_milliseconds(lambda: self.table.scan().to_arrow()) for _ in range(READS))
        lookup = statistics.median(_milliseconds(lambda: self.table.lookup(keys)) for _ in range(READS))
        commit = statistics.median(self.commits[-WINDOW:])
        amplification = self.written / max(self.flushed, 1)
        return f"| {len(self.commits):,} | {name} | {amplification:.1f} | {runs} | {commit:.0f} | {read:.0f} | {lookup:.0f} |"


def _milliseconds(work: Callable[[], object]) -> float:
    return 1e3 * cpu_seconds(work)


def main() -> None:
    """Print the table of results as it grows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--commits", type=int, default=COMMITS)
    commits = parser.parse_args().commits
    print("| commits | trigger | write amplification | sorted runs | commit ms | full read ms | 20 lookups ms |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        series = {name: Series.of(Path(folder) / name.split()[0], options) for name, options in TRIGGERS.items()}
        for commit in range(1, commits + 1):
            for name, one in series.items():
                one.commit()
                if commit in SHOWN:
                    print(one.line(name), flush=True)


if __name__ == "__main__":
    main()
