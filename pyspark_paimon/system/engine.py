"""System tables.

They support scans: filters, sort orders and counts. Other operations raise ``SystemTableReadOnly``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

import pyarrow as pa

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import columns_of
from lsm.aggregate.summary import RowSummary
from lsm.arrow.limit import limit_rows
from lsm.incremental.planner import split_from_json
from lsm.parquet.reader import rows_only
from lsm.scan.plan import Report, ScanPlan
from lsm.scan.splits import DataSplit
from manifest.io.paths import refuse_system
from manifest.row.binary_row import EMPTY_ROW
from manifest.schema.metadata_columns import metadata_names
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument, UnknownColumn
from pyspark_paimon.jobs.ordering import candidates, sort_rows
from pyspark_paimon.local.engine import LocalEngine, session_frame
from pyspark_paimon.local.read import rows_in
from pyspark_paimon.request.engine import MeasuredPlan
from pyspark_paimon.request.requests import Progress, ScanRequest, TravelRequest
from pyspark_paimon.results.counters import ScanTally
from pyspark_paimon.results.results import FunnelStage
from pyspark_paimon.system.registry import METADATA

if TYPE_CHECKING:
    from lsm.read.metrics import ReadReport
    from pyspark_paimon.request.engine import RowGrouping
    from pyspark_paimon.request.operation import Operation, Question

A = TypeVar("A")


class SystemTable(ABC):
    """A table whose rows are computed from another one.

    A subclass defines the columns and the rows of a split. It has no files, so changes raise ``SystemTableReadOnly``.

    path: Name of the system table.
    base: Engine of the table that it describes.
    name: Kind of system table, the part after ``$``.
    """

    reads_files: ClassVar[bool] = False
    has_files: ClassVar[bool] = False
    """Whether its rows are those of data files, with their metadata columns."""

    def __init__(self, path: str, base: LocalEngine, name: str) -> None:
        self._path = path
        self._base = base
        self._name = name

    @abstractmethod
    def schema(self, schema_id: int | None = None) -> TableSchema:
        """Return the columns.

        Raises ``TableNotFound``.
        """

    @abstractmethod
    def plan(self, request: ScanRequest) -> ScanPlan:
        """Return the splits to read."""

    @abstractmethod
    def _split_rows(self, request: ScanRequest, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split.

        They have at least the columns of ``request``. Rows that its filter excludes may be left out.
        """

    @property
    def path(self) -> str:
        """Name of the system table."""
        return self._path

    @property
    def spark(self) -> None:
        """No session."""
        return

    @property
    def threads(self) -> int:
        """Number of files read in parallel."""
        return self._base.threads

    @property
    def progress(self) -> Progress | None:
        """Callback for long operations."""
        return self._base.progress

    def exists(self) -> bool:
        """Return whether the table that it describes exists."""
        return self._base.exists()

    def run(self, operation: Operation[A]) -> A:
        """Run an operation: it raises ``SystemTableReadOnly``."""
        return operation.run(self)

    def ask(self, question: Question[A]) -> A:
        """Return the answer to a question."""
        return question.answer(self)

    def store(self, *_: Any, **__: Any) -> NoReturn:
        """Raise ``SystemTableReadOnly``: a system table has no files."""
        refuse_system(self._base.path, self._name)

    writable = without_cache = create = tree = write = writer = store

    def stored_schema(self, schema_id: int | None = None) -> TableSchema:
        """Return the stored schema of the table."""
        return self._base.stored_schema(schema_id)

    def pin(self, travel: TravelRequest) -> Snapshot | None:
        """Return the snapshot of the table."""
        return self._base.pin(travel)

    def start(self, travel: TravelRequest) -> tuple[Snapshot | None, TableSchema]:
        """Return the snapshot of the table and its columns."""
        snapshot, schema = self._base.start(travel)
        return snapshot, self.schema(schema.id)

    def frame(self, request: ScanRequest, spark: Any, *, native: bool = False) -> Any:
        """Return the scan as a DataFrame of ``spark``."""
        return session_frame(self.location(spark), request, spark, native=native)

    def location(self, spark: Any) -> str:
        """Return the text by which the server of ``spark`` opens the system table."""
        return f"{self._base.location(spark)}${self._name}"

    def explain(self, request: ScanRequest, *, analyze: bool) -> MeasuredPlan:
        """Plan a scan; ``analyze``: also read its rows, and count them."""
        return MeasuredPlan(self.plan(request), self.read_stages(request) if analyze else (), readers="")

    def scan_bytes(self, request: ScanRequest) -> int:
        """Return the bytes of the data files of a scan."""
        return self.plan(request).file_size

    def read(
        self,
        request: ScanRequest,
        *,
        keeps_all: bool = False,  # noqa: ARG002  # nothing is read ahead
        tally: ScanTally | None = None,
        stage: str = "scan",  # noqa: ARG002  # too short for progress
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        rows = self._order(request)
        return rows if tally is None else tally.count_rows(rows)

    def _order(self, request: ScanRequest) -> Iterator[pa.RecordBatch]:
        if not request.order_by:
            yield from limit_rows(self._all_rows(request), request.limit)
            return
        candidate_request = candidates(request)
        rows = sort_rows(self._all_rows(candidate_request), candidate_request, self.schema(request.schema_id))
        yield from rows.select(list(request.columns)).to_batches()

    def _all_rows(self, request: ScanRequest) -> Iterator[pa.RecordBatch]:
        self._check(request)
        for split in self.plan(request).splits:
            yield from self.read_split(request, split)

    def read_split(self, request: ScanRequest, split: DataSplit | str, report: ReadReport | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split; ``report`` counts them."""
        types = self.schema(request.schema_id).column_types
        needed = tuple(dict.fromkeys([*request.columns, *columns_of(request.predicate)])) or tuple(types)[:1]
        for batch in self._split_rows(
            request.model_copy(update={"columns": needed}), split_from_json(split) if isinstance(split, str) else split
        ):
            rows = batch if request.predicate is None else batch.filter(mask(request.predicate, batch, types))
            if report is not None:
                report.rows_returned += rows.num_rows
            if rows.num_rows:
                yield rows.select(list(request.columns)) if request.columns else rows_only(rows.num_rows)

    def read_stages(self, request: ScanRequest) -> tuple[FunnelStage, ...]:  # noqa: ARG002  # subclasses read files
        """Return no stages: nothing is pruned at read time."""
        return ()

    def count(self, request: ScanRequest) -> int:
        """Return the number of rows."""
        return rows_in(self.aggregate(request), request.limit)

    def aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary]:
        """Return the aggregates of all rows."""
        return {EMPTY_ROW: self._summarize(request, self._all_rows(_aggregate_request(request)))}

    def group(self, request: ScanRequest, grouping: RowGrouping) -> pa.Table:
        """Return a row for each group of the rows."""
        return grouping.fold_all(self.read(request), self._path)

    def cheap_aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary] | None:
        """Return the aggregates, as ``aggregate``."""
        return self.aggregate(request)

    def cheap_groups(self, request: ScanRequest, by: Sequence[str], counted: Sequence[str]) -> pa.Table | None:  # noqa: ARG002  # no index
        """Return None: rows are computed."""
        return None

    def aggregate_split(self, request: ScanRequest, split: str) -> dict[bytes, RowSummary]:
        """Return the aggregates of one split."""
        return {EMPTY_ROW: self._summarize(request, self.read_split(_aggregate_request(request), split))}

    def cheap_count(self, request: ScanRequest) -> int | None:
        """Return the number of rows if ``cheap_aggregate`` finds it, else None."""
        summaries = self.cheap_aggregate(request)
        return None if summaries is None else rows_in(summaries, request.limit)

    def _summarize(self, request: ScanRequest, batches: Iterator[pa.RecordBatch]) -> RowSummary:
        types = {field.name: field.type for field in self.schema(request.schema_id).fields}
        return RowSummary.of(request.aggregates, types).add_all(batches)

    def _check(self, request: ScanRequest) -> None:
        metadata_columns = [] if self.has_files else metadata_names(request.columns, self.schema(request.schema_id))
        if metadata_columns:
            raise UnknownColumn(metadata_columns[0], self.schema(request.schema_id).names)
        if request.incremental is not None:
            raise InvalidArgument(
                f"{self._path}: a system table has no changelog; read the table's: Table.open({self._base.path!r}).changelog(...)"
            )


class MetadataTable(SystemTable):
    """A system table of metadata.

    It has one split without files.
    """

    def schema(self, schema_id: int | None = None) -> TableSchema:  # noqa: ARG002  # the columns never change
        """Return the columns."""
        return METADATA[self._name].schema

    def start(self, travel: TravelRequest) -> tuple[Snapshot | None, TableSchema]:
        """Return the snapshot and the columns.

        Tables that describe the whole history have no snapshot. Raises ``InvalidArgument`` if time travel is requested for one.
        """
        if METADATA[self._name].of_state:
            return self._base.pin(travel), self.schema()
        if travel != TravelRequest():
            raise InvalidArgument(
                f"{self._path}: '${self._name}' does not depend on a snapshot; read it without snapshot, tag and timestamp"
            )
        return None, self.schema()

    def plan(self, request: ScanRequest) -> ScanPlan:
        """Return one split for all rows."""
        split = DataSplit(partition=EMPTY_ROW, bucket=0, total_buckets=1, files=(), raw_convertible=True)
        return ScanPlan(request.snapshot_id or 0, (split,), tuple(Report().stages))

    def _split_rows(self, request: ScanRequest, split: DataSplit) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # there is one split
        store: FileStore = self._base.store()
        yield from METADATA[self._name].rows(store, request.find_snapshot(store.snapshots)).select(list(request.columns)).to_batches()


def _aggregate_request(request: ScanRequest) -> ScanRequest:
    return request.model_copy(update={"columns": tuple(request.aggregates), "order_by": (), "limit": None})
