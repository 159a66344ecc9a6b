"""Staging of a merge over Spark.

The driver merges a source that fits into a message. Spark joins all other sources with the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from fileindex.base.thresholds import thresholds
from manifest.io.errors import UnsupportedTable
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.frames.spark_types import arrow_for_spark
from pyspark_paimon.request.backend import EVERY_LEVEL, DeleteRequest, ScanRequest, SparkRows, WriteRequest
from pyspark_paimon.request.merge import MergeRequest
from pyspark_paimon.request.results import MergeResult, Outcome, WriteResult
from pyspark_paimon.spark.client.estimate import estimate
from pyspark_paimon.spark.client.merge_frame import MergeFrame
from pyspark_paimon.spark.client.ownership import Target
from pyspark_paimon.spark.client.staging import Staged, refuse_case_twins, staged_kinds


def merge_source(spark: Any, wanted: MergeRequest, schema: TableSchema) -> pa.Table | SparkRows:
    """Return the source as Arrow rows or as a DataFrame.

    The driver merges Arrow rows. Spark joins a DataFrame with the table.

    Only the driver changes rows of append tables, in their files. Raises ``UnsupportedTable`` if the source is too large for that.
    """
    source, in_place = wanted.source, not schema.is_primary_key_table and any(clause.action != "insert" for clause in wanted.clauses)
    if in_place and isinstance(source, SparkRows):
        source = source.frame.limit(limits.held_merge_rows + 1).toArrow()
    if isinstance(source, SparkRows) and (fetched := _fetch(source, wanted)) is not None:
        source = fetched
    if isinstance(source, SparkRows) or (source.num_rows <= thresholds.held_merge_rows and source.nbytes <= thresholds.held_merge_bytes):
        return source
    if in_place:
        raise UnsupportedTable(
            f"merge changes rows of a table without primary key from a source of at most "
            f"{thresholds.held_merge_rows} rows and {thresholds.held_merge_bytes >> 20} MiB over Spark; merge a part at a time, or open the table without spark=..."
        )
    frame = spark.createDataFrame(source)
    return SparkRows(frame, arrow_for_spark(frame.schema))


def _fetch(source: SparkRows, wanted: MergeRequest) -> pa.Table | None:
    """Fetch the rows of a small DataFrame.

    None: the DataFrame is large or of unknown size, or a clause concerns rows without match in the source.
    """
    if any(clause.when == "not matched by source" for clause in wanted.clauses):
        return None
    # Few keys match few files: the driver merges them without a join in Spark.
    told = estimate(source.frame, source.schema)
    if told.rows is None or told.size is None or told.rows > thresholds.fetched_merge_rows or told.size > thresholds.fetched_merge_bytes:
        return None
    rows = source.frame.limit(thresholds.fetched_merge_rows + 1).toArrow()
    return rows if rows.num_rows <= thresholds.fetched_merge_rows and rows.nbytes <= thresholds.held_merge_bytes else None


def staged_merge(
    spark: Any, frame_of: Callable[[ScanRequest, Any], Any], target: Target, request: DeleteRequest, wanted: MergeRequest
) -> Staged:
    """Return the job that writes the merged rows.

    Spark computes them on the target's snapshot. The source is a DataFrame.
    """
    schema = target.schema
    scan = ScanRequest(columns=schema.names, snapshot_id=target.snapshot_id, schema_id=schema.id, options=EVERY_LEVEL)
    keyed = schema.is_primary_key_table
    write = WriteRequest(commit_id=request.commit_id, mode="upsert" if keyed else "append", row_kinds=keyed, options=request.options)
    source: SparkRows = wanted.source
    refuse_case_twins(spark, schema.names, "table")
    refuse_case_twins(spark, source.schema.names, "source")
    rows = MergeFrame(schema, wanted, frame_of(scan, None), source.frame, source.schema).rows()
    return staged_kinds(spark, rows, target, write, verb="merged", kept=schema.names, reads_all=wanted.reads_all(schema))


def merge_result(done: WriteResult, outcome: Outcome | None) -> MergeResult:
    """Return the merge result with the counts of its commit.

    All counts are 0 for a replayed commit.
    """
    told = {} if outcome is None or done.replayed else outcome.counts
    counts = {name: told.get(name, 0) for name in ("updated", "deleted", "inserted")}
    if not any(counts.values()):  # without row kinds all rows are inserts
        counts["inserted"] = told.get("rows", 0)
    return MergeResult.model_validate({**dict(done), **counts, "rows": sum(counts.values())})


__all__ = ["merge_result", "merge_source", "staged_merge"]
