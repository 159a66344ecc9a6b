"""Deletes and updates of append tables in Spark's tasks: a bucket's files are marked or rewritten where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from fileindex.predicate.tree import TRUE
from lsm.write.copy_on_write import AppendChange
from manifest.commit.file_store_commit import FileStoreCommit
from pyspark_paimon.request.assignments import Assignments
from pyspark_paimon.spark.driver.commit import commit_change
from pyspark_paimon.spark.wire import jobs as wire_jobs
from pyspark_paimon.spark.wire.errors import errors_noted
from pyspark_paimon.spark.write.task import JobWriter, TaskMessage, commit_messages, commit_of, open_store, touched_buckets, uncommitted


class ChangeWriter(JobWriter):
    """Changes the matching rows of the buckets that the job's rows name."""

    def __init__(self, path: str, job: wire_jobs.ChangeJob) -> None:
        self.path = path
        self.job = job.model_dump_json()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """One task: the buckets in the columns ``partition`` and ``bucket``."""
        with errors_noted():
            job = self._job
            commit = self.committer()
            store = commit.store
            update = None if job.values is None else Assignments.received(job.values, store.schema).applied
            predicate = TRUE if job.request.predicate is None else job.request.predicate
            change = AppendChange(store, store.snapshots.same(job.snapshot), predicate, job.request.commit_id, update)
            rows = 0
            with uncommitted(commit) as messages:
                for partition, bucket in touched_buckets(iterator):
                    splits = change.buckets([partition]).get((partition, bucket), ())
                    changed = change.run(splits) if splits else None
                    if changed is not None:
                        messages.append(changed[0])
                        rows += changed[1]
            return TaskMessage([message.model_dump_json() for message in messages], rows)

    def publish(self, messages: Sequence[TaskMessage | None]) -> None:
        """Commit the changes. Raises ``CommitConflict`` if a bucket changed meanwhile; the client evaluates again."""
        rows = sum(message.rows for message in messages if message is not None)
        commit_change(open_store(self.path, self._job.request), self._job, commit_messages(messages), rows)

    def committer(self) -> FileStoreCommit:
        """See ``JobWriter``."""
        return commit_of(self.path, self._job.request)

    @property
    def _job(self) -> wire_jobs.ChangeJob:
        return wire_jobs.ChangeJob.model_validate_json(self.job)


__all__ = ["ChangeWriter"]
