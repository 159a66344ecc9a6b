"""Compaction of one bucket of an append table (Paimon's ``BucketedAppendCompactManager``)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from lsm.compaction.cluster import BucketCluster, Clustering, IncrementalClustering
from lsm.compaction.compactor import CompactIncrement
from lsm.compaction.rewriter import CompactResult
from lsm.compaction.small_files import SmallFilePolicy, join_files, join_small_files
from lsm.data_files.rolling import discard_files
from lsm.write.bucket_writer import BucketContext
from manifest.entry.data_file import DataFileMeta
from manifest.options.support import check_rewritable
from paimon_base.lazy import LazyModule

if TYPE_CHECKING:
    from lsm.compaction import column_ranges
else:  # few tables have data evolution
    column_ranges = LazyModule("lsm.compaction.column_ranges")


class AppendCompactor:
    """Files of one append bucket, and their compaction.

    ``new_files`` are files of the same write, in addition to the existing ones.
    """

    def __init__(self, context: BucketContext, new_files: Sequence[DataFileMeta] = ()) -> None:
        self.context = context
        self.files = [*context.existing, *new_files]
        self._increment = CompactIncrement(self._discard)

    def compact(self, *, full: bool) -> None:
        """Join small files or cluster pending files.

        Does nothing if files of the bucket have a newer schema.
        """
        context, options = self.context, self.context.store.options
        joins_columns = options.data_evolution_enabled and not options.deletion_vectors_enabled
        if not joins_columns:
            check_rewritable(options, context.store.root)
        if not context.knows_all_columns:
            return
        policy = SmallFilePolicy.of(context.store.schema.kind)
        bucket = (context.partition, context.bucket)
        if joins_columns:
            result = column_ranges.join_ranges(context.target, *bucket, self.files, policy, full=full)
            if result is not None:
                self._apply(result)
            return
        incremental = IncrementalClustering.of(context.store)
        if incremental is not None:
            unit = incremental.pick(self.files, full=full)
            if unit is not None:
                self._sort(unit.files, incremental.clustering, unit.output_level)
            return
        result = join_small_files(context.target, *bucket, self.files, policy, full=full, vectors=context.vectors)
        if result is not None:
            self._apply(result)

    def rewrite(self, names: Collection[str]) -> None:
        """Rewrite files one by one, with the same rows."""
        context = self.context
        check_rewritable(context.store.options, context.store.root)
        for file in [file for file in self.files if file.file_name in names]:
            joined = join_files(context.target, context.partition, context.bucket, [file.without_statistics()], context.vectors)
            self._apply(CompactResult([file], joined.after))

    def cluster(self, clustering: Clustering) -> None:
        """Sort all rows of the bucket.

        Does nothing if files of the bucket have a newer schema.
        """
        check_rewritable(self.context.store.options, self.context.store.root)
        if self.files and self.context.knows_all_columns:
            self._sort(self.files, clustering, 0)

    def drain(self) -> tuple[list[DataFileMeta], list[DataFileMeta], list[DataFileMeta]]:
        """Return removed and added files, and no changelog files, and reset."""
        return (*self._increment.drain(), [])

    def undo(self) -> None:
        """Delete the files created since the last ``drain``."""
        self._increment.undo()

    def _sort(self, files: Sequence[DataFileMeta], clustering: Clustering, level: int) -> None:
        context = self.context
        cluster = BucketCluster(context.target, context.partition, context.bucket, clustering, context.space, context.vectors)
        result = cluster.rewrite(files)
        self._apply(CompactResult(result.before, [file.upgrade(level) for file in result.after]))

    def _apply(self, result: CompactResult) -> None:
        removed_names = {file.file_name for file in result.before}
        self.files = [file for file in self.files if file.file_name not in removed_names] + result.after
        self._increment.add(result)

    def _discard(self, file: DataFileMeta) -> None:
        discard_files(self.context.store.file_io, self.context.target.directory, file)
