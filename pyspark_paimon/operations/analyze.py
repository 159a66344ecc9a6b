"""Collect and read table statistics."""

from __future__ import annotations

import time
from typing import ClassVar

from lsm.scan.planner import ScanPlanner
from lsm.scan.table_statistics import collect_statistics, statistics_of
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.options.core_options import OWN_BRANCH
from manifest.stats.table_stats import Statistics
from pyspark_paimon.request.answers import StatisticsJson
from pyspark_paimon.request.operation import OpenTable, Operation, Question
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.results.message import CommitId
from pyspark_paimon.results.results import AnalyzeResult


class Analyze(Operation[AnalyzeResult]):
    """Count rows and column values, and commit the statistics."""

    stage: ClassVar[str | None] = "analyze"
    commit_id: CommitId
    columns: tuple[str, ...]

    def run(self, table: OpenTable) -> AnalyzeResult:
        """Read the columns of the newest snapshot once.

        An empty table is unchanged.
        """
        start = time.perf_counter()
        store = table.writable()
        snapshot = store.snapshots.latest()
        if snapshot is None:
            return AnalyzeResult(rows=0, bytes=0, columns=0, snapshot_id=None)
        request = ScanRequest(columns=self.columns, snapshot_id=snapshot.id, schema_id=store.schema.id)
        rows, column_statistics = collect_statistics(
            table.read(request, stage="analyze"), [store.schema.field(name) for name in self.columns]
        )
        plan = ScanPlanner(store.with_options(OWN_BRANCH)).plan(snapshot=snapshot)
        size = plan.file_size * rows // max(plan.row_count, 1)
        statistics = Statistics(
            snapshot_id=snapshot.id,
            schema_id=store.schema.id,
            merged_record_count=rows,
            merged_record_size=size,
            col_stats=column_statistics,
        )
        committed = FileStoreCommit(store, self.commit_id).analyze(statistics, snapshot)
        return AnalyzeResult(
            rows=rows, bytes=size, columns=len(column_statistics), snapshot_id=committed, seconds=time.perf_counter() - start
        )


class ReadStatistics(Question[StatisticsJson | None]):
    """Statistics of a snapshot.

    None: the snapshot has no statistics.
    """

    snapshot_id: int | None

    def answer(self, table: OpenTable) -> StatisticsJson | None:
        """Read the statistics file."""
        store = table.store()
        return None if self.snapshot_id is None else statistics_of(store, store.snapshots.readable(self.snapshot_id))
