"""Spark jobs that a client starts, as JSON in an option."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from manifest.snapshot.snapshot import ReadState, SnapshotKey
from pyspark_paimon.request.requests import WriteRequest
from pyspark_paimon.results.message import Message


class HashScan(Message):
    """A read of a dynamic-bucket table's key hashes and buckets."""

    snapshot_id: int | None
    """None: the table is empty."""


class RowsJob(Message):
    """A write of rows."""

    job: Literal["rows"] = "rows"
    request: WriteRequest
    owned: bool
    """Whether each (partition, bucket) is in exactly one task."""
    keyed: bool = False
    """Whether each primary key is in exactly one task."""
    blobs: bool = False
    """Whether the rows are Arrow IPC streams in a binary column (``arrow_stream.blob_frame``)."""
    read: ReadState | None = None
    """State that the rows were computed from. A newer change of it is a conflict."""
    tasks: int = Field(default=1, ge=1)
    writers: int = Field(default=1, ge=1)
    """Number of tasks that share the dynamic buckets of a partition (``lsm.bucket.dynamic.BucketWriters``)."""
    base_snapshot_id: int | None = None
    """Snapshot that gives the dynamic buckets. 0: empty table. None: the newest snapshot when a task starts."""
    plain: bool = False
    """Whether Spark planned the write without our client: then only tasks see the session's settings."""
    asks_mode: bool = False
    """Whether the session's settings, seen by tasks, decide what an overwrite replaces: the table, or the partitions of its rows."""

    @property
    def identity(self) -> str:
        """Commit id of the write."""
        return self.request.identity


class TasksJob(Message):
    """One round of a ``TaskOperation``.

    The rows of the job are tasks, with columns ``TASK_COLUMNS``. No row of the table goes through the JVM.
    """

    job: Literal["tasks"] = "tasks"
    operation: str
    """The operation as JSON."""
    identity: str
    """Commit id of the round."""
    base: SnapshotKey
    """Snapshot that the tasks were planned on."""


Job: TypeAlias = RowsJob | TasksJob
