"""Reads that run out of memory outside of a file's decoder: ``OutOfMemory`` names the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest

from lsm.read import split
from pyspark_paimon import Table

pytestmark = pytest.mark.local_files
ERRORS: dict[str, Callable[[], Exception]] = {
    "Python's": MemoryError,
    "Arrow's": lambda: pa.ArrowMemoryError("malloc of size 64 failed"),
    "numpy's": lambda: np._core._exceptions._ArrayMemoryError((1 << 50,), np.dtype(np.int64)),  # numpy has no public name for it
}
PLACES: dict[str, tuple[Any, str]] = {
    "masks": (split.selection, "selection_vectors"),
    "merge": (split.merge_iterator, "merge_runs"),
    "limit": (split, "limit_rows"),
}
READS: dict[str, Callable[[Table], Any]] = {
    "scan": lambda table: table.scan("n + 1 > 1").to_arrow(),
    "limit": lambda table: table.scan("n + 1 > 1", limit=2).to_arrow(),
    "batches": lambda table: list(table.scan("n + 1 > 1").to_batches()),
    "order": lambda table: table.scan("n + 1 > 1", order_by="n").to_arrow(),
    "count": lambda table: table.scan("n + 1 > 1").count(),
    "aggregate": lambda table: table.scan("n + 1 > 1").aggregate({"n": "sum"}),
    "groups": lambda table: table.scan("n + 1 > 1").aggregate({"n": "sum"}, by="id"),
    "splits": lambda table: [list(scan.read(part)) for scan in [table.scan("n + 1 > 1")] for part in scan.splits()],
    "stream": lambda table: list(table.follow(filter="n + 1 > 1")),
}


@pytest.mark.parametrize(
    ("engine", "place"), [("deduplicate", "masks"), ("aggregation", "merge"), ("deduplicate", "limit"), ("aggregation", "limit")]
)
@pytest.mark.parametrize("error", ERRORS)
def test_reads_without_memory_raise_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str, place: str, engine: str
) -> None:
    options = {"bucket": "1", "write-only": "true", "merge-engine": engine, "changelog-producer": "input"}
    table = Table.create(tmp_path / "t", "id BIGINT, n BIGINT", primary_keys=["id"], options=options)
    for _ in range(3):
        table.write({"id": list(range(50)), "n": list(range(50))})

    reached, outcomes = 0, dict[str, str]()
    for read, call in READS.items():
        with monkeypatch.context() as patch:
            calls: list[str] = []

            def fail(*_: object, calls: list[str] = calls, read: str = read, **__: object) -> NoReturn:
                calls.append(read)
                shortage = ERRORS[error]()
                raise shortage

            patch.setattr(*PLACES[place], fail)
            outcome = outcomes[read] = _outcome(call, table)
        reached += bool(calls)
        assert not calls or (outcome.startswith("OutOfMemory") and table.path in outcome), (read, outcome)
    assert reached > 3, outcomes


def _outcome(call: Callable[[Table], Any], table: Table) -> str:
    try:
        return f"an answer: {call(table)!r}"
    except Exception as error:  # noqa: BLE001  # the outcome is compared
        return f"{type(error).__name__}: {error}"
