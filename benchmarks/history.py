"""How commits, changes, expiry and checks grow with a table's history: snapshots that were kept, and tags.

    make bench-scaling                                        # among the rest
    python -m benchmarks.history                              # 10, 1,000 and 10,000 snapshots; 10,000 with 300 tags
    python -m benchmarks.history --snapshots 10,100000        # a quarter of an hour

A table of 1,000 rows in one bucket, whose later snapshots add nothing: what grows is the history alone. Each step runs in a process of its
own, on a copy of its own, and says its seconds of the processor.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.machine import cpu_seconds
from benchmarks.metadata_scaling import append
from manifest.commit.attempt import CommitChange
from manifest.entry.columns import EntryColumns
from manifest.store import FileStore
from pyspark_paimon import Table

ROWS, TAGS, EXPIRED = 1_000, 300, 10


def rows(count: int = ROWS) -> pa.Table:
    """Ids from 0 on, a number and a text."""
    ids = np.arange(count)
    return pa.table({"id": ids, "n": ids % 10, "text": np.char.add("text ", (ids % 97).astype(str))})


def make(path: str, snapshots: int, tags: int) -> None:
    """The table, with so many snapshots, and tags that are spread over them."""
    table = Table.create(path, rows().schema, primary_keys=["id"], options={"bucket": "1", "write-only": "true", **_KEPT})
    table.write(rows())
    store = FileStore.open(path)
    for at in range(2, snapshots + 1):
        append(store, CommitChange(EntryColumns.of([])), at)
    for number, at in enumerate(np.linspace(1, snapshots, tags).astype(int).tolist() if tags else ()):
        table.create_tag(f"tag-{number}", at)


_KEPT = {"snapshot.num-retained.min": str(10**6), "snapshot.num-retained.max": str(2 * 10**6)}
"""No commit expires anything but the one that is told to."""


def _expiring(table: Table) -> Any:
    kept = table.snapshots().num_rows - EXPIRED + 1
    options = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": str(max(1, kept)), "snapshot.expire.limit": str(EXPIRED)}
    return cpu_seconds(lambda: table.write(rows(1), options=options))


STEPS: dict[str, Callable[[Table], float]] = {
    "commit of one row": lambda table: cpu_seconds(lambda: table.write(rows(1))),
    "delete by key": lambda table: cpu_seconds(lambda: table.delete("id = 5")),
    "update by key": lambda table: cpu_seconds(lambda: table.update("id = 5", {"n": 3})),
    "overwrite": lambda table: cpu_seconds(lambda: table.write(rows(), mode="overwrite")),
    f"commit that expires {EXPIRED} snapshots": _expiring,
    "lookup by key": lambda table: cpu_seconds(lambda: table.scan("id = 5").to_arrow()),
    "fsck": lambda table: cpu_seconds(table.fsck),
}


def measured(step: str, path: str, first: str) -> float:
    """Seconds of a step in a process of its own, which has done it once to the table at ``first``: imports are not counted."""
    command = [sys.executable, "-m", "benchmarks.history", "--step", step, "--table", path, "--first", first]
    return float(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]))


def report(sizes: list[int]) -> None:
    """A line of Markdown for each step."""
    histories = [*((size, 0) for size in sizes), (sizes[-1], TAGS)]
    cells: dict[str, list[str]] = {step: [] for step in STEPS}
    least: dict[str, float] = {}
    for snapshots, tags in histories:
        with tempfile.TemporaryDirectory(prefix="history-") as folder:
            make(f"{folder}/a.db/t", snapshots, tags)
            make(f"{folder}/a.db/first", 20, 3)
            for step in STEPS:
                for name in ("t", "first"):
                    shutil.copytree(f"{folder}/a.db/{name}", f"{folder}/b.db/{name}")
                seconds = measured(step, f"{folder}/b.db/t", f"{folder}/b.db/first")
                shutil.rmtree(f"{folder}/b.db")
                growth = f" ({seconds / least[step]:.1f} x)" if step in least else ""
                least.setdefault(step, seconds)
                cells[step].append(f"{seconds:.3f} s{growth}")
    print(f"| | {' | '.join(f'{snapshots:,} snapshots' + (f', {tags} tags' if tags else '') for snapshots, tags in histories)} |")
    print("|---" * (len(histories) + 1) + "|")
    for step, found in cells.items():
        print(f"| {step} | {' | '.join(found)} |", flush=True)


def main() -> None:
    """Measure all steps, or in a process of its own one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snapshots", default="10,1000,10000", help="sizes, joined by commas")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--table", help=argparse.SUPPRESS)
    parser.add_argument("--first", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        STEPS[given.step](Table.open(given.first))
        print(json.dumps(STEPS[given.step](Table.open(given.table))))
        return
    report([int(size) for size in given.snapshots.split(",")])


if __name__ == "__main__":
    main()
