"""Assignment of a DataFrame's rows to Spark tasks.

Every (partition, bucket) has one owner. The number of tasks depends on the size of the rows.
A single task finds the buckets without Spark expressions.
With several tasks, Spark built-ins compute the task from partition and bucket. ``repartitionById`` sends each row to exactly that task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from manifest.schema.table_schema import BucketMode, TableSchema
from manifest.snapshot.snapshot import SnapshotKey
from paimon_base.lazy import cached_property
from pyspark_paimon.frames.spark_functions import functions_of, quote_name
from pyspark_paimon.frames.spark_types import spark_type
from pyspark_paimon.request.requests import SparkRows, WriteRequest
from pyspark_paimon.scheduling.task_packing import task_count
from pyspark_paimon.spark.client.bucket_expr import BucketKey, expressible, with_bucket, with_bucket_mod, with_hash
from pyspark_paimon.spark.client.estimate import Estimate, cores, estimate
from pyspark_paimon.spark.wire import jobs as wire_jobs
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.names import UNIQUE_NAME

_TASK, _BUCKET, _KEY, _PART, _HASH, _PART_HASH = (
    f"__paimon_{name}" for name in ("task", "bucket", "key", "part", "hash_of", "hash_of_part")
)
_UNKNOWN_TASKS = 4
"""Tasks per core if the size of the rows is unknown."""


@dataclass(frozen=True)
class Target:
    """Table that rows are staged for.

    Contains its path, its schema, its newest snapshot, and a query for its dynamic buckets.
    """

    path: str
    schema: TableSchema
    key: SnapshotKey
    dynamic_buckets: Callable[[], int] = lambda: 0
    """Return the largest number of dynamic buckets in a partition of the snapshot."""

    @property
    def snapshot_id(self) -> int | None:
        """Id of the newest snapshot; None for an empty table."""
        return self.key.id or None


@dataclass(frozen=True)
class OwnedFrame:
    """DataFrame partitioned by owning task, and its write job."""

    frame: Any
    job: wire_jobs.RowsJob


@dataclass(frozen=True)
class _Keyed:
    """``frame`` with key and partition columns in the table's types."""

    frame: Any
    keys: list[BucketKey]
    parts: list[BucketKey]


