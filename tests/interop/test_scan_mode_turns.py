"""The modes of a scan by their option names: the engine and we give the same rows for the same options."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine

pytestmark = pytest.mark.interop


def test_the_same_options_mean_the_same_rows(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t"
    engine.create(path, {"id": "INT NOT NULL", "v": "INT"}, primary_keys=["id"], options={"bucket": "1", "write-only": "true"})
    for turn in range(1, 5):
        if turn == 4:
            engine.compact(path, full=True)
        engine.write(path, [{"id": turn % 3, "v": turn}])
    engine.tag(path, "two", snapshot=2)
    engine.tag(path, "five", snapshot=5)
    times = {snapshot["id"]: snapshot["timeMillis"] for snapshot in engine.snapshots(path)}
    table = Table.open(path)
    for options in (
        {"scan.mode": "latest"},
        {"scan.mode": "compacted-full"},
        {"scan.mode": "from-snapshot", "scan.snapshot-id": "2"},
        {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "3"},
        {"scan.tag-name": "two"},
        {"scan.version": "two"},
        {"scan.timestamp-millis": str(times[3])},
        {"incremental-between": "1,5"},
        {"incremental-between": "two,five"},
        {"incremental-between": "2,5", "incremental-between-scan-mode": "diff"},
        {"incremental-between-timestamp": f"{times[1]},{times[3]}"},
        {"incremental-between-timestamp": f"{times[1] - 9},{times[2]}"},
    ):
        theirs = sorted((row["id"], row["v"]) for row in engine.dump(path, options=options))
        ours = table.scan(options=options).to_arrow()
        rows = [row for row in ours.to_pylist() if row.get("_row_kind") not in {"-D", "-U"}]
        assert sorted((row["id"], row["v"]) for row in rows) == theirs, options
