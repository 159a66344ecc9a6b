"""The engine of a system table: rows that are made here, filtered, sorted, counted like any other's; everything else is refused."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, NoReturn

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import columns_of
from lsm.aggregate.summary import RowSummary
from lsm.arrow.limit import limit_rows
from lsm.incremental.planner import split_from_json
from lsm.parquet.reader import rows_only
from lsm.scan.plan import Report, ScanPlan
from lsm.scan.splits import DataSplit
from manifest.io.system_names import refuse_system
from manifest.row.binary_row import EMPTY_ROW
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from pyspark_paimon.jobs.ordering import candidates, sorted_rows
from pyspark_paimon.local.backend import LocalBackend
from pyspark_paimon.local.read import rows_in
from pyspark_paimon.request.backend import ScanRequest, TravelRequest
from pyspark_paimon.request.counters import ScanTally
from pyspark_paimon.request.results import FunnelStage
from pyspark_paimon.system.registry import METADATA

if TYPE_CHECKING:
    from lsm.read.metrics import ReadReport


class SystemBackend(LocalBackend):
    """``name`` of the table that ``base`` reads, at ``path``. A subclass says which columns it has, and what lies in a split."""

    reads_files: ClassVar[bool] = False

    def __init__(self, path: str, base: LocalBackend, name: str) -> None:
        super().__init__(path, file_io=base.file_io)
        self._base = base
        self._name = name

    @abstractmethod
    def schema(self, schema_id: int | None = None) -> TableSchema:
        """The columns. Raises ``TableNotFound``."""

    @abstractmethod
    def plan(self, request: ScanRequest) -> ScanPlan:
        """What is to be read."""

    @abstractmethod
    def _made(self, request: ScanRequest, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """The rows of a split with the columns of ``request`` at least, unless a filter of it leaves them out."""

    def stored_schema(self, schema_id: int | None = None) -> TableSchema:
        """That of the table."""
        return self._base.stored_schema(schema_id)

    def store(self, options: Mapping[str, str] | None = None, schema_id: int | None = None) -> NoReturn:  # noqa: ARG002  # as its base has it
        """There are no files. Raises ``SystemTableReadOnly``."""
        refuse_system(self._base.path, self._name)

    def create(self, schema: TableSchema) -> NoReturn:  # noqa: ARG002  # as its base has it
        """The path means something else. Raises ``SystemTableReadOnly``."""
        self.store()

    def pin(self, travel: TravelRequest) -> Snapshot | None:
        """The table's snapshot."""
        return self._base.pin(travel)

    def start(self, travel: TravelRequest) -> tuple[Snapshot | None, TableSchema]:
        """The table's snapshot, and the columns then."""
        snapshot, schema = self._base.start(travel)
        return snapshot, self.schema(schema.id)

    def read(
        self,
        request: ScanRequest,
        *,
        keeps_all: bool = False,  # noqa: ARG002  # nothing is read ahead
        tally: ScanTally | None = None,
        stage: str = "scan",  # noqa: ARG002  # nobody waits for long
    ) -> Iterator[pa.RecordBatch]:
        """The rows."""
        rows = self._ordered(request)
        return rows if tally is None else tally.watched(rows)

    def _ordered(self, request: ScanRequest) -> Iterator[pa.RecordBatch]:
        if not request.order_by:
            yield from limit_rows(self._all(request), request.limit)
            return
        wanted = candidates(request)
        rows = sorted_rows(self._all(wanted), wanted, self.schema(request.schema_id))
        yield from rows.select(list(request.columns)).to_batches()

    def _all(self, request: ScanRequest) -> Iterator[pa.RecordBatch]:
        self._check(request)
        for split in self.plan(request).splits:
            yield from self.read_split(request, split)

    def read_split(self, request: ScanRequest, split: DataSplit | str, report: ReadReport | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of one split; ``report`` counts them."""
        types = self.schema(request.schema_id).column_types
        needed = tuple(dict.fromkeys([*request.columns, *columns_of(request.predicate)])) or tuple(types)[:1]
        for batch in self._made(
            request.model_copy(update={"columns": needed}), split_from_json(split) if isinstance(split, str) else split
        ):
            rows = batch if request.predicate is None else batch.filter(mask(request.predicate, batch, types))
            if report is not None:
                report.rows_returned += rows.num_rows
            if rows.num_rows:
                yield rows.select(list(request.columns)) if request.columns else rows_only(rows.num_rows)

    def read_stages(self, request: ScanRequest) -> tuple[FunnelStage, ...]:  # noqa: ARG002  # whatever is read
        """Nothing is skipped."""
        return ()

    def count(self, request: ScanRequest) -> int:
        """Number of rows."""
        return rows_in(self.aggregate(request), request.limit)

    def aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary]:
        """What the rows come to."""
        return {EMPTY_ROW: self._come_to(request, self._all(_asked(request)))}

    def cheap_aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary] | None:
        """The same."""
        return self.aggregate(request)

    def aggregate_split(self, request: ScanRequest, split: str) -> dict[bytes, RowSummary]:
        """What the rows of one split come to."""
        return {EMPTY_ROW: self._come_to(request, self.read_split(_asked(request), split))}

    def analyzed_count(self, request: ScanRequest) -> int | None:  # noqa: ARG002  # whatever is counted
        """None: statistics are the table's."""
        return None

    def _come_to(self, request: ScanRequest, batches: Iterator[pa.RecordBatch]) -> RowSummary:
        types = {field.name: field.type for field in self.schema(request.schema_id).fields}
        return RowSummary.of(request.aggregates, types).add_all(batches)

    def _check(self, request: ScanRequest) -> None:
        if request.incremental is not None:
            raise InvalidArgument(
                f"{self.path}: a system table has no changes of its own; Table.open({self._base.path!r}).changelog(...) has the table's"
            )


class MetadataBackend(SystemBackend):
    """A table made of metadata: one split, without files."""

    def schema(self, schema_id: int | None = None) -> TableSchema:  # noqa: ARG002  # never changed
        """The columns."""
        return METADATA[self._name].schema

    def start(self, travel: TravelRequest) -> tuple[Snapshot | None, TableSchema]:
        """The snapshot whose files are told of; other tables are of no snapshot. Raises ``InvalidArgument`` if one of these is to travel."""
        if METADATA[self._name].of_state:
            return self._base.pin(travel), self.schema()
        if travel != TravelRequest():
            raise InvalidArgument(f"{self.path}: '${self._name}' is the same at all snapshots; read it without one")
        return None, self.schema()

    def plan(self, request: ScanRequest) -> ScanPlan:
        """One split, which stands for all rows."""
        split = DataSplit(partition=EMPTY_ROW, bucket=0, total_buckets=1, files=(), raw_convertible=True)
        return ScanPlan(request.snapshot_id or 0, (split,), tuple(Report().stages))

    def _made(self, request: ScanRequest, split: DataSplit) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # there is one
        store: FileStore = self._base.store()
        yield from METADATA[self._name].rows(store, request.find_snapshot(store.snapshots)).select(list(request.columns)).to_batches()


def _asked(request: ScanRequest) -> ScanRequest:
    return request.model_copy(update={"columns": tuple(request.aggregates), "order_by": (), "limit": None})


__all__ = ["MetadataBackend", "SystemBackend"]
