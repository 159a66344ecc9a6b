"""Reads of rows whose columns are in several files.

Each column is read from the newest file with this column. The columns are combined, then filtered.
Files of one row id range have its rows in the same order. A column in none of them is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import TRUE, Predicate, columns_of
from lsm.formats.blob import blob_batches
from lsm.keys.sort import SEQUENCE_NUMBER
from lsm.parquet.reader import rows_only
from lsm.read.metrics import ReadReport
from manifest.entry.data_file import DataFileMeta
from manifest.entry.row_ranges import blob_files
from manifest.io.errors import UnsupportedTable
from manifest.schema.metadata_columns import ROW_ID
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from sparkexpr.values.column_type import Kind

ROW_NUMBERS = frozenset({ROW_ID, SEQUENCE_NUMBER})
"""Columns computed by ``ColumnFilesRead``. ``_SEQUENCE_NUMBER`` is that of the newest file with columns of the row."""

_ENDED: Any = None
"""Marks the end of a stream of batches."""

ReadColumns = Callable[[DataFileMeta, Sequence[str]], Iterator[Any]]
"""Reads some columns of all rows of a file, batch by batch."""


@dataclass(frozen=True)
class ColumnFilesRead:
    """Read of the files of one range of rows.

    Args:
        store: Store of the table.
        files: Files of the range, newest first, then files of BLOB columns by their first row.
        path: Returns the path of a file.
        columns: Names to return, in order. May include ``ROW_NUMBERS``.
        predicate: Exact filter of rows.
        read: Reads a file without BLOB columns.
        report: Counters to add to.
        dead: Positions of deleted rows.
    """

    store: FileStore
    files: Sequence[DataFileMeta]
    path: Callable[[DataFileMeta], str]
    columns: Sequence[str]
    predicate: Predicate
    read: ReadColumns
    report: ReadReport
    dead: BitMap | None = None

    def batches(self) -> Iterator[Any]:
        """Yield record batches, possibly empty, in row id order.

        Raises:
            CorruptFile: The files do not fit together.
        """
        rows, blobs = self._parts()
        needed = [name for name in dict.fromkeys([*self.columns, *columns_of(self.predicate)]) if name not in ROW_NUMBERS]
        if not needed and self.columns:
            needed = list(self.store.schema.names[:1])
        if not needed:
            yield rows_only(rows[0].row_count - len(self.dead or ()))
            return
        columns_by_file: dict[str, list[str]] = {}
        ids = {field.name: field.id for field in self.store.schema.fields}
        written = [(file, self._written_ids(file)) for file in rows]
        streams: list[Iterator[Any]] = []
        for name in needed:
            if name in blobs:
                streams.append(self._blobs(name, blobs[name], rows[0]))
            else:
                owner = next((file for file, columns in written if ids[name] in columns), rows[0])
                columns_by_file.setdefault(owner.file_name, []).append(name)
        streams += [self.read(file, columns_by_file[file.file_name]) for file in rows if file.file_name in columns_by_file]
        for position, every in _zip_columns(streams, rows[0].row_count, self.path(rows[0])):
            numbered = _add_row_numbers(every, rows[0], position) if ROW_NUMBERS.intersection(self.columns) else every
            batch = numbered if self.dead is None else drop_dead(numbered, self.dead, position)
            matching = batch if self.predicate == TRUE else batch.filter(mask(self.predicate, batch, self.store.schema.column_types))
            yield matching.select(list(self.columns)) if self.columns else rows_only(matching.num_rows)

    def _parts(self) -> tuple[list[DataFileMeta], dict[str, list[DataFileMeta]]]:
        """Separate regular files, and files of each BLOB column."""
        rows = [file for file in self.files if not file.is_blob]
        if len({(file.first_row_id, file.row_count) for file in rows}) != 1:
            any_file = (rows or self.files)[0]
            raise CorruptFile(self.path(any_file), "has other row ids than the other files with columns of its rows")
        blobs: dict[str, list[DataFileMeta]] = {}
        by_id = {field.id: field.name for field in self.store.schema.fields}
        for file in self.files[len(rows) :]:
            written = {field.name: field.id for field in self.store.schemas.get(file.schema_id).fields}
            for name in file.write_cols or ():
                if (now := by_id.get(written.get(name, -1))) is not None:
                    blobs.setdefault(now, []).append(file)
        return rows, blobs

    def _written_ids(self, file: DataFileMeta) -> frozenset[int]:
        """Return the ids of the columns in a file."""
        fields = self.store.schemas.get(file.schema_id).fields
        return frozenset(field.id for field in fields if file.write_cols is None or field.name in file.write_cols)

    def _blobs(self, name: str, files: Sequence[DataFileMeta], rows: DataFileMeta) -> Iterator[Any]:
        """Yield the values of a BLOB column from its files."""
        if self.store.schema.field(name).type.kind is not Kind.BLOB:
            raise UnsupportedTable(
                f"{self.store.root}: column '{name}' is {self.store.schema.field(name).type} in BLOB files, which is not supported"
            )
        pieces, is_whole = blob_files(files, rows)
        for file in pieces:
            self.report.files += 1
            for values in blob_batches(self.store.file_io, self.path(file), file):
                yield pa.RecordBatch.from_arrays([values], schema=pa.schema([self.store.schema.arrow.field(name)]))
        if not is_whole:
            raise CorruptFile(self.path(rows), f"has rows without a file for column '{name}'")


def _add_row_numbers(batch: Any, newest: DataFileMeta, position: int) -> Any:
    """Add row ids and sequence numbers to a batch.

    The batch begins at ``position`` of its range.
    """
    ids = np.arange(batch.num_rows, dtype=np.int64) + (newest.first_row_id or 0) + position
    numbers = pa.repeat(pa.scalar(newest.max_sequence_number, pa.int64()), batch.num_rows)
    return batch.append_column(ROW_ID, pa.array(ids)).append_column(SEQUENCE_NUMBER, numbers)


def drop_dead(batch: Any, dead: BitMap, position: int) -> Any:
    """Return the batch without deleted rows.

    The batch begins at ``position`` of its range.
    """
    gone = np.array(dead[dead.rank(position - 1) if position else 0 : dead.rank(position + batch.num_rows - 1)], np.int64) - position
    alive = np.ones(batch.num_rows, np.bool_)
    alive[gone] = False
    return batch.filter(pa.array(alive))


def _zip_columns(streams: Sequence[Iterator[Any]], count: int, path: str) -> Iterator[tuple[int, Any]]:
    """Combine streams of the same rows, with first positions.

    Raises:
        CorruptFile: A stream does not have ``count`` rows.
    """
    pending = [next(stream, _ENDED) for stream in streams]
    position = 0
    while position < count:
        for index, stream in enumerate(streams):
            while pending[index] is not _ENDED and not pending[index].num_rows:
                pending[index] = next(stream, _ENDED)
        if any(batch is _ENDED for batch in pending):
            raise CorruptFile(path, f"has {count} rows, but a file with other columns of them has {position}")
        length = min(batch.num_rows for batch in pending)
        pieces = [batch.slice(0, length) for batch in pending]
        pending = [batch.slice(length) for batch in pending]
        fields = [field for piece in pieces for field in piece.schema]
        yield position, pa.RecordBatch.from_arrays([column for piece in pieces for column in piece.columns], schema=pa.schema(fields))
        position += length
