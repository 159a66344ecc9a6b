"""Moving rows out of postponed buckets as a job: tasks write those of some partitions into buckets, the commit hook shows all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lsm.commit.postponed import moved_rows, waiting_files
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.entry.live import EntryFilter
from pyspark_paimon.spark.driver.commit import commit_settled
from pyspark_paimon.spark.read.threads import use_task_cpus
from pyspark_paimon.spark.wire import jobs as wire_jobs
from pyspark_paimon.spark.wire.errors import errors_noted
from pyspark_paimon.spark.write.task import JobWriter, TaskMessage, commit_messages, commit_of, open_store, touched_buckets


class SettleWriter(JobWriter):
    """Settles the partitions that the job's rows name; the rows of the table stay in the worker."""

    def __init__(self, path: str, job: wire_jobs.SettleJob) -> None:
        self.path = path
        self.job = job.model_dump_json()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """One task: the partitions in the column ``partition``. On an error its files are deleted."""
        with errors_noted():
            job = self._job
            partitions = {partition for partition, _ in touched_buckets(iterator)}
            if not partitions:
                return TaskMessage()
            store = open_store(self.path, job.request)
            waiting = waiting_files(store, store.snapshots.same(job.snapshot), EntryFilter(partitions=partitions))
            made = moved_rows(store, waiting, job.request.commit_id, job.snapshot, threads=use_task_cpus())
            return TaskMessage([message.model_dump_json() for message in made])

    def publish(self, messages: Sequence[TaskMessage | None]) -> None:
        """Show the rows in their buckets. Raises ``CommitConflict`` if another commit changed these; the client tries again."""
        commit_settled(open_store(self.path, self._job.request), self._job, commit_messages(messages))

    def committer(self) -> FileStoreCommit:
        """See ``JobWriter``."""
        return commit_of(self.path, self._job.request)

    @property
    def _job(self) -> wire_jobs.SettleJob:
        return wire_jobs.SettleJob.model_validate_json(self.job)


__all__ = ["SettleWriter"]
