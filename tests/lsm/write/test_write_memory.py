"""Memory while a stream is written is about the write buffer, and that of rows that a compaction reads a few batches, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lsm.read.full_scan import file_rows
from manifest.store import FileStore
from pyspark_paimon import Table

BUFFER = 8 << 20
BATCH_ROWS = 1 << 15
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("text", pa.string())])


def stream(batches: int) -> Iterator[pa.RecordBatch]:
    """Batches of about 1.5 MB."""
    random = np.random.default_rng(7)
    for _ in range(batches):
        ids = random.integers(0, 1 << 40, BATCH_ROWS)
        yield pa.record_batch([pa.array(ids), pa.array(ids % 997), pa.array(ids).cast(pa.string())], SCHEMA)


def created(path: Path, bucket: str) -> Table:
    keys = () if bucket == "-1" else ("id",)
    options = {"bucket": bucket, "write-only": "true", "write-buffer-size": f"{BUFFER} b", "file.block-size": "1 mb"}
    return Table.create(path, SCHEMA, primary_keys=keys, options=options)


def peak(work: Callable[[], object]) -> int:
    """The most bytes that Arrow had at a time meanwhile."""
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        work()
    finally:
        pa.set_memory_pool(before)
    return int(pool.max_memory())


@pytest.mark.slow
@pytest.mark.parametrize("bucket", ["1", "4", "-1"])
def test_a_longer_stream_takes_no_more_memory(bucket: str, tmp_path: Path) -> None:
    short, long = (created(tmp_path / name, bucket) for name in ("short", "long"))
    least, most = peak(lambda: short.write(stream(12))), peak(lambda: long.write(stream(36)))
    assert long.scan().count() == 36 * BATCH_ROWS
    assert most < 1.4 * least


@pytest.mark.slow
def test_a_longer_file_takes_no_more_memory_to_compact(tmp_path: Path) -> None:
    def held(batches: int) -> int:
        """What Arrow has while the last rows are read, once batches and row groups are as large as they get."""
        table = created(tmp_path / str(batches), "1")
        table.write(stream(batches))
        store = FileStore.open(table.path)
        (entry,) = store.live_entries(store.snapshots.latest()).entries()
        rows = file_rows(store, entry.partition, entry.bucket, entry.file, batch_bytes=1 << 20)
        return peak(lambda: sum(batch.num_rows for batch in rows))

    assert held(30) < 1.25 * held(10)
