"""From a client's rows to a DataFrame whose tasks own what they write.

The task of a row is a function of its partition and bucket, both computed by Spark built-ins, and ``repartitionById``
sends it there exactly. Rows of this process are bucketed here and travel as blobs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.column_type import TIMESTAMPS
from fileindex.base.errors import InvalidArgument, UnsupportedOption
from lsm.arrow.row_kind import ROW_KIND
from lsm.schema.conform_input import conform
from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.frames.spark_functions import functions_of
from pyspark_paimon.frames.spark_types import arrow_for_spark, spark_type
from pyspark_paimon.request.assignments import is_spark_column
from pyspark_paimon.request.backend import ArrowRows, Rows, SparkRows, WriteRequest
from pyspark_paimon.scheduling.balance import balanced
from pyspark_paimon.spark.client.binary_row_expr import BucketKey, expressible, quoted_name
from pyspark_paimon.spark.client.bucket_expr import with_bucket, with_bucket_mod, with_hash
from pyspark_paimon.spark.wire import jobs as wire_jobs
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.arrow_stream import BLOB, ORDINAL, TASK, blob_frame
from pyspark_paimon.spark.wire.names import UNIQUE_NAME

_TASK, _BUCKET, _KEY, _PART, _HASH = "__paimon_task", "__paimon_bucket", "__paimon_key", "__paimon_part", "__paimon_hash_of"


@dataclass(frozen=True)
class Staged:
    """A write job: the DataFrame to write, and what its tasks shall do with it."""

    frame: Any
    job: wire_jobs.Job

    @property
    def stage(self) -> str:
        """What the job does, for people."""
        return "write" if isinstance(self.job, wire_jobs.RowsJob) else self.job.job


@dataclass(frozen=True)
class Target:
    """The table that rows are staged for: where it is, its schema, and its newest snapshot (None: it is empty)."""

    path: str
    schema: TableSchema
    snapshot_id: int | None


def staged(spark: Any, rows: Rows, target: Target, request: WriteRequest) -> Staged:
    """The job that writes ``rows``. Raises ``SchemaMismatch`` for columns that do not fit, before anything runs."""
    schema = target.schema
    if isinstance(rows, SparkRows):
        return _staged_frame(spark, rows, target, request)
    tasks = _tasks(spark, schema)
    blobs = blob_frame(_ordered(rows, request.order_by), schema, tasks, kinds=request.row_kinds)
    if not blobs.num_rows:  # Spark cannot make a DataFrame of no rows from Arrow
        return Staged(
            spark.range(0).selectExpr(f"cast(NULL AS binary) AS {BLOB}"), wire_jobs.RowsJob(request=request, owned=True, blobs=True)
        )
    frame = spark.createDataFrame(blobs).repartitionById(tasks, TASK).sortWithinPartitions(ORDINAL).select(BLOB)
    return Staged(frame, wire_jobs.RowsJob(request=request, owned=True, blobs=True))


def staged_changes(spark: Any, frame: Any, target: Target, request: WriteRequest, values: Mapping[str, Any] | None = None) -> Staged:
    """The job that deletes the rows of ``frame``, which were read from the target's snapshot, or updates them to ``values``."""
    schema = target.schema
    kept = set(schema.names) - set(values or ()) if values is not None else {*schema.primary_keys, *schema.core.sequence_field}
    new = {name: value if is_spark_column(value) else _literal(frame, schema, name, value) for name, value in (values or {}).items()}
    rows = frame.withColumns({**new, ROW_KIND: functions_of(frame).lit("-D" if values is None else "+U")})
    return staged_kinds(spark, rows, target, request, verb="deleted" if values is None else "updated", kept=kept)


def staged_kinds(spark: Any, rows: Any, target: Target, request: WriteRequest, *, verb: str, kept: Collection[str]) -> Staged:
    """The job that writes ``rows``, a DataFrame with their kinds that was computed from the target's snapshot.

    Raises ``InvalidArgument`` where columns of ``kept``, which the rows have from the table, do not pass through Spark unchanged.
    """
    schema = target.schema
    fine = [
        name
        for name in schema.names
        if name in kept and schema.column_types[name].kind in TIMESTAMPS and schema.field(name).type.precision > 6
    ]
    if fine or ROW_KIND in schema.names:
        reason = f"column '{fine[0]}' has nanoseconds, Spark cuts them off" if fine else f"it has a column '{ROW_KIND}'"
        raise InvalidArgument(f"rows of this table cannot be {verb} over Spark: {reason}; open it in process")
    done = _staged_frame(spark, SparkRows(rows, arrow_for_spark(rows.schema)), target, request)
    return Staged(done.frame, done.job.model_copy(update={"read_snapshot_id": target.snapshot_id or 0}))


