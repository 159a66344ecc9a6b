"""Purge of rows: from the newest state, from files, and from history."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from fileindex.predicate.tree import TRUE, columns_of
from manifest.entry.live import EntryFilter
from manifest.io.errors import HistoryBusy
from manifest.options.support import check_rewritable
from manifest.schema.table_schema import BucketMode
from manifest.snapshot.commit_info import commit_properties
from manifest.snapshot.snapshot import EMPTY_TABLE, SnapshotKey
from paimon_base.lazy import LazyModule
from paimon_base.texts import count_text
from pyspark_paimon.operations.change_rows import DeleteRows
from pyspark_paimon.operations.compact import Compact, MovePostponed
from pyspark_paimon.operations.expire import RemoveOrphans
from pyspark_paimon.operations.history.branches import DeleteBranch
from pyspark_paimon.operations.history.consumers import ClearConsumers
from pyspark_paimon.operations.history.tags import DeleteTag
from pyspark_paimon.operations.listings import ListHistory
from pyspark_paimon.request.assignments import refuse_delete
from pyspark_paimon.request.bound import BoundFilter
from pyspark_paimon.request.operation import OpenTable, Operation, Question
from pyspark_paimon.request.requests import DeleteRequest
from pyspark_paimon.request.tasks import Task, TaskPlan, TaskWork, Worker
from pyspark_paimon.request.validate import cutoff_of
from pyspark_paimon.results.message import CommitId, CommitProperties
from pyspark_paimon.results.state_results import Holder, PurgeResult, TableChangeResult

if TYPE_CHECKING:
    from lsm.read import stored_rows
    from lsm.write import compaction_job
    from manifest.commit import file_store_commit
    from manifest.entry.data_file import ManifestEntry
    from manifest.expire import delete_files, history_change, holders, orphans, snapshots
    from manifest.io.file_io import FileIO
    from manifest.schema.table_schema import TableSchema
    from manifest.store import FileStore
    from pyspark_paimon.request.engine import Engine
else:  # the client of a server sends these operations and needs no storage engine
    stored_rows = LazyModule("lsm.read.stored_rows")
    compaction_job = LazyModule("lsm.write.compaction_job")
    file_store_commit = LazyModule("manifest.commit.file_store_commit")
    delete_files = LazyModule("manifest.expire.delete_files")
    history_change = LazyModule("manifest.expire.history_change")
    holders = LazyModule("manifest.expire.holders")
    orphans = LazyModule("manifest.expire.orphans")
    snapshots = LazyModule("manifest.expire.snapshots")

_WHOLE_BUCKETS = {"compaction.force-rewrite-all-files": "true", "delete.time-retained": "0 s"}
"""Options of a full compaction that leaves no older version and no delete."""
_NO_HISTORY = {
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
    "snapshot.time-retained": "0 s",
    "changelog.num-retained.min": "1",
    "changelog.num-retained.max": "1",
    "changelog.time-retained": "0 s",
    "snapshot.clean-empty-directories": "true",
}
_ROUNDS = 3


class CheckPurge(Question[bool]):
    """Whether each step of a purge can run.

    Raises the errors of the steps, before the first one changes the table.
    """

    def answer(self, table: OpenTable) -> bool:
        """Check the options of the table and those of each step."""
        store = table.writable()
        check_rewritable(store.options, store.root)
        refuse_delete(store.schema, store.root)
        for options in (_WHOLE_BUCKETS, _NO_HISTORY):
            store.with_options(options).check_writable()
        return True


class RewriteStored(Compact):
    """Rewrite files that store matching rows, without the rows that no read shows.

    Buckets of a primary-key table are compacted fully.
    """

    stage: ClassVar[str] = "purge"
    row_filter: BoundFilter | None

    def plan(self, store: FileStore) -> TaskPlan:
        """List buckets with such files."""
        store.check_writable()
        check_rewritable(store.options, store.root)
        latest = store.snapshots.latest()
        if latest is None:
            return TaskPlan(base=EMPTY_TABLE)
        entries = store.live_entries(latest).entries()
        names = self._storing(store, entries)
        sizes: Counter[tuple[str, int]] = Counter()
        for entry in entries:
            sizes[entry.partition.hex(), entry.bucket] += entry.file.file_size
        buckets = {(entry.partition.hex(), entry.bucket) for entry in entries if entry.file.file_name in names}
        return TaskPlan(base=latest.key, tasks=tuple(sorted(Task(*bucket, sizes[bucket]) for bucket in buckets)))

    def prepare(self, store: FileStore, base: SnapshotKey, tasks: Sequence[Task], threads: int) -> Worker:
        """Return the rewrite of some buckets."""
        del store, base, tasks, threads
        return self._rewrite

    def _rewrite(self, store: FileStore, tasks: Sequence[Task]) -> TaskWork:
        buckets = [task.bucket_id for task in tasks]
        if store.key is not None:
            bucket_store = store.with_options(_WHOLE_BUCKETS)
            return TaskWork(compaction_job.compact_together(bucket_store, buckets, full=True, commit_id=self.commit_id))
        numbers = {bucket for _, bucket in buckets}
        with compaction_job.CompactionJob(store, commit_id=self.commit_id, buckets=numbers) as job:
            for partition, bucket in buckets:
                bucket_filter = EntryFilter(partitions={partition}, buckets={bucket})
                entries = store.live_entries(store.snapshots.latest(), bucket_filter).entries()
                job.rewrite(partition, bucket, self._storing(store, entries))
            return TaskWork(job.prepare_commit())

    def _storing(self, store: FileStore, entries: Sequence[ManifestEntry]) -> set[str]:
        predicate = TRUE if self.row_filter is None else self.row_filter
        return stored_rows.files_storing(store, entries, predicate, threads=store.file_io.max_concurrency)


class ForgetHistory(Operation[TableChangeResult]):
    """Expire all snapshots and changelogs but a new one without deleted files.

    Snapshots that a consumer has yet to read stay.
    """

    stage: ClassVar[str | None] = "expire"
    commit_id: CommitId
    properties: CommitProperties = Field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Id of its commit."""
        return self.commit_id

    def run(self, table: OpenTable) -> TableChangeResult:
        """Commit the snapshot, then expire."""
        store = table.writable()
        commit = file_store_commit.FileStoreCommit(store, self.commit_id, fresh=True)
        committed = commit.forget_deleted(properties=commit_properties("purge", {}, self.properties))
        if committed is None:
            return TableChangeResult()
        alone = store.with_options(_NO_HISTORY)
        expired = snapshots.expire_snapshots(alone, retain_min=1, retain_max=1, older_than_ms=time.time_ns() // 1_000_000 + 1)
        waiting = store.snapshots.next_for_consumers()
        with history_change.lock_history(store, "the purge of changelogs"):
            ended = store.snapshots.kept.forget_unless(lambda changelog: waiting is not None and changelog.id >= waiting)
        data, manifests = delete_files.remove_unreachable(alone, (), ended) if ended else (0, 0)
        return TableChangeResult(
            snapshot_id=committed,
            snapshots=expired.snapshots,
            data_files=expired.data_files + data,
            manifests=expired.manifests + manifests,
        )


class FindHolders(Question[tuple[Holder, ...]]):
    """What keeps files that store matching rows."""

    predicate: BoundFilter | None

    def answer(self, table: OpenTable) -> tuple[Holder, ...]:
        """Search the files of all snapshots, tags, branches and changelogs."""
        store = table.without_cache()
        predicate = TRUE if self.predicate is None else self.predicate

        def find(held_store: FileStore, entries: Sequence[ManifestEntry]) -> set[str]:
            if any(held_store.schema.column_types.get(name) != store.schema.column_types[name] for name in columns_of(predicate)):
                return {entry.file.file_name for entry in entries}  # a branch without such columns cannot be searched
            return stored_rows.files_storing(held_store, entries, predicate, threads=table.threads)

        all_holders = [Holder(kind=holder.kind, name=holder.name, files=holder.files) for holder in holders.holders_of(store, find)]
        loose = orphans.list_orphans(store, time.time_ns() // 1_000_000 + 60_000)
        if loose:
            all_holders.append(Holder(kind="unreferenced", name="files of running or killed writes", files=len(loose)))
        if copies := _count_files(store.file_io, store.paths.repairs):
            all_holders.append(Holder(kind="copies", name="_repair", files=copies))
        return tuple(all_holders)


def _count_files(file_io: FileIO, directory: str) -> int:
    listed = list(file_io.list(directory))
    nested_files = sum(_count_files(file_io, f"{directory}/{status.name}") for status in listed if status.is_dir)
    return nested_files + sum(not status.is_dir for status in listed)


def purge_files(engine: Engine, schema: TableSchema, request: DeleteRequest, count: Callable[[], int], *, dry_run: bool) -> PurgeResult:
    """Delete branches, tags and consumers, then all rows with their files and history.

    ``count``: as for ``purge_table``.
    """
    engine.ask(CheckPurge())  # before anything is lost
    views = {} if dry_run else {view: engine.ask(ListHistory(view=view)) for view in ("branches", "tags", "consumers")}
    for name in views["branches"]["branch_name"].to_pylist() if views else ():
        engine.run(DeleteBranch(name=name))
    for name in views["tags"]["tag_name"].to_pylist() if views else ():
        engine.run(DeleteTag(name=name))
    if views and views["consumers"].num_rows:
        engine.run(ClearConsumers())
    return purge_table(engine, schema, request, count, dry_run=dry_run)


def purge_table(
    engine: Engine, schema: TableSchema, request: DeleteRequest, count: Callable[[], int], *, dry_run: bool = False
) -> PurgeResult:
    """Delete rows, rewrite the files that store them, and end the history that holds them.

    ``count``: counts the rows that a delete would find.
    """
    start = time.perf_counter()
    engine.ask(CheckPurge())
    if dry_run:
        current_holders = engine.ask(FindHolders(predicate=request.predicate))
        return PurgeResult(rows=count(), holders=current_holders, dry_run=True, seconds=time.perf_counter() - start)
    rows = files = expired = 0
    snapshot_id: int | None = None
    remaining_holders: tuple[Holder, ...] = ()
    for number in range(1, _ROUNDS + 1):  # other commits may write such rows meanwhile
        name = f"{request.commit_id}-{number}"
        if schema.bucket_mode is BucketMode.POSTPONE_MODE:
            engine.run(MovePostponed(commit_id=f"{name}-move"))
        rows += engine.run(DeleteRows(request=request.model_copy(update={"commit_id": f"{name}-delete"}))).rows
        if schema.bucket_mode is BucketMode.POSTPONE_MODE:
            engine.run(MovePostponed(commit_id=f"{name}-deletes"))
        with _report_deleted(engine.path, rows):
            files += engine.run(RewriteStored(commit_id=f"{name}-rewrite", row_filter=request.predicate)).files_before
            ended = engine.run(ForgetHistory(commit_id=f"{name}-end", properties=request.properties))
        snapshot_id, expired = ended.snapshot_id, expired + ended.snapshots
        engine.run(RemoveOrphans(older_than_ms=cutoff_of(None)))
        remaining_holders = engine.ask(FindHolders(predicate=request.predicate))
        if not any(
            holder.kind == "snapshot" and snapshot_id is not None and int(holder.name) >= snapshot_id for holder in remaining_holders
        ):
            break
    seconds = time.perf_counter() - start
    return PurgeResult(rows=rows, files=files, snapshots=expired, snapshot_id=snapshot_id, holders=remaining_holders, seconds=seconds)


@contextmanager
def _report_deleted(table: str, rows: int) -> Iterator[None]:
    """Add to ``HistoryBusy`` what the purge has done before."""
    try:
        yield
    except HistoryBusy as error:
        raise HistoryBusy(
            f"{table}: the purge has deleted {count_text(rows, 'row')}, but older snapshots still store them: {error}. Call purge again to finish it"
        ) from error
