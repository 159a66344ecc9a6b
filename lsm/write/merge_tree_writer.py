"""The writer of one bucket of a primary-key table (Paimon's ``MergeTreeWriter``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fileindex.base.arrays import Int64s
from fileindex.base.lazy import LazyModule
from lsm.compaction.changelog import ChangelogWriter, CompactionChangelog, changelog_target
from lsm.compaction.manager import CompactIncrement, CompactionPolicy, MergeTreeCompactManager
from lsm.compaction.record_expiry import RecordExpiry
from lsm.compaction.task import CompactTaskResult, MergeTreeRewriter, Rewriter
from lsm.data_files.rolling import discard_files, key_value_writer
from lsm.keys.sort import SortKey
from lsm.levels.sorted_runs import key_decoder
from lsm.merge.engines import merge_function_for
from lsm.merge.keep_all import KeepAll, fold_key_aligned
from lsm.write.bucket_writer import BucketContext, WriteMetrics
from lsm.write_buffer.sort_buffer import SortBuffer
from lsm.write_buffer.source import BufferedRows, Source
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.schema.table_schema import TableSchema

if TYPE_CHECKING:
    from lsm.compaction import full_changelog_rewriter, lookup_rewriter
else:
    full_changelog_rewriter = LazyModule("lsm.compaction.full_changelog_rewriter")
    lookup_rewriter = LazyModule("lsm.compaction.lookup_rewriter")


def sort_key_of(schema: TableSchema) -> SortKey:
    """The order of rows in a bucket: trimmed primary key, then ``sequence.field`` in its direction."""
    return SortKey(schema.trimmed_primary_keys, schema.core.sequence_field, schema.core.sequence_descending)


class MergeTreeWriter:
    """Buffers rows, flushes them as one sorted run on level 0, then compacts unless the context says otherwise."""

    def __init__(self, context: BucketContext) -> None:
        self.context = context
        self.metrics = WriteMetrics()
        schema = context.store.schema
        key, fold = sort_key_of(schema), merge_function_for(schema)
        self._target = context.target
        self._key, self._fold = key, fold
        self._logs_input = context.logs and context.store.options.changelog_producer == "input"
        self._keeps_every = self._logs_input or not fold.is_associative
        self._buffer = SortBuffer(key, KeepAll() if self._keeps_every else fold, context.next_sequence)
        expiry = RecordExpiry.of(context.store)
        self._plain = plain = MergeTreeRewriter(self._target, context.partition, context.bucket, key, fold, context.vectors, expiry)
        key_of, policy = key_decoder(schema.key_types), CompactionPolicy.of(context.store.options)
        self._log = ChangelogWriter(changelog_target(self._target))
        max_level = max([policy.number_of_levels - 1, *(file.level for file in context.existing)])
        changes = CompactionChangelog.of(schema, self._log, key, max_level) if context.logs else None
        rewriter: Rewriter = plain
        if context.store.options.needs_lookup:
            rewriter = lookup_rewriter.LookupRewriter(
                plain, key_of, lambda: self._manager.levels.files, None if changes is None else changes.observe
            )
        elif changes is not None:
            rewriter = full_changelog_rewriter.FullChangelogRewriter(plain, changes, max_level)
        self._manager = MergeTreeCompactManager(key_of, list(context.existing), policy, rewriter, vectors=context.vectors, expiry=expiry)
        self._increment = CompactIncrement(rewriter.discard)
        self._new_files: list[DataFileMeta] = []
        self._changelog: list[DataFileMeta] = []
        self._compact_changelog: list[DataFileMeta] = []
        self._compacted_fully = False

    @property
    def held(self) -> BufferedRows:
        """See ``BucketWriter``; so for every other method."""
        return self._buffer.held

    @property
    def reorders(self) -> bool:
        """Texts as dictionaries pass through a buffer that only picks rows, and reach files alone."""
        return self._buffer.only_picks and not self._keeps_every

    @property
    def runs_due(self) -> int:
        """See ``BucketWriter``."""
        return len(self._manager.levels.runs) if self._manager.is_due else 0

    def add(self, source: Source, rows: Int64s | None) -> None:
        """Take rows; each consumes a sequence number."""
        self._buffer.add(source, rows)

    def release(self, *, close: bool) -> None:  # noqa: ARG002 - spill files are closed anyway
        """Spill the buffer."""
        self._buffer.spill(self.context.space)

    def flush(self) -> None:
        """Write the buffer as level-0 files, and, with ``changelog-producer=input``, every row of it as changelog files."""
        rows = self._buffer.rows
        if not rows:
            return
        try:
            files = key_value_writer(self._target, 0, FileSource.APPEND).write_all(self._drained())
        except BaseException:
            self._log.abort()
            raise
        self._new_files += files
        self._manager.add(files)
        self._changelog += self._log.finish()
        self.metrics.rows += rows
        self.metrics.spilled_bytes = self._buffer.spilled_bytes
        self._count(files)

    def compact(self, *, full: bool) -> None:
        """Flush, then compact everything or what the strategy picks; nothing if the table has got columns since it was opened."""
        self.flush()
        if self.context.knows_all_columns and not full:
            self._take(self._manager.move_base())
        try:
            result = self._manager.compact(full=full) if self.context.knows_all_columns else None
        except BaseException:
            self._log.abort()
            raise
        self._take(result)
        level = self._manager.levels.max_level if result is None or not result.after else result.after[0].level
        self._compact_changelog += [file.upgrade(level) for file in self._log.finish()]  # engines that hide level 0 hide its changelog
        self._compacted_fully |= full

    def rewrite(self, names: Collection[str]) -> None:
        """See ``BucketWriter``: on the file's own level, and in no changelog, for no row changes."""
        for file in [file for file in self._manager.levels.files if file.file_name in names]:
            self._take(self._manager.replace(file, self._plain.again(file)))

    def prepare(self) -> CommitMessage:
        """Flush, compact once if that is due, and hand over."""
        if self.context.compacts and (self._buffer.rows or not self._compacted_fully):
            self.compact(full=self.context.store.options.compacts_fully_at_commit)
        self.flush()
        before, after = self._increment.drain()
        message = self.context.message(self._new_files, before, after, self._changelog, self._compact_changelog)
        self._new_files, self._changelog, self._compact_changelog = [], [], []
        return message

    def abort(self) -> None:
        """Delete spill files, new files and compaction output."""
        with suppress(Exception):
            self._buffer.clear()
        self._increment.undo()
        for file in self._new_files:
            discard_files(self.context.store.file_io, self._target.directory, file)
        for file in (*self._changelog, *self._compact_changelog):
            self._log.discard(file)
        self._new_files, self._changelog, self._compact_changelog = [], [], []

    def _drained(self) -> Iterator[Any]:
        """The rows of the buffer, one a key; on the way all of them go to the changelog if that takes the input."""
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
        self._increment.add(result)
        made = list(result.made)
        kept = {file.file_name for file in result.after}
        self.metrics.compactions += 1
        self.metrics.bytes_read += sum(file.file_size for file in result.before if file.file_name not in kept)
        self._count(made)


__all__ = ["MergeTreeWriter", "sort_key_of"]
