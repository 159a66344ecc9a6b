"""The seam between the public ``Table`` and what does its work: threads here (``LocalBackend``) or a Spark server.

A ``Table`` validates and binds what people say, and hands a backend frozen requests that survive a trip as JSON text: filters are bound
predicate trees, schemas are Paimon's schema JSON, a snapshot is an id. Rows come as one of two kinds: an Arrow stream
that this process holds, or a Spark DataFrame that must not come here. Both backends run the same tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import pyarrow as pa
from pydantic import Field

from fileindex.base.public import public
from fileindex.predicate.tree import Predicate
from lsm.aggregate.names import AggregateName
from lsm.keys.sort_column import SortColumn
from manifest.options.own_branch import OWN_BRANCH
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from pyspark_paimon.request.bound import BoundFilter, BoundKeys
from pyspark_paimon.request.message import CommitId, Message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from manifest.snapshot.manager import SnapshotManager
    from manifest.snapshot.snapshot import Snapshot
    from pyspark_paimon.request.results import (
        ProgressEvent,
    )

A = TypeVar("A")
Mode: TypeAlias = Literal["upsert", "append", "overwrite"]
Progress: TypeAlias = "Callable[[ProgressEvent], None]"

ClusterStrategyName: TypeAlias = Literal["order", "zorder", "hilbert"]
IncrementalModeName: TypeAlias = Literal["delta", "changelog", "diff"]
View: TypeAlias = Literal["tags", "branches", "schemas", "partitions", "consumers"]
IndexView: TypeAlias = Literal["file_indexes", "index_health"]


class TravelRequest(Message):
    """Which snapshot to pin: at most one member is set, none means the newest."""

    snapshot_id: int | None = None
    tag: str | None = None
    timestamp_millis: int | None = None
    watermark: int | None = None
    version: str | None = None
    compacted: bool = False


class IncrementalRange(Message):
    """Changes after snapshot ``start_id`` (0: since the beginning) up to and with ``end_id``; a tag holds a snapshot that has expired.

    ``exact``: what the mode cannot tell of an expired snapshot is an error.
    """

    start_id: int
    end_id: int
    mode: IncrementalModeName
    start_tag: str | None = None
    end_tag: str | None = None
    exact: bool = False


class ScanRequest(Message):
    """What to read: pinned snapshot (None: the table was empty), bound filter, columns in the order wanted.

    ``order_by`` sorts the rows, ``limit`` then keeps the first ones. ``keys``: of the rows only those that have one of them, as their columns
    tell; with no limit or order. ``aggregates``: what is asked of columns instead of their rows.
    ``dictionaries``: columns whose texts may come as dictionaries. ``schema_id`` is the schema that filter and columns were bound to (None: the newest); time travel uses the snapshot's own. ``excluded_files`` names data files that the asker reads himself.
    ``read_optimized``: of a table with primary keys, only what the last full compaction of each bucket left.

    >>> from fileindex.predicate.tree import ColumnRef, Compare, Op
    >>> request = ScanRequest(predicate=Compare(ColumnRef("id"), Op.EQ, 7), columns=("id",), snapshot_id=3)
    >>> ScanRequest.model_validate_json(request.model_dump_json()) == request
    True
    >>> request.predicate
    Compare(column=ColumnRef(name='id', key=None), op=<Op.EQ: '='>, value=7)
    """

    columns: tuple[str, ...]
    snapshot_id: int | None
    snapshot_delta: str | None = None
    """Delta manifest list of the snapshot. A rollback may give its id to another one."""
    predicate: BoundFilter | None = None
    keys: BoundKeys | None = None
    order_by: tuple[SortColumn, ...] = ()
    limit: int | None = None
    aggregates: dict[str, tuple[AggregateName, ...]] = Field(default_factory=dict)
    dictionaries: tuple[str, ...] = ()
    schema_id: int | None = None
    incremental: IncrementalRange | None = None
    excluded_files: tuple[str, ...] = ()
    read_optimized: bool = False
    options: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def of(cls, predicate: Predicate | None, *, columns: Sequence[str], snapshot: Snapshot | None, limit: int | None = None) -> ScanRequest:
        """Return the request for a predicate tree at ``snapshot``. None: the table was empty."""
        key = (None, None) if snapshot is None else snapshot.key
        return cls(predicate=predicate, columns=tuple(columns), snapshot_id=key[0], snapshot_delta=key[1], limit=limit)

    def find_snapshot(self, snapshots: SnapshotManager) -> Snapshot | None:
        """Return the pinned snapshot. Raises ``SnapshotNotFound``, ``SnapshotExpired``."""
        return None if self.snapshot_id is None else snapshots.readable(self.snapshot_id, self.snapshot_delta)


class WriteRequest(Message):
    """How to write: ``commit_id`` (a UUID made by the client) is the commit user and goes into file names.

    ``partition`` is a static overwrite's specification, values as partition-path text; None with mode ``overwrite``
    replaces the partitions that the rows touch if ``dynamic``, else the whole table. ``order_by`` names a column by
    which, of equal keys in a distributed input, the greatest wins. ``row_kinds``: the rows carry ``ROW_KIND``. ``batch_id``:
    ``commit_id`` names a job that commits one numbered batch after the other. ``first_run``: the name was made for this call, so
    nothing can have committed it before; it stays in this process, because who gets a message may get it twice. ``schema_id``: the
    version of the schema that the rows were checked against, which stays here, too.

    >>> WriteRequest(commit_id="job", mode="append", batch_id=7).identity
    'job#7'
    """

    commit_id: CommitId
    first_run: bool = Field(default=False, exclude=True)
    schema_id: int | None = Field(default=None, exclude=True)
    batch_id: int | None = None
    mode: Mode
    partition: dict[str, str | None] | None = None
    dynamic: bool = False
    order_by: str | None = None
    row_kinds: bool = False
    options: dict[str, str] = Field(default_factory=dict)

    @property
    def identifier(self) -> int:
        """The commit's identifier among those of its user."""
        return BATCH_IDENTIFIER if self.batch_id is None else self.batch_id

    @property
    def identity(self) -> str:
        """Which write it is, as text; ``commit_id`` has no ``#``."""
        return self.commit_id if self.batch_id is None else f"{self.commit_id}#{self.batch_id}"

    @property
    def keeps_others(self) -> bool:
        """Whether it overwrites some partitions and leaves the others."""
        return self.mode == "overwrite" and (self.dynamic or self.partition is not None)

    @property
    def compactor(self) -> str:
        """Whose compactions after the write are: a job's own snapshots tell which batches are committed, and nothing else."""
        return self.commit_id if self.batch_id is None else f"{self.commit_id}-compact"


