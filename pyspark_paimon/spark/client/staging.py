"""Staging of client rows as DataFrames with owning tasks.

Work is split by bytes: ``spark.sql.shuffle.partitions`` has no effect.
Rows of this process are bucketed here and travel as blobs. ``ownership`` assigns rows of DataFrames to tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.row_kind import ROW_KIND
from lsm.rows_in.arrow import ArrowRows, python_scalar
from lsm.rows_in.conform import refuse_columns
from lsm.write.new_version import NewVersion
from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import BucketMode, TableSchema
from manifest.snapshot.snapshot import ReadState
from paimon_base.errors import InvalidArgument
from paimon_base.thresholds import thresholds
from pyspark_paimon.filter.columns import TARGET, case_twins
from pyspark_paimon.frames.spark_functions import functions_of, quote_name
from pyspark_paimon.frames.spark_types import arrow_for_spark, spark_type
from pyspark_paimon.jobs.task_operation import TaskOperation
from pyspark_paimon.request.assignments import is_bound, is_spark_column
from pyspark_paimon.request.requests import Rows, SparkRows, WriteRequest
from pyspark_paimon.request.tasks import Task
from pyspark_paimon.scheduling.task_packing import assign_by_size, task_count
from pyspark_paimon.spark.client.estimate import cores
from pyspark_paimon.spark.client.expression_sql import row_sql, scalar_sql
from pyspark_paimon.spark.client.ownership import Ownership, Target
from pyspark_paimon.spark.wire import jobs as wire_jobs
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.arrow_stream import BLOB, ORDINAL, TASK, blob_frame
from sparkexpr.values.column_type import TIMESTAMPS, Kind


@dataclass(frozen=True)
class Staged:
    """Write job: the DataFrame and the work of its tasks."""

    frame: Any
    job: wire_jobs.Job
    stage: str = "write"
    """Name of the progress."""
    share: str = ""
    """Amount of work, for users."""


def stage_rows(spark: Any, rows: Rows, target: Target, request: WriteRequest) -> Staged:
    """Return the job that writes ``rows``.

    Raises ``SchemaMismatch`` for columns that do not fit, before any job runs.
    """
    schema = target.schema
    if isinstance(rows, SparkRows):
        return _stage_frame(spark, rows, target, request)
    blobs = blob_frame(_order(rows, request.order_by), schema, cores(spark), kinds=request.row_kinds, policy=request.policy)
    if not blobs.num_rows:  # Spark cannot make a DataFrame of no rows from Arrow
        return Staged(
            spark.range(0).selectExpr(f"cast(NULL AS binary) AS {BLOB}"), wire_jobs.RowsJob(request=request, route=wire_jobs.Blobs())
        )
    tasks = pc.max(blobs.column(TASK)).as_py() + 1
    rows_sent = spark.createDataFrame(blobs)
    by_task = rows_sent.repartitionById(tasks, TASK) if tasks > 1 else rows_sent.coalesce(1)
    frame = by_task.sortWithinPartitions(ORDINAL).select(BLOB)
    return Staged(frame, wire_jobs.RowsJob(request=request, route=wire_jobs.Blobs()))


def stage_changes(spark: Any, frame: Any, target: Target, request: WriteRequest, values: Mapping[str, Any] | None = None) -> Staged:
    """Return the job that deletes or updates rows of ``frame``.

    ``frame`` was read from the target's snapshot. ``values`` are new values by column. None: delete the rows.
    """
    schema, frame = target.schema, frame.alias(TARGET)  # bound expressions and texts name its columns by this side
    stored_columns = set(schema.names) - set(values or ()) if values is not None else {*schema.primary_keys, *schema.core.sequence_field}
    new = {name: value if is_spark_column(value) else _column(frame, schema, name, value) for name, value in (values or {}).items()}
    version = None if values is None else NewVersion.of(schema, new)
    if version is not None:
        from pyspark_paimon.spark.client.expression_sql import with_new_versions  # noqa: PLC0415  # few calls need it

        frame, new = with_new_versions(frame, schema, version, new), {}
    rows = frame.withColumns({**new, ROW_KIND: functions_of(frame).lit("-D" if values is None else "+U")})
    return stage_row_kinds(spark, rows, target, request, verb="deleted" if values is None else "updated", stored_columns=stored_columns)


def stage_row_kinds(
    spark: Any, rows: Any, target: Target, request: WriteRequest, *, verb: str, stored_columns: Collection[str], reads_all: bool = False
) -> Staged:
    """Return the job that writes rows with row kinds.

    ``rows`` is a DataFrame computed from the target's snapshot. Its columns in ``stored_columns`` contain values of the table.
    Raises ``InvalidArgument`` if Spark would change such a column.
    """
    schema = target.schema
    fine = [
        name
        for name in schema.names
        if name in stored_columns and schema.column_types[name].kind in TIMESTAMPS and schema.field(name).type.precision > 6
    ]
    if fine or ROW_KIND in schema.names:
        reason = f"column '{fine[0]}' has nanoseconds, Spark cuts them off" if fine else f"it has a column '{ROW_KIND}'"
        raise InvalidArgument(f"rows of this table cannot be {verb} over Spark: {reason}; open it in process")
    staged = _stage_frame(spark, SparkRows(rows, arrow_for_spark(rows.schema)), target, request)
    return Staged(staged.frame, staged.job.model_copy(update={"read": ReadState(target.key, reads_all)}))


def _column(frame: Any, schema: TableSchema, name: str, value: Any) -> Any:
    """Return a bound expression or a constant as a Column.

    A constant gets the table's type.
    """
    if is_bound(value):
        return functions_of(frame).expr(row_sql(value))
    column_type = schema.field(name).type
    if value is not None and column_type.is_nested:
        example = "parse_json(functions.lit('{}'))" if column_type.kind is Kind.VARIANT else "array(...)"
        raise InvalidArgument(f"column '{name}' is {column_type}; on Spark set it to a Column, such as functions.{example}")
    scalar = python_scalar(name, value, column_type.arrow)
    functions = functions_of(frame)
    if not scalar.is_valid or column_type.kind is Kind.TIME:
        return functions.lit(scalar.as_py()).cast(spark_type(column_type))
    return functions.expr(scalar_sql(scalar, column_type.column_type))


def stage_tasks(spark: Any, tasks: Sequence[Task], operation: TaskOperation[Any], job: wire_jobs.TasksJob) -> Staged:
    """Return the job that runs the tasks of an operation.

    Each Spark task reads about the same number of bytes.
    """
    sizes = [task.size for task in tasks]
    number = min(len(sizes), task_count(sum(max(size, thresholds.piece_cost_bytes) for size in sizes), cores(spark)))
    columns = dict(zip(rpc.TASK_COLUMNS, map(pa.array, zip(*tasks, strict=True)), strict=True))
    rows = pa.table({TASK: pa.array(assign_by_size(sizes, number), pa.int32()), **columns})
    frame = spark.createDataFrame(rows).repartitionById(number, TASK).select(*columns)
    return Staged(frame, job, operation.stage, f"{len(tasks)} {operation.unit}")


def _stage_frame(spark: Any, rows: SparkRows, target: Target, request: WriteRequest) -> Staged:
    schema = target.schema
    extra = [ROW_KIND] if request.row_kinds else []
    refuse_columns(rows.schema, schema, request.policy, kinds=request.row_kinds)
    refuse_case_twins(spark, rows.schema.names, "rows")
    column_sql = [quote_name(name) for name in [*schema.names, *extra] if name in rows.schema.names]
    frame = rows.frame.select(*column_sql)
    has_buckets = schema.bucket_mode is not BucketMode.BUCKET_UNAWARE
    owned = Ownership(spark, rows, target, request).of(frame) if has_buckets else None
    if owned is None:
        return Staged(frame, wire_jobs.RowsJob(request=request, route=wire_jobs.Unrouted()))
    by_task = owned.frame if request.order_by is None else owned.frame.sortWithinPartitions(quote_name(request.order_by))
    return Staged(by_task.select(*column_sql), owned.job)


def refuse_case_twins(spark: Any, names: Iterable[str], what: str) -> None:
    """Raise ``InvalidArgument`` for columns that differ only in case.

    A case-sensitive session accepts them.
    """
    twins = case_twins(names)
    if twins and str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() != "true":
        raise InvalidArgument(
            f"columns {' and '.join(twins)} of the {what} differ only in case, which Spark does not distinguish: "
            "set spark.sql.caseSensitive to true, or open the table in process"
        )


def _order(rows: ArrowRows, by: str | None) -> pa.RecordBatchReader:
    """Return the rows sorted by column ``by``, nulls first.

    None: the rows keep their order.
    """
    if by is None:
        return rows.reader
    table = rows.reader.read_all()
    if by not in table.column_names:
        raise SchemaMismatch(f"column '{by}' is missing")
    order = pc.sort_indices(table, sort_keys=[(by, "ascending")], null_placement="at_start")
    return table.take(order).to_reader()
