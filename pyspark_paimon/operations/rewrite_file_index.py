"""Rewrite of file indexes.

Each data file is one task. One commit contains all results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from manifest.entry.live import EntryFilter
from manifest.io.paths import POSTPONE_BUCKET
from manifest.snapshot.snapshot import EMPTY_TABLE, SnapshotKey
from paimon_base.lazy import LazyModule
from pyspark_paimon.jobs.task_operation import TaskOperation
from pyspark_paimon.request.bound import BoundFilter
from pyspark_paimon.request.partition_spec import predicate_of
from pyspark_paimon.request.tasks import Task, TaskPlan, TaskRun, TaskWork, Worker, partitions_of
from pyspark_paimon.results.results import IndexRewriteResult

if TYPE_CHECKING:
    from lsm.file_index import rewrite
    from manifest.commit.conflicts import BucketId
    from manifest.commit.file_store_commit import FileStoreCommit
    from manifest.commit.message import CommitMessage, CommitResult
    from manifest.store import FileStore
else:  # the client of a server sends this operation and needs no storage engine
    rewrite = LazyModule("lsm.file_index.rewrite")


class RewriteFileIndex(TaskOperation[IndexRewriteResult]):
    """Rewrite file indexes as the table's options require.

    ``partitions``: full partition specifications. None: all. ``predicate``: a bound filter on partition columns, instead.
    """

    stage: ClassVar[str] = "rewrite-file-index"
    unit: ClassVar[str] = "files"
    commits_parts: ClassVar[bool] = True

    partitions: tuple[dict[str, str | None], ...] | None = None
    predicate: BoundFilter | None = None

    def plan(self, store: FileStore) -> TaskPlan:
        """List data files, the largest first."""
        latest = store.snapshots.latest()
        predicate = self.predicate if self.partitions is None else predicate_of(self.partitions, store.schema)
        entries = store.live_entries(latest, EntryFilter(predicate=predicate))
        live_entries = entries.select(entries.bucket != POSTPONE_BUCKET).entries()
        tasks = (Task(entry.partition.hex(), entry.bucket, entry.file.file_size, entry.file.file_name) for entry in live_entries)
        return TaskPlan(
            base=EMPTY_TABLE if latest is None else latest.key, tasks=tuple(sorted(tasks, key=lambda task: (-task.size, task.file)))
        )

    def prepare(self, store: FileStore, base: SnapshotKey, tasks: Sequence[Task], threads: int) -> Worker:
        """Find the files, and return the worker that rewrites them."""
        del threads
        live_entries = store.live_entries(store.snapshots.same(base), EntryFilter(partitions=partitions_of(tasks))).entries()
        entries = {(entry.partition, entry.bucket, entry.file.file_name): entry for entry in live_entries}
        rewriter = rewrite.FileIndexRewriter(store, self.commit_id, base.id)

        def rewritten(reporting: FileStore, group: Sequence[Task]) -> TaskWork:
            reporting_rewriter = replace(rewriter, store=reporting)
            rewritten_files = [reporting_rewriter.rewrite(entries[*task.bucket_id, task.file]) for task in group]
            sizes = Counter(
                bytes_read=sum(file.bytes_read for file in rewritten_files),
                bytes_written=sum(file.bytes_written for file in rewritten_files),
            )
            return TaskWork([file.message for file in rewritten_files if file.message is not None], sizes)

        return rewritten

    def counts(self, work: TaskWork, lost: Sequence[BucketId] = ()) -> dict[str, int]:
        """Return counts of rewritten indexes and of bytes."""
        return {**work.counts, "rewritten": len(work.messages) - len(lost)}

    def commit(
        self,
        commit: FileStoreCommit,
        base: SnapshotKey,
        messages: Sequence[CommitMessage],
        properties: dict[str, str],
    ) -> CommitResult:
        """Commit; files that are gone drop out."""
        del base
        return commit.rewrite_indexes(messages, properties=properties)

    def result(self, run: TaskRun) -> IndexRewriteResult:
        """Return the counts of all rounds."""
        return IndexRewriteResult(
            files=run.tasks,
            rewritten=run.total("rewritten"),
            bytes_read=run.total("bytes_read"),
            bytes_written=run.total("bytes_written"),
            snapshot_id=run.snapshot_id,
            seconds=run.seconds,
        )
