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

SEEN_BY_JAVA = sorted({*TABLES} - OF_NEWER_ENGINES)


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


@feature("data evolution", JAVA, TURNS)
@feature("data evolution", PYPAIMON, TURNS)
def test_updates_merges_and_compactions_of_ours_in_turns(tmp_path: Path, engine: Engine, pypaimon: Peer) -> None:
    path = tmp_path / "wh" / "db.db" / "t"
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table = Table.create(path, "id INT, n INT, s STRING", options=options)
    model: dict[int, dict[str, object]] = {}

    def append(first: int) -> None:
        rows = rows_of(first, 10)
        if first % 20:
            engine.write(path, rows.to_pylist())
        else:
            table.write(rows)
        model.update({row["id"]: row for row in rows.to_pylist()})

    def ours() -> None:
        table.update("id % 4 = 1", set={"n": "n + 10"})
        model.update({key: {**row, "n": row["n"] + 10} for key, row in model.items() if key % 4 == 1})  # type: ignore[operator]

    def theirs() -> None:
        update(path, "id", [3, 13], {"s": "theirs"})
        model.update({key: {**model[key], "s": "theirs"} for key in (3, 13) if key in model})

    def merged() -> None:
        new = max(model) + 1
        source = pa.table({"id": pa.array([2, 3, new], pa.int32()), "s": ["a", "b", "c"]})
        table.merge(source, on="id").when_matched_update({"s": "s.s"}).when_not_matched_insert({"id": "s.id", "s": "s.s"}).execute()
        model.update({key: {**model[key], "s": text} for key, text in ((2, "a"), (3, "b"))})
        model[new] = {"id": new, "n": None, "s": "c"}

    turns = [
        lambda: append(0),
        lambda: append(10),
        theirs,
        ours,
        merged,
        theirs,
        lambda: table.compact(full=True),
        ours,
        lambda: append(30),
        theirs,
        merged,
    ]
    for turn in turns:
        turn()
        wanted = [model[key] for key in sorted(model)]
        for rows in (table.scan().to_arrow().to_pylist(), engine.dump(path), pypaimon.read(path).to_pylist()):
            assert sorted(rows, key=lambda row: row["id"]) == wanted
        told = engine.system(path, "row_tracking")["rows"]
        assert {row["id"]: row["_ROW_ID"] for row in told} == ids_of(path)
        assert len({row["_ROW_ID"] for row in told}) == len(model)
    assert engine.fsck(path) == []
    assert table.fsck(depth="deep").problems == ()


def hexed(row: dict[str, object]) -> dict[str, object]:
    """A row with its binaries as the engine shows them."""
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}


@feature("BLOB", JAVA, READS_OURS)
@feature("BLOB", JAVA, OURS_READS)
@feature("BLOB", JAVA, TURNS)
@feature("BLOB", PYPAIMON, READS_OURS)
@feature("BLOB", PYPAIMON, OURS_READS)
def test_blobs_in_turns(tmp_path: Path, engine: Engine, pypaimon: Peer) -> None:
    path = tmp_path / "wh" / "db.db" / "t"
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob.target-file-size": "1 kb", "blob-field": "q"}
    table = Table.create(path, "id INT, p BLOB, q BYTES", options=options)
    model: dict[int, dict[str, object]] = {}
    for turn in range(4):
        ids = range(turn * 10, turn * 10 + 9)
        rows = [{"id": i, "p": None if i % 3 == 0 else bytes([i]) * (i * 40), "q": bytes([i % 2]) * (i % 2)} for i in ids]
        if turn % 2:
            engine.write(path, map(hexed, rows))
        else:
            table.write(rows)
        model |= {row["id"]: row for row in rows}  # type: ignore[misc]
        if turn == 2:
            table.update("id = 5", set={"id": "-5"})
            model[-5] = {**model.pop(5), "id": -5}
            table.compact(full=True)
        wanted = [model[key] for key in sorted(model)]
        assert table.scan(order_by="id").to_arrow().to_pylist() == wanted
        assert sorted(engine.dump(path), key=lambda row: row["id"]) == list(map(hexed, wanted))
        assert sorted(pypaimon.read(path).to_pylist(), key=lambda row: row["id"]) == wanted
    assert engine.fsck(path) == []
    assert table.fsck(depth="deep").problems == ()


def ids_of(path: Path) -> dict[int, int]:
    """The ids of rows."""
    rows = Table.open(f"{path}$row_tracking").scan(columns=["id", "_ROW_ID"]).to_arrow().to_pylist()
    return {row["id"]: row["_ROW_ID"] for row in rows}


@feature("data evolution", JAVA, OURS_READS)
@pytest.mark.parametrize("name", SEEN_BY_JAVA)
def test_the_engine_reads_the_golden_tables_as_we_do(engine: Engine, name: str) -> None:
    path = HOME / name / "table"
    ours = sorted(json.dumps(hexed(row)) for row in Table.open(path).scan().to_arrow().to_pylist())
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
