"""Data files of about the target size (Paimon's ``RollingFileWriter``).

All files are written, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from lsm.data_files.spill import batch_rows
from lsm.data_files.writer import DataFileWriter, FileTarget, KeyValueDataFileWriter, RowDataFileWriter, RowNumbers
from lsm.formats.blob import BlobFileWriter
from manifest.entry.data_file import BLOB_FORMAT, DataFileMeta, FileSource, wall_clock_millis
from manifest.io.file_io import FileIO
from manifest.io.progress import IGNORE_PROGRESS, ProgressListener
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import Kind

_NO_LIMIT = 2**63 - 1


class RollingFileWriter:
    """Writer of files with a size and row limit.

    Call ``write`` any number of times, then ``close`` or ``abort``. The first row creates the first file. If anything
    fails, all files are deleted with their side files.
    """

    def __init__(
        self,
        open_file: Callable[[], DataFileWriter],
        file_io: FileIO,
        directory: str,
        target_size: int,
        target_rows: int = _NO_LIMIT,
        *,
        listener: ProgressListener = IGNORE_PROGRESS,
    ) -> None:
        self._open_file = open_file
        self._file_io = file_io
        self._directory = directory
        self._target_size = max(1, target_size)
        self._target_rows = target_rows
        self._listener = listener
        self._current: DataFileWriter | None = None
        self._current_rows = 0
        self._closed: list[DataFileMeta] = []

    def write(self, rows: Any) -> None:
        """Append a table. It may span several files."""
        try:
            step = batch_rows(rows, max(self._target_size // thresholds.file_checks, 1)) if rows.num_rows else 1
            start = 0
            while start < rows.num_rows:
                piece = rows.slice(start, min(step, self._target_rows - self._current_rows))
                start += piece.num_rows
                self._append(piece)
        except BaseException:
            self.abort()
            raise

    def end_row_group(self) -> None:
        """Encode the pending rows. The file stays open."""
        if self._current is not None:
            self._current.end_row_group()

    def write_all(self, tables: Iterable[Any]) -> list[DataFileMeta]:
        """Write every table and close.

        If the iterator or the writer fails, all files are deleted.
        """
        try:
            for table in tables:
                self.write(table)
                del table  # free memory before the next one is created
        except BaseException:
            self.abort()
            raise
        return self.close()

    def close(self) -> list[DataFileMeta]:
        """Finish the last file.

        Returns all files, in order of writing.
        """
        try:
            self._close_current()
        except BaseException:
            self.abort()
            raise
        return list(self._closed)

    def abort(self) -> None:
        """Delete all files. Never raises."""
        if self._current is not None:
            self._current.abort()
            self._current = None
        for file in self._closed:
            discard_files(self._file_io, self._directory, file)
        self._closed = []

    def _append(self, piece: Any) -> None:
        if self._current is None:
            self._current = self._open_file()
            self._current_rows = 0
        self._current.write(piece)
        self._listener.wrote(piece.num_rows)
        self._current_rows += piece.num_rows
        if self._current.bytes_written >= self._target_size or self._current_rows >= self._target_rows:
            self._close_current()

    def _close_current(self) -> None:
        if self._current is not None:
            self._closed.append(self._current.close())
            self._current = None
            self._current_rows = 0


def discard_files(file_io: FileIO, directory: str, file: DataFileMeta) -> None:
    """Delete an unreferenced data file and its side files.

    Never raises: orphan removal deletes the rest.
    """
    for name in file.file_names:
        with suppress(Exception):
            file_io.delete(f"{directory}/{name}")


def key_value_writer(target: FileTarget, level: int, source: FileSource) -> RollingFileWriter:
    """Return a rolling writer of a primary-key bucket.

    The row limit applies to flushed files only.
    """
    return _rolling(target, source, lambda: KeyValueDataFileWriter(target, level, source))


class _BlobFiles:
    """Files of one BLOB column for the rows of another file."""

    def __init__(self, target: FileTarget, name: str, source: FileSource, most_bytes: int) -> None:
        self.name = name
        self._target = target
        self._source = source
        self._most_bytes = most_bytes
        self._current: BlobFileWriter | None = None
        self._file_name = ""
        self.closed: list[DataFileMeta] = []

    def write(self, values: Any) -> None:
        for value in values:
            if self._current is None:
                self._file_name = f"{self._target.names.next()}{BLOB_FORMAT}"
                self._current = BlobFileWriter(self._target.store.file_io, f"{self._target.directory}/{self._file_name}")
            self._current.write(value.as_py())
            if self._current.bytes_written >= self._most_bytes:
                self.close()

    def close(self) -> None:
        if self._current is None:
            return
        writer = self._current
        size = writer.close()
        self._current = None
        self.closed.append(
            DataFileMeta(
                file_name=self._file_name,
                file_size=size,
                row_count=writer.row_count,
                value_stats_cols=(),
                schema_id=self._target.store.schema.id,
                creation_time=wall_clock_millis(),
                delete_row_count=0,
                file_source=int(self._source),
                write_cols=(self.name,),
            )
        )

    def abort(self) -> None:
        if self._current is not None:
            self._current.abort()
            self._current = None
        for file in self.closed:
            discard_files(self._target.store.file_io, self._target.directory, file)
        self.closed = []


class BlobRollingWriter(RollingFileWriter):
    """Writer of rows with BLOB columns in separate files.

    Each file of the other columns is followed by the files of each BLOB column of its rows (Paimon's ``DedicatedFormatRollingFileWriter``).
    """

    def __init__(self, target: FileTarget, source: FileSource, first_sequence: int, blobs: Sequence[str]) -> None:
        options, numbers = target.store.options, RowNumbers(first_sequence)
        rest = replace(target, columns=tuple(name for name in target.store.schema.names if name not in blobs))
        super().__init__(
            lambda: RowDataFileWriter(rest, source, numbers),
            target.store.file_io,
            target.directory,
            target.target_size,
            options.target_file_row_num,
            listener=target.store.listener,
        )
        self._rest = rest.columns or ()
        blob_target_size = options.blob_target_file_size or target.target_size
        self._blobs = [_BlobFiles(target, name, source, blob_target_size) for name in blobs]

    def abort(self) -> None:
        """See ``RollingFileWriter``."""
        for blob in self._blobs:
            blob.abort()
        super().abort()

    def _append(self, piece: Any) -> None:
        for blob in self._blobs:
            blob.write(piece.column(blob.name))
        super()._append(piece.select(list(self._rest)))

    def _close_current(self) -> None:
        super()._close_current()
        for blob in self._blobs:
            blob.close()
            self._closed += blob.closed
            blob.closed = []


def row_writer(target: FileTarget, source: FileSource, first_sequence: int) -> RollingFileWriter:
    """Return a rolling writer of an append bucket.

    Rows are numbered from ``first_sequence`` over all files.
    """
    blobs = [field.name for field in target.store.schema.fields if field.type.kind is Kind.BLOB]
    if blobs:
        return BlobRollingWriter(target, source, first_sequence, blobs)
    numbers = RowNumbers(first_sequence)
    return _rolling(target, source, lambda: RowDataFileWriter(target, source, numbers))


def whole_file_writer(target: FileTarget, source: FileSource) -> RollingFileWriter:
    """Return a writer of one file, of any size, for a range of row ids."""
    numbers = RowNumbers(0)
    return RollingFileWriter(
        lambda: RowDataFileWriter(target, source, numbers),
        target.store.file_io,
        target.directory,
        _NO_LIMIT,
        listener=target.store.listener,
    )


def _rolling(target: FileTarget, source: FileSource, open_file: Callable[[], DataFileWriter]) -> RollingFileWriter:
    store = target.store
    limit = store.options.target_file_row_num if source is FileSource.APPEND else _NO_LIMIT
    return RollingFileWriter(open_file, store.file_io, target.directory, target.target_size, limit, listener=store.listener)
