"""Incremental clustering: we sort the files that the engine would, it reads, checks and goes on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lsm.compaction.cluster import IncrementalClustering
from manifest.store import FileStore
from pyspark_paimon import Table
from tests.interop.engine import Engine
from tests.interop.features import JAVA, READS_OURS, TURNS, feature

pytestmark = pytest.mark.interop


def picked(path: Path, *, full: bool) -> list[tuple[int, list[str]]]:
    store = FileStore.open(str(path))
    clustering = IncrementalClustering.of(store)
    assert clustering is not None
    found: dict[bytes, list] = {}
    for entry in store.live_entries(store.snapshots.latest()).entries():
        found.setdefault(entry.partition, []).append(entry.file)
    units = [clustering.pick(files, full=full) for files in found.values()]
    return sorted((unit.output_level, sorted(file.file_name for file in unit.files)) for unit in units if unit is not None)


@feature("append, clustered", JAVA, READS_OURS)
@feature("append, clustered", JAVA, TURNS)
@pytest.mark.parametrize("columns", ["v", "v,w"])
def test_we_sort_what_the_engine_would(engine: Engine, tmp_path: Path, columns: str) -> None:
    path = tmp_path / "t"
    options = {"bucket": "-1", "clustering.columns": columns, "clustering.incremental": "true", "num-sorted-run.compaction-trigger": "3"}
    engine.create(path, {"p": "STRING", "v": "INT", "w": "STRING"}, partition_keys=["p"], options=options)
    count = 0
    for turn in range(9):
        rows = [{"p": "ab"[turn % 2 if turn > 3 else i % 2], "v": (i * 7 + turn) % 40, "w": f"w{(i * 3 + turn) % 11}"} for i in range(40)]
        count += len(rows)
        engine.write(path, rows) if turn % 3 == 1 else Table.open(path).write(pa.Table.from_pylist(rows, Table.open(path).schema))
        full = turn == 6
        theirs = engine.cluster(path, full=full)
        wanted = sorted((unit["outputLevel"], sorted(unit["files"])) for unit in theirs if len(unit["files"]) > 1)
        assert picked(path, full=full) == wanted
        Table.open(path).compact(full=full)
        assert len(engine.dump(path)) == count == Table.open(path).scan().count()
        assert engine.fsck(path) == []
    assert Table.open(path).fsck(depth="deep").problems == ()
    assert max(file["level"] for file in engine.files(path)) > 0
