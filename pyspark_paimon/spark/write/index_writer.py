"""Rewriting file indexes in Spark's tasks: the job's rows name data files, whose rows stay in the worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lsm.file_index.rewrite import FileIndexRewriter, RewrittenIndex
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.entry.live import EntryFilter
from manifest.entry.manifest_entry import ManifestEntry
from manifest.store import FileStore
from pyspark_paimon.spark.driver.commit import commit_index_rewrite
from pyspark_paimon.spark.wire import jobs as wire_jobs
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.errors import errors_noted
from pyspark_paimon.spark.write.task import JobWriter, TaskMessage, commit_messages, uncommitted


@dataclass
class IndexTaskMessage(TaskMessage):
    """What one task made, and how many bytes it read and wrote."""

    bytes_read: int = 0
    bytes_written: int = 0


class IndexWriter(JobWriter):
    """Rewrites the indexes of the data files that the job's rows name."""

    def __init__(self, path: str, job: wire_jobs.IndexJob) -> None:
        self.path = path
        self.job = job.model_dump_json()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """One task: the files in the columns ``partition``, ``bucket`` and ``file``. On an error its side files are deleted."""
        with errors_noted():
            job, commit = self._job, self.committer()
            rewriter = FileIndexRewriter(commit.store, job.commit_id, job.snapshot_id)
            rewritten: list[RewrittenIndex] = []
            with uncommitted(commit) as messages:
                for entry in _entries(commit.store, job.snapshot_id, iterator):
                    one = rewriter.rewrite(entry)
                    if one.message is not None:
                        messages.append(one.message)
                    rewritten.append(one)
            return IndexTaskMessage(
                [message.model_dump_json() for message in messages],
                bytes_read=sum(one.bytes_read for one in rewritten),
                bytes_written=sum(one.bytes_written for one in rewritten),
            )

    def publish(self, messages: Sequence[IndexTaskMessage | None]) -> None:
        """Commit the rewritten indexes. Raises ``CommitConflict`` for files that are gone; the client looks at the rest again."""
        ended = [message for message in messages if message is not None]
        read, written = sum(message.bytes_read for message in ended), sum(message.bytes_written for message in ended)
        commit_index_rewrite(
            FileStore.open(self.path), self._job.commit_id, commit_messages(messages), bytes_read=read, bytes_written=written
        )

    def committer(self) -> FileStoreCommit:
        """See ``JobWriter``."""
        return FileStoreCommit(FileStore.open(self.path), self._job.commit_id)

    @property
    def _job(self) -> wire_jobs.IndexJob:
        return wire_jobs.IndexJob.model_validate_json(self.job)


def _entries(store: FileStore, snapshot_id: int, iterator: Iterator[pa.RecordBatch]) -> list[ManifestEntry]:
    """The live files of the snapshot that the rows name."""
    wanted = {row for batch in iterator for row in zip(*(batch.column(name).to_pylist() for name in rpc.FILE_COLUMNS), strict=True)}
    partitions = {partition for partition, _, _ in wanted}
    entries = store.live_entries(store.snapshots.get(snapshot_id), EntryFilter(partitions=partitions)).entries() if wanted else []
    return [entry for entry in entries if (entry.partition, entry.bucket, entry.file.file_name) in wanted]


__all__ = ["IndexWriter"]
