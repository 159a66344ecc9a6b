"""Changelogs that outlive their snapshots, in turns: who commits expires, and both read what changed from what the other has kept.

python -m tests.interop.test_kept_changelogs_turns     # makes the golden table anew
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine
from tests.interop.features import JAVA, OURS_READS, READS_OURS, TURNS, feature

pytestmark = pytest.mark.interop

OPTIONS = {
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "2",
    "changelog.num-retained.min": "1",
    "changelog.num-retained.max": "7",
}
HOME = Path(__file__).parent.parent / "golden_changelogs"
FUTURE = 4_000_000_000_000


@feature("changelogs that outlive snapshots", JAVA, OURS_READS)
@feature("changelogs that outlive snapshots", JAVA, READS_OURS)
@feature("changelogs that outlive snapshots", JAVA, TURNS)
@pytest.mark.parametrize("producer", ["none", "input", "lookup"])
def test_changes_are_read_from_what_the_other_kept(engine: Engine, tmp_path: Path, producer: str) -> None:
    path = tmp_path / "t"
    keyed = {"bucket": "1", "changelog-producer": producer, "num-sorted-run.compaction-trigger": "3"}
    fields = {"id": "INT NOT NULL", "v": "INT"}
    options = {**OPTIONS, **(keyed if producer != "none" else {"bucket": "-1"})}
    engine.create(path, fields, primary_keys=["id"] if producer != "none" else [], options=options)
    mode = "delta" if producer == "none" else "changelog"
    for turn in range(10):
        rows = [(turn % 3, turn), (10 + turn, turn)]
        if turn % 2:
            engine.write(path, [{"id": i, "v": v} for i, v in rows])
        else:
            ids, values = (pa.array(column, pa.int32()) for column in zip(*rows, strict=True))
            Table.open(path).write(pa.table({"id": ids, "v": values}))
        if turn == 6:
            (Table.open(path).compact if producer == "none" else engine.compact)(*() if producer == "none" else (path,), full=True)
        table = Table.open(path)
        snapshots = table.snapshots()["snapshot_id"].to_pylist()
        kept = sorted(int(file.name.rpartition("-")[2]) for file in (path / "changelog").glob("changelog-*"))
        assert not kept or kept[-1] == snapshots[0] - 1
        first = kept[0] if kept else snapshots[0]
        assert snapshots[-1] - first < 8
        theirs = engine.follow(path, options={"scan.mode": "from-snapshot", "scan.snapshot-id": str(first)})
        ours = table.changelog(first - 1, mode=mode).to_arrow().to_pylist()
        said = sorted((row["_kind"], row["id"], row["v"]) for row in theirs)
        assert sorted((row["_row_kind"], row["id"], row["v"]) for row in ours) == said
        assert engine.fsck(path) == []
        assert table.fsck(depth="deep").problems == ()
    assert kept[0] > 1
    used = {entry.name for entry in path.rglob("*") if entry.is_file()}
    left = {Path(orphan.path).name for orphan in table.list_orphan_files(FUTURE)}
    assert len(left) < len(used) / 10


def kept(engine: Engine, path: Path) -> list[dict[str, object]]:
    """A table of eight writes of which the newest snapshots are left, and what a stream from the oldest changelog gives."""
    options = {**OPTIONS, "bucket": "1", "changelog-producer": "input", "changelog.num-retained.max": "5"}
    engine.create(path, {"id": "INT NOT NULL", "v": "INT"}, primary_keys=["id"], options=options)
    for turn in range(8):
        engine.write(path, [{"id": turn % 3, "v": turn}, {"_kind": "-D", "id": 9, "v": turn}])
    first = min(int(file.name.rpartition("-")[2]) for file in (path / "changelog").glob("changelog-*"))
    return engine.follow(path, options={"scan.mode": "from-snapshot", "scan.snapshot-id": str(first)})


if __name__ == "__main__":
    running = Engine.start()
    shutil.rmtree(HOME, ignore_errors=True)
    told = kept(running, HOME / "table")
    (HOME / "expected.json").write_text(json.dumps(told, indent=1) + "\n")
    running.stop()
