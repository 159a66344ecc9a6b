"""Rows that expire by a column of theirs, in turns: the engine and we drop the same rows at the same compactions, and both read what is left."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine
from tests.interop.features import JAVA, OURS_READS, READS_OURS, TURNS, feature

pytestmark = pytest.mark.interop

DAY = 86_400
NOW = int(time.time())
KINDS = {"INT": lambda seconds: seconds, "BIGINT": lambda seconds: seconds * 1000}
SPECS = [
    ("INT", {}),
    ("BIGINT", {"deletion-vectors.enabled": "true"}),
    ("BIGINT", {"changelog-producer": "lookup"}),
    ("INT", {"changelog-producer": "full-compaction"}),
    ("INT", {"merge-engine": "partial-update"}),
    ("INT", {"merge-engine": "first-row"}),
]


@feature("rows that expire", JAVA, OURS_READS)
@feature("rows that expire", JAVA, READS_OURS)
@feature("rows that expire", JAVA, TURNS)
@pytest.mark.parametrize(("kind", "options"), SPECS, ids=str)
def test_the_engine_and_we_drop_the_same_rows(engine: Engine, tmp_path: Path, kind: str, options: dict[str, str]) -> None:
    """Two tables get the same rows; one is compacted by the engine, the other by us, then the other way round."""
    fields = {"id": "INT NOT NULL", "t": kind, "v": "INT"}
    every = {"bucket": "1", "num-sorted-run.compaction-trigger": "3", "record-level.time-field": "t", **options}
    paths = [tmp_path / name for name in ("by_engine", "by_us")]
    for path in paths:
        engine.create(path, fields, primary_keys=["id"], options={**every, "record-level.expire-time": "10 d"})

    def written(turn: int, *rows: tuple[int, int | None, int | None]) -> None:
        for number, path in enumerate(paths):
            if (turn + number) % 2:
                engine.write(path, [{"id": i, "t": t, "v": v} for i, t, v in rows])
            else:
                table = Table.open(path)
                columns: list[Any] = list(zip(*rows, strict=True))
                fields = table.schema.arrow if hasattr(table.schema, "arrow") else table.schema
                table.write(pa.table([pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)], schema=fields))

    compacts_later = options.get("changelog-producer") != "full-compaction"  # a batch write of ours compacts such a table at once

    def same(*, compacted: bool = True) -> None:
        by_engine, by_us = ([tuple(row.values()) for row in engine.dump(path)] for path in paths)
        assert sorted(by_engine, key=str) == sorted(by_us, key=str) or not (compacted or compacts_later)
        for path, rows in zip(paths, (by_engine, by_us), strict=True):
            ours = [tuple(row.values()) for row in Table.open(path).scan().to_arrow().to_pylist()]
            assert sorted(ours, key=str) == sorted(rows, key=str)
            assert engine.fsck(path) == []
            assert Table.open(path).fsck(depth="deep").problems == ()

    def compacted(turn: int) -> None:
        for number, path in enumerate(paths):
            if (turn + number) % 2:
                engine.compact(path, full=True)
            else:
                Table.open(path).compact(full=True)

    at = KINDS[kind]
    written(0, *((i, at(NOW - (i + 1) * DAY), i) for i in range(20)), (50, None, 50))
    same(compacted=False)
    compacted(1)
    same()
    written(1, (1, at(NOW - 30 * DAY), 1), (15, at(NOW), 15), (16, at(NOW - 40 * DAY), 16), (60, None, None))
    same(compacted=False)
    compacted(0)
    same()
    for path in paths:
        Table.open(path).alter_options({"record-level.expire-time": "5 d"})
    compacted(1)
    same()
    written(0, (7, at(NOW), 7), (3, None, 3))
    compacted(0)
    same()
