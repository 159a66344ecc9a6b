"""Requests between the public ``Table`` and its engine.

An engine is ``LocalEngine`` (threads in this process) or a Spark server.
A ``Table`` validates and binds its arguments. It passes frozen requests that convert to JSON text.
Filters become bound predicate trees, schemas become Paimon's schema JSON, snapshots become ids.
Rows are an Arrow stream in this process, or a Spark DataFrame that stays on the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, TypeVar

import pyarrow as pa
from pydantic import Field

from fileindex.predicate.tree import Predicate
from lsm.aggregate.names import AggregateName
from lsm.keys.sort import SortColumn
from lsm.rows_in.arrow import ArrowRows
from lsm.rows_in.policy import RowPolicy
from manifest.options.core_options import OWN_BRANCH
from manifest.snapshot.commit_info import commit_properties
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from paimon_base.public import public
from pyspark_paimon.request.answers import SchemaJson
from pyspark_paimon.request.bound import BoundFilter, BoundKeys
from pyspark_paimon.results.message import CommitId, CommitProperties, Message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lsm.keys.key_set import KeySet
    from manifest.schema.table_schema import TableSchema
    from manifest.snapshot.manager import SnapshotManager
    from manifest.snapshot.snapshot import Snapshot
    from pyspark_paimon.results.results import (
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
    """Snapshot to pin. At most one member is set.

    No member set: the newest snapshot.
    """

    snapshot_id: int | None = None
    tag: str | None = None
    timestamp_millis: int | None = None
    watermark: int | None = None
    version: str | None = None
    compacted: bool = False


class IncrementalRange(Message):
    """Changes after snapshot ``start_id`` up to ``end_id``, inclusive.

    ``start_id`` 0: from the first snapshot. A tag keeps a snapshot that has expired.
    ``end_delta``: delta manifest list of the last snapshot. A rollback may give its id to another one.
    ``exact``: raise an error where the mode cannot report changes of an expired snapshot.
    """

    start_id: int
    end_id: int
    end_delta: str | None = None
    mode: IncrementalModeName
    start_tag: str | None = None
    end_tag: str | None = None
    exact: bool = False


class ScanRequest(Message):
    """Snapshot, filter and columns of a scan.

    ``snapshot_id``: None if the table was empty.
    ``columns``: in the order of the result.
    ``order_by`` sorts the rows, then ``limit`` keeps the first ones.
    ``keys``: return only rows with one of these primary keys. ``predicate`` holds for all of them, and only helps to plan.
    ``aggregates``: compute these instead of returning rows.
    ``dictionaries``: text columns that may be dictionary-encoded.
    ``schema_id``: schema that filter and columns are bound to. None: the newest.
    Time travel uses the snapshot's schema.
    ``excluded_files``: data files that the caller reads.
    ``read_optimized``: for primary-key tables, read only the result of each bucket's last full compaction.
    ``exact``: False: the caller filters again, so Spark's own reader may return rows that do not match.

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
    exact: bool = True
    options: dict[str, str] = Field(default_factory=dict)
    pending: SchemaJson | None = Field(default=None, exclude=True)
    """Version of the schema to read the rows with, before it is stored."""

    @classmethod
    def of(cls, predicate: Predicate | None, *, columns: Sequence[str], snapshot: Snapshot | None, limit: int | None = None) -> ScanRequest:
        """Return the request for a predicate tree at ``snapshot``.

        ``snapshot`` None: the table was empty.
        """
        key = (None, None) if snapshot is None else snapshot.key
        return cls(predicate=predicate, columns=tuple(columns), snapshot_id=key[0], snapshot_delta=key[1], limit=limit)

    def keys_and_filter(self, schema: TableSchema) -> tuple[KeySet | None, Predicate | None]:
        """Return the keys to read, and the filter to check on their rows. None: all keys, all rows."""
        from lsm.scan.predicates import whole_keys  # noqa: PLC0415  # clients of a server need no planner

        return (self.keys, None) if self.keys is not None else whole_keys(self.predicate, schema)

    def find_snapshot(self, snapshots: SnapshotManager) -> Snapshot | None:
        """Return the pinned snapshot. Raises ``SnapshotNotFound``, ``SnapshotExpired``."""
        return None if self.snapshot_id is None else snapshots.readable(self.snapshot_id, self.snapshot_delta)


