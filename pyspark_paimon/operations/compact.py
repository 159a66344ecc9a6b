"""Compaction, and the preceding move of postponed rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Self, get_args

from manifest.commit.message import compaction_counts
from manifest.entry.live import EntryFilter
from manifest.io.paths import POSTPONE_BUCKET
from manifest.schema.clustering import MAX_COLUMNS, NO_ORDER
from manifest.schema.table_schema import BucketMode
from manifest.snapshot.commit_info import check_properties
from manifest.snapshot.snapshot import EMPTY_TABLE, CommitKind, ReadState, SnapshotKey
from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule
from paimon_base.thresholds import thresholds
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.jobs.task_operation import TaskOperation
from pyspark_paimon.request.bound import BoundFilter
from pyspark_paimon.request.partition_spec import partition_filter, predicate_of, spec_of
from pyspark_paimon.request.requests import ClusterStrategyName
from pyspark_paimon.request.tasks import Task, TaskPlan, TaskRun, TaskWork, Worker, partitions_of
from pyspark_paimon.request.validate import check_options, commit_identity
from pyspark_paimon.results.results import CompactResult, compact_counters
from pyspark_paimon.typing import Filter

if TYPE_CHECKING:
    from lsm.commit import postponed
    from lsm.compaction import cluster, due
    from lsm.write import compaction_job
    from manifest.commit.conflicts import BucketId
    from manifest.commit.file_store_commit import FileStoreCommit
    from manifest.commit.message import CommitMessage, CommitResult
    from manifest.schema.table_schema import TableSchema
    from manifest.store import FileStore
    from pyspark_paimon.request.engine import Engine
else:  # the client of a server sends these operations and needs no storage engine
    postponed = LazyModule("lsm.commit.postponed")
    cluster = LazyModule("lsm.compaction.cluster")
    due = LazyModule("lsm.compaction.due")
    compaction_job = LazyModule("lsm.write.compaction_job")


class _Buckets(TaskOperation[CompactResult]):
    """Work on the buckets of some partitions.

    ``partitions``: full partition specifications. None: all. ``predicate``: a bound filter on partition columns, instead.
    """

    partitions: tuple[dict[str, str | None], ...] | None = None
    predicate: BoundFilter | None = None

    def _entry_filter(self, store: FileStore) -> EntryFilter:
        return EntryFilter(predicate=self.predicate if self.partitions is None else predicate_of(self.partitions, store.schema))


class Compact(_Buckets):
    """Compact buckets.

    ``order_by``: sort the rows of an append table without buckets by these columns, as ``strategy`` says.
    """

    stage: ClassVar[str] = "compact"
    commits_parts: ClassVar[bool] = True

    full: bool = False
    order_by: tuple[str, ...] = ()
    strategy: ClusterStrategyName = "order"

    @classmethod
    def of(
        cls,
        schema: TableSchema,
        *,
        full: bool,
        partitions: Sequence[Mapping[str, object]] | None,
        filter: Filter,  # noqa: A002  # as in Table.compact
        order_by: Sequence[str] | str | None,
        strategy: ClusterStrategyName,
        options: Mapping[str, str] | None,
        properties: Mapping[str, str] | None = None,
    ) -> Self:
        """Return the operation of ``Table.compact``.

        Raises ``InvalidArgument``, ``InvalidFilter``, ``UnknownColumn``, ``UnsupportedOption``.
        """
        if partitions is not None and filter is not None:
            raise InvalidArgument("a compaction is limited by partitions or by a filter, not by both")
        predicate = partition_filter(filter, schema, "a compaction")
        if strategy not in get_args(ClusterStrategyName):
            raise InvalidArgument(f"strategy must be one of {', '.join(get_args(ClusterStrategyName))}, not {strategy!r}")
        return cls(
            commit_id=commit_identity(None),
            full=full,
            partitions=None if partitions is None else tuple(spec_of(spec, schema) for spec in partitions),
            predicate=predicate,
            order_by=() if order_by is None else _order_columns(schema, order_by, strategy),
            strategy=strategy,
            options=check_options(options),
            properties=check_properties(properties),
        )

    def plan(self, store: FileStore) -> TaskPlan:
        """List buckets that have something to compact."""
        store.check_writable()
        latest = store.snapshots.latest()
        entries = store.live_entries(latest, self._entry_filter(store))
        if not self.full and not self.order_by:
            entries = due.due_entries(store, entries)
        entries = entries.select(entries.bucket >= 0)
        codes, partitions = entries.partition_codes
        sizes: Counter[tuple[int, int]] = Counter()
        for code, bucket, size in zip(codes.tolist(), entries.bucket.tolist(), entries.file_size.tolist(), strict=True):
            sizes[code, bucket] += size
        tasks = sorted(Task(partitions[code].hex(), bucket, size) for (code, bucket), size in sizes.items())
        return TaskPlan(base=EMPTY_TABLE if latest is None else latest.key, tasks=tuple(tasks))

    def group_tasks(self, tasks: Sequence[Task], small_at_once: int) -> tuple[list[list[Task]], list[list[Task]]]:
        """Return large buckets one by one, and small buckets grouped.

        >>> tasks = [Task("", 0, 9), Task("", 1, 1 << 30), Task("", 2, 9), Task("", 3, 9)]
        >>> large, small = Compact(commit_id="c").group_tasks(tasks, 2)
        >>> [[task.bucket for task in group] for group in large], [[task.bucket for task in group] for group in small]
        ([[1]], [[0, 2], [3]])
        """
        small = [task for task in tasks if task.size <= thresholds.small_bucket_bytes]
        together = min(thresholds.buckets_a_job, -(-len(small) // small_at_once)) or 1
        large = [[task] for task in tasks if task.size > thresholds.small_bucket_bytes]
        return large, [small[start : start + together] for start in range(0, len(small), together)]

    def prepare(self, store: FileStore, base: SnapshotKey, tasks: Sequence[Task], threads: int) -> Worker:
        """Return the compaction of some buckets at the newest snapshot."""
        del store, base, tasks, threads
        return self._compact_bucket

    def _compact_bucket(self, store: FileStore, tasks: Sequence[Task]) -> TaskWork:
        clustering = cluster.Clustering(self.order_by, self.strategy) if self.order_by else None
        buckets = [task.bucket_id for task in tasks]
        return TaskWork(compaction_job.compact_together(store, buckets, full=self.full, clustering=clustering, commit_id=self.commit_id))

    def counts(self, work: TaskWork, lost: Sequence[BucketId] = ()) -> dict[str, int]:
        """Return counts of files, bytes, rows and buckets."""
        return compaction_counts([message for message in work.messages if message.bucket_id not in frozenset(lost)])

    def commit(
        self,
        commit: FileStoreCommit,
        base: SnapshotKey,
        messages: Sequence[CommitMessage],
        properties: dict[str, str],
    ) -> CommitResult:
        """Commit; buckets that other commits changed drop out."""
        del base
        return commit.commit(messages, properties=properties)

    def result(self, run: TaskRun) -> CompactResult:
        """Return the counts of all rounds."""
        result = CompactResult(
            files_before=run.total("files_before"),
            files_after=run.total("files_after"),
            bytes_read=run.total("bytes_read"),
            bytes_written=run.total("bytes_written"),
            rows=run.total("rows"),
            buckets=run.total("buckets"),
            snapshot_id=run.snapshot_id,
            attempts=run.rounds,
            seconds=run.seconds,
        )
        counters = compact_counters(result, retries=run.rounds - 1 + run.total("retries"), millis=run.millis)
        return result.model_copy(update={"counters": counters})


class MovePostponed(_Buckets):
    """Move rows out of the postponed bucket into their buckets."""

    stage: ClassVar[str] = "settle"
    unit: ClassVar[str] = "partitions"

    @property
    def verb(self) -> str:
        """See ``TaskOperation``: users call ``compact``."""
        return Compact.stage

    def plan(self, store: FileStore) -> TaskPlan:
        """List partitions with files in the postponed bucket."""
        store.check_writable()
        latest = store.snapshots.latest()
        if latest is None:
            return TaskPlan(base=EMPTY_TABLE)
        waiting = postponed.waiting_files(store, latest, self._entry_filter(store))
        tasks = (Task(partition.hex(), POSTPONE_BUCKET, sum(file.file_size for file in files)) for partition, files in waiting.items())
        return TaskPlan(base=latest.key, tasks=tuple(tasks))

    def prepare(self, store: FileStore, base: SnapshotKey, tasks: Sequence[Task], threads: int) -> Worker:
        """Return the move of some partitions."""
        waiting = postponed.waiting_files(store, store.snapshots.same(base), EntryFilter(partitions=partitions_of(tasks)))

        def moved(reporting: FileStore, group: Sequence[Task]) -> TaskWork:
            files = {partition: waiting[partition] for partition in partitions_of(group)}
            return TaskWork(postponed.move_rows(reporting, files, self.commit_id, base, threads=threads))

        return moved

    def commit(
        self,
        commit: FileStoreCommit,
        base: SnapshotKey,
        messages: Sequence[CommitMessage],
        properties: dict[str, str],
    ) -> CommitResult:
        """Show the rows in their buckets."""
        return commit.replace(messages, properties=properties, read=ReadState(base), kind=CommitKind.COMPACT)

    def result(self, run: TaskRun) -> CompactResult:
        """Return the snapshot that shows the rows."""
        return CompactResult(files_before=0, files_after=0, bytes_read=0, bytes_written=0, snapshot_id=run.snapshot_id, seconds=run.seconds)


def compact_table(engine: Engine, schema: TableSchema, compact: Compact) -> CompactResult:
    """Compact the table.

    Rows in the postponed bucket first move to their buckets.
    """
    if schema.bucket_mode is not BucketMode.POSTPONE_MODE:
        return engine.run(compact)
    move = MovePostponed(
        commit_id=commit_identity(None),
        partitions=compact.partitions,
        predicate=compact.predicate,
        options=compact.options,
        properties=compact.properties,
    )
    moved, compacted = engine.run(move), engine.run(compact)
    return compacted if compacted.snapshot_id is not None else compacted.model_copy(update={"snapshot_id": moved.snapshot_id})


def _order_columns(schema: TableSchema, order_by: Sequence[str] | str, strategy: ClusterStrategyName) -> tuple[str, ...]:
    if schema.bucket_mode is not BucketMode.BUCKET_UNAWARE:
        raise InvalidArgument("rows can be sorted by columns in append tables without buckets only; others have an order of their own")
    names = tuple(resolve(name, schema.column_types) for name in ([order_by] if isinstance(order_by, str) else order_by))
    if not names or len(set(names)) < len(names):
        raise InvalidArgument("order_by must have at least one column, each only once")
    for name in names:
        if name in schema.partition_keys:
            raise InvalidArgument(f"order_by: '{name}' is a partition column, which is constant among the sorted rows: remove it")
        if schema.field(name).type.kind in NO_ORDER:
            raise InvalidArgument(f"order_by: '{name}' has type {schema.field(name).type}, which has no order")
    if strategy != "order" and len(names) > MAX_COLUMNS:
        raise InvalidArgument(f"strategy '{strategy}' sorts by at most {MAX_COLUMNS} columns: remove some")
    return names
