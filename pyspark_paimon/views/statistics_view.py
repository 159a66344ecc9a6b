"""``Table.analyze`` where the files are, and the statistics of a snapshot as an Arrow table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from lsm.scan.planner import ScanPlanner
from lsm.scan.table_statistics import collect_statistics
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.options.own_branch import OWN_BRANCH
from manifest.options.support import check_writable
from manifest.stats.table_stats import Statistics
from manifest.store import FileStore
from pyspark_paimon.request.backend import ScanRequest
from pyspark_paimon.request.results import AnalyzeResult

STATISTICS = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("schema_id", pa.int64()),
        ("record_count", pa.int64()),
        ("record_size", pa.int64()),
        ("column", pa.string()),
        ("distinct_count", pa.int64()),
        ("min", pa.string()),
        ("max", pa.string()),
        ("null_count", pa.int64()),
        ("avg_len", pa.int64()),
        ("max_len", pa.int64()),
    ]
)


def analyze_table(
    store: FileStore, commit_id: str, columns: Sequence[str], read: Callable[[ScanRequest], Iterator[pa.RecordBatch]]
) -> AnalyzeResult:
    """Read ``columns`` of the newest snapshot once, count, and commit; raises typed errors. An empty table is left alone."""
    start = time.perf_counter()
    check_writable(store.options, has_primary_key=store.schema.is_primary_key_table, table=store.root)
    snapshot = store.snapshots.latest()
    if snapshot is None:
        return AnalyzeResult(rows=0, bytes=0, columns=0, snapshot_id=None)
    request = ScanRequest(columns=tuple(columns), snapshot_id=snapshot.id, schema_id=store.schema.id)
    rows, found = collect_statistics(read(request), [store.schema.field(name) for name in columns])
    plan = ScanPlanner(store.with_options(OWN_BRANCH)).plan(snapshot=snapshot)
    size = plan.file_size * rows // max(plan.row_count, 1)
    statistics = Statistics(
        snapshot_id=snapshot.id, schema_id=store.schema.id, merged_record_count=rows, merged_record_size=size, col_stats=found
    )
    committed = FileStoreCommit(store, commit_id).analyze(statistics, snapshot)
    return AnalyzeResult(rows=rows, bytes=size, columns=len(found), snapshot_id=committed, seconds=time.perf_counter() - start)


def statistics_table(statistics: Statistics | None) -> pa.Table:
    """Statistics in the columns of ``STATISTICS``: a row per column, or one without a column if only rows were counted."""
    if statistics is None:
        return STATISTICS.empty_table()
    table = {
        "snapshot_id": statistics.snapshot_id,
        "schema_id": statistics.schema_id,
        "record_count": statistics.merged_record_count,
        "record_size": statistics.merged_record_size,
    }
    rows = [{**table, "column": name, **column.model_dump(exclude={"col_id"})} for name, column in statistics.col_stats.items()]
    return pa.Table.from_pylist(rows or [table], STATISTICS)


__all__ = ["STATISTICS", "analyze_table", "statistics_table"]
