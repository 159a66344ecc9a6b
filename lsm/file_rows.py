"""Rows of data files as compaction needs them: all of them, in file order, as the current schema has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lsm.file_read import DataFileRead
from lsm.sort_key import SEQUENCE_NUMBER, VALUE_KIND
from manifest.data_file import DataFileMeta
from manifest.store import FileStore


def file_rows(store: FileStore, partition: bytes, bucket: int, file: DataFileMeta) -> Iterator[Any]:
    """Tables of the file's rows, a bounded batch at a time: the system columns of a primary-key table, then the table's.

    Raises:
        CorruptFile: the file is not what its metadata promise.
        UnsupportedTable: the file is no Parquet file, or a column's old type cannot be read as its new one.
    """
    system = (SEQUENCE_NUMBER, VALUE_KIND) if store.schema.is_primary_key_table else ()
    read = DataFileRead(store, partition, bucket, file, (*system, *store.schema.names), use_index=False)
    return (pa.Table.from_batches([batch]) for batch in read.batches() if batch.num_rows)


__all__ = ["file_rows"]
