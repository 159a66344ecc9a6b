"""Retained deletes on the deepest level (``delete.time-retained``): other readers leave them out, and the engine's compaction drops them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine
from tests.interop.peers import Peer

pytestmark = pytest.mark.interop

LAYOUTS: dict[str, dict[str, str]] = {
    "plain": {},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "lookup": {"changelog-producer": "lookup"},
}


def event(key: int, ts: int, kind: str = "+I") -> dict[str, Any]:
    return {"id": key, "v": ts, "ts": ts, "_row_kind": kind}


def retained(path: Path, layout: str) -> Table:
    """A table whose only file is on the deepest level and holds deletes."""
    options = {"bucket": "1", "sequence.field": "ts", "delete.time-retained": "1 d", **LAYOUTS[layout]}
    table = Table.create(path, "id BIGINT, v BIGINT, ts BIGINT", primary_keys=["id"], options=options)
    table.write([event(key, 1) for key in range(6)])
    table.write([event(key, 10, "-D") for key in (1, 4)])
    table.compact(full=True)
    assert table.files().select(["level", "delete_row_count"]).to_pylist() == [{"level": 5, "delete_row_count": 2}]
    return table


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_engine_reads_around_retained_deletes_and_keeps_late_events_out(engine: Engine, tmp_path: Path, layout: str) -> None:
    table = retained(tmp_path / "t", layout)
    assert [row["id"] for row in engine.dump(table.path)] == [0, 2, 3, 5]
    assert engine.fsck(table.path) == []
    assert [row["id"] for row in engine.dump(table.path, {"op": ">=", "col": "v", "value": 10})] == []
    table.write([event(1, 5), event(4, 11)])
    table.compact(full=True)
    assert [row["id"] for row in engine.dump(table.path)] == [0, 2, 3, 4, 5]
    engine.write(table.path, [{"id": 1, "v": 6, "ts": 6}])
    assert sorted(row["id"] for row in Table.open(table.path).scan().to_arrow().to_pylist()) == [0, 2, 3, 4, 5]


def test_the_engines_full_compaction_drops_retained_deletes(engine: Engine, tmp_path: Path) -> None:
    """The docs say so: only our compactions know the option."""
    table = retained(tmp_path / "t", "plain")
    table.write([event(7, 1)])
    engine.compact(table.path, full=True)
    assert table.files()["delete_row_count"].to_pylist() == [0]
    table.write([event(1, 5)])
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 5, 7]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pypaimon_reads_around_retained_deletes(pypaimon: Peer, tmp_path: Path, layout: str) -> None:
    table = retained(tmp_path / "db.db" / "t", layout)
    assert sorted(pypaimon.read(table.path)["id"].to_pylist()) == [0, 2, 3, 5]
