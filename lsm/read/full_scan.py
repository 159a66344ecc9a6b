"""Rows of data files as compaction needs them: all of them, in file order, as the current schema has them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pyroaring import BitMap

from fileindex.base.lazy import LazyModule
from fileindex.base.thresholds import thresholds
from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND
from lsm.merge.alignment import table_of_rows
from manifest.entry.data_file import DataFileMeta
from manifest.store import FileStore

if TYPE_CHECKING:
    from lsm.deletion_vectors.reader import DeletionFile
    from lsm.read import data_file, file_filter
else:  # a write that compacts nothing reads nothing
    data_file = LazyModule("lsm.read.data_file")
    file_filter = LazyModule("lsm.read.file_filter")

_DECODED = 6
"""Times the bytes of a file, about."""


def file_rows(
    store: FileStore,
    partition: bytes,
    bucket: int,
    file: DataFileMeta,
    *,
    batch_bytes: int | None = None,
    dead: DeletionFile | BitMap | None = None,
    columns: Sequence[str] | None = None,
    dictionaries: Collection[str] = (),
    shared: file_filter.FileFilter | None = None,
) -> Iterator[Any]:
    """Tables of the file's rows but ``dead`` ones, each of about ``batch_bytes``; ``columns`` of them (None: ``row_columns``).

    Texts of the columns ``dictionaries`` may come as such. ``shared`` is what ``every_row`` gives for several files.

    Raises:
        CorruptFile: the file is not what its metadata promise.
        UnsupportedTable: the file is no Parquet file, or a column's old type cannot be read as its new one.
    """
    names = row_columns(store) if columns is None else tuple(columns)
    read = data_file.DataFileRead(
        store,
        partition,
        bucket,
        file,
        names,
        shared,
        deletion_file=dead,
        use_index=False,
        batch_bytes=batch_bytes or thresholds().batch_bytes,
        dictionaries=dictionaries,
    )
    return map(table_of_rows, filter(attrgetter("num_rows"), read.batches()))


def every_row(store: FileStore) -> file_filter.FileFilter:
    """Return a filter for all rows, to be shared by several files."""
    return file_filter.FileFilter(store)


def row_columns(store: FileStore) -> tuple[str, ...]:
    """What ``file_rows`` gives: the system columns of a primary-key table, then the table's."""
    system = (SEQUENCE_NUMBER, VALUE_KIND) if store.schema.is_primary_key_table else ()
    return (*system, *store.schema.names)


def batch_bytes_of(runs: int) -> int:
    """How large batches may be if so many runs are merged: their sum stays bounded, up to a hundred runs."""
    limits = thresholds()
    return max(limits.merge_batch_bytes, min(limits.batch_bytes, limits.merge_bytes // max(1, runs)))


def runs_that_count(sizes: Sequence[int]) -> int:
    """For ``batch_bytes_of``: of runs whose files have so many bytes those that need a batch's room; the others fit whole into less.

    >>> runs_that_count([100 << 20, 1 << 20, 1 << 20]), runs_that_count([100 << 20, 90 << 20]), runs_that_count([1000] * 50)
    (2, 2, 1)
    """
    most = thresholds().merge_bytes
    whole = [_DECODED * size for size in sizes]
    small = [size for size in whole if size <= most // len(sizes)]
    large = len(whole) - len(small)
    return -(-large * most // (most - sum(small))) if large else 1


__all__ = ["batch_bytes_of", "every_row", "file_rows", "row_columns", "runs_that_count"]
