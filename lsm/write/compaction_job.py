"""Compactions of some buckets, without new rows."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lsm.data_files.spill import SpillDirectory
from lsm.data_files.writer import data_file_names
from lsm.write.base_files import ExistingFiles
from lsm.write.bucket_contexts import BucketContexts, spill_space
from lsm.write.bucket_writer import BucketContext
from manifest.commit.conflicts import BucketId
from manifest.commit.index_update import compaction_paths
from manifest.commit.message import CommitMessage
from manifest.io import failpoints
from manifest.io.group_sync import GroupSync
from manifest.io.paths import FileNames
from manifest.schema.validation import check_crossing_keys, check_written_columns
from manifest.store import FileStore
from paimon_base.lazy import LazyModule

if TYPE_CHECKING:
    from lsm.compaction.cluster import Clustering
    from lsm.write import append_compactor, bucket_compaction
else:  # a table has one kind of buckets
    append_compactor = LazyModule("lsm.write.append_compactor")
    bucket_compaction = LazyModule("lsm.write.bucket_compaction")


class CompactionJob:
    """Compactions in one process, a context manager. Ignores ``write-only``.

    An exception deletes all new files. Leaving the block does not commit.

    Args:
        store: The table, with its newest schema.
        commit_id: Prefix of all file names, so that an abort finds the files of a commit.
        buckets: Buckets to compact. Files of others are not read. None: all.

    Raises:
        UnsupportedTable, UnsupportedOption: The table's options need a feature that is not implemented.
    """

    def __init__(self, store: FileStore, *, commit_id: str | None = None, buckets: Collection[int] | None = None) -> None:
        store.check_writable()
        check_written_columns(store.schema, store.root)
        check_crossing_keys(store.schema)
        self._durable = GroupSync(store.storage)
        self._store = store.through(self._durable)
        self._process = os.getpid()
        self._spill = SpillDirectory()
        self._existing = ExistingFiles(store, ignore=False, buckets=buckets)
        self._contexts = BucketContexts(
            store=self._store,
            existing=self._existing,
            names=data_file_names(store, commit_id),
            index_names=FileNames("index-", commit_id=commit_id),
            space=spill_space(store, self._spill),
        )
        self._compactors: list[tuple[BucketContext, bucket_compaction.Compactor]] = []
        self._prepared: list[CommitMessage] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if os.getpid() != self._process:  # the files are those of the parent of a forked child
            return
        self._durable.close()
        if kind is not None:
            for _, compactor in self._compactors:
                compactor.undo()
            for message in self._prepared:
                for path in compaction_paths(self._store, message):
                    with suppress(OSError):  # leaves at most an orphan file
                        self._store.file_io.delete(path)
        self._spill.cleanup()

    def load_partitions(self, partitions: Iterable[bytes]) -> None:
        """Load the files of ``partitions`` with one manifest read."""
        self._existing.load(map(self._store.partition.decode, partitions))

    def compact(self, partition: bytes, bucket: int, *, full: bool = False) -> None:
        """Compact a bucket.

        ``full`` compacts all files. Otherwise the strategy chooses the files.
        """
        self._compactor(partition, bucket).compact(full=full)

    def rewrite(self, partition: bytes, bucket: int, names: Collection[str]) -> None:
        """Rewrite files of a bucket to recompute their metadata.

        Each file is rewritten separately.
        """
        self._compactor(partition, bucket).rewrite(names)

    def cluster(self, partition: bytes, bucket: int, clustering: Clustering) -> None:
        """Sort all rows of a bucket of an append table."""
        context = self._contexts.of_compaction(partition, bucket)
        compactor = append_compactor.AppendCompactor(context)
        self._compactors.append((context, compactor))
        compactor.cluster(clustering)

    def prepare_commit(self) -> list[CommitMessage]:
        """Return the messages of buckets that changed."""
        for context, compactor in self._compactors:
            before, after, changelog_files = compactor.drain()
            self._prepared.append(context.message((), before, after, (), changelog_files, upkeep=True))
        self._durable.flush()
        failpoints.point("after-data-files")
        return [message for message in self._prepared if not message.is_empty]

    def _compactor(self, partition: bytes, bucket: int) -> bucket_compaction.Compactor:
        context = self._contexts.of_compaction(partition, bucket)
        is_keyed = self._store.schema.is_primary_key_table
        compactor = bucket_compaction.merge_tree_compactor(context) if is_keyed else append_compactor.AppendCompactor(context)
        self._compactors.append((context, compactor))
        return compactor


def compact_together(
    store: FileStore,
    buckets: Sequence[BucketId],
    *,
    full: bool = False,
    clustering: Clustering | None = None,
    commit_id: str | None = None,
) -> list[CommitMessage]:
    """Compact buckets in one job, ignoring ``write-only``.

    Returns the messages of buckets that changed. On failure all new files are deleted. ``full`` compacts all files of each bucket.
    With ``clustering`` all rows of the append buckets are sorted instead.
    """
    # Several small buckets in one job cost a third less than one job each: they share one manifest read,
    # and the next bucket is merged while the disk writes.
    with CompactionJob(store, commit_id=commit_id, buckets={bucket for _, bucket in buckets}) as job:
        job.load_partitions(partition for partition, _ in buckets)
        for partition, bucket in buckets:
            if clustering is None:
                job.compact(partition, bucket, full=full)
            else:
                job.cluster(partition, bucket, clustering)
        return job.prepare_commit()
