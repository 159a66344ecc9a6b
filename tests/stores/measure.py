"""The table of requests in ``docs/object-stores.md``: ``python -m tests.stores.measure``.

Each job the first time, from the opening of the table by a process that holds nothing, and once more with the table held open; then
again with 30 ms added to each request. The store is in memory, so that only these count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from manifest.io.file_cache import SHARED
from manifest.storage.bucket import forget_buckets
from pyspark_paimon import Table
from tests.pyspark_paimon.table.test_object_store_rounds import rows, written
from tests.stores.rounds import Rounds, counted

JOBS: dict[str, Callable[[Table], Any]] = {
    "key lookup": lambda table: table.scan("id = 77778").to_arrow(),
    "filter that the indexes say no to": lambda table: table.scan("city = 'nowhere'").to_arrow(),
    "rows that a bitmap finds": lambda table: table.scan("city = 'c78' AND n = 28").to_arrow(),
    "full scan of 4 files": lambda table: table.scan().to_arrow(),
    "upsert of 100 rows": lambda table: table.write(rows(range(100))),
    "delete of one row": lambda table: table.delete("id = 4"),
    "full compaction": lambda table: table.compact(full=True),
    "deep fsck": lambda table: table.fsck("deep"),
}


def measured(rounds: Rounds, job: Callable[[Table], Any], path: str) -> list[tuple[int, int, float]]:
    """Requests, requests in turn and seconds: the first time, and later."""
    forget_buckets([path[: path.index("/w/")]])
    SHARED.clear()
    found = []
    table: Table | None = None
    for _ in range(2):
        rounds.again()
        start = time.perf_counter()
        table = table or Table.open(path)
        job(table)
        found.append((len(rounds.requests), rounds.count, time.perf_counter() - start))
    return found


def main() -> None:
    found: dict[float, list[list[tuple[int, int, float]]]] = {}
    for added in (0.0, 0.03):
        path = written(4)
        with pytest.MonkeyPatch.context() as patched, counted(patched, added) as rounds:
            found[added] = [measured(rounds, job, path) for job in JOBS.values()]
    lines = [
        "| job | first time: requests, in turn | with 30 ms each | later: requests, in turn | with 30 ms each |",
        "|---|---|---|---|---|",
    ]
    for name, quick, slow in zip(JOBS, *found.values(), strict=True):
        cells = [f"{many}, {turns} | {seconds:.2f} s" for (many, turns, _), (*_, seconds) in zip(quick, slow, strict=True)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
