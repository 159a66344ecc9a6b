"""Reads of a snapshot that expires between its plan and its files: ``SnapshotExpired``, and ``CorruptFile`` where a file is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paimon_base.errors import CorruptFile
from pyspark_paimon import SnapshotExpired, Table
from pyspark_paimon.local.reads import LocalReads
from pyspark_paimon.stream.table_stream import TableStream

pytestmark = pytest.mark.local_files
READS: dict[str, Callable[[Table], Any]] = {
    "scan": lambda table: table.scan(snapshot=2).to_arrow(),
    "filter": lambda table: table.scan("n = 3", snapshot=2).to_arrow(),
    "limit": lambda table: table.scan(limit=3, snapshot=2).to_arrow(),
    "top": lambda table: table.scan(order_by="n", limit=2, snapshot=2).to_arrow(),
    "order": lambda table: table.scan(order_by="n", snapshot=2).to_arrow(),
    "count of a filter": lambda table: table.scan("n % 2 = 1", snapshot=2).count(),
    "aggregate": lambda table: table.scan("n > 3", snapshot=2).aggregate({"n": "sum"}),
    "groups": lambda table: table.scan(snapshot=2).aggregate({"n": "sum"}, by="id"),
    "metadata columns": lambda table: table.scan(columns=["id", "__paimon_bucket"], snapshot=2).to_arrow(),
    "batches": lambda table: list(table.scan(snapshot=2).to_batches()),
    "appended rows": lambda table: table.changelog(0, 2, mode="delta").to_arrow(),
    "stream": lambda table: list(table.follow(start="from-snapshot-full", snapshot=2)),
    "stream of changes": lambda table: list(table.follow(start="from-snapshot", snapshot=1)),
}
LAYOUTS: dict[str, tuple[list[str], dict[str, str]]] = {
    "append": ([], {"bucket": "-1"}),
    "keyed": (["id"], {"bucket": "1", "write-only": "true"}),
    "vectors": (["id"], {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}),
    "ORC": ([], {"bucket": "-1", "file.format": "orc"}),
    "Avro": (["id"], {"bucket": "1", "file.format": "avro", "write-only": "true"}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("lost", [False, True])
def test_a_file_that_goes_between_plan_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, read: str, lost: bool
) -> None:
    keys, options = LAYOUTS[layout]
    table = Table.create(tmp_path / "t", "id BIGINT, n INT", primary_keys=keys, options=options)
    for first in (0, 10):
        table.write({"id": list(range(first, first + 10)), "n": list(range(10))})
    if not lost:
        table.write({"id": [1], "n": [1]}, mode="overwrite")
    old = [path for path in (tmp_path / "t" / "bucket-0").iterdir() if path.name.startswith("data-")]

    def expire() -> None:
        if lost:
            for path in old:
                path.unlink(missing_ok=True)
        elif len(old) and Table.open(table.path).snapshots().num_rows > 1:
            Table.open(table.path).expire_snapshots(retain_min=1, retain_max=1, older_than=2**60)

    plan, stream_plan = LocalReads._plan, TableStream.plan  # the point in time between plan and read
    monkeypatch.setattr(LocalReads, "_plan", lambda *args, **named: (plan(*args, **named), expire())[0])
    monkeypatch.setattr(TableStream, "plan", lambda *args: (stream_plan(*args), expire())[0])
    with pytest.raises(CorruptFile if lost else SnapshotExpired) as caught:
        READS[read](Table.open(table.path))
    assert "data-" in str(caught.value)
