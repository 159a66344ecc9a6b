"""Memory while a stream is written: about the write buffer, however many rows come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

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


def peak(path: Path, batches: int, options: dict[str, str]) -> int:
    """The most bytes that Arrow had at a time while the stream was written."""
    keys = () if options["bucket"] == "-1" else ("id",)
    wanted = {"write-only": "true", "write-buffer-size": f"{BUFFER} b", "file.block-size": "1 mb", **options}
    table = Table.create(path / str(batches), SCHEMA, primary_keys=keys, options=wanted)
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        assert table.write(stream(batches)).rows == batches * BATCH_ROWS
    finally:
        pa.set_memory_pool(before)
    return int(pool.max_memory())


@pytest.mark.parametrize("bucket", ["1", "4", "-1"])
def test_a_longer_stream_takes_no_more_memory(bucket: str, tmp_path: Path) -> None:
    short, long = (peak(tmp_path, batches, {"bucket": bucket}) for batches in (12, 36))
    assert long < 1.4 * short
