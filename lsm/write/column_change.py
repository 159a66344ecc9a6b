"""Updates of columns of rows that keep their ids (data evolution).

Files of one range of row ids have the same rows. New values of some columns are a new file of the range, which has them for all of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import TRUE, Predicate, columns_of
from lsm.data_files.rolling import whole_file_writer
from lsm.data_files.writer import FileTarget
from lsm.read.split import SplitRead
from lsm.scan.splits import DataSplit
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.entry.row_ranges import range_groups
from manifest.io.errors import UnsupportedTable
from manifest.store import FileStore
from sparkexpr.values.arrays import Mask
from sparkexpr.values.column_type import Kind


@dataclass(frozen=True)
class RowRange:
    """Rows with adjacent ids, and their column files, newest first."""

    store: FileStore
    split: DataSplit
    files: tuple[DataFileMeta, ...]
    predicate: Predicate

    def exist(self) -> bool:
        """Return whether any row matches."""
        names = tuple(columns_of(self.predicate))
        return any(matches.any() for _, matches in self.batches(names or self.store.schema.names[:1]))

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[pa.Table, Mask]]:
        """Yield all rows, and which of them match.

        ``columns`` must include the columns of the predicate.
        """
        for rows in range_rows(self.store, self.split, self.files, columns):
            matches = mask(self.predicate, rows, self.store.schema.column_types)
            yield rows, np.asarray(matches.to_numpy() if isinstance(matches, pa.ChunkedArray) else matches.to_numpy(zero_copy_only=False))

    def write(self, target: FileTarget, rows: Iterator[pa.Table]) -> DataFileMeta:
        """Write a file with the columns of ``target`` of all rows."""
        first = self.files[0]
        (data_file,) = whole_file_writer(target, FileSource.APPEND).write_all(rows)
        # The commit gives the sequence number.
        numbers = {"first_row_id": first.first_row_id, "min_sequence_number": 0, "max_sequence_number": 0}
        return data_file.model_copy(update=numbers)


def row_ranges(store: FileStore, splits: Sequence[DataSplit], predicate: Predicate) -> list[RowRange]:
    """Return the ranges of row ids that have matching rows.

    Raises ``UnsupportedTable`` for rows that another engine marked as deleted.
    """
    ranges = []
    for split in splits:
        if any(vector is not None for vector in split.deletion_files or ()):
            raise UnsupportedTable(
                f"{store.root}: options 'data-evolution.enabled' and 'deletion-vectors.enabled': rows are marked as deleted, and new "
                "files of columns would show them again. Update with the engine that deleted them"
            )
        ranges += [rows for group in range_groups(split.files) if (rows := RowRange(store, split, group, predicate)).exist()]
    return ranges


def range_rows(store: FileStore, split: DataSplit, files: Sequence[DataFileMeta], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield all rows of the files of one range, as tables."""
    for batch in SplitRead(store, split, tuple(columns), TRUE).by_columns(files).batches():
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def column_target(target: FileTarget, columns: Sequence[str]) -> FileTarget:
    """Return the target of files with only some columns.

    Raises ``UnsupportedTable`` for a column in files of its own.
    """
    store = target.store
    for name in columns:
        if store.schema.field(name).type.kind is Kind.BLOB:
            raise UnsupportedTable(
                f"{store.root}: column '{name}': values of type BLOB are not updated, as in Paimon, and nothing was committed; append the row again"
            )
    return replace(target, columns=tuple(name for name in store.schema.names if name in columns))
