"""The in-process engine: Arrow in, Arrow out, threads over buckets and splits; neither Spark nor a JVM."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from fileindex.base.errors import InvalidArgument
from manifest.entry.cache import EntryCache, nothing_held
from manifest.io.file_io import FileIO
from manifest.io.paths import MAIN_BRANCH, TablePaths, split_branch
from manifest.schema.manager import SchemaManager
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.manager import SnapshotManager
from manifest.snapshot.snapshot import Snapshot
from manifest.snapshot.snapshot_commit import SnapshotCommit
from manifest.storage.resolve import file_io_for
from manifest.store import FileStore
from pyspark_paimon.local.reads import LocalReads
from pyspark_paimon.request.backend import (
    Progress,
    Rows,
    ScanRequest,
    TravelRequest,
    WriteRequest,
)
from pyspark_paimon.request.executor import RowWriter
from pyspark_paimon.request.results import (
    WriteResult,
)

if TYPE_CHECKING:
    from pyspark_paimon.request.operation import Operation, Question, TaskOperation

A = TypeVar("A")


class LocalBackend(LocalReads):
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
    def threads(self) -> int:
        """Number of buckets or files worked on in parallel."""
        return self._threads

    @property
    def progress(self) -> Progress | None:
        """Callback for long operations."""
        return self._progress

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

    def writable(self, options: Mapping[str, str] | None = None, schema_id: int | None = None) -> FileStore:
        """Open the table to change its rows. Raises ``UnsupportedTable`` where its options forbid that."""
        store = self.store(options, schema_id)
        store.check_writable()
        return store

    def uncached(self) -> FileStore:
        """Open the table without what is held of it: a check reads what is on storage."""
        return FileStore.open(self._root, self._file_io, cache=nothing_held())

    def run(self, operation: Operation[A]) -> A:
        """Run an operation in this process."""
        return operation.run(self)

    def run_tasks(self, operation: TaskOperation[A]) -> A:
        """Run the tasks of an operation in threads."""
        from pyspark_paimon.local.tasks import run_tasks  # noqa: PLC0415  # see test_imports

        return run_tasks(operation, self.store(operation.options), threads=self._threads, progress=self._progress)

    def ask(self, question: Question[A]) -> A:
        """Return the answer to a question."""
        return question.answer(self)

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

    def frame(self, request: ScanRequest, spark: Any, *, native: bool = False) -> Any:
        """The scan as a DataFrame of ``spark``, whose server must see the same path."""
        if spark is None:
            raise InvalidArgument("the table was opened in process; give a session: scan.to_spark(spark)")
        from pyspark_paimon.spark.client.backend import SparkBackend  # noqa: PLC0415  # a session is at hand, so pyspark is

        return SparkBackend(self._root, spark).frame(request, spark, native=native)

    def write(self, request: WriteRequest, rows: Rows) -> WriteResult:
        """Write and commit; on any error nothing is visible."""
        store = self.store(request.options, request.schema_id)
        from pyspark_paimon.local.open_write import write_rows  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.request.inputs import collected  # noqa: PLC0415  # see test_imports

        return write_rows(store, request, collected(rows), threads=self._threads, progress=self._progress)

    def writer(self, commit_id: str) -> RowWriter:
        """A writer of many commits."""
        from pyspark_paimon.local.row_writer import LocalWriter  # noqa: PLC0415  # see test_imports

        return LocalWriter(self.store, commit_id, threads=self._threads, progress=self._progress)

    def _snapshots(self) -> SnapshotManager:
        """Those of the table, whatever its schema."""
        root, branch = split_branch(self._root)
        return SnapshotManager(self._file_io, TablePaths(root, branch=branch), self._manifests.newest, self._commits)


def _travel(store: FileStore, travel: TravelRequest) -> Snapshot | None:
    if travel.compacted:
        from lsm.scan.compacted import compacted_snapshot  # noqa: PLC0415  # see test_imports

        return compacted_snapshot(store)
    return store.snapshots.travel(**travel.model_dump(exclude={"compacted"}))


__all__ = ["LocalBackend"]
