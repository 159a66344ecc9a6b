"""Threads that look up keys while a writer commits."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable

import pyarrow as pa

from pyspark_paimon import Table

THREADS = 32


def look_up_beside(lookup: Callable[[dict[str, list[int]]], pa.Table], rows: int, commits: Iterable[object]) -> None:
    """Check lookups of 32 threads until each saw a commit and all ``commits`` are done.

    The table has the keys ``id`` from 0 to ``rows``. Each commit writes one number into ``n`` of all rows, greater than the one before.
    So a lookup of one snapshot sees one number, and never an older one than the lookup before.
    """
    errors: list[BaseException] = []
    done = threading.Event()

    def read(seed: int) -> None:
        rng, last = random.Random(seed), 0
        try:
            while not done.is_set() or last < 1:
                keys = [rng.randrange(rows) for _ in range(3)]
                found = lookup({"id": keys})
                assert found["id"].to_pylist() == keys
                numbers = set(found["n"].to_pylist())
                assert len(numbers) == 1
                assert min(numbers) >= last
                last = min(numbers)
        except BaseException as error:  # noqa: BLE001  # reported by the main thread
            errors.append(error)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    try:
        for _ in commits:
            pass
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not errors


def write_all(path: str, rows: int, number: int) -> None:
    """Write ``number`` into all rows, as another process would."""
    Table.open(path).write(pa.table({"id": range(rows), "n": [number] * rows}))