class Ownership:
    """Tasks of one write of a DataFrame."""

    def __init__(self, spark: Any, rows: SparkRows, target: Target, request: WriteRequest) -> None:
        self._spark = spark
        self._rows = rows
        self._target = target
        self._request = request

    def of(self, frame: Any) -> OwnedFrame | None:
        """Partition ``frame`` so that every bucket has one owner.

        None: Spark cannot compute the buckets, and the rows need several tasks. With ``order_by`` one task writes them instead.
        """
        schema = self._target.schema
        if schema.bucket_mode in {BucketMode.KEY_DYNAMIC, BucketMode.POSTPONE_MODE}:
            return self._by_key(frame)
        tasks, _ = self._shape
        keyed = None if tasks == 1 else _key_frame(frame, schema)
        if tasks == 1 or (keyed is None and self._request.order_by is not None):
            return OwnedFrame(frame.repartition(1), self._job(wire_jobs.ByBucket()))
        if keyed is None:
            return None
        if schema.bucket_mode is BucketMode.HASH_DYNAMIC:
            return self._by_hash(keyed)
        return OwnedFrame(_by_bucket(keyed, schema, tasks), self._job(wire_jobs.ByBucket()))

    def _job(self, route: wire_jobs.ByBucket | wire_jobs.ByHash | wire_jobs.ByKey) -> wire_jobs.RowsJob:
        return wire_jobs.RowsJob(request=self._request, route=route)

    def _by_key(self, frame: Any) -> OwnedFrame:
        """Send all rows of a key to one task.

        The task finds the partition of the key, or the partition's number of buckets.
        If keys cross partitions, one task gets all rows of an overwrite that keeps some rows.
        """
        schema, request = self._target.schema, self._request
        base = None if request.mode == "overwrite" else self._target.key.id
        tasks = self._chosen_writers or self._shape[0]
        if tasks == 1 or (request.keeps_others and schema.bucket_mode is BucketMode.KEY_DYNAMIC):
            return OwnedFrame(frame.repartition(1), self._job(wire_jobs.ByKey(tasks=1, base_snapshot_id=base)))
        keys = ", ".join(_try(schema, name) for name in schema.primary_keys)
        staged = frame.withColumn(_TASK, functions_of(frame).expr(f"cast(pmod(hash({keys}), {tasks}) as int)")).repartitionById(
            tasks, _TASK
        )
        return OwnedFrame(staged, self._job(wire_jobs.ByKey(tasks=tasks, base_snapshot_id=base)))

    @cached_property
    def _expected(self) -> Estimate:
        return estimate(self._rows.frame, self._rows.schema)

    @cached_property
    def _cores(self) -> int:
        return cores(self._spark)

    @cached_property
    def _shape(self) -> tuple[int, int]:
        """Numbers of tasks and of writers per partition.

        Writers share the dynamic buckets of a partition. Other bucket modes have one writer.
        """
        schema, size = self._target.schema, self._expected.size
        tasks = self._cores * _UNKNOWN_TASKS if size is None else task_count(size, self._cores)
        if schema.bucket_mode is not BucketMode.HASH_DYNAMIC:
            return tasks if schema.partition_keys else min(tasks, schema.core.bucket), 1
        writers = self._writers(tasks)
        return max(tasks, writers) if schema.partition_keys else writers, writers

    @property
    def _chosen_writers(self) -> int | None:
        parallelism = self._target.schema.options.get("dynamic-bucket.assigner-parallelism", "")
        return max(1, int(parallelism)) if parallelism.isdecimal() else None

    def _writers(self, tasks: int) -> int:
        """Return the number of writers of dynamic buckets.

        The number covers the buckets that new rows fill, and the existing buckets.
        """
        schema, rows = self._target.schema, self._expected.rows
        if self._chosen_writers is not None:
            writer_count = self._chosen_writers
        elif tasks == 1:
            writer_count = 1
        else:
            # Each writer may leave a partly filled bucket: more writers make buckets smaller than target-row-num.
            filled = self._cores if rows is None else -(-rows // schema.core.dynamic_bucket_target_row_num)
            writer_count = min(tasks, max(filled, 0 if self._request.mode == "overwrite" else self._target.dynamic_buckets()))
        limit = schema.core.dynamic_bucket_max_buckets
        return max(1, min(writer_count, limit) if limit > 0 else writer_count)

    def _by_hash(self, keyed: _Keyed) -> OwnedFrame:
        """Send each row to the owner of its dynamic bucket.

        A known key goes to the owner of its bucket, a new key to the owner of its hash.
        So no key is new to two tasks. An overwrite treats every key as new.
        """
        target, (tasks, writers) = self._target, self._shape
        frame = with_hash(keyed.frame, keyed.keys, _HASH)
        owner = _HASH
        if self._request.mode != "overwrite" and target.snapshot_id is not None:
            scan = wire_jobs.HashScan(snapshot_id=target.snapshot_id)
            buckets = self._spark.read.format(UNIQUE_NAME).options(path=target.path, **{rpc.HASHES: scan.model_dump_json()}).load()
            same = [
                f"{_HASH} = {rpc.HASH_COLUMN}",
                *(f"{part.name} <=> {rpc.PARTITION_COLUMN}{position}" for position, part in enumerate(keyed.parts)),
            ]
            frame = frame.join(buckets, functions_of(frame).expr(" AND ".join(same)), "left")
            owner = f"coalesce({rpc.BUCKET_COLUMN}, {_HASH})"
        where = "0"
        if keyed.parts:
            frame, where = with_hash(frame, keyed.parts, _PART_HASH), f"cast({_PART_HASH} as bigint)"
        task = f"cast(pmod({where} + pmod(coalesce({owner}, 0), {writers}), {tasks}) as int)"
        staged = frame.withColumn(_TASK, functions_of(frame).expr(task)).repartitionById(tasks, _TASK)
        return OwnedFrame(staged, self._job(wire_jobs.ByHash(tasks=tasks, writers=writers, base_snapshot_id=target.key.id)))


def _key_frame(frame: Any, schema: TableSchema) -> _Keyed | None:
    """Add key columns; None if Spark cannot hash the key."""
    keys, parts = _as_keys(schema, schema.bucket_keys, _KEY), _as_keys(schema, schema.partition_keys, _PART)
    hashed = [keys, parts] if schema.bucket_mode is BucketMode.HASH_DYNAMIC and parts else [keys]
    if not all(map(expressible, hashed)) or schema.core.bucket_function_type not in {"default", "mod"}:
        return None
    sources = zip([*keys, *parts], [*schema.bucket_keys, *schema.partition_keys], strict=True)
    typed = frame.withColumns({key.name: functions_of(frame).expr(_try(schema, name)) for key, name in sources})
    return _Keyed(typed, keys, parts)


def _as_keys(schema: TableSchema, names: tuple[str, ...], alias: str) -> list[BucketKey]:
    return [
        BucketKey(f"{alias}{position}", schema.column_types[name], schema.field(name).type.nullable) for position, name in enumerate(names)
    ]


def _by_bucket(keyed: _Keyed, schema: TableSchema, tasks: int) -> Any:
    """Send all rows of a bucket to one task."""
    if schema.core.bucket_function_type == "mod":
        frame = with_bucket_mod(keyed.frame, keyed.keys[0], schema.core.bucket, _BUCKET)
    else:
        frame = with_bucket(keyed.frame, keyed.keys, schema.core.bucket, _BUCKET)
    where = f"cast(hash({', '.join(part.name for part in keyed.parts)}) as bigint) + " if keyed.parts else ""
    frame = frame.withColumn(_TASK, functions_of(frame).expr(f"cast(pmod({where}coalesce({_BUCKET}, 0), {tasks}) as int)"))
    return frame.repartitionById(tasks, _TASK)


def _try(schema: TableSchema, name: str) -> str:
    """Return SQL for a column in the table's type."""
    # Null if the value does not fit: the task raises an error that names the value.
    return f"try_cast({quote_name(name)} as {spark_type(schema.field(name).type).simpleString()})"
