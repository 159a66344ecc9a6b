"""Keys across partitions: the engine and we write one table in turns, and alike: rows, where they lie and changelogs are equal.

python -m tests.interop.test_cross_partition_turns     # makes the golden tables anew
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine
from tests.interop.features import JAVA, OURS_READS, READS_OURS, TURNS, feature
from tests.interop.turn_players import arrow_rows
from tests.lsm.cross_partition_model import COLUMNS, ENGINES, KEYS, PARTITION, Places, Row

pytestmark = pytest.mark.interop

HOME = Path(__file__).parent.parent / "golden_cross_partition"
QUICK = [(merge, "none") for merge in ENGINES] + [("deduplicate", "lookup")]
LONG = [
    *((merge, "lookup") for merge in ENGINES if merge != "deduplicate"),
    *((merge, producer) for merge in ENGINES if merge != "first-row" for producer in ("input", "full-compaction")),
]
PRODUCERS = [*QUICK, *(pytest.param(*both, marks=pytest.mark.long) for both in LONG)]
NAME = "keys across partitions"


def create(engine: Engine, path: Path, merge: str, producer: str = "none") -> None:
    fields = {name: f"{kind} NOT NULL" if name in KEYS else kind for name, kind in COLUMNS.items()}
    options = {**ENGINES[merge], "changelog-producer": producer, "dynamic-bucket.target-row-num": "10", "bucket": "-1"}
    engine.create(path, fields, primary_keys=KEYS, partition_keys=[PARTITION], options=options)


def write_ours(path: Path, rows: list[Row]) -> None:
    table = Table.open(path)
    table.write(arrow_rows(rows, table).append_column("_row_kind", pa.array([row["_kind"] for row in rows])))


def rows_of(path: Path) -> list[str]:
    return sorted(json.dumps(row) for row in Table.open(path).scan().to_arrow().to_pylist())


def engines_rows(engine: Engine, path: Path) -> list[str]:
    return sorted(json.dumps({name: row[name] for name in COLUMNS}) for row in engine.dump(path))


@feature(NAME, JAVA, READS_OURS)
@feature(NAME, JAVA, OURS_READS)
@feature(NAME, JAVA, TURNS)
@pytest.mark.parametrize(("merge", "producer"), PRODUCERS)
def test_the_engine_and_we_take_turns(engine: Engine, tmp_path: Path, merge: str, producer: str) -> None:
    path, chance, places = tmp_path / "t", random.Random(merge + producer), Places(merge)
    create(engine, path, merge, producer)
    for turn in range(8):
        rows = places.batch(chance)
        if chance.random() < 0.5:
            engine.write(path, rows)
        else:
            write_ours(path, rows)
        if turn % 3 == 2:
            engine.compact(path, full=True) if chance.random() < 0.5 else Table.open(path).compact(full=True)
        expected = sorted(json.dumps(row) for row in places.rows.values())
        assert rows_of(path) == expected
        if merge != "first-row" or turn % 3 == 2:  # the engine shows no row of it that waits for a compaction
            assert engines_rows(engine, path) == expected
    assert engine.fsck(path) == []
    assert Table.open(path).fsck(depth="deep").problems == ()


def changes(table: Table, first: int, last: int) -> list[str]:
    found = table.scan(incremental=(first, last), incremental_mode="changelog").to_arrow()
    return sorted(json.dumps({"_kind": row.pop("_row_kind"), **row}) for row in found.to_pylist())


def engines_changes(engine: Engine, path: Path, first: int, last: int) -> list[str]:
    options = {"incremental-between": f"{first},{last}", "incremental-between-scan-mode": "changelog"}
    rows = engine.dump(path, kinds=True, options=options)
    return sorted(json.dumps({name: row[name] for name in ("_kind", *COLUMNS)}) for row in rows)


@feature(NAME, JAVA, READS_OURS)
@pytest.mark.parametrize(("merge", "producer"), [both for both in PRODUCERS if both not in QUICK[:-1]])
def test_changelogs_are_those_of_the_engine(engine: Engine, tmp_path: Path, merge: str, producer: str) -> None:
    ours, theirs, chance, places = tmp_path / "ours", tmp_path / "theirs", random.Random(merge), Places(merge)
    for path in (ours, theirs):
        create(engine, path, merge, producer)
    last = {ours: 0, theirs: 0}
    for _ in range(5):
        rows = places.batch(chance)
        write_ours(ours, rows)
        engine.write(theirs, rows)
        if producer == "full-compaction":
            Table.open(ours).compact(full=True)
            engine.compact(theirs, full=True)
        newest = {path: engine.snapshots(path)[-1]["id"] for path in (ours, theirs)}
        told = [changes(Table.open(path), last[path], newest[path]) for path in (ours, theirs)]
        told.append(engines_changes(engine, ours, last[ours], newest[ours]))
        assert told[0] == told[1] == told[2]
        last = newest
    assert rows_of(ours) == rows_of(theirs)


if __name__ == "__main__":
    running = Engine.start()
    shutil.rmtree(HOME, ignore_errors=True)
    for name in ENGINES:
        create(running, HOME / name / "table", name)
        model, dice = Places(name), random.Random(name)
        for _ in range(3):
            running.write(HOME / name / "table", model.batch(dice))
        if name == "first-row":
            running.compact(HOME / name / "table", full=True)
        lines = sorted(json.dumps(row) for row in running.dump(HOME / name / "table"))
        (HOME / name / "expected.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    running.stop()