class CommitRequest(Message):
    """Identity and notes of a commit of rows.

    ``commit_id``: UUID of the client. It is the commit user and part of file names.
    ``first_run``: the client created the name for this call, so no earlier commit can have it.
    ``batch_id``: ``commit_id`` names a job that commits numbered batches.
    ``properties``: the user's properties of the snapshot.
    """

    commit_id: CommitId
    # Not serialized: a receiver may get the same message twice.
    first_run: bool = Field(default=False, exclude=True)
    batch_id: int | None = None
    properties: CommitProperties = Field(default_factory=dict)
    options: dict[str, str] = Field(default_factory=dict)

    @property
    def identifier(self) -> int:
        """Commit identifier, unique for its commit user."""
        return BATCH_IDENTIFIER if self.batch_id is None else self.batch_id

    @property
    def identity(self) -> str:
        """Text that identifies the commit.

        A ``commit_id`` from a caller has no ``#``.
        """
        return self.commit_id if self.batch_id is None else f"{self.commit_id}#{self.batch_id}"

    @property
    def compactor(self) -> str:
        """Commit user of compactions after the commit.

        A job's snapshots record its committed batches, so compactions use another user.
        """
        return self.commit_id if self.batch_id is None else f"{self.commit_id}-compact"


class WriteRequest(CommitRequest):
    """Mode and commit identity of a write.

    ``partition``: static overwrite; values are partition-path texts.
    None with mode ``overwrite``: replace the partitions of the rows if ``dynamic``, else the whole table.
    ``order_by``: for equal keys in a distributed input, the row with the greatest value wins.
    ``row_kinds``: the rows have a column ``ROW_KIND``.
    ``schema_id``: version of the schema that the rows were checked against.
    ``pending``: version of the schema that the write gives the table, once its rows passed all checks.
    ``missing``: whether columns that the rows leave out are set to null where that clears or ignores values.
    ``operation``: name in the table's history. None: the mode.

    >>> WriteRequest(commit_id="job", mode="append", batch_id=7).identity
    'job#7'
    """

    schema_id: int | None = Field(default=None, exclude=True)
    pending: SchemaJson | None = None
    mode: Mode
    partition: dict[str, str | None] | None = None
    dynamic: bool = False
    order_by: str | None = None
    row_kinds: bool = False
    missing: Literal["refuse", "null"] = "refuse"
    operation: str | None = None

    @property
    def policy(self) -> RowPolicy:
        """Policy for the rows once they are cast."""
        return RowPolicy(missing="null" if self.mode == "overwrite" else self.missing)

    def noted(self, metrics: Mapping[str, int]) -> dict[str, str]:
        """Return the properties of the snapshot."""
        return commit_properties(self.operation or self.mode, metrics, self.properties)

    @property
    def keeps_others(self) -> bool:
        """Whether an overwrite replaces some partitions and keeps the others."""
        return self.mode == "overwrite" and (self.dynamic or self.partition is not None)


EVERY_LEVEL = {"deletion-vectors.merge-on-read": "true", **OWN_BRANCH}
"""Options of a read that returns all committed rows of its branch.

A change by filter also applies to rows that are visible only after a compaction.
"""


class DeleteRequest(CommitRequest):
    """Filter and keys of rows to delete or update.

    ``predicate`` None: all rows.
    ``keys``: for primary-key tables, change only rows with one of these keys.
    """

    predicate: BoundFilter | None
    keys: BoundKeys | None = None

    def scan(self, schema: TableSchema, snapshot_id: int | None) -> ScanRequest:
        """Return the scan of the rows to change."""
        return ScanRequest(
            predicate=self.predicate,
            keys=self.keys,
            columns=tuple(schema.names),
            snapshot_id=snapshot_id,
            schema_id=schema.id,
            options=EVERY_LEVEL,
        )


@public
class OrphanFile(Message):
    """A file without references, older than any unfinished write."""

    path: str
    size: int
    mtime_ms: int


@dataclass(frozen=True)
class SparkRows:
    """A Spark DataFrame, classic or Connect.

    ``schema``: the Arrow schema that ``frame.toArrow()`` would return.
    """

    frame: DataFrame
    schema: pa.Schema
    column_sets: ClassVar[tuple[frozenset[str], ...]] = ()
    rejected: ClassVar[Sequence[pa.Table]] = ()

    @property
    def reader(self) -> pa.RecordBatchReader:
        """The rows, fetched into this process."""
        from pyspark_paimon.frames.fetched_rows import fetch_rows  # noqa: PLC0415  # few processes fetch DataFrames

        return fetch_rows(self.frame).to_reader()


Rows: TypeAlias = ArrowRows | SparkRows
