"""In-process engine with Arrow input and output.

Threads work on buckets and splits. It needs neither Spark nor a JVM.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from manifest.entry.cache import EntryCache, nothing_held
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO
from manifest.io.paths import MAIN_BRANCH, TablePaths, split_branch
from manifest.schema.manager import SchemaManager
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.manager import SnapshotManager
from manifest.snapshot.snapshot import Snapshot, SnapshotCommit
from manifest.storage.resolve import file_io_for
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument
from pyspark_paimon.local.reads import LocalReads
from pyspark_paimon.request.engine import RowWriter
from pyspark_paimon.request.requests import (
    Progress,
    Rows,
    ScanRequest,
    TravelRequest,
    WriteRequest,
)
from pyspark_paimon.results.results import (
    WriteResult,
)

if TYPE_CHECKING:
    from pyspark_paimon.request.operation import Operation, Question

A = TypeVar("A")


class LocalEngine(LocalReads):
    """A table whose files this process reads and writes.

    Cheap to create and safe to use from several threads.
    ``threads``: maximum number of buckets and splits in parallel. None: number of processors, at most 8.
    ``progress``: callback for long operations.
    ``file_io``: replaces the storage of the path. ``storage_options``: settings of that storage.
    ``commits``: creates snapshots instead of the file system.
    """

    reads_files: ClassVar[bool] = True

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
        self._threads = threads or min(max(os.cpu_count() or 1, self._file_io.max_concurrency), 8)
        self._readers = max(self._threads, self._file_io.max_concurrency)

    def __getstate__(self) -> dict[str, Any]:
        """Return the pickled state.

        Cached metadata and the progress callback stay in this process.
        """
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
        """Return whether the table or branch exists."""
        try:
            root, branch = split_branch(self._root)
        except InvalidArgument:
            return False
        return bool(SchemaManager(self._file_io, root, branch).ids())

    def store(self, options: Mapping[str, str] | None = None, schema_id: int | None = None) -> FileStore:
        """Open the table with the newest schema, or ``schema_id``.

        ``options``: options of one job. Raises ``TableNotFound``.
        """
        pinned = None if schema_id is None else self._manifests.schemas.get(schema_id)
        if pinned is not None:  # schema versions are immutable
            root, branch = split_branch(self._root)
            store = FileStore(self._file_io, root, pinned, self._manifests, branch, self._commits)
        else:
            store = FileStore.open(self._root, self._file_io, cache=self._manifests, commits=self._commits)
            if schema_id is not None and schema_id != store.schema.id:
                store = store.with_schema(store.schemas.get(schema_id))
        return store.with_options(options) if options else store

    def writable(self, options: Mapping[str, str] | None = None, schema_id: int | None = None) -> FileStore:
        """Open the table to change its rows.

        Raises ``UnsupportedTable`` where the table's options forbid changes.
        """
        store = self.store(options, schema_id)
        store.check_writable()
        return store

    def without_cache(self) -> FileStore:
        """Open the table without cached metadata.

        A check must read the state on storage.
        """
        return FileStore.open(self._root, self._file_io, cache=nothing_held())

    def run(self, operation: Operation[A]) -> A:
        """Run an operation in this process."""
        return operation.run(self)

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
        """Return the newest schema, or that of an id."""
        if schema_id is None and not self._manifests.newest:  # just opened: a scan probably follows
            store, _ = self._file_io.run_parallel(self.store, self._snapshots().guess)
            opened: FileStore = store
            return opened.schema
        return self.store(schema_id=schema_id).schema

    def stored_schema(self, schema_id: int | None = None) -> TableSchema:
        """Return the schema whose keys order a plan's files."""
        return self.schema(schema_id)

    def pin(self, travel: TravelRequest) -> Snapshot | None:
        """Return the requested snapshot.

        None: the newest is requested and the table has no snapshot.
        """
        return _travel(self.store(), travel)

    def start(self, travel: TravelRequest) -> tuple[Snapshot | None, TableSchema]:
        """Return the requested snapshot and its schema for reading.

        This is the newest schema, or the snapshot's schema for time travel.
        """
        if travel == TravelRequest():
            snapshots = self._snapshots()
            store, snapshot = self._file_io.run_parallel(self.store, snapshots.latest)
            if snapshot is not None:
                self._manifests.pinned.clear()
                self._manifests.pinned[snapshot.id] = snapshot
        else:
            store = self.store()
            snapshot = _travel(store, travel)
        if snapshot is None or snapshot.schema_id == store.schema.id:
            return snapshot, store.schema
        if travel == TravelRequest():  # the schema may have changed between the two reads
            return snapshot, self.schema() if snapshot.schema_id > store.schema.id else store.schema
        return snapshot, store.schemas.get(snapshot.schema_id)

    def frame(self, request: ScanRequest, spark: Any, *, native: bool = False) -> Any:
        """Return the scan as a DataFrame of ``spark``.

        The Spark server must see the same path.
        """
        return session_frame(self.location(spark), request, spark, native=native)

    def location(self, spark: Any) -> str:  # noqa: ARG002  # tables of a catalog need it
        """Return the text by which the server of ``spark`` opens the table."""
        return self._root

    def write(self, request: WriteRequest, rows: Rows) -> WriteResult:
        """Write and commit rows.

        On an error no row is visible.
        """
        from pyspark_paimon.local.open_write import write_rows  # noqa: PLC0415  # see test_imports

        return write_rows(self, request, rows)

    def writer(self, commit_id: str) -> RowWriter:
        """Return a writer for consecutive commits."""
        from pyspark_paimon.local.row_writer import LocalWriter  # noqa: PLC0415  # see test_imports

        return LocalWriter(self, commit_id)

    def server(self, cache_bytes: int) -> LocalEngine:
        """Return this table with a separate cache, for a serving handle."""
        served = copy(self)
        # Key pages are the most of what a lookup needs, so they may take nearly all.
        served.__dict__["_manifests"] = EntryCache(FileCache(cache_bytes, cache_bytes // 8 * 7))
        return served

    def _snapshots(self) -> SnapshotManager:
        root, branch = split_branch(self._root)
        return SnapshotManager(self._file_io, TablePaths(root, branch=branch), self._manifests.newest, self._commits)


def session_frame(path: str, request: ScanRequest, spark: Any, *, native: bool = False) -> Any:
    """Return the scan of a table opened in process as a DataFrame of ``spark``."""
    if spark is None:
        raise InvalidArgument("the table was opened in process; give a session: scan.to_spark(spark)")
    from pyspark_paimon.spark.client.engine import SparkEngine  # noqa: PLC0415  # the caller has a session: pyspark is loaded

    return SparkEngine(path, spark).frame(request, spark, native=native)


def _travel(store: FileStore, travel: TravelRequest) -> Snapshot | None:
    if travel.compacted:
        from lsm.scan.planner import compacted_snapshot  # noqa: PLC0415  # see test_imports

        return compacted_snapshot(store)
    return store.snapshots.travel(**travel.model_dump(exclude={"compacted"}))
