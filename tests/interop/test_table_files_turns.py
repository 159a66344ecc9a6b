"""Copies, purged tables and tables whose files went missing are the engine's as any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine, EngineError

pytestmark = pytest.mark.interop

LAYOUTS: dict[str, tuple[list[str], dict[str, str]]] = {
    "plain": (["id", "day"], {"bucket": "2"}),
    "deletion vectors": (["id", "day"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "dynamic": (["id", "day"], {"bucket": "-1"}),
    "append": ([], {"bucket": "-1", "deletion-vectors.enabled": "true"}),
    "row ids": ([], {"bucket": "-1", "row-tracking.enabled": "true"}),
}


def made(engine: Engine, path: Path, layout: str) -> Table:
    keys, options = LAYOUTS[layout]
    fields = {"id": "INT NOT NULL" if keys else "INT", "day": "STRING NOT NULL" if keys else "STRING", "v": "STRING"}
    engine.create(path, fields, primary_keys=keys, partition_keys=["day"], options=options)
    for at in range(2):
        engine.write(path, [{"id": i, "day": "ab"[i % 2], "v": f"{at}.{i}"} for i in range(at, at + 8)])
    if keys:
        engine.compact(path, full=True)
    table = Table.open(path)
    if layout != "row ids":
        table.delete("id = 3")
    return table


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_engine_reads_checks_and_writes_a_copy(engine: Engine, tmp_path: Path, layout: str) -> None:
    table, path = made(engine, tmp_path / "t", layout), tmp_path / "copy"
    table.rename_column("v", "w")
    table.copy_to(path, filter="day = 'b'")
    expected = [row for row in engine.dump(tmp_path / "t") if row["day"] == "b"]
    assert sorted(engine.dump(path), key=repr) == sorted(expected, key=repr)
    assert engine.fsck(path) == []
    engine.write(path, [{"id": 1, "day": "b", "w": "again"}, {"id": 99, "day": "b", "w": "new"}])
    assert engine.fsck(path) == []
    dumped = sorted(engine.dump(path), key=repr)
    assert dumped == sorted(Table.open(path).scan().to_arrow().to_pylist(), key=repr)
    assert [row["w"] for row in dumped if row["id"] == 99] == ["new"]
    if layout == "row ids":
        ids = Table.open(f"{path}$row_tracking").scan().to_arrow()["_ROW_ID"].to_pylist()
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "row ids"])
def test_the_engine_goes_on_after_all_files_were_purged(engine: Engine, tmp_path: Path, layout: str) -> None:
    table, path = made(engine, tmp_path / "t", layout), tmp_path / "t"
    table.create_tag("v1")
    table.create_branch("b", "v1")
    assert table.purge_files().gone
    assert engine.dump(path) == []
    assert engine.fsck(path) == []
    engine.write(path, [{"id": 1, "day": "b", "v": "x"}])
    assert engine.dump(path) == [{"id": 1, "day": "b", "v": "x"}]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_engine_reads_what_missing_files_left(engine: Engine, tmp_path: Path, layout: str) -> None:
    table, path = made(engine, tmp_path / "t", layout), tmp_path / "t"
    expected = [row for row in engine.dump(path) if row["day"] == "b"]
    for file in path.glob("day=a/bucket-*/data-*"):
        file.unlink()
    with pytest.raises(EngineError):
        engine.dump(path)
    assert table.remove_unexisting_files().paths
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert engine.dump(path) == expected
    assert engine.fsck(path) == []
    engine.write(path, [{"id": 2, "day": "a", "v": "x"}])
    assert sorted(row["id"] for row in engine.dump(path)) == sorted([2, *(row["id"] for row in expected)])


def test_the_engine_begins_at_the_repaired_snapshot(engine: Engine, tmp_path: Path) -> None:
    table, path = made(engine, tmp_path / "t", "plain"), tmp_path / "t"
    expected, newest = engine.dump(path), table.snapshots()["snapshot_id"][-1].as_py()
    (path / "snapshot" / "snapshot-2").unlink()
    table.repair_earliest_snapshot(3)
    assert engine.dump(path) == expected
    assert engine.fsck(path) == []
    engine.write(path, [{"id": 1, "day": "b", "v": "x"}])
    assert table.snapshots()["snapshot_id"].to_pylist()[0] == 3
    assert table.snapshots().num_rows >= newest - 2


@pytest.mark.parametrize("layout", ["plain", "deletion vectors", "append"])
def test_the_engine_reads_and_writes_replaced_columns(engine: Engine, tmp_path: Path, layout: str) -> None:
    table, path = made(engine, tmp_path / "t", layout), tmp_path / "t"
    before, newest = engine.dump(path), table.snapshots()["snapshot_id"][-1].as_py()
    table.replace_columns(
        "v DOUBLE NOT NULL, id INT NOT NULL, day STRING NOT NULL, w STRING" if LAYOUTS[layout][0] else "v DOUBLE, day STRING"
    )
    rows = [{"v": 1.5, "id": 1, "day": "a", "w": "x"}] if LAYOUTS[layout][0] else [{"v": 1.5, "day": "a"}]
    table.write(rows, mode="overwrite", options={"dynamic-partition-overwrite": "false"})
    assert engine.dump(path) == rows
    assert engine.dump(path, options={"scan.snapshot-id": str(newest)}) == before
    assert engine.fsck(path) == []
    more = {**rows[0], "v": 2.5, "day": "b"}
    engine.write(path, [more])
    assert sorted(engine.dump(path), key=repr) == sorted([*rows, more], key=repr)
    assert sorted(table.scan().to_arrow().to_pylist(), key=repr) == sorted([*rows, more], key=repr)
