"""New sequence numbers of level-0 files after a lost race."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lsm.data_files.rolling import discard_files, key_value_writer
from lsm.data_files.spill import SpillSpace
from lsm.data_files.writer import data_file_names
from lsm.keys.sort import SEQUENCE_NUMBER
from lsm.read.full_scan import file_rows
from lsm.write.bucket_writer import BucketContext
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.store import FileStore

ResequencePlan = Callable[[bytes, int, list[DataFileMeta], int], list[DataFileMeta]]


def resequence(store: FileStore, commit_id: str | None = None) -> ResequencePlan:
    """Return the resequencing function of ``FileStoreCommit``.

    It maps ``(partition, bucket, files, first sequence)`` to files. It copies each file with all numbers shifted by the same amount, so that the
    smallest becomes ``first sequence``. The originals are kept. On failure all copies are deleted.
    """
    names = data_file_names(store, commit_id)

    def shift_files(partition: bytes, bucket: int, files: list[DataFileMeta], first: int) -> list[DataFileMeta]:
        values = store.partition.decode(partition)
        target = BucketContext(store=store, partition=partition, values=values, bucket=bucket, names=names, space=SpillSpace("")).target
        shift = first - min((file.min_sequence_number for file in files), default=first)
        copies: list[DataFileMeta] = []
        try:
            for file in files:
                writer = key_value_writer(target, file.level, FileSource.APPEND)
                copies += writer.write_all(_shift(file_rows(store, partition, bucket, file), shift))
        except BaseException:
            for copy in copies:
                discard_files(store.file_io, target.directory, copy)
            raise
        return copies

    return shift_files


def _shift(tables: Iterator[Any], shift: int) -> Iterator[Any]:
    for table in tables:
        at = table.schema.get_field_index(SEQUENCE_NUMBER)
        yield table.set_column(at, SEQUENCE_NUMBER, pc.add_checked(table.column(at), pa.scalar(shift, pa.int64())))


__all__ = ["ResequencePlan", "resequence"]
