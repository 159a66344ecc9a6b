"""Rows wait until those of a key come together, in memory or on disk."""

import numpy as np
import pyarrow as pa
import pytest

from lsm.cross_partition.staged_rows import StagedRows
from lsm.data_files.spill import SpillSpace
from manifest.schema.validation import build_schema

SCHEMA = build_schema("id INT, name STRING, p STRING, v INT", primary_keys=["id", "name"], partition_keys=["p"])


def batch(ids, start):
    columns = {"id": pa.array(ids, pa.int32()), "name": [f"n{i % 3}" for i in ids], "p": ["x"] * len(ids)}
    return pa.table({**columns, "v": pa.array(range(start, start + len(ids)), pa.int32())})


@pytest.mark.parametrize("budget", [1 << 30, 40_000, 12_000])
def test_rows_of_a_key_come_together_in_order_of_arrival(tmp_path, budget):
    chance = np.random.default_rng(7)
    waiting = StagedRows(SCHEMA, budget, SpillSpace(str(tmp_path / "s")))
    for start in range(0, 6000, 1000):
        kinds = None if start % 2000 else chance.integers(0, 4, 1000).astype(np.int8)
        waiting.add(batch(chance.integers(0, 500, 1000).tolist(), start), kinds)
    seen, rows = set(), 0
    for table, kinds in waiting.drain():
        assert budget == 1 << 30 or table.nbytes <= 2 * budget
        assert kinds is None or len(kinds) == table.num_rows
        by_key = {}
        for row in table.to_pylist():
            by_key.setdefault((row["id"], row["name"]), []).append(row["v"])
        assert all(values == sorted(values) for values in by_key.values())
        assert not seen & set(by_key)
        seen |= set(by_key)
        rows += table.num_rows
    assert rows == 6000
    assert list(waiting.drain()) == []
    assert not any((tmp_path / "s").iterdir()) if budget < 1 << 30 else not (tmp_path / "s").exists()


def test_kinds_stay_with_their_rows(tmp_path):
    waiting = StagedRows(SCHEMA, 100, SpillSpace(str(tmp_path / "s")))
    waiting.add(batch(range(100), 0), (np.arange(100) % 4).astype(np.int8))
    for table, kinds in waiting.drain():
        assert kinds.tolist() == [v % 4 for v in table["v"].to_pylist()]


def test_rows_of_one_key_come_whole(tmp_path):
    waiting = StagedRows(SCHEMA, 100, SpillSpace(str(tmp_path / "s")))
    for start in (0, 50):
        waiting.add(batch([1] * 50, start), None)
    [(table, _)] = waiting.drain()
    assert table["v"].to_pylist() == list(range(100))
