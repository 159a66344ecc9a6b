"""Writer of one primary-key bucket (Paimon's ``MergeTreeWriter``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lsm.data_files.rolling import discard_files, key_value_writer
from lsm.data_files.write_metrics import WriteMetrics
from lsm.keys.sort import SortKey
from lsm.merge.function import merge_function_for
from lsm.merge.keep_all import KeepAll, fold_key_aligned
from lsm.write.bucket_writer import BucketContext
from lsm.write_buffer.sort_buffer import SortBuffer
from lsm.write_buffer.source import BufferedRows, Source
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.schema.table_schema import TableSchema
from paimon_base.lazy import LazyModule, cached_property
from sparkexpr.values.arrays import Int64s

if TYPE_CHECKING:
    from lsm.compaction import changelog
    from lsm.compaction.rewriter import CompactTaskResult
    from lsm.write import bucket_compaction
else:
    changelog = LazyModule("lsm.compaction.changelog")
    bucket_compaction = LazyModule("lsm.write.bucket_compaction")


def sort_key_of(schema: TableSchema) -> SortKey:
    """Return the sort order of rows in a bucket.

    Trimmed primary key, then ``sequence.field`` in its direction.
    """
    return SortKey(schema.trimmed_primary_keys, schema.core.sequence_field, schema.core.sequence_descending)


class MergeTreeWriter:
    """Writer of one bucket of a primary-key table.

    Buffers rows, flushes them as one sorted run on level 0, then compacts unless the context disables compaction.
    """

    def __init__(self, context: BucketContext) -> None:
        self.context = context
        self.metrics = WriteMetrics()
        schema = context.store.schema
        key, fold = sort_key_of(schema), merge_function_for(schema)
        self._target = context.target
        self._key, self._fold = key, fold
        self._logs_input = context.writes_changelog and context.store.options.changelog_producer == "input"
        self._keeps_every = self._logs_input or not fold.is_associative
        self._buffer = SortBuffer(key, KeepAll() if self._keeps_every else fold, context.next_sequence)
        self._flushed: list[DataFileMeta] = []
        self._new_files: list[DataFileMeta] = []
        self._changelog: list[DataFileMeta] = []
        self._compact_changelog: list[DataFileMeta] = []
        self._compacted_fully = False

    @cached_property
    def _log(self) -> changelog.ChangelogWriter:
        return changelog.ChangelogWriter(self._target)

    @cached_property
    def _compaction(self) -> bucket_compaction.BucketCompaction:
        return bucket_compaction.BucketCompaction.of(self.context, self._key, self._fold, self._log, self._flushed)

    @property
    def _used_compaction(self) -> bucket_compaction.BucketCompaction | None:
        """Compaction of the bucket. None if not used yet."""
        return self._compaction if "_compaction" in vars(self) else None

    @property
    def held(self) -> BufferedRows:
        """See ``BucketWriter``."""
        return self._buffer.held

    @property
    def reorders(self) -> bool:
        """See ``BucketWriter``."""
        # Dictionary-encoded text passes unchanged through a buffer that only selects rows.
        return self._buffer.only_picks and not self._keeps_every

    @property
    def pending_compaction(self) -> int:
        """See ``BucketWriter``."""
        manager = self._compaction.manager
        return len(manager.levels.runs) if manager.is_due else 0

    def add(self, source: Source, rows: Int64s | None) -> None:
        """Buffer rows. Each row consumes a sequence number."""
        self._buffer.add(source, rows)

    def release(self, *, close: bool) -> None:  # noqa: ARG002 - spill files are closed anyway
        """Spill the buffer."""
        self._buffer.spill(self.context.space)

    def flush(self) -> None:
        """Write the buffer as level-0 files.

        With ``changelog-producer=input``, also write every buffered row as changelog files.
        """
        rows = self._buffer.rows
        if not rows:
            return
        try:
            files = key_value_writer(self._target, 0, FileSource.APPEND).write_all(self._drain())
        except BaseException:
            if self._logs_input:
                self._log.abort()
            raise
        self._new_files += files
        if self._used_compaction is None:
            self._flushed += files
        else:
            self._used_compaction.manager.add(files)
        if self._logs_input:
            self._changelog += self._log.finish()
        self.metrics.rows += rows
        self.metrics.spilled_bytes = self._buffer.spilled_bytes
        self._count(files)

    def compact(self, *, full: bool) -> None:
        """Flush, then compact all files or a selection.

        Does nothing if files of the bucket have a newer schema.
        """
        self.flush()
        manager = self._compaction.manager
        if self.context.knows_all_columns and not full:
            self._take(manager.move_base())
        result = None
        try:
            result = manager.compact(full=full) if self.context.knows_all_columns else None
            changelog_files = self._log.finish()
        except BaseException:
            self._log.abort()
            for file in () if result is None else result.made:
                self._compaction.increment.discard(file)
            raise
        self._take(result)
        level = manager.levels.max_level if result is None or not result.after else result.after[0].level
        self._compact_changelog += [
            file.upgrade(level) for file in changelog_files
        ]  # Readers that skip level 0 also skip a changelog of level 0.
        self._compacted_fully |= full

    def rewrite(self, names: Collection[str]) -> None:
        """See ``BucketWriter``.

        Each file stays on its level. No changelog: no row changes.
        """
        manager, plain = self._compaction.manager, self._compaction.plain
        for file in [file for file in manager.levels.files if file.file_name in names]:
            self._take(manager.replace(file, plain.rewrite_file(file)))

    def prepare(self) -> CommitMessage:
        """Flush, compact once if due, and return the commit message."""
        error: str | None = None
        due = self.context.compacts and (self._buffer.rows or not self._compacted_fully)
        self.flush()
        if due:
            full = self.context.store.options.compacts_fully_at_commit
            error = self.context.try_compaction(lambda: self.compact(full=full))
        before, after = ([], []) if self._used_compaction is None else self._used_compaction.increment.drain()
        message = self.context.message(self._new_files, before, after, self._changelog, self._compact_changelog, compaction_error=error)
        self._new_files, self._changelog, self._compact_changelog = [], [], []
        return message

    def abort(self) -> None:
        """Delete spill files, new files and compaction output."""
        with suppress(Exception):
            self._buffer.clear()
        if self._used_compaction is not None:
            self._used_compaction.increment.undo()
        for file in self._new_files:
            discard_files(self.context.store.file_io, self._target.directory, file)
        for file in (*self._changelog, *self._compact_changelog):
            self._log.discard(file)
        self._new_files, self._changelog, self._compact_changelog = [], [], []

    def _drain(self) -> Iterator[Any]:
        """Yield the merged rows of the buffer.

        With an input changelog, all unmerged rows are written to it.
        """
        for rows in self._buffer.drain(self.context.space):
            if self._logs_input:
                self._log.write(rows)
            yield fold_key_aligned(rows, self._key, self._fold) if self._keeps_every else rows

    def _count(self, files: list[DataFileMeta]) -> None:
        self.metrics.files += len(files)
        self.metrics.bytes_written += sum(file.file_size for file in files)

    def _take(self, result: CompactTaskResult | None) -> None:
        if result is None:
            return
        self._compaction.increment.add(result)
        made = list(result.made)
        kept = {file.file_name for file in result.after}
        self.metrics.compactions += 1
        self.metrics.bytes_read += sum(file.file_size for file in result.before if file.file_name not in kept)
        self._count(made)