def _literal(frame: Any, schema: TableSchema, name: str, value: Any) -> Any:
    """A Python value as a Spark Column of the table's type, for ``frame``."""
    if value is not None and schema.field(name).type.is_nested:
        raise InvalidArgument(f"column '{name}' is {schema.field(name).type}; on Spark set it to a Column, such as functions.array(...)")
    return functions_of(frame).lit(value).cast(spark_type(schema.field(name).type))


def bucket_frame(spark: Any, buckets: Sequence[tuple[str, int, int]], job: wire_jobs.Job) -> Staged:
    """A ``job`` that does something for each of the buckets (partition in hexadecimal, number, bytes), balanced over the tasks."""
    partitions, numbers, sizes = zip(*buckets, strict=True)
    columns = {
        "partition": pa.array([bytes.fromhex(partition) for partition in partitions], pa.binary()),
        "bucket": pa.array(numbers, pa.int32()),
    }
    return Staged(_shared_out(spark, columns, sizes), job)


def file_frame(spark: Any, files: Sequence[tuple[str, int, str, int]], job: wire_jobs.Job) -> Staged:
    """A ``job`` that does something for each of the data files (as ``AskIndexFiles`` answers), balanced over the tasks."""
    partitions, buckets, names, sizes = zip(*files, strict=True)
    arrays = (
        pa.array([bytes.fromhex(partition) for partition in partitions], pa.binary()),
        pa.array(buckets, pa.int32()),
        pa.array(names, pa.string()),
    )
    return Staged(_shared_out(spark, dict(zip(rpc.FILE_COLUMNS, arrays, strict=True)), sizes), job)


def _shared_out(spark: Any, columns: Mapping[str, pa.Array], sizes: Sequence[int]) -> Any:
    """A DataFrame whose rows come to the tasks so that all have about as many bytes to work on."""
    tasks = min(len(sizes), _parallelism(spark) * 4)
    rows = pa.table({TASK: pa.array(balanced(sizes, tasks), pa.int32()), **columns})
    return spark.createDataFrame(rows).repartitionById(tasks, TASK).select(*columns)


def _staged_frame(spark: Any, rows: SparkRows, target: Target, request: WriteRequest) -> Staged:
    schema = target.schema
    extra = [ROW_KIND] if request.row_kinds else []
    given = [field for field in rows.schema if field.name not in extra]
    conform(pa.schema(given).empty_table(), schema)
    wanted = [quoted_name(name) for name in [*schema.names, *extra] if name in rows.schema.names]
    frame = rows.frame.select(*wanted)
    job = wire_jobs.RowsJob(request=request, owned=True)
    if schema.has_dynamic_buckets:
        job = job.model_copy(update={"writers": _writers(spark, schema), "base_snapshot_id": target.snapshot_id or 0})
        by_task = _owned_by_hash(spark, frame, target, job)
    else:
        by_task = _owned(frame, schema, _tasks(spark, schema)) if schema.core.bucket >= 1 else None
    if by_task is not None:
        frame = by_task if request.order_by is None else by_task.sortWithinPartitions(quoted_name(request.order_by))
    elif request.order_by is not None:
        raise UnsupportedOption(
            "order_by", f"Spark cannot compute the bucket of a key of {', '.join(schema.bucket_keys)}; use 'sequence.field'"
        )
    return Staged(frame.select(*wanted), job if by_task is not None else wire_jobs.RowsJob(request=request, owned=False))


@dataclass(frozen=True)
class _Keyed:
    """``frame`` with the columns of its key and its partition in the table's types."""

    frame: Any
    keys: list[BucketKey]
    parts: list[str]


