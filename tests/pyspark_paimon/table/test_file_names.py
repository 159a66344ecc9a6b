"""What the names of data files tell, whoever writes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lsm.commit.row_transaction import resequence
from manifest.store import FileStore

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "n": pa.array(range(10), pa.int32())})
OPTIONS = {"file.suffix.include.compression": "true", "file.compression": "lz4"}


def names(table) -> list[str]:
    return [row["file_name"] for row in table.files().to_pylist()]


def test_files_that_a_delete_and_an_update_rewrite_name_their_codec(create) -> None:
    table = create("id BIGINT, n INT", primary_keys=(), options=OPTIONS)
    table.write(ROWS)
    for change in (lambda: table.delete("id = 3"), lambda: table.update("id = 4", {"n": 0}), lambda: table.compact(full=True)):
        change()
        assert names(table)
        assert all(name.endswith(".lz4.parquet") for name in names(table))


@pytest.mark.parametrize(("codec", "suffix"), [("zstd", ".zstd.parquet"), ("none", ".parquet")])
def test_files_that_a_commit_numbers_anew_name_their_codec(create, codec, suffix) -> None:
    table = create("id BIGINT, n INT", options={**OPTIONS, "file.compression": codec, "write-only": "true"})
    table.write(ROWS)
    store = FileStore.open(table.path)
    (entry,) = store.live_entries(store.snapshots.latest()).entries()
    (copy,) = resequence(store)(entry.partition, entry.bucket, [entry.file], 100)
    assert copy.min_sequence_number == 100
    assert copy.file_name.endswith(suffix)
