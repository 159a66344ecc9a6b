"""The jobs that a client has Spark run: what travels in an option of a write, and the rows that go with it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from manifest.snapshot.snapshot import ReadState, SnapshotKey
from pyspark_paimon.request.backend import WriteRequest
from pyspark_paimon.request.message import Message


class HashScan(Message):
    """The keys of a dynamic-bucket table by hash, with the bucket of each, at a snapshot (None: there are no keys)."""

    snapshot_id: int | None


class RowsJob(Message):
    """A write of rows. ``owned`` promises that every (partition, bucket) reaches exactly one task, ``keyed`` that every primary key does.

    The dynamic buckets of a partition are shared by ``writers`` of the ``tasks``, as ``lsm.bucket.dynamic.Owners`` says, as of
    ``base_snapshot_id`` (0: an empty table; None: the newest when a task begins).
    ``blobs``: the rows are Arrow IPC streams in a binary column (``blob_frame`` of ``arrow_stream``). ``read``: the
    rows were computed from that state, so that a newer change of it is a conflict. ``plain``: Spark planned the write by itself, so that only
    tasks see the session's settings; with ``asks_mode`` these say whether it replaces the table or the partitions of the rows.
    """

    job: Literal["rows"] = "rows"
    request: WriteRequest
    owned: bool
    keyed: bool = False
    blobs: bool = False
    read: ReadState | None = None
    tasks: int = Field(default=1, ge=1)
    writers: int = Field(default=1, ge=1)
    base_snapshot_id: int | None = None
    plain: bool = False
    asks_mode: bool = False

    @property
    def identity(self) -> str:
        """Whose outcome is asked for."""
        return self.request.identity


class TasksJob(Message):
    """One round of a ``TaskOperation``. The rows of the job are its tasks, in ``TASK_COLUMNS``; no row of the table crosses the JVM."""

    job: Literal["tasks"] = "tasks"
    operation: str
    """Wire text."""
    identity: str
    """Commit id of the round, whose outcome is asked for."""
    base: SnapshotKey
    """Snapshot that the tasks are planned on."""


Job: TypeAlias = RowsJob | TasksJob


__all__ = ["HashScan", "Job", "RowsJob", "TasksJob"]
