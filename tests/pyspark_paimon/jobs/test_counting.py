"""What a compaction tells of itself: the same numbers whoever ran it, changelog files among what it wrote."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from lsm.write.compaction_job import compact_together
from manifest.commit.message import compaction_counts
from manifest.store import FileStore
from pyspark_paimon import Table


def test_a_changelog_is_among_what_a_compaction_wrote(tmp_path: Path) -> None:
    options = {"bucket": "1", "write-only": "true", "changelog-producer": "full-compaction"}
    table = Table.create(tmp_path / "t", "id INT, n INT", primary_keys=["id"], options=options)
    for n in (1, 2):
        table.write(pa.table({"id": pa.array([1, 2], pa.int32()), "n": pa.array([n, n], pa.int32())}))
    store = FileStore.open(tmp_path / "t")
    ((partition, bucket),) = {(entry.partition, entry.bucket) for entry in store.live_entries(store.snapshots.latest()).entries()}
    (message,) = compact_together(store, [(partition, bucket)], full=True)
    assert message.compact_changelog
    written = sum(file.file_size for file in (*message.compact_after, *message.compact_changelog))
    counts = compaction_counts([message])
    assert counts["bytes_written"] == written
    assert (counts["files_before"], counts["files_after"], counts["rows"], counts["buckets"]) == (2, 1, 2, 1)
    result = table.compact(full=True)
    assert {name: getattr(result, name) for name in counts} == counts