EVERY_LEVEL = {"deletion-vectors.merge-on-read": "true", **OWN_BRANCH}
"""Options of a read that must miss no committed row of its branch: a change by filter also meets those that wait for a compaction to show them."""


class DeleteRequest(Message):
    """Delete, or update, the rows for which ``predicate`` (bound; None: all) is true; ``first_run`` as in ``WriteRequest``.

    ``keys``, of a primary-key table: of these rows only those that have one of them.
    """

    commit_id: CommitId
    first_run: bool = Field(default=False, exclude=True)
    predicate: BoundFilter | None
    keys: BoundKeys | None = None
    options: dict[str, str] = Field(default_factory=dict)


@public
class OrphanFile(Message):
    """A file that nothing refers to, old enough to be nobody's work in progress."""

    path: str
    size: int
    mtime_ms: int


@dataclass(frozen=True)
class ArrowRows:
    """Rows in this process: a stream of batches that is read once and never held whole."""

    reader: pa.RecordBatchReader

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the stream."""
        return self.reader.schema


@dataclass(frozen=True)
class SparkRows:
    """A Spark DataFrame, classic or Connect; ``schema`` is what ``toArrow`` of it would have."""

    frame: DataFrame
    schema: pa.Schema


Rows: TypeAlias = ArrowRows | SparkRows


__all__ = [
    "EVERY_LEVEL",
    "ArrowRows",
    "ClusterStrategyName",
    "DeleteRequest",
    "IncrementalModeName",
    "IncrementalRange",
    "IndexView",
    "Mode",
    "OrphanFile",
    "Progress",
    "Rows",
    "ScanRequest",
    "SparkRows",
    "TravelRequest",
    "View",
    "WriteRequest",
]
