"""Writer of one append bucket (Paimon's ``AppendOnlyWriter``)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from lsm.data_files.rolling import RollingFileWriter, discard_files, row_writer
from lsm.write.bucket_writer import BucketContext
from lsm.write_buffer.source import BufferedRows, Source
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import DataFileMeta, FileSource
from paimon_base.lazy import LazyModule, cached_property
from sparkexpr.values.arrays import Int64s

if TYPE_CHECKING:
    from lsm.write import append_compactor
else:  # a write that does not compact does not load it
    append_compactor = LazyModule("lsm.write.append_compactor")


class AppendOnlyWriter:
    """Writer of one bucket of an append table.

    It holds row numbers of input tables. Rows are written in order of arrival, when memory is short or the write ends.
    """

    def __init__(self, context: BucketContext) -> None:
        self.context = context
        self.held = BufferedRows()
        self._target = context.target
        self._has_buckets = context.store.options.bucket > 0
        self._next_sequence = context.next_sequence if self._has_buckets else 0
        self._writer: RollingFileWriter | None = None
        self._flushed: list[DataFileMeta] = []
        self._new_files: list[DataFileMeta] = []

    @cached_property
    def _compactor(self) -> append_compactor.AppendCompactor:
        return append_compactor.AppendCompactor(self.context, self._flushed)

    @property
    def _used_compactor(self) -> append_compactor.AppendCompactor | None:
        """Compactor of the bucket. None if not used yet."""
        return self._compactor if "_compactor" in vars(self) else None

    @property
    def reorders(self) -> bool:
        """See ``BucketWriter``."""
        return False

    @property
    def is_compaction_due(self) -> bool:
        """See ``BucketWriter``."""
        return self._has_buckets and bool(self._compactor.files)

    @property
    def is_crowded(self) -> bool:
        """See ``BucketWriter``.

        Each file counts as a run.
        """
        return len(self._compactor.files) >= self.context.store.options.stop_trigger

    def add(self, source: Source, rows: Int64s | None) -> None:
        """Buffer rows."""
        self.held.add(source, rows)

    def release(self, *, close: bool) -> None:
        """Encode the held rows into the open file."""
        self._write()
        if close:
            self.flush()
        elif self._writer is not None:
            self._writer.end_row_group()

    def flush(self) -> None:
        """Write the held rows and close the file."""
        self._write()
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        files = writer.close()
        self._next_sequence = files[-1].max_sequence_number + 1
        self._new_files += files
        self._flushed += files

    def prepare(self) -> CommitMessage:
        """Flush, compact a bucketed table, and return the commit message."""
        self.flush()
        error: str | None = None
        if self.context.compacts and self._has_buckets:
            error = self.context.try_compaction(lambda: self._compactor.compact(full=False))
        before, after, _ = ([], [], []) if self._used_compactor is None else self._used_compactor.drain()
        new_files, self._new_files = self._new_files, []
        return self.context.message(new_files, before, after, compaction_error=error)

    def abort(self) -> None:
        """Delete all files of this writer."""
        self.held.clear()
        if self._writer is not None:
            with suppress(Exception):
                self._writer.abort()
            self._writer = None
        if self._used_compactor is not None:
            self._used_compactor.undo()
        for file in self._new_files:
            discard_files(self.context.store.file_io, self._target.directory, file)
        self._new_files = []

    def _write(self) -> None:
        if not self.held:
            return
        if self._writer is None:
            self._writer = row_writer(self._target, FileSource.APPEND, self._next_sequence)
        for table in self.held.tables():
            self._writer.write(table)
        self.held.clear()
