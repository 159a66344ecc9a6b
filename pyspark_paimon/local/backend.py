"""The in-process engine: Arrow in, Arrow out, threads over buckets and splits; neither Spark nor a JVM."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from manifest.entry.cache import EntryCache, nothing_held
from manifest.io.file_io import FileIO
from manifest.io.paths import MAIN_BRANCH, TablePaths, split_branch
from manifest.options.support import check_readable
from manifest.schema.manager import SchemaManager
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.manager import SnapshotManager
from manifest.snapshot.snapshot import Snapshot
from manifest.snapshot.snapshot_commit import SnapshotCommit
from manifest.stats.table_stats import Statistics
from manifest.storage.resolve import file_io_for
from manifest.store import FileStore
from pyspark_paimon.request.backend import (
    CompactRequest,
    DeleteRequest,
    ExpireRequest,
    FsckRequest,
    IndexView,
    OrphanFile,
    Progress,
    Rows,
    ScanRequest,
    TravelRequest,
    View,
    WriteRequest,
)
from pyspark_paimon.request.counters import ScanTally
from pyspark_paimon.request.partition_spec import Spec
from pyspark_paimon.request.results import (
    AnalyzeResult,
    CompactResult,
    ExpireResult,
    FunnelStage,
    IndexRewriteResult,
    MergeResult,
    WriteResult,
)
from pyspark_paimon.request.state_results import FsckResult, TableChangeResult
from pyspark_paimon.scheduling.thread_pool import AHEAD_BYTES

if TYPE_CHECKING:
    from lsm.aggregate.summary import RowSummary
    from lsm.read.metrics import ReadReport
    from lsm.scan.plan import ScanPlan
    from lsm.scan.splits import DataSplit
    from pyspark_paimon.request.assignments import Assignments
    from pyspark_paimon.request.merge import MergeRequest
    from pyspark_paimon.request.table_changes import TableChange
    from pyspark_paimon.request.tree_report import TreeReport


class LocalBackend:
    """A table whose files this process reads and writes itself; cheap to make, safe to use from several threads.

    ``threads`` bounds the buckets and splits in work at once (default: the processors, at most 8); ``progress`` is told of
    long operations. ``file_io`` stands in for the path's own storage, ``storage_options`` say how that is reached; ``commits`` makes
    snapshots in the place of the file system.
    """

    reads_files: ClassVar[bool] = True
    """Whether its rows are those of data files, so that others may read these instead."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        progress: Progress | None = None,
        threads: int | None = None,
        file_io: FileIO | None = None,
        storage_options: Mapping[str, Any] | None = None,
        commits: SnapshotCommit | None = None,
    ) -> None:
        self._file_io, self._root = file_io_for(path, file_io, storage_options)
        self._commits = commits
        self._progress = progress
        self._manifests = EntryCache()
        self._threads = threads or min(max(os.cpu_count() or 1, self._file_io.lanes), 8)
        self._readers = max(self._threads, self._file_io.lanes)

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs; what is held of the table's metadata, and who watches, stay here."""
        return {**self.__dict__, "_manifests": None, "_progress": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._manifests = EntryCache()

    @property
    def path(self) -> str:
        """The table's absolute path."""
        return self._root

    @property
    def file_io(self) -> FileIO:
        """The storage."""
        return self._file_io

    @property
    def spark(self) -> None:
        """No session."""
        return

    def exists(self) -> bool:
        """Whether there is such a table or branch."""
        try:
            root, branch = split_branch(self._root)
        except InvalidArgument:
            return False
        return bool(SchemaManager(self._file_io, root, branch).ids())

    def store(self, options: Mapping[str, str] | None = None, schema_id: int | None = None) -> FileStore:
        """The table opened now: by its newest schema, or that of ``schema_id``, with options of one job. Raises ``TableNotFound``."""
        pinned = None if schema_id is None else self._manifests.schemas.get(schema_id)
        if pinned is not None:  # seen before, and versions do not change
            root, branch = split_branch(self._root)
            store = FileStore(self._file_io, root, pinned, self._manifests, branch, self._commits)
        else:
            store = FileStore.open(self._root, self._file_io, cache=self._manifests, commits=self._commits)
            if schema_id is not None and schema_id != store.schema.id:
                store = store.with_schema(store.schemas.get(schema_id))
        return store.with_options(options) if options else store

    def create(self, schema: TableSchema) -> TableSchema:
        """Create the table: schema-0, put if absent."""
        root, branch = split_branch(self._root)
        if branch != MAIN_BRANCH:
            raise InvalidArgument(f"{self._root}: a branch is made of a table: Table.open({root!r}).create_branch({branch!r})")
        return SchemaManager(self._file_io, root).create(schema)

    def schema(self, schema_id: int | None = None) -> TableSchema:
        """The newest schema, or that of an id."""
        if schema_id is None and not self._manifests.newest:  # opened now: a scan is likely to follow
            store, _ = self._file_io.together(self.store, self._snapshots().guess)
            opened: FileStore = store
            return opened.schema
        return self.store(schema_id=schema_id).schema

    def stored_schema(self, schema_id: int | None = None) -> TableSchema:
        """The schema whose keys order the files of a plan."""
        return self.schema(schema_id)

    def change(self, change: TableChange) -> TableChangeResult:
        """Change the schema or the history."""
        from pyspark_paimon.request.table_changes import change_table  # noqa: PLC0415  # see test_imports

        return change_table(self.store(), change)

    def view(self, view: View) -> pa.Table:
        """Tags, branches, schemas, partitions or consumers."""
        from pyspark_paimon.views.history_views import history_view  # noqa: PLC0415  # see test_imports

        return history_view(self.store(), view)

    def pin(self, travel: TravelRequest) -> Snapshot | None:
        """The snapshot asked for; None if the newest is asked for and there is none."""
        return _travel(self.store(), travel)

    def start(self, travel: TravelRequest) -> tuple[Snapshot | None, TableSchema]:
        """The snapshot asked for and the schema to read it by: the newest, or the snapshot's own when travelling."""
        if travel == TravelRequest():
            snapshots = self._snapshots()
            store, snapshot = self._file_io.together(self.store, snapshots.latest)
            if snapshot is not None:
                self._manifests.pinned.clear()
                self._manifests.pinned[snapshot.id] = snapshot
        else:
            store = self.store()
            snapshot = _travel(store, travel)
        if snapshot is None or snapshot.schema_id == store.schema.id:
            return snapshot, store.schema
        if travel == TravelRequest():  # the schema may have changed between the two looks
            return snapshot, self.schema() if snapshot.schema_id > store.schema.id else store.schema
        return snapshot, store.schemas.get(snapshot.schema_id)

    def snapshots(self) -> list[Snapshot]:
        """Every retained snapshot, oldest first."""
        return list(self.store().snapshots.backwards())[::-1]

    def statistics(self, snapshot_id: int | None) -> Statistics | None:
        """The statistics that a snapshot carries."""
        store = self.store()
        from lsm.scan.table_statistics import statistics_of  # noqa: PLC0415  # see test_imports

        return None if snapshot_id is None else statistics_of(store, store.snapshots.readable(snapshot_id))

    def analyze(self, commit_id: str, columns: Sequence[str]) -> AnalyzeResult:
        """Count the rows and these columns of the newest snapshot, and commit the statistics."""
        from pyspark_paimon.views.statistics_view import analyze_table  # noqa: PLC0415  # see test_imports

        return analyze_table(self.store(), commit_id, columns, partial(self.read, stage="analyze"))

    def files(self, snapshot_id: int | None) -> pa.Table:
        """Live data files of a snapshot."""
        store = self.store()
        from pyspark_paimon.views.table_views import files_table  # noqa: PLC0415  # see test_imports

        return files_table(store.live_entries(self._snapshot(store, snapshot_id)).entries(), store.schema)

    def index_view(self, view: IndexView, snapshot_id: int | None) -> pa.Table:
        """File indexes of a snapshot, or their health."""
        store = self.store()
        from pyspark_paimon.views.index_views import index_view  # noqa: PLC0415  # see test_imports

        return index_view(store, view, self._snapshot(store, snapshot_id), self._threads)

    def plan(self, request: ScanRequest) -> ScanPlan:
        """Splits and the funnel's report."""
        return self._plan(self._readable(request), request)

    def tree(self, request: ScanRequest) -> TreeReport:
        """What the tree looks like, what the filter keeps, and how it came about."""
        from pyspark_paimon.tree.assemble import tree_report  # noqa: PLC0415  # only reports need it

        store = self._readable(request)
        return tree_report(store, request, self._snapshot(store, request.snapshot_id), self._plan(store, request), self._threads)

    def read(
        self, request: ScanRequest, *, keeps_all: bool = False, tally: ScanTally | None = None, stage: str = "scan"
    ) -> Iterator[pa.RecordBatch]:
        """The rows, a batch at a time, splits in the plan's order; ``stage`` says whose progress it is."""
        start = time.perf_counter()
        store = self._readable(request)
        ahead = sys.maxsize if keeps_all else AHEAD_BYTES
        plan = self._plan(store, request)
        if tally is None:
            return self._rows(store, request, plan, None, ahead=ahead, stage=stage)
        from lsm.read.metrics import ReadReport  # noqa: PLC0415  # see test_imports

        report, millis = ReadReport(), (time.perf_counter() - start) * 1000
        return tally.watched(self._rows(store, request, plan, report, ahead=ahead, stage=stage), plan, report, millis)

    def _rows(
        self, store: FileStore, request: ScanRequest, plan: ScanPlan, report: ReadReport | None, *, ahead: int, stage: str
    ) -> Iterator[pa.RecordBatch]:
        from pyspark_paimon.jobs.progress_steps import reading  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.local.read import plan_rows  # noqa: PLC0415  # see test_imports

        with reading(store, plan, self._progress, stage) as seen:
            yield from plan_rows(seen, request, plan, self._readers, report, ahead=ahead)

    def read_split(self, request: ScanRequest, split: DataSplit | str, report: ReadReport | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of one split of the request's plan, in no order; the limit bounds each split's rows."""
        store = self._readable(request)
        from pyspark_paimon.local.read import split_rows  # noqa: PLC0415  # see test_imports

        return split_rows(store, request, split, report)

    def read_stages(self, request: ScanRequest) -> Sequence[FunnelStage]:
        """Read the rows and tell what indexes, row groups and the exact filter kept and dropped."""
        from pyspark_paimon.local.read import read_counted  # noqa: PLC0415  # see test_imports

        store = self._readable(request)
        return read_counted(store, request, self._plan(store, request), self._readers)

    def readers(self, request: ScanRequest, plan: ScanPlan) -> str:  # noqa: ARG002  # one answer for all
        """Nobody else."""
        return ""

    def count(self, request: ScanRequest) -> int:
        """Number of rows; files answer by metadata or exact indexes where they can, an analyzed snapshot by its statistics."""
        store = self._readable(request)
        analyzed = self.analyzed_count(request)
        if analyzed is not None:
            return analyzed
        from pyspark_paimon.local.read import rows_in  # noqa: PLC0415  # see test_imports

        return rows_in(self._summarised(store, request), request.limit)

    def aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary]:
        """What the rows come to, by partition; files are read where metadata and indexes do not tell."""
        return self._summarised(self._readable(request), request)

    def _summarised(self, store: FileStore, request: ScanRequest) -> dict[bytes, RowSummary]:
        plan = self._plan(store, request)
        from pyspark_paimon.jobs.progress_steps import reading  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.local.read import summarise  # noqa: PLC0415  # see test_imports

        with reading(store, plan, self._progress, "scan") as seen:
            return summarise(seen, request, plan, self._readers)

    def cheap_aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary] | None:
        """The same if metadata, indexes and footers of few files tell it."""
        store = self._readable(request)
        from pyspark_paimon.local.read import summarise_cheaply  # noqa: PLC0415  # see test_imports

        return summarise_cheaply(store, request, self._plan(store, request))

    def aggregate_split(self, request: ScanRequest, split: str) -> dict[bytes, RowSummary]:
        """What the rows of one split of the request's plan come to."""
        from pyspark_paimon.local.read import summarise_split  # noqa: PLC0415  # see test_imports

        return summarise_split(self._readable(request), request, split)

    def cheap_count(self, request: ScanRequest) -> int | None:
        """Number of rows if statistics, metadata and the exact indexes of few files tell it; no data file is opened."""
        analyzed = self.analyzed_count(request)
        if analyzed is not None:
            return analyzed
        found = self.cheap_aggregate(request)
        from pyspark_paimon.local.read import rows_in  # noqa: PLC0415  # see test_imports

        return None if found is None else rows_in(found, request.limit)

    def analyzed_count(self, request: ScanRequest) -> int | None:
        """Number of rows if the snapshot has statistics of its own that tell it."""
        if request.predicate is not None or request.incremental is not None or request.options or request.read_optimized:
            return None
        store = self.store()
        from lsm.scan.table_statistics import counted_rows  # noqa: PLC0415  # see test_imports

        rows = counted_rows(store, self._snapshot(store, request.snapshot_id))
        return rows if rows is None or request.limit is None else min(rows, request.limit)

    def frame(self, request: ScanRequest, spark: Any, *, native: bool = False) -> Any:
        """The scan as a DataFrame of ``spark``, whose server must see the same path."""
        if spark is None:
            raise InvalidArgument("the table was opened in process; give a session: scan.to_spark(spark)")
        from pyspark_paimon.spark.client.backend import SparkBackend  # noqa: PLC0415  # a session is at hand, so pyspark is

        return SparkBackend(self._root, spark).frame(request, spark, native=native)

    def write(self, request: WriteRequest, rows: Rows) -> WriteResult:
        """Write and commit; on any error nothing is visible."""
        store = self.store(request.options, request.schema_id)
        from pyspark_paimon.local.write_compact import write_rows  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.request.inputs import collected  # noqa: PLC0415  # see test_imports

        return write_rows(store, request, collected(rows), threads=self._threads, progress=self._progress)

    def delete(self, request: DeleteRequest) -> WriteResult:
        """Delete by filter; evaluated again if a touched bucket changed meanwhile."""
        from pyspark_paimon.local.update_delete import delete_rows  # noqa: PLC0415  # see test_imports

        return delete_rows(self.store(request.options), request, self.read, threads=self._threads, progress=self._progress)

    def update(self, request: DeleteRequest, values: Assignments) -> WriteResult:
        """Update by filter; evaluated again if a touched bucket changed meanwhile."""
        from pyspark_paimon.local.update_delete import update_rows  # noqa: PLC0415  # see test_imports

        store = self.store(request.options)
        return update_rows(store, request, values, self.read, threads=self._threads, progress=self._progress)

    def merge(self, request: DeleteRequest, wanted: MergeRequest) -> MergeResult:
        """Merge rows of a source; evaluated again if a touched bucket changed meanwhile."""
        from pyspark_paimon.local.merge import merge_rows  # noqa: PLC0415  # see test_imports

        store = self.store(request.options)
        return merge_rows(store, request, wanted, self.read, threads=self._threads, progress=self._progress)

    def compact(self, request: CompactRequest) -> CompactResult:
        """Compact; a lost race is tried again on the new snapshot."""
        from pyspark_paimon.local.write_compact import compact_table  # noqa: PLC0415  # see test_imports

        return compact_table(self.store(request.options), request, threads=self._threads, progress=self._progress)

    def rewrite_file_index(self, commit_id: str, partitions: Sequence[Spec] | None) -> IndexRewriteResult:
        """Give files that exist the indexes that the table's options ask for, a thread each."""
        from pyspark_paimon.jobs.index_rewrite import rewrite_indexes  # noqa: PLC0415  # see test_imports

        return rewrite_indexes(self.store(), commit_id, partitions, threads=self._threads, progress=self._progress)

    def expire(self, request: ExpireRequest) -> ExpireResult:
        """Expire snapshots and delete what only they reach, or tell what would go."""
        from pyspark_paimon.jobs.expire import expire  # noqa: PLC0415  # see test_imports

        return expire(self.store(), request, self._progress)

    def fsck(self, request: FsckRequest) -> FsckResult:
        """Check metadata and files, a thread each; changes nothing."""
        from pyspark_paimon.jobs.fsck import check_table  # noqa: PLC0415  # see test_imports

        store = FileStore.open(self._root, self._file_io, cache=nothing_held())  # what counts is on storage
        return check_table(store, request, threads=self._readers, progress=self._progress)

    def orphans(self, older_than_ms: int, *, remove: bool) -> list[OrphanFile]:
        """Files that nothing refers to; deleted if ``remove``."""
        from pyspark_paimon.jobs.expire import orphans  # noqa: PLC0415  # see test_imports

        return orphans(self.store(), older_than_ms, self._progress, remove=remove)

    def _snapshots(self) -> SnapshotManager:
        """Those of the table, whatever its schema."""
        root, branch = split_branch(self._root)
        return SnapshotManager(self._file_io, TablePaths(root, branch=branch), self._manifests.newest, self._commits)

    def _readable(self, request: ScanRequest) -> FileStore:
        store = self.store(request.options, request.schema_id)
        check_readable(store.options, has_primary_key=store.schema.is_primary_key_table, table=self._root)
        return store

    def _snapshot(self, store: FileStore, snapshot_id: int | None) -> Snapshot | None:
        return None if snapshot_id is None else store.snapshots.readable(snapshot_id)

    def _plan(self, store: FileStore, request: ScanRequest) -> ScanPlan:
        from pyspark_paimon.local.plan import plan_request  # noqa: PLC0415  # see test_imports

        pinned = None if request.snapshot_id is None else self._manifests.pinned.get(request.snapshot_id)
        return plan_request(store, request, pinned)


def _travel(store: FileStore, travel: TravelRequest) -> Snapshot | None:
    return store.snapshots.travel(snapshot_id=travel.snapshot_id, tag=travel.tag, timestamp_millis=travel.timestamp_millis)


__all__ = ["LocalBackend"]
