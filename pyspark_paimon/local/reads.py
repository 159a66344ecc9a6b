"""In-process scans: plans, rows, counts and aggregates."""

from __future__ import annotations

import sys
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from manifest.entry.cache import EntryCache
from manifest.schema.table_schema import TableSchema
from manifest.store import FileStore
from paimon_base.lazy import LazyModule
from paimon_base.plugins import plugin
from paimon_base.thresholds import thresholds
from pyspark_paimon.local.read_errors import explain_read_errors, explained
from pyspark_paimon.request.engine import MeasuredPlan
from pyspark_paimon.request.requests import Progress, ScanRequest
from pyspark_paimon.results.counters import ScanTally

if TYPE_CHECKING:
    from lsm.aggregate.summary import RowSummary
    from lsm.incremental import planner as incremental
    from lsm.read.metrics import ReadReport
    from lsm.scan.plan import ScanPlan
    from lsm.scan.splits import DataSplit
    from pyspark_paimon.local import plan as plans
    from pyspark_paimon.local import read as reading
    from pyspark_paimon.request.engine import RowGrouping
    from pyspark_paimon.results.results import FunnelStage
    from pyspark_paimon.results.tree_report import TreeReport
else:  # see test_imports
    incremental = LazyModule("lsm.incremental.planner")
    plans = LazyModule("pyspark_paimon.local.plan")
    reading = LazyModule("pyspark_paimon.local.read")


