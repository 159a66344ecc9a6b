"""A merge over Spark, staged: rows of the client that fit into a message go to the driver, all others are joined by Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark_paimon.frames.spark_types import arrow_for_spark
from pyspark_paimon.request.backend import EVERY_LEVEL, DeleteRequest, ScanRequest, SparkRows, WriteRequest
from pyspark_paimon.request.merge import MergeRequest
from pyspark_paimon.request.results import MergeResult, WriteResult
from pyspark_paimon.spark.client.merge_frame import MergeFrame
from pyspark_paimon.spark.client.ownership import Target
from pyspark_paimon.spark.client.staging import Staged, staged_kinds
from pyspark_paimon.spark.wire.rpc import Outcome

MOST_HELD_ROWS, MOST_HELD_BYTES = 100_000, 16 << 20
"""What a driver merges by itself: the files that match so few keys are found by ranges and indexes, and no row crosses the JVM."""


def source_frame(spark: Any, wanted: MergeRequest) -> SparkRows | None:
    """The source as a DataFrame; None for rows of this process that the driver merges."""
    source = wanted.source
    if isinstance(source, SparkRows):
        return source
    if source.num_rows <= MOST_HELD_ROWS and source.nbytes <= MOST_HELD_BYTES:
        return None
    frame = spark.createDataFrame(source)
    return SparkRows(frame, arrow_for_spark(frame.schema))


def staged_merge(
    spark: Any, frame_of: Callable[[ScanRequest, Any], Any], target: Target, request: DeleteRequest, wanted: MergeRequest
) -> Staged:
    """The job that writes what becomes of the rows, computed on the target's snapshot; the source is a DataFrame."""
    schema = target.schema
    scan = ScanRequest(columns=schema.names, snapshot_id=target.snapshot_id, schema_id=schema.id, options=EVERY_LEVEL)
    keyed = schema.is_primary_key_table
    write = WriteRequest(commit_id=request.commit_id, mode="upsert" if keyed else "append", row_kinds=keyed, options=request.options)
    source: SparkRows = wanted.source
    rows = MergeFrame(schema, wanted, frame_of(scan, None), source.frame, source.schema).rows()
    return staged_kinds(spark, rows, target, write, verb="merged", kept=schema.names)


def merge_result(done: WriteResult, outcome: Outcome | None) -> MergeResult:
    """What a merge did, with the counts that its commit noted; all 0 of a repetition."""
    told = {} if outcome is None or done.replayed else outcome.counts
    counts = {name: told.get(name, 0) for name in ("updated", "deleted", "inserted")}
    if not any(counts.values()):  # rows without kinds are new
        counts["inserted"] = told.get("rows", 0)
    return MergeResult.model_validate({**dict(done), **counts, "rows": sum(counts.values())})


__all__ = ["MOST_HELD_BYTES", "MOST_HELD_ROWS", "merge_result", "source_frame", "staged_merge"]
