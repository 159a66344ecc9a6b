"""Deletes and updates of append tables.

Each bucket is one task. It marks rows in files or rewrites the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from fileindex.predicate.tree import TRUE
from manifest.snapshot.snapshot import EMPTY_TABLE, ReadState, SnapshotKey
from paimon_base.lazy import LazyModule
from pyspark_paimon.jobs.counting import write_counts
from pyspark_paimon.jobs.task_operation import TaskOperation
from pyspark_paimon.request.assignments import Assignments
from pyspark_paimon.request.bound import BoundFilter
from pyspark_paimon.request.tasks import Task, TaskPlan, TaskRun, TaskWork, Worker, partitions_of
from pyspark_paimon.results.results import WriteResult

if TYPE_CHECKING:
    from lsm.write import copy_on_write
    from manifest.commit.conflicts import BucketId
    from manifest.commit.file_store_commit import FileStoreCommit
    from manifest.commit.message import CommitMessage, CommitResult
    from manifest.snapshot.snapshot import Snapshot
    from manifest.store import FileStore
else:  # the client of a server sends this operation and needs no storage engine
    copy_on_write = LazyModule("lsm.write.copy_on_write")


class ChangeFiles(TaskOperation[WriteResult]):
    """Delete or update the matching rows of an append table.

    ``values``: new values by column, as ``Assignments.to_text`` returns them. None: delete.
    """

    stage: ClassVar[str] = "change"

    predicate: BoundFilter | None
    values: str | None = None

    @property
    def verb(self) -> str:
        """See ``TaskOperation``."""
        return "delete" if self.values is None else "update"

    def plan(self, store: FileStore) -> TaskPlan:
        """List buckets that may have matching rows."""
        store.check_writable()
        latest = store.snapshots.latest()
        if latest is None:
            return TaskPlan(base=EMPTY_TABLE)
        tasks = (
            Task(partition.hex(), bucket, sum(split.file_size for split in splits))
            for (partition, bucket), splits in self._change(store, latest).buckets().items()
        )
        return TaskPlan(base=latest.key, tasks=tuple(tasks))

    def prepare(self, store: FileStore, base: SnapshotKey, tasks: Sequence[Task], threads: int) -> Worker:
        """Return the change of some buckets."""
        del threads
        change = self._change(store, store.snapshots.same(base))
        splits = change.buckets(partitions_of(tasks))

        def changed(reporting: FileStore, group: Sequence[Task]) -> TaskWork:
            work = TaskWork()
            for task in group:
                changed_files = replace(change, store=reporting).run(splits[task.bucket_id]) if task.bucket_id in splits else None
                if changed_files is not None:
                    work.add(TaskWork([changed_files[0]], Counter(rows=changed_files[1])))
            return work

        return changed

    def counts(self, work: TaskWork, lost: Sequence[BucketId] = ()) -> dict[str, int]:
        """Return counts of rows, files and bytes."""
        del lost
        return write_counts(work.messages, rows=work.counts["rows"])

    def commit(
        self,
        commit: FileStoreCommit,
        base: SnapshotKey,
        messages: Sequence[CommitMessage],
        properties: dict[str, str],
    ) -> CommitResult:
        """Commit deletion vectors, or replace files."""
        options = commit.store.options
        publish = commit.commit if options.deletion_vectors_enabled or options.data_evolution_enabled else commit.replace
        return publish(messages, properties=properties, read=ReadState(base))

    def result(self, run: TaskRun) -> WriteResult:
        """Return the counts of the commit."""
        return WriteResult.of(run.outcomes[-1] if run.outcomes else None, run.seconds, run.millis)

    def _change(self, store: FileStore, snapshot: Snapshot) -> copy_on_write.AppendChange:
        predicate = TRUE if self.predicate is None else self.predicate
        if self.values is None:
            return copy_on_write.AppendChange(store, snapshot, predicate, self.commit_id)
        values = Assignments.from_text(self.values, store.schema)
        return copy_on_write.AppendChange(store, snapshot, predicate, self.commit_id, values.apply, tuple(values.values))
