"""Writer of one append bucket (Paimon's ``AppendOnlyWriter``)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from lsm.compaction.cluster import BucketCluster, Clustering, IncrementalClustering
from lsm.compaction.compactor import CompactIncrement
from lsm.compaction.rewriter import CompactTaskResult
from lsm.compaction.small_files import SmallFilePolicy, join_files, join_small_files
from lsm.data_files.rolling import RollingFileWriter, discard_files, row_writer
from lsm.data_files.write_metrics import WriteMetrics
from lsm.write.bucket_writer import BucketContext
from lsm.write_buffer.source import BufferedRows, Source
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.options.support import check_rewritable
from paimon_base.lazy import LazyModule
from sparkexpr.values.arrays import Int64s

if TYPE_CHECKING:
    from lsm.compaction import column_ranges
else:  # few tables have data evolution
    column_ranges = LazyModule("lsm.compaction.column_ranges")


class AppendOnlyWriter:
    """Writer of one bucket of an append table.

    It holds row numbers of input tables. Rows are written in order of arrival, when memory is short or the write ends.
    """

    def __init__(self, context: BucketContext) -> None:
        self.context = context
        self.metrics = WriteMetrics()
        self.held = BufferedRows()
        self._target = context.target
        self._has_buckets = context.store.options.bucket > 0
        self._next_sequence = context.next_sequence if self._has_buckets else 0
        self._writer: RollingFileWriter | None = None
        self._files = list(context.existing)
        self._new_files: list[DataFileMeta] = []
        self._increment = CompactIncrement(self._discard)

    @property
    def reorders(self) -> bool:
        """See ``BucketWriter``."""
        return False

    @property
    def pending_compaction(self) -> int:
        """See ``BucketWriter``.

        Counts one run for each file that a compaction may join with others.
        """
        return len(self._files) if self._has_buckets else 0

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
        self._files += files
        self._count(files)

    def compact(self, *, full: bool) -> None:
        """Flush, then join small files or cluster pending files.

        Does nothing if files of the bucket have a newer schema.
        """
        self.flush()
        context, options = self.context, self.context.store.options
        joins_columns = options.data_evolution_enabled and not options.deletion_vectors_enabled
        if not joins_columns:
            check_rewritable(options, context.store.root)
        if not context.knows_all_columns:
            return
        policy = SmallFilePolicy.of(context.store.schema.kind)
        bucket = (context.partition, context.bucket)
        if joins_columns:
            result = column_ranges.join_ranges(self._target, *bucket, self._files, policy, full=full)
            if result is not None:
                self._replace(result)
            return
        incremental = IncrementalClustering.of(context.store)
        if incremental is not None:
            unit = incremental.pick(self._files, full=full)
            if unit is not None:
                self._sort(unit.files, incremental.clustering, unit.output_level)
            return
        result = join_small_files(self._target, *bucket, self._files, policy, full=full, vectors=context.vectors)
        if result is not None:
            self._replace(result)

    def _replace(self, result: CompactTaskResult) -> None:
        gone = {file.file_name for file in result.before}
        self._files = [file for file in self._files if file.file_name not in gone] + result.after
        self._increment.add(result)
        self.metrics.compactions += 1
        self.metrics.bytes_read += sum(file.file_size for file in result.before)
        self._count(result.after)

    def rewrite(self, names: Collection[str]) -> None:
        """See ``BucketWriter``."""
        context = self.context
        check_rewritable(context.store.options, context.store.root)
        for file in [file for file in self._files if file.file_name in names]:
            made = join_files(self._target, context.partition, context.bucket, [file.without_statistics()], context.vectors)
            self._replace(CompactTaskResult([file], made.after))

    def cluster(self, clustering: Clustering) -> None:
        """Flush, then sort all rows of the bucket.

        Does nothing if files of the bucket have a newer schema.
        """
        self.flush()
        check_rewritable(self.context.store.options, self.context.store.root)
        if not self._files or not self.context.knows_all_columns:
            return
        self._sort(self._files, clustering, 0)

    def _sort(self, files: Sequence[DataFileMeta], clustering: Clustering, level: int) -> None:
        context = self.context
        job = BucketCluster(self._target, context.partition, context.bucket, clustering, context.space, context.vectors)
        result = job.rewrite(files)
        self._replace(CompactTaskResult(result.before, [file.upgrade(level) for file in result.after]))

    def prepare(self) -> CommitMessage:
        """Flush, compact a bucketed table, and return the commit message."""
        self.flush()
        error: str | None = None
        if self.context.compacts and self._has_buckets:
            error = self.context.try_compaction(lambda: self.compact(full=False))
        before, after = self._increment.drain()
        new_files, self._new_files = self._new_files, []
        return self.context.message(new_files, before, after, compaction_error=error)

    def abort(self) -> None:
        """Delete all files of this writer."""
        self.held.clear()
        if self._writer is not None:
            with suppress(Exception):
                self._writer.abort()
            self._writer = None
        self._increment.undo()
        for file in self._new_files:
            self._discard(file)
        self._new_files = []

    def _write(self) -> None:
        if not self.held:
            return
        if self._writer is None:
            self._writer = row_writer(self._target, FileSource.APPEND, self._next_sequence)
        for table in self.held.tables():
            self._writer.write(table)
        self.metrics.rows += self.held.count
        self.held.clear()

    def _discard(self, file: DataFileMeta) -> None:
        discard_files(self.context.store.file_io, self._target.directory, file)

    def _count(self, files: list[DataFileMeta]) -> None:
        self.metrics.files += len(files)
        self.metrics.bytes_written += sum(file.file_size for file in files)
