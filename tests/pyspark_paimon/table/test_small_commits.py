"""Many small commits on a large base: results of merges stay on level 0, and readers merge all versions as before."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from manifest.entry.data_file import FileSource
from pyspark_paimon import Table

BASE = 60_000
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "sequence field": {"sequence.field": "version"},
    "partial update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {"merge-engine": "aggregation", "fields.amount.aggregate-function": "sum"},
}


def rows(ids: list[int], amounts: list[float | None], version: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "amount": pa.array(amounts, pa.float64()), "version": pa.array([version] * len(ids), pa.int64())}
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_small_commits_on_a_large_base_stay_on_level_0(tmp_path: Path, name: str) -> None:
    chance = random.Random(5)
    options = {"bucket": "1", "num-levels": "2", **ENGINES[name]}
    table = Table.create(tmp_path / "t", "id BIGINT, amount DOUBLE, version BIGINT", primary_keys=["id"], options=options)
    base = np.random.default_rng(1).random(BASE)
    table.write(rows(list(range(BASE)), base.tolist(), 0))
    table.compact(full=True)
    model: dict[int, tuple[float | None, int]] = {key: (value, 0) for key, value in enumerate(base.tolist())}
    stayed = 0
    for commit in range(1, 31):
        ids = chance.sample(range(BASE), 5)
        version = commit if name != "sequence field" else chance.randint(-20, 40)
        amounts = [None if chance.random() < 0.3 else float(chance.randint(0, 9)) for _ in ids]
        table.write(rows(ids, amounts, version))
        for key, amount in zip(ids, amounts, strict=True):
            model[key] = merged(name, model.get(key), amount, version)
        if name != "aggregation" and commit % 4 == 0:
            key = chance.choice(ids)
            if model[key][1] <= version or name != "sequence field":
                table.write(rows([key], [None], version).append_column("_row_kind", pa.array(["-D"])))
                del model[key]
        files = [file for split in table.scan().plan().splits for file in split.files]
        stayed += any(file.level == 0 and file.file_source == FileSource.COMPACT for file in files)
    assert stayed, "no result of a merge stayed on level 0"
    assert max(table.files()["level"].to_pylist()) == 1
    assert read(table) == model
    table.compact(full=True)
    assert read(table) == model


def merged(name: str, old: tuple[float | None, int] | None, amount: float | None, version: int) -> tuple[float | None, int]:
    """Return the result of a new version on an old one."""
    if old is None:
        return amount, version
    if name == "sequence field" and version < old[1]:
        return old
    if name == "partial update" and amount is None:
        return old[0], version
    if name == "aggregation":
        return (old[0] if amount is None else amount + (old[0] or 0.0)), version
    return amount, version


def read(table: Table) -> dict[int, tuple[float | None, int]]:
    frame = table.scan().to_arrow().to_pydict()
    return dict(zip(frame["id"], zip(frame["amount"], frame["version"], strict=True), strict=True))
