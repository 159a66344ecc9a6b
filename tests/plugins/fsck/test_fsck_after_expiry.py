"""A check of a table whose oldest snapshots have expired."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from pyspark_paimon import Table


def test_files_that_the_oldest_kept_snapshot_deletes_may_be_gone(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT, v INT", ["id"], options={"bucket": "1"})
    for value in range(3):
        table.write(pa.table({"id": [1, 2], "v": [value, value]}), options={"write-only": "true"})
    table.compact(full=True)
    table.write(pa.table({"id": [3], "v": [3]}), options={"write-only": "true"})
    table.expire_snapshots(retain_min=2, retain_max=2)
    kinds = table.snapshots()["commit_kind"].to_pylist()
    assert kinds == ["COMPACT", "APPEND"]
    assert table.fsck("deep").problems == ()
