"""One value of 300 MB goes through everything that a row goes through."""

import pyarrow as pa
import pytest

from pyspark_paimon import Table

BYTES = 300 << 20


def rows(first, last_byte):
    large = bytes(range(256)) * (BYTES // 256 - 1) + last_byte * 256
    values = pa.array([b"small", large, b"z"], pa.large_binary())
    return pa.table({"id": pa.array([first, first + 1, first + 2], pa.int64()), "v": values, "s": ["x", "y", "w"]})


@pytest.mark.long
def test_one_value_of_300_mb_is_written_spilled_merged_compacted_indexed_and_found(tmp_path):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.binary()), pa.field("s", pa.string())])
    options = {
        "bucket": "1",
        "write-buffer-size": "64 mb",
        "write-buffer-spillable": "true",
        "file-index.bloom-filter.columns": "v,s",
        "num-sorted-run.compaction-trigger": "3",
    }
    table = Table.create(tmp_path / "t", schema, primary_keys=["id"], options=options)
    for first, last_byte in ((0, b"a"), (1, b"b"), (2, b"c")):
        table.write(rows(first, last_byte))
    for _ in range(2):
        found = table.scan("s = 'y'").to_arrow()
        assert found["id"].to_pylist() == [3]
        assert found["v"][0].as_buffer().size == BYTES
        assert found["v"][0].as_buffer().to_pybytes().endswith(b"c" * 256)
        assert table.scan(columns=["id"]).to_arrow()["id"].to_pylist() == [0, 1, 2, 3, 4]
        table.compact()
    assert not table.fsck().problems
