"""Filters by value return the rows of the full scan where manifests may be skipped by any column: no row has two visible versions."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.odd_bytes import ODD_TEXTS

ENGINES = {"deletion vectors": {"deletion-vectors.enabled": "true"}, "first-row": {"merge-engine": "first-row"}}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.sizes
def test_random_upserts_are_found_by_every_value(create, engine):
    chance = random.Random(7)
    table = create(
        "id BIGINT, v INT, s STRING",
        primary_keys=["id"],
        options={"bucket": "1", "num-sorted-run.compaction-trigger": "2", **ENGINES[engine]},
    )
    skipped = 0
    for number in range(6):
        ids = [chance.randrange(30) for _ in range(5)]
        values = pa.array([chance.choice([None, chance.randrange(40)]) for _ in ids], pa.int32())
        table.write(pa.table({"id": ids, "v": values, "s": [chance.choice([None, "a" * chance.randrange(4), *ODD_TEXTS]) for _ in ids]}))
        if number == 3:
            table.compact(full=True)
        rows = table.scan().to_arrow().to_pylist()
        for bound in (5, 20, 33, 60):
            expected = sorted(row["id"] for row in rows if row["v"] is not None and row["v"] > bound)
            assert sorted(table.scan(f"v > {bound}").to_arrow()["id"].to_pylist()) == expected
        for text in chance.sample(ODD_TEXTS, 3):
            expected = sorted(row["id"] for row in rows if row["s"] == text)
            assert sorted(table.scan(pc.field("s") == text).to_arrow()["id"].to_pylist()) == expected
        assert sorted(table.scan("s IS NULL").to_arrow()["id"].to_pylist()) == sorted(row["id"] for row in rows if row["s"] is None)
        skipped += next(stage.dropped for stage in table.scan("v > 33").plan().report if stage.name == "manifest ranges")
    assert skipped
