"""The jobs that a client has Spark run: what travels in an option of a write, and the rows that go with it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from manifest.snapshot.snapshot import ReadState, SnapshotKey
from pyspark_paimon.request.backend import CompactRequest, DeleteRequest, WriteRequest
from pyspark_paimon.request.message import CommitId, Message


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


class CompactJob(Message):
    """A compaction; the rows of the job are the ids of buckets, and no row of the table crosses the JVM."""

    job: Literal["compact"] = "compact"
    request: CompactRequest

    @property
    def identity(self) -> str:
        """Whose outcome is asked for."""
        return self.request.commit_id


class SettleJob(Message):
    """Rows that wait in postponed buckets at a snapshot are moved into buckets; the rows of the job are ids of partitions' buckets."""

    job: Literal["settle"] = "settle"
    request: CompactRequest
    snapshot: SnapshotKey

    @property
    def identity(self) -> str:
        """Whose outcome is asked for."""
        return self.request.commit_id


class ChangeJob(Message):
    """A delete or an update in an append table; the rows of the job are the ids of buckets.

    ``values``: the new values by column, as ``Assignments`` sends them; None deletes.
    """

    job: Literal["change"] = "change"
    request: DeleteRequest
    snapshot: SnapshotKey
    values: str | None = None

    @property
    def identity(self) -> str:
        """Whose outcome is asked for."""
        return self.request.commit_id


class IndexJob(Message):
    """A rewrite of file indexes; the rows of the job are data files of a snapshot, in ``FILE_COLUMNS``."""

    job: Literal["rewrite-file-index"] = "rewrite-file-index"
    commit_id: CommitId
    snapshot_id: int

    @property
    def identity(self) -> str:
        """Whose outcome is asked for."""
        return self.commit_id


Job: TypeAlias = RowsJob | CompactJob | SettleJob | ChangeJob | IndexJob


__all__ = ["ChangeJob", "CompactJob", "HashScan", "IndexJob", "Job", "RowsJob", "SettleJob"]