def _keyed(frame: Any, schema: TableSchema) -> _Keyed | None:
    """None if Spark cannot hash the key."""
    columns = {name: f"{_KEY}{at}" for at, name in enumerate(schema.bucket_keys)}
    keys = [BucketKey(columns[name], schema.column_types[name], schema.field(name).type.nullable) for name in schema.bucket_keys]
    if not expressible(keys) or schema.core.bucket_function_type not in {"default", "mod"}:
        return None
    parts = {name: f"{_PART}{at}" for at, name in enumerate(schema.partition_keys)}
    typed = frame.withColumns({alias: functions_of(frame).expr(_tried(schema, name)) for name, alias in {**columns, **parts}.items()})
    return _Keyed(typed, keys, list(parts.values()))


def _owned(frame: Any, schema: TableSchema, tasks: int) -> Any | None:
    """``frame`` with every bucket's rows in one task; None if Spark cannot compute the bucket."""
    keyed = _keyed(frame, schema)
    if keyed is None:
        return None
    if schema.core.bucket_function_type == "mod":
        frame = with_bucket_mod(keyed.frame, keyed.keys[0], schema.core.bucket, _BUCKET)
    else:
        frame = with_bucket(keyed.frame, keyed.keys, schema.core.bucket, _BUCKET)
    where = f"cast(hash({', '.join(keyed.parts)}) as bigint) + " if keyed.parts else ""
    frame = frame.withColumn(_TASK, functions_of(frame).expr(f"cast(pmod({where}coalesce({_BUCKET}, 0), {tasks}) as int)"))
    return frame.repartitionById(tasks, _TASK)


def _owned_by_hash(spark: Any, frame: Any, target: Target, job: wire_jobs.RowsJob) -> Any | None:
    """``frame`` with every row in the task that owns its key's dynamic bucket; None if Spark cannot compute the hash.

    A known key goes to the owner of its bucket, a new one to the owner of its hash: so no key is new to two tasks. An
    overwrite knows no key.
    """
    keyed = _keyed(frame, target.schema)
    if keyed is None:
        return None
    frame = with_hash(keyed.frame, keyed.keys, _HASH)
    home = _HASH
    if job.request.mode != "overwrite" and target.snapshot_id is not None:
        scan = wire_jobs.HashScan(snapshot_id=target.snapshot_id)
        homes = spark.read.format(UNIQUE_NAME).options(path=target.path, **{rpc.HASHES: scan.model_dump_json()}).load()
        same = [f"{_HASH} = {rpc.HASH_COLUMN}", *(f"{part} <=> {rpc.HOME_PART}{at}" for at, part in enumerate(keyed.parts))]
        frame = frame.join(homes, functions_of(frame).expr(" AND ".join(same)), "left")
        home = f"coalesce({rpc.HOME_COLUMN}, {_HASH})"
    frame = frame.withColumn(_TASK, functions_of(frame).expr(f"cast(pmod(coalesce({home}, 0), {job.writers}) as int)"))
    return frame.repartitionById(job.writers, _TASK)


def _writers(spark: Any, schema: TableSchema) -> int:
    """Tasks that share out the dynamic buckets of each partition among them."""
    chosen = schema.options.get("dynamic-bucket.assigner-parallelism")
    most = int(chosen) if chosen and chosen.isdecimal() else _parallelism(spark)
    limit = schema.core.dynamic_bucket_max_buckets
    return max(1, min(most, limit) if limit > 0 else most)


def _tried(schema: TableSchema, name: str) -> str:
    """A column in the table's type, null where a value does not fit: its task refuses that value by name."""
    return f"try_cast({quoted_name(name)} as {spark_type(schema.field(name).type).simpleString()})"


def _ordered(rows: ArrowRows, by: str | None) -> pa.RecordBatchReader:
    """The rows, sorted by the column ``by`` with nulls first if it is given."""
    if by is None:
        return rows.reader
    table = rows.reader.read_all()
    if by not in table.column_names:
        raise SchemaMismatch(f"column '{by}' is missing")
    order = pc.sort_indices(table, sort_keys=[(by, "ascending")], null_placement="at_start")
    return table.take(order).to_reader()


def _tasks(spark: Any, schema: TableSchema) -> int:
    """Tasks of a write: one per bucket as far as that is sensible; partitions multiply buckets."""
    most = _parallelism(spark)
    return max(1, most if schema.partition_keys or schema.core.bucket < 1 else min(schema.core.bucket, most * 4))


def _parallelism(spark: Any) -> int:
    return max(1, int(spark.conf.get("spark.sql.shuffle.partitions")))


__all__ = ["Staged", "Target", "bucket_frame", "file_frame", "staged", "staged_changes", "staged_kinds"]
