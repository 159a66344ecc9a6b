"""The seam between the public ``Table`` and what does its work: threads here (``LocalBackend``) or a Spark server.

A ``Table`` validates and binds what people say, and hands a backend frozen requests that survive a trip as JSON text: filters are bound
predicate trees, schemas are Paimon's schema JSON, a snapshot is an id. Rows come as one of two kinds: an Arrow stream
that this process holds, or a Spark DataFrame that must not come here. Both backends run the same tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import pyarrow as pa
from pydantic import Field

from fileindex.predicate.tree import Predicate
from lsm.aggregate.names import AggregateName
from lsm.keys.sort_column import SortColumn
from manifest.fsck.depth import Depth
from manifest.options.own_branch import OWN_BRANCH
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from pyspark_paimon.request.bound import BoundFilter, BoundKeys
from pyspark_paimon.request.counters import ScanTally
from pyspark_paimon.request.message import CommitId, Message

if TYPE_CHECKING:
    from lsm.aggregate.summary import RowSummary
    from lsm.scan.plan import ScanPlan
    from lsm.scan.splits import DataSplit
    from manifest.schema.table_schema import TableSchema
    from manifest.snapshot.manager import SnapshotManager
    from manifest.snapshot.snapshot import Snapshot
    from manifest.stats.table_stats import Statistics
    from pyspark_paimon.request.assignments import Assignments
    from pyspark_paimon.request.merge import MergeRequest
    from pyspark_paimon.request.results import (
        AnalyzeResult,
        CompactResult,
        ExpireResult,
        FunnelStage,
        IndexRewriteResult,
        MergeResult,
        ProgressEvent,
        WriteResult,
    )
    from pyspark_paimon.request.state_results import FsckResult, TableChangeResult
    from pyspark_paimon.request.table_changes import TableChange
    from pyspark_paimon.request.tree_report import TreeReport

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


class CompactRequest(Message):
    """Compact all buckets of ``partitions`` (each a full partition specification; None: of all partitions).

    ``predicate`` (bound, on partition columns) limits it instead. With ``order_by`` the rows of an append table without
    buckets are sorted anew, as ``strategy`` says.
    """

    commit_id: CommitId
    full: bool = False
    partitions: tuple[dict[str, str | None], ...] | None = None
    predicate: BoundFilter | None = None
    order_by: tuple[str, ...] = ()
    strategy: ClusterStrategyName = "order"
    options: dict[str, str] = Field(default_factory=dict)


class ExpireRequest(Message):
    """Snapshot retention of one call; what is None comes from the table's options."""

    retain_min: int | None = None
    retain_max: int | None = None
    older_than_ms: int | None = None
    limit: int | None = None
    dry_run: bool = False


class FsckRequest(Message):
    """Check the table, so deep; of the problems at most ``limit`` are told, the others counted."""

    depth: Depth = Depth.FOOTERS
    limit: int = 1000


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

    frame: Any
    schema: pa.Schema


Rows: TypeAlias = ArrowRows | SparkRows


class RowWriter(Protocol):
    """Takes the rows of one commit after the other."""

    @property
    def is_open(self) -> bool:
        """Whether rows wait for a commit."""

    def take(self, request: WriteRequest, rows: Rows) -> None:
        """Add rows to the next commit, whose first ones say as which ``request`` it is begun."""

    def commit(self, request: WriteRequest) -> WriteResult:
        """Make what was taken visible; on any error nothing of it is."""

    def discard(self) -> None:
        """Forget what was taken."""

    def close(self) -> None:
        """Forget what was taken, and wait for the compaction under way."""


