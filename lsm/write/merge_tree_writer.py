"""Writer of one primary-key bucket (Paimon's ``MergeTreeWriter``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lsm.data_files.rolling import discard_files, key_value_writer
from lsm.keys.sort import SortKey
from lsm.merge.function import merge_function_for
from lsm.merge.keep_all import KeepAll, fold_key_aligned
from lsm.write.bucket_writer import BucketContext
from lsm.write_buffer.sort_buffer import SortBuffer
from lsm.write_buffer.source import BufferedRows, Source
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import DataFileMeta, FileSource
from paimon_base.lazy import LazyModule, cached_property
from sparkexpr.values.arrays import Int64s

if TYPE_CHECKING:
    from lsm.compaction import changelog
    from lsm.compaction.compactor import BucketCompactor
    from lsm.write import bucket_compaction
else:
    changelog = LazyModule("lsm.compaction.changelog")
    bucket_compaction = LazyModule("lsm.write.bucket_compaction")


class MergeTreeWriter:
    """Writer of one bucket of a primary-key table.

    Buffers rows, flushes them as one sorted run on level 0, then compacts unless the context disables compaction.
    """

    def __init__(self, context: BucketContext) -> None:
        self.context = context
        schema = context.store.schema
        key, fold = SortKey.of(schema), merge_function_for(schema)
        self._target = context.target
        self._key, self._fold = key, fold
        self._logs_input = context.writes_changelog and context.store.options.changelog_producer == "input"
        self._keeps_every = self._logs_input or not fold.is_associative
        self._buffer = SortBuffer(key, KeepAll() if self._keeps_every else fold, context.next_sequence)
        self._flushed: list[DataFileMeta] = []
        self._new_files: list[DataFileMeta] = []
        self._changelog: list[DataFileMeta] = []

    @cached_property
    def _log(self) -> changelog.ChangelogWriter:
        return changelog.ChangelogWriter(self._target)

    @cached_property
    def _compactor(self) -> BucketCompactor:
        return bucket_compaction.merge_tree_compactor(self.context, self._flushed)

    @property
    def _used_compactor(self) -> BucketCompactor | None:
        """Compactor of the bucket. None if not used yet."""
        return self._compactor if "_compactor" in vars(self) else None

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
    def is_compaction_due(self) -> bool:
        """See ``BucketWriter``."""
        return self._compactor.is_due

    @property
    def is_crowded(self) -> bool:
        """See ``BucketWriter``."""
        return self._compactor.context.policy.is_crowded(self._compactor.levels.runs)

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
        if not self._buffer.rows:
            return
        try:
            files = key_value_writer(self._target, 0, FileSource.APPEND).write_all(self._drain())
        except BaseException:
            if self._logs_input:
                self._log.abort()
            raise
        self._new_files += files
        self._flushed += files
        if self._logs_input:
            self._changelog += self._log.finish()

    def prepare(self) -> CommitMessage:
        """Flush, compact once if due, and return the commit message."""
        error: str | None = None
        self.flush()
        if self.context.compacts:
            full = self.context.store.options.compacts_fully_at_commit
            error = self.context.try_compaction(lambda: self._compactor.compact(full=full))
        before, after, compact_changelog = ([], [], []) if self._used_compactor is None else self._used_compactor.drain()
        message = self.context.message(self._new_files, before, after, self._changelog, compact_changelog, compaction_error=error)
        self._new_files, self._changelog = [], []
        return message

    def abort(self) -> None:
        """Delete spill files, new files and compaction output."""
        with suppress(Exception):
            self._buffer.clear()
        if self._used_compactor is not None:
            self._used_compactor.undo()
        for file in self._new_files:
            discard_files(self.context.store.file_io, self._target.directory, file)
        for file in self._changelog:
            self._log.discard(file)
        self._new_files, self._changelog = [], []

    def _drain(self) -> Iterator[Any]:
        """Yield the merged rows of the buffer.

        With an input changelog, all unmerged rows are written to it.
        """
        for rows in self._buffer.drain(self.context.space):
            if self._logs_input:
                self._log.write(rows)
            yield fold_key_aligned(rows, self._key, self._fold) if self._keeps_every else rows
