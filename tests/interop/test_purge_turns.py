"""A purged table is the engine's as before: it reads, checks, writes and compacts it, and we purge what it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine

pytestmark = pytest.mark.interop

LAYOUTS: dict[str, tuple[list[str], dict[str, str]]] = {
    "plain": (["id"], {"bucket": "1"}),
    "deletion vectors": (["id"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "lookup": (["id"], {"bucket": "1", "changelog-producer": "lookup"}),
    "append": ([], {"bucket": "-1"}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_engine_goes_on_after_a_purge(engine: Engine, tmp_path: Path, layout: str) -> None:
    keys, options = LAYOUTS[layout]
    path = tmp_path / "t"
    engine.create(path, {"id": "INT NOT NULL" if keys else "INT", "v": "STRING"}, primary_keys=keys, options=options)
    engine.write(path, [{"id": i, "v": f"secret{i}"} for i in range(6)])
    engine.write(path, [{"id": 9, "v": "x"}])
    if keys:
        engine.compact(path, full=True)
    table = Table.open(path)
    table.delete("id = 5")
    assert table.purge("id IN (2, 5)").gone
    assert sorted(row["id"] for row in engine.dump(path)) == [0, 1, 3, 4, 9]
    assert engine.fsck(path) == []
    engine.write(path, [{"id": 2, "v": "again"}])
    if keys:
        engine.compact(path, full=True)
    assert sorted(row["id"] for row in engine.dump(path)) == [0, 1, 2, 3, 4, 9]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4, 9]
    assert table.purge("id = 2").gone
    assert engine.fsck(path) == []
    assert not [file for file in path.rglob("*.parquet") if b"again" in file.read_bytes() or b"secret2" in file.read_bytes()]
