"""Spark jobs that a client starts, as JSON in an option."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from manifest.snapshot.snapshot import ReadState, SnapshotKey
from pyspark_paimon.request.requests import WriteRequest
from pyspark_paimon.results.message import Message


class HashScan(Message):
    """A read of a dynamic-bucket table's key hashes and buckets."""

    snapshot_id: int | None
    """None: the table is empty."""


class Route(Message):
    """How the rows of a write reach the tasks."""

    @property
    def owned(self) -> bool:
        """Whether each (partition, bucket) is in exactly one task."""
        return False

    @property
    def finds_keys(self) -> bool:
        """Whether each primary key is in exactly one task."""
        return False


class _Owned(Route):
    @property
    def owned(self) -> bool:
        return True

    @property
    def finds_keys(self) -> bool:
        return True


class Blobs(_Owned):
    """The client computed the task of each row.

    The rows are Arrow IPC streams in a binary column (``arrow_stream.blob_frame``).
    """

    route: Literal["blobs"] = "blobs"


class ByBucket(_Owned):
    """Spark computed the bucket of each row, or one task has all rows."""

    route: Literal["bucket"] = "bucket"


class ByHash(_Owned):
    """Rows are with the owner of their dynamic bucket."""

    route: Literal["hash"] = "hash"
    tasks: int = Field(ge=1)
    writers: int = Field(ge=1)
    """Number of tasks that share the dynamic buckets of a partition (``lsm.bucket.dynamic.BucketWriters``)."""
    base_snapshot_id: int
    """Snapshot that gives the dynamic buckets. 0: empty table."""


class ByKey(_Owned):
    """Rows are with the others of their key. The task finds the bucket."""

    route: Literal["key"] = "key"
    tasks: int = Field(ge=1)
    base_snapshot_id: int | None
    """Snapshot that gives the buckets of keys. 0: empty table. None: the newest snapshot when a task starts."""

    @property
    def owned(self) -> bool:
        """Whether one task has all rows."""
        return self.tasks == 1

    @property
    def writers(self) -> int:
        """All tasks share the buckets."""
        return self.tasks


class Unrouted(Route):
    """Any task may have rows of any bucket."""

    route: Literal["any"] = "any"


class SparkPlanned(Route):
    """As ``Unrouted``, planned by Spark without our client.

    So only tasks see the session's settings.
    """

    route: Literal["spark"] = "spark"
    asks_mode: bool = False
    """Whether these settings decide what an overwrite replaces: the table, or the partitions of its rows."""


class RowsJob(Message):
    """A write of rows."""

    job: Literal["rows"] = "rows"
    request: WriteRequest
    route: Annotated[Blobs | ByBucket | ByHash | ByKey | Unrouted | SparkPlanned, Field(discriminator="route")]
    read: ReadState | None = None
    """State that the rows were computed from. A newer change of it is a conflict."""

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