class LocalReads:
    """Implementation of ``ScanRequest`` for ``LocalEngine``."""

    _root: str
    _manifests: EntryCache
    _progress: Progress | None
    _threads: int
    _readers: int

    @abstractmethod
    def schema(self, schema_id: int | None = None) -> TableSchema:
        """Return the newest schema, or that of an id."""

    @abstractmethod
    def store(self, options: Mapping[str, str] | None = None, schema_id: int | None = None) -> FileStore:
        """Open the table."""

    def plan(self, request: ScanRequest) -> ScanPlan:
        """Return the splits and the funnel's report."""
        return self._plan(self._readable(request), request)

    def tree(self, request: ScanRequest) -> TreeReport:
        """Describe the tree, its history and the filter's effect."""
        store = self._readable(request)
        report: TreeReport = plugin("page", "tree")(
            store, request, request.find_snapshot(store.snapshots), self._plan(store, request), self._threads
        )
        return report

    def read(
        self, request: ScanRequest, *, keeps_all: bool = False, tally: ScanTally | None = None, stage: str = "scan"
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, in the plan's split order.

        ``stage``: name of the progress.
        """
        start = time.perf_counter()
        store = self._readable(request)
        ahead = sys.maxsize if keeps_all else thresholds.ahead_bytes
        plan = self._plan(store, request, to_read=True)
        if tally is None:
            return self._rows(store, request, plan, None, ahead=ahead, stage=stage)
        from lsm.read.metrics import ReadReport  # noqa: PLC0415  # see test_imports

        report, millis = ReadReport(), (time.perf_counter() - start) * 1000
        return tally.count_rows(self._rows(store, request, plan, report, ahead=ahead, stage=stage), plan, report, millis)

    def _rows(
        self, store: FileStore, request: ScanRequest, plan: ScanPlan, report: ReadReport | None, *, ahead: int, stage: str
    ) -> Iterator[pa.RecordBatch]:
        from pyspark_paimon.jobs.progress import reading as reported  # noqa: PLC0415  # see test_imports

        with reported(store, plan, self._progress, stage) as reporting_store, explain_read_errors(store):
            yield from reading.plan_rows(reporting_store, request, plan, self._readers, report, ahead=ahead)

    def read_split(self, request: ScanRequest, split: DataSplit | str, report: ReadReport | None = None) -> Iterator[pa.RecordBatch]:
        """Return the rows of one split, unordered.

        The limit applies to each split.
        """
        store = self._readable(request)
        return explained(store, reading.split_rows(store, request, split, report))

    def read_stages(self, request: ScanRequest) -> tuple[FunnelStage, ...]:
        """Read the rows and count those each stage keeps.

        Stages are indexes, row groups and the exact filter.
        """
        store = self._readable(request)
        with explain_read_errors(store):
            return reading.read_counted(store, request, self._plan(store, request), self._readers)

    def explain(self, request: ScanRequest, *, analyze: bool) -> MeasuredPlan:
        """Plan a scan; ``analyze``: also read its rows, and count them."""
        return MeasuredPlan(self.plan(request), self.read_stages(request) if analyze else (), readers="")

    def count(self, request: ScanRequest) -> int:
        """Return the number of rows.

        Uses statistics of an analyzed snapshot, then metadata and exact indexes, then data files.
        """
        store = self._readable(request)
        analyzed = self.analyzed_count(request)
        if analyzed is not None:
            return analyzed
        return reading.rows_in(self._summarise(store, request), request.limit)

    def aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary]:
        """Aggregate the rows by partition.

        Reads files only where metadata and indexes are not enough.
        """
        return self._summarise(self._readable(request), request)

    def group(self, request: ScanRequest, grouping: RowGrouping) -> pa.Table:
        """Return a row for each group of the rows, in bounded memory.

        Files with indexes of the keys are not read if only rows are counted.
        """
        if grouping.counted_keys is None or request.incremental is not None:
            return grouping.fold_all(self.read(request), self._root)
        store = self._readable(request)
        plan = self._plan(store, request)
        from pyspark_paimon.jobs.progress import reading as reported  # noqa: PLC0415  # see test_imports

        with reported(store, plan, self._progress, "scan") as reporting_store, explain_read_errors(store):
            return reading.count_groups(reporting_store, request, plan, grouping, self._readers)

    def _summarise(self, store: FileStore, request: ScanRequest) -> dict[bytes, RowSummary]:
        plan = self._plan(store, request)
        from pyspark_paimon.jobs.progress import reading as reported  # noqa: PLC0415  # see test_imports

        with reported(store, plan, self._progress, "scan") as reporting_store, explain_read_errors(store):
            return reading.summarise(reporting_store, request, plan.splits, self._readers)

    def scan_bytes(self, request: ScanRequest) -> int:
        """Estimate the bytes of data files that a read of the rows decodes.

        A lookup of keys decodes pages only.
        """
        keys, _ = request.keys_and_filter(self.schema(request.schema_id))
        plan = self.plan(request)
        if keys is None:
            return plan.file_size
        max_file_bytes = thresholds.open_cost_bytes * keys.rows.num_rows
        return sum(min(file.file_size, max_file_bytes) for split in plan.splits for file in split.files)

    def cheap_aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary] | None:
        """Aggregate by metadata, indexes and footers of few files.

        None: these are not enough.
        """
        store = self._readable(request)
        with explain_read_errors(store):
            return reading.summarise_cheaply(store, request, self._plan(store, request))

    def cheap_groups(self, request: ScanRequest, by: Sequence[str], counted: Sequence[str]) -> pa.Table | None:
        """Count the rows of each group of values by indexes of few files.

        None: these are not enough. ``counted``: columns of ``by`` whose values are counted.
        """
        from pyspark_paimon.jobs.grouping import Grouping  # noqa: PLC0415  # see test_imports

        store = self._readable(request)
        with explain_read_errors(store):
            return reading.count_groups_cheaply(store, request, self._plan(store, request), Grouping.of_columns(by, counted, store.schema))

    def aggregate_split(self, request: ScanRequest, split: str) -> dict[bytes, RowSummary]:
        """Aggregate the rows of one split of the plan."""
        store = self._readable(request)
        with explain_read_errors(store):
            return reading.summarise(store, request, [incremental.split_from_json(split)], 1)

    def cheap_count(self, request: ScanRequest) -> int | None:
        """Return the number of rows without reading data pages.

        Uses statistics, metadata and exact indexes of few files. None: these are not enough.
        """
        analyzed = self.analyzed_count(request)
        if analyzed is not None:
            return analyzed
        summaries = self.cheap_aggregate(request)
        return None if summaries is None else reading.rows_in(summaries, request.limit)

    def analyzed_count(self, request: ScanRequest) -> int | None:
        """Return the number of rows by the snapshot's statistics.

        None: the snapshot has no statistics, or the request needs more.
        """
        if request.predicate is not None or request.incremental is not None or request.options or request.read_optimized:
            return None
        store = self.store()
        from lsm.scan.table_statistics import counted_rows  # noqa: PLC0415  # see test_imports

        rows = counted_rows(store, request.find_snapshot(store.snapshots))
        return rows if rows is None or request.limit is None else min(rows, request.limit)

    def warm(self, request: ScanRequest) -> int:
        """Cache what lookups at the request's snapshot need.

        Returns the bytes in the cache.
        """
        from pyspark_paimon.local.warm import warm_lookups  # noqa: PLC0415  # only serving handles need it

        store = self._readable(request)
        warm_lookups(store, request, self._readers)
        return store.cache.files.held_bytes

    def _readable(self, request: ScanRequest) -> FileStore:
        store = self.store(request.options, request.schema_id)
        if request.pending is not None:
            store = store.with_pending(request.pending)
        store.check_readable()
        return store

    def _plan(self, store: FileStore, request: ScanRequest, *, to_read: bool = False) -> ScanPlan:
        pinned = None if request.snapshot_id is None else self._manifests.pinned.get(request.snapshot_id)
        if pinned is not None and request.snapshot_delta != pinned.delta_manifest_list:
            pinned = None  # perhaps another snapshot with the same id, before a rollback
        return (plans.plan_lookup if to_read else plans.plan_request)(store, request, pinned)