class Backend(Protocol):
    """Does a table's work where its files are. Every method raises the typed errors of ``manifest.io.errors``."""

    @property
    def path(self) -> str:
        """The table's path, as its engine spells it."""

    @property
    def spark(self) -> Any:
        """The session that reaches the files, or None in process."""

    def create(self, schema: TableSchema) -> TableSchema:
        """Create the table: schema-0, put if absent. Raises ``TableExists``."""

    def schema(self, schema_id: int | None = None) -> TableSchema:
        """The newest schema, or that of an id. Raises ``TableNotFound``."""

    def change(self, change: TableChange) -> TableChangeResult:
        """Change the schema or the history, once."""

    def view(self, view: View) -> pa.Table:
        """Tags, branches, schemas, partitions or consumers, in the columns of ``history_views``."""

    def pin(self, travel: TravelRequest) -> Snapshot | None:
        """The snapshot asked for; None if the newest is asked for and there is none."""

    def start(self, travel: TravelRequest) -> tuple[Snapshot | None, TableSchema]:
        """The snapshot that ``pin`` gives, and the schema to read it by: the newest, or the snapshot's own when travelling."""

    def snapshots(self) -> list[Snapshot]:
        """Every retained snapshot, oldest first."""

    def statistics(self, snapshot_id: int | None) -> Statistics | None:
        """The statistics that a snapshot carries (None: no snapshot)."""

    def analyze(self, commit_id: str, columns: Sequence[str]) -> AnalyzeResult:
        """Count the rows and these columns of the newest snapshot, and commit the statistics."""

    def files(self, snapshot_id: int | None) -> pa.Table:
        """Live data files of a snapshot (None: no file), in the columns of ``table_views.FILES``."""

    def index_view(self, view: IndexView, snapshot_id: int | None) -> pa.Table:
        """File indexes of a snapshot (None: no file), or their health, in the columns of ``index_views``."""

    def plan(self, request: ScanRequest) -> ScanPlan:
        """Splits and the funnel's report."""

    def tree(self, request: ScanRequest) -> TreeReport:
        """What the tree looks like at the request's snapshot, what its filter keeps, and how it came about."""

    def read(self, request: ScanRequest, *, keeps_all: bool = False, tally: ScanTally | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, in the Arrow types of the schema; exact filter and limit applied, memory bounded by batches; ``tally`` counts them.

        ``keeps_all``: whoever reads them holds them all in the end, so nobody need wait until they are taken.
        """

    def read_split(self, request: ScanRequest, split: DataSplit | str) -> Iterator[pa.RecordBatch]:
        """The rows of one split of ``plan``, in no order. Raises ``InvalidArgument`` where tasks of a server read them."""

    def read_stages(self, request: ScanRequest) -> Sequence[FunnelStage]:
        """Read the rows and tell what the stages at read time kept and dropped; () if that cannot be told."""

    def readers(self, request: ScanRequest, plan: ScanPlan) -> str:
        """Who reads the rows of a DataFrame, for people; "" where nobody else than this process does."""

    def count(self, request: ScanRequest) -> int:
        """Number of rows that ``read`` would give."""

    def aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary]:
        """What the rows that ``read`` would give come to, by partition (a serialised BinaryRow)."""

    def frame(self, request: ScanRequest, spark: Any, *, native: bool = False) -> Any:
        """The scan as a lazy Spark DataFrame of ``spark`` (or of the backend's own session); ``native``: Spark may read files itself."""

    def write(self, request: WriteRequest, rows: Rows) -> WriteResult:
        """Write and commit; on any error nothing is visible."""

    def writer(self, commit_id: str) -> RowWriter:
        """A writer whose compactions have a name like ``commit_id``. Raises ``InvalidArgument`` where no process of ours would hold the rows."""

    def delete(self, request: DeleteRequest) -> WriteResult:
        """Delete by filter; conflicts with newer changes of the touched buckets and re-evaluates."""

    def update(self, request: DeleteRequest, values: Assignments) -> WriteResult:
        """Put rows with new values in the place of those that the filter finds; as ``delete``."""

    def merge(self, request: DeleteRequest, wanted: MergeRequest) -> MergeResult:
        """Merge rows of a source; conflicts with newer changes of the touched buckets and re-evaluates."""

    def compact(self, request: CompactRequest) -> CompactResult:
        """Compact; a lost race is tried again on the new snapshot."""

    def rewrite_file_index(self, commit_id: str, partitions: Sequence[Mapping[str, str | None]] | None) -> IndexRewriteResult:
        """Give files that exist the indexes that the table's options ask for."""

    def expire(self, request: ExpireRequest) -> ExpireResult:
        """Expire snapshots and delete what only they reach."""

    def fsck(self, request: FsckRequest) -> FsckResult:
        """Check metadata and files; changes nothing."""

    def orphans(self, older_than_ms: int, *, remove: bool) -> list[OrphanFile]:
        """Files that nothing refers to, last changed before ``older_than_ms``; deleted if ``remove``."""


__all__ = [
    "EVERY_LEVEL",
    "ArrowRows",
    "Backend",
    "ClusterStrategyName",
    "CompactRequest",
    "DeleteRequest",
    "ExpireRequest",
    "FsckRequest",
    "IncrementalModeName",
    "IncrementalRange",
    "IndexView",
    "Mode",
    "OrphanFile",
    "Progress",
    "RowWriter",
    "Rows",
    "ScanRequest",
    "SparkRows",
    "TravelRequest",
    "View",
    "WriteRequest",
]
