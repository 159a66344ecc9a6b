"""Protocols between the public ``Table`` and its engine.

An engine is a set of threads in this process, or a Spark server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from pyspark_paimon.request.operation import OpenTable, TableEngine
from pyspark_paimon.request.requests import Rows, ScanRequest, WriteRequest
from pyspark_paimon.results.counters import ScanTally

if TYPE_CHECKING:
    from fileindex.predicate.tree import ColumnRef
    from lsm.aggregate.names import AggregateName
    from lsm.read.metrics import ReadReport
    from lsm.scan.plan import ScanPlan
    from lsm.scan.splits import DataSplit
    from manifest.schema.table_schema import TableSchema
    from pyspark_paimon.results.results import FunnelStage, WriteResult
    from sparkexpr.expression.tree import Expression

A = TypeVar("A")


class RowGrouping(Protocol):
    """Groups of rows, and the aggregates of each."""

    @property
    def schema(self) -> TableSchema:
        """Schema of the table."""

    @property
    def keys(self) -> Mapping[str, Expression]:
        """Keys of the groups by name."""

    @property
    def values(self) -> Mapping[str, Expression]:
        """Aggregated values by name."""

    @property
    def parts(self) -> Mapping[str, Sequence[AggregateName]]:
        """Aggregates of each value."""

    @property
    def counted_keys(self) -> Sequence[ColumnRef] | None:
        """Columns whose values and row counts are enough. None: rows are necessary."""

    def fold_counts(self, keys: Sequence[Any], rows: Any) -> pa.Table:
        """Return a row for each group of values of ``counted_keys`` with row counts."""

    def fold(self, rows: pa.Table) -> pa.Table:
        """Return a row for each group of folded rows."""

    def fold_all(self, batches: Iterable[pa.RecordBatch], path: str) -> pa.Table:
        """Return a row for each group of the batches' rows."""


class RowWriter(Protocol):
    """Writer of rows for consecutive commits."""

    @property
    def is_open(self) -> bool:
        """Whether uncommitted rows exist."""

    def take(self, request: WriteRequest, rows: Rows) -> None:
        """Add rows to the next commit.

        The first rows of a commit start it with their ``request``.
        """

    def commit(self, request: WriteRequest) -> WriteResult:
        """Commit the added rows.

        On an error none of them is visible.
        """

    def discard(self) -> None:
        """Discard the uncommitted rows."""

    def close(self) -> None:
        """Discard uncommitted rows and wait for the running compaction."""


class MeasuredPlan(NamedTuple):
    """Plan of a scan, and how its rows are read."""

    plan: ScanPlan
    stages: tuple[FunnelStage, ...]
    """Stages at read time. Empty: the rows were not read."""
    readers: str
    """Which reader reads which rows of a DataFrame. Empty: only this process reads."""


class Engine(TableEngine, Protocol):
    """Engine that works where the table's files are."""

    @property
    def spark(self) -> Any:
        """Spark session that reads the files. None: this process."""

    def read(self, request: ScanRequest, *, keeps_all: bool = False, tally: ScanTally | None = None) -> Iterator[pa.RecordBatch]:
        """Return the rows in the Arrow types of the schema.

        Filter and limit are exact. Batches bound the memory. ``tally`` counts the rows.
        ``keeps_all``: the caller keeps all rows in memory, so reading need not wait for it.
        """

    def read_split(self, request: ScanRequest, split: DataSplit | str) -> Iterator[pa.RecordBatch]:
        """Return the rows of one split of ``plan``, unordered.

        Raises ``InvalidArgument`` where tasks of a server read the splits.
        """

    def explain(self, request: ScanRequest, *, analyze: bool) -> MeasuredPlan:
        """Plan a scan; ``analyze``: also read its rows, and count them."""

    def group(self, request: ScanRequest, grouping: RowGrouping) -> pa.Table:
        """Return a row for each group of the rows of ``read``, as ``RowGrouping.fold_all`` does."""

    def frame(self, request: ScanRequest, spark: Any, *, native: bool = False) -> Any:
        """Return the scan as a lazy Spark DataFrame.

        ``spark`` None: use the engine's session. ``native``: Spark may read files directly.
        """

    def writer(self, commit_id: str) -> RowWriter:
        """Return a writer for consecutive commits.

        Names of its compactions derive from ``commit_id``.
        Raises ``InvalidArgument`` where no process of this package can hold the rows.
        """


class LocalTable(Engine, OpenTable, Protocol):
    """Engine in the process that reads the table's files."""

    def read(
        self, request: ScanRequest, *, keeps_all: bool = False, tally: ScanTally | None = None, stage: str = "scan"
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows; see ``Engine``. ``stage`` names the progress."""

    def read_split(self, request: ScanRequest, split: DataSplit | str, report: ReadReport | None = None) -> Iterator[pa.RecordBatch]:
        """Return the rows of one split, unordered; ``report`` counts them."""

    def location(self, spark: Any) -> str:
        """Return the text by which the server of ``spark`` opens the table.

        Sends the options of its catalog to the server first, if the table needs them.
        """
