"""Data evolution in turns: we append rows with ids, pypaimon writes columns of them anew, the Java engine reads what both made."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine
from tests.interop.evolved_tables import HOME, OF_NEWER_ENGINES, TABLES, update
from tests.interop.features import JAVA, OURS_READS, PYPAIMON, READS_OURS, TURNS, feature
from tests.interop.peers import Peer

pytestmark = pytest.mark.interop

SEEN_BY_JAVA = sorted({*TABLES} - OF_NEWER_ENGINES - {"blobs"})


def rows_of(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int32()), "n": pa.array([i % 5 for i in ids], pa.int32()), "s": [f"s{i}" for i in ids]})


@feature("data evolution", JAVA, READS_OURS)
@feature("data evolution", PYPAIMON, TURNS)
@feature("data evolution", PYPAIMON, READS_OURS)
@feature("data evolution", PYPAIMON, OURS_READS)
def test_appends_of_ours_and_column_files_of_pypaimon_in_turns(tmp_path: Path, engine: Engine, pypaimon: Peer) -> None:
    path = tmp_path / "wh" / "db.db" / "t"
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "file-index.bitmap.columns": "n"}
    table = Table.create(path, "id INT, n INT, s STRING", options=options)
    model: dict[int, dict[str, object]] = {}
    for turn in range(4):
        rows = rows_of(turn * 20, 20 - turn)
        table.write(rows)
        model |= {row["id"]: row for row in rows.to_pylist()}
        chosen = [turn * 20 + 1, max(turn - 1, 0) * 20 + 2]
        assigned = {"n": 100 + turn} if turn % 2 else {"s": f"turn {turn}"}
        update(path, "id", chosen, assigned)
        for key in chosen:
            model[key] = {**model[key], **assigned}
        expected = [model[key] for key in sorted(model)]
        assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
        assert sorted(engine.dump(path), key=lambda row: row["id"]) == expected
        assert sorted(pypaimon.read(path).to_pylist(), key=lambda row: row["id"]) == expected
        for number in (2, 100 + turn):
            assert table.scan(f"n = {number}").count() == sum(row["n"] == number for row in expected)
    assert engine.fsck(path) == []
    assert table.fsck(depth="deep").problems == ()


@feature("data evolution", JAVA, OURS_READS)
@pytest.mark.parametrize("name", SEEN_BY_JAVA)
def test_the_engine_reads_the_golden_tables_as_we_do(engine: Engine, name: str) -> None:
    path = HOME / name / "table"
    ours = sorted(json.dumps(row) for row in Table.open(path).scan().to_arrow().to_pylist())
    assert sorted(json.dumps(row) for row in engine.dump(path)) == ours


@feature("data evolution", JAVA, READS_OURS)
def test_the_engine_sees_the_ids_of_rows_beside_those_that_we_deleted(engine: Engine, tmp_path: Path) -> None:
    path, options = tmp_path / "t", {"row-tracking.enabled": "true", "deletion-vectors.enabled": "true"}
    table = Table.create(path, "id INT, n INT, s STRING", options=options)
    table.write(rows_of(0, 20))
    engine.write(path, rows_of(20, 10).to_pylist())
    table.delete("n = 2")
    engine.delete(path, {"op": "=", "col": "n", "value": 3})
    table.write(rows_of(50, 3))
    ours = Table.open(f"{path}$row_tracking").scan(columns=["id", "_ROW_ID", "_SEQUENCE_NUMBER"]).to_arrow().to_pylist()
    theirs = engine.system(path, "row_tracking")["rows"]
    assert sorted((row["id"], row["_ROW_ID"], row["_SEQUENCE_NUMBER"]) for row in ours) == sorted(
        (row["id"], row["_ROW_ID"], row["_SEQUENCE_NUMBER"]) for row in theirs
    )
    assert {row["id"] for row in ours} == {i for i in range(30) if i % 5 not in {2, 3}} | {50, 51, 52}
    assert engine.fsck(path) == []
