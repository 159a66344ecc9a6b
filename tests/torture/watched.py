"""Readers beside writers: every read is one of the states that were written, whole, and never an older one than the reader saw before.

A writer replaces all rows, by ``overwrite`` and by an upsert of every key in turns, and each state's rows carry its number; readers open the table
anew and scan it, filter it and count it until he is done. A read that is empty, has two numbers or lacks a key is a failure.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_paimon import Table

KEYS = 60
STATES = 14
LAYOUTS: dict[str, dict[str, str]] = {
    "deletion vectors": {"bucket": "2", "deletion-vectors.enabled": "true"},
    "deletion vectors, changelog": {"bucket": "1", "deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
    "first compactions late": {"bucket": "2", "deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "4"},
}
_SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("state", pa.int64())])


def make(layout: str, path: Path) -> None:
    """The table in state 0."""
    table = Table.create(path, _SCHEMA, primary_keys=("k",), options=LAYOUTS[layout])
    table.write(_state(0))


def write(path: Path, log: Path) -> None:
    """All states, one after the other; ``log`` appears at the end."""
    table = Table.open(path)
    for number in range(1, STATES):
        table.write(_state(number), mode="overwrite" if number % 2 else None)
    log.write_text(json.dumps({"states": STATES}))


def read(path: Path, done: Path, log: Path) -> None:
    """Read until ``done`` is there; what was wrong with a read, and how many there were, goes to ``log``."""
    reads, last, wrong = 0, 0, list[str]()
    while True:
        is_last = done.exists()
        table = Table.open(path)
        seen = [_of_rows(table.scan().to_arrow()), _of_rows(table.scan(pc.field("k") < KEYS // 2).to_arrow(), KEYS // 2)]
        counted = table.scan().count()
        reads += 1
        wrong += [one for one in seen if isinstance(one, str)]
        wrong += [f"count() tells {counted} rows"] if counted != KEYS else []
        numbers = [one for one in seen if isinstance(one, int)]
        if numbers != sorted(numbers) or (numbers and numbers[0] < last):
            wrong.append(f"states {[last, *numbers]} in this order")
        last = max([last, *numbers])
        if is_last:
            break
    if last != STATES - 1:
        wrong.append(f"the last read is of state {last}")
    log.write_text(json.dumps({"reads": reads, "wrong": wrong[:5]}))


def _state(number: int) -> pa.Table:
    return pa.table({"k": range(KEYS), "state": [number] * KEYS}, schema=_SCHEMA)


def _of_rows(rows: Any, count: int = KEYS) -> int | str:
    """The state that rows are of, or what is wrong with them."""
    numbers = rows["state"].unique().to_pylist()
    if len(numbers) != 1 or sorted(rows["k"].to_pylist()) != list(range(count)):
        return f"{len(rows)} rows of states {numbers}"
    return int(numbers[0])


__all__ = ["LAYOUTS", "make", "read", "write"]
