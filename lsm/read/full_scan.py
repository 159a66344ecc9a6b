"""Full reads of data files, for compaction.

Rows have file order and the current schema.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pyroaring import BitMap

from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND
from lsm.merge.alignment import table_of_rows
from manifest.entry.data_file import DataFileMeta
from manifest.store import FileStore
from paimon_base.lazy import LazyModule
from paimon_base.thresholds import thresholds

if TYPE_CHECKING:
    from lsm.deletion_vectors.reader import DeletionFile
    from lsm.read import data_file, file_filter
else:  # a write without compaction needs no reader
    data_file = LazyModule("lsm.read.data_file")
    file_filter = LazyModule("lsm.read.file_filter")

_DECODED = 6
"""Approximate ratio of decoded size to file size."""


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
    """Return the file's rows without ``dead`` ones, as tables.

    Each table has about ``batch_bytes``. ``columns`` None means ``row_columns``. Texts of the columns ``dictionaries`` may be
    dictionary arrays. ``shared`` is the result of ``every_row`` for several files.

    Raises:
        CorruptFile: The file does not match its metadata.
        UnsupportedTable: The file format or a type change of a column is not supported.
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
        batch_bytes=batch_bytes or thresholds.batch_bytes,
        dictionaries=dictionaries,
    )
    return map(table_of_rows, filter(attrgetter("num_rows"), read.batches()))


def every_row(store: FileStore) -> file_filter.FileFilter:
    """Return a filter for all rows, shared by several files."""
    return file_filter.FileFilter(store)


def row_columns(store: FileStore) -> tuple[str, ...]:
    """Return the columns of ``file_rows``.

    System columns of a primary-key table come first, then the table's columns.
    """
    system = (SEQUENCE_NUMBER, VALUE_KIND) if store.schema.kind.has_row_kinds else ()
    return (*system, *store.schema.names)


def batch_bytes_of(runs: int) -> int:
    """Return the maximum batch size for a merge of ``runs``.

    Keeps the sum of all batches bounded for up to 100 runs.
    """
    return max(thresholds.merge_batch_bytes, min(thresholds.batch_bytes, thresholds.merge_bytes // max(1, runs)))


def runs_that_count(sizes: Sequence[int]) -> int:
    """Return the number of runs to pass to ``batch_bytes_of``.

    ``sizes`` are the bytes of the runs' files. Small runs fit completely into less than a batch.

    >>> runs_that_count([100 << 20, 1 << 20, 1 << 20]), runs_that_count([100 << 20, 90 << 20]), runs_that_count([1000] * 50)
    (2, 2, 1)
    """
    max_bytes = thresholds.merge_bytes
    decoded_sizes = [_DECODED * size for size in sizes]
    small = [size for size in decoded_sizes if size <= max_bytes // len(sizes)]
    large = len(decoded_sizes) - len(small)
    return -(-large * max_bytes // (max_bytes - sum(small))) if large else 1
