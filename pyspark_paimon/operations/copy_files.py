"""Copy of a table's files into a new table.

The schemas are copied first, then each data and index file, unchanged and under its name. One commit shows them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from fileindex.sorted_index.build_options import SortedIndexKind
from manifest.commit.index_change import IndexChange
from manifest.commit.index_update import index_path
from manifest.commit.message import CommitMessage
from manifest.entry.index_manifest import DELETION_VECTORS, HASH
from manifest.entry.live import EntryFilter
from manifest.io.checksum import with_checksum
from manifest.io.errors import SnapshotNotFound, TableExists, UnsupportedTable
from manifest.io.paths import TablePaths, split_branch
from manifest.snapshot.snapshot import EMPTY_TABLE, ReadState, SnapshotKey
from manifest.storage.resolve import file_io_for
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, InvalidArgument
from pyspark_paimon.jobs.task_operation import TaskOperation
from pyspark_paimon.operations.copy_history import BesideStorage, copy_file
from pyspark_paimon.operations.history.tags import CreateTag, DeleteTag
from pyspark_paimon.request.answers import SchemaJson
from pyspark_paimon.request.bound import BoundFilter
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.request.requests import TravelRequest
from pyspark_paimon.request.state import Pin
from pyspark_paimon.request.tasks import Task, TaskPlan, TaskRun, TaskWork, Worker
from pyspark_paimon.results.state_results import CopyResult

if TYPE_CHECKING:
    from fileindex.predicate.tree import Predicate
    from manifest.commit.conflicts import BucketId
    from manifest.commit.file_store_commit import FileStoreCommit
    from manifest.commit.message import CommitResult
    from manifest.entry.data_file import ManifestEntry
    from manifest.entry.index_manifest import IndexManifestEntry
    from manifest.io.file_io import FileIO
    from pyspark_paimon.request.engine import Engine

_COPIED = frozenset([DELETION_VECTORS, HASH, *SortedIndexKind])
"""Types of index files whose contents do not depend on the place of the table."""
_PIN_MILLIS = 86_400_000
"""A copy that was killed keeps its snapshot for a day."""
_PATH = "path"
_OTHER_BRANCHES = frozenset({"scan.fallback-branch", "scan.primary-branch"})


class CopySchemas(BesideStorage, Operation[SchemaJson]):
    """Create a table with all schemas of this one.

    ``target``: directory of the new table.
    """

    target: str

    def run(self, table: OpenTable) -> SchemaJson:
        """Write the schemas at once, and return the newest.

        A table that an interrupted copy left is used again. Raises ``TableExists`` for another one.
        """
        store = table.store()
        for option in _OTHER_BRANCHES.intersection(store.options.raw):
            raise UnsupportedTable(f"{store.root}: option '{option}' names a branch, which a copy does not have; write the rows instead")
        if store.options.data_evolution_enabled:
            raise UnsupportedTable(
                f"{store.root}: option 'data-evolution.enabled': columns in newer files win by their sequence numbers, and those start again "
                "in a copy, so later changes would be lost; write the rows instead"
            )
        file_io, root = file_io_for(self.target, self.beside)
        if split_branch(root)[0] != root:
            raise InvalidArgument(f"{root}: a copy is a table, not a branch of one; name another directory")
        paths, contents = TablePaths(root), dict[str, bytes]()
        for schema_id in reversed(store.schemas.ids()):  # a table written file by file is complete with its first schema
            schema = store.schemas.get(schema_id)
            plain = schema.model_copy(update={"options": {key: value for key, value in schema.options.items() if key != _PATH}})
            path = paths.schema_file(schema_id)
            contents[path] = with_checksum(path, plain.to_json())
        try:
            file_io.publish_directory(root, contents)
        except FileExistsError:
            if not _is_only_schemas(file_io, paths, contents):
                raise TableExists(
                    f"{root}: a table, an interrupted copy or something else is here already; nothing was copied. Name another place, or "
                    "delete what is there first"
                ) from None
        return store.schema


def _is_only_schemas(file_io: FileIO, paths: TablePaths, contents: dict[str, bytes]) -> bool:
    """Return whether a failed copy left its schemas and nothing else."""
    # Files are created exclusively, so of two copies at once at least one fails.
    return set(_files_below(file_io, paths.root)) == contents.keys() and all(file_io.read(path) == text for path, text in contents.items())


def _files_below(file_io: FileIO, directory: str) -> Iterator[str]:
    for status in file_io.list(directory):
        path = f"{directory}/{status.name}"
        if status.is_dir:
            yield from _files_below(file_io, path)
        else:
            yield path


class CopyFiles(BesideStorage, TaskOperation[CopyResult]):
    """Copy the files of a tagged snapshot into this table.

    ``source``: path of the other table. ``tag``: tag of the snapshot. ``predicate``: filter on partition columns. None: all.
    """

    stage: ClassVar[str] = "copy"
    unit: ClassVar[str] = "files"

    source: str
    tag: str
    predicate: BoundFilter | None = None

    def plan(self, store: FileStore) -> TaskPlan:
        """List data files, the largest first, and buckets with index files.

        Raises ``TableExists`` if this table has rows.
        """
        store.check_writable()
        if store.snapshots.latest() is not None:
            raise TableExists(f"{store.root}: other commits wrote rows into the copy; nothing was copied into it")
        entries, indexed = self._files_of(self._source())
        files = (Task(e.partition.hex(), e.bucket, e.file.file_size, e.file.file_name) for e in entries)
        sizes: Counter[BucketId] = Counter()
        for index in indexed:
            sizes[index.partition, index.bucket] += index.file_size
        indexes = (Task(partition.hex(), bucket, size) for (partition, bucket), size in sizes.items())
        return TaskPlan(base=EMPTY_TABLE, tasks=tuple(sorted([*files, *indexes], key=lambda task: (-task.size, task))))

    def prepare(self, store: FileStore, base: SnapshotKey, tasks: Sequence[Task], threads: int) -> Worker:
        """Find the files, and return the worker that copies them."""
        del base, tasks, threads
        source = self._source()
        listed, indexed = self._files_of(source)
        entries = {(e.partition, e.bucket, e.file.file_name): e for e in listed}
        totals = {(e.partition, e.bucket): e.total_buckets for e in entries.values()}
        indexes: dict[BucketId, list[IndexManifestEntry]] = {}
        for index in indexed:
            indexes.setdefault((index.partition, index.bucket), []).append(index)

        def copied(target: FileStore, group: Sequence[Task]) -> TaskWork:
            work = TaskWork()
            for task in group:
                if task.file:
                    entry = entries[*task.bucket_id, task.file]
                    work.add(TaskWork([_copy_data(source, target, entry)], Counter(files=1, rows=entry.file.row_count, bytes=task.size)))
                else:
                    total = totals.get(task.bucket_id, max(store.options.bucket, 1))
                    work.add(TaskWork([_copy_indexes(source, target, task, total, indexes[task.bucket_id])], Counter(bytes=task.size)))
            return work

        return copied

    def commit(
        self,
        commit: FileStoreCommit,
        base: SnapshotKey,
        messages: Sequence[CommitMessage],
        properties: dict[str, str],
    ) -> CommitResult:
        """Commit all files. It is a conflict if the table has rows meanwhile."""
        return commit.commit(messages, properties=properties, read=ReadState(base, whole_table=True))

    def result(self, run: TaskRun) -> CopyResult:
        """Return the counts of the commit."""
        return CopyResult(
            files=run.total("files"), rows=run.total("rows"), bytes=run.total("bytes"), snapshot_id=run.snapshot_id, seconds=run.seconds
        )

    def _source(self) -> FileStore:
        return FileStore.open(self.source, self.beside)

    def _files_of(self, source: FileStore) -> tuple[list[ManifestEntry], list[IndexManifestEntry]]:
        """Return the data files to copy, and the index files of their partitions."""
        snapshot = source.snapshots.tag(self.tag)
        entries = list(source.live_entries(snapshot, EntryFilter(predicate=self.predicate)).entries())
        partitions = {entry.partition for entry in entries}
        indexes = [index for index in source.index_entries(snapshot) if index.partition in partitions]
        for index in indexes:
            if index.index_type not in _COPIED:
                raise UnsupportedTable(f"{source.root}: index file {index.file_name} of type {index.index_type} cannot be copied")
        return entries, indexes


def _copy_data(source: FileStore, target: FileStore, entry: ManifestEntry) -> CommitMessage:
    file = entry.file.model_copy(update={"external_path": None})
    paths = zip(
        source.physical_files(entry.partition, entry.bucket, entry.file),
        target.physical_files(entry.partition, entry.bucket, file),
        strict=True,
    )
    for number, (old, new) in enumerate(paths):
        _copy(source.file_io, old, target.file_io, new, entry.file.file_size if number == 0 else None)
    return CommitMessage(partition=entry.partition, bucket=entry.bucket, total_buckets=entry.total_buckets, new_files=(file,))


def _copy_indexes(source: FileStore, target: FileStore, task: Task, total: int, entries: Sequence[IndexManifestEntry]) -> CommitMessage:
    files: dict[str, list[IndexManifestEntry]] = {}
    for entry in entries:
        moved = entry.file.model_copy(update={"external_path": None})
        _copy(
            source.file_io,
            index_path(source, task.bucket_id, entry.file),
            target.file_io,
            index_path(target, task.bucket_id, moved),
            entry.file_size,
        )
        files.setdefault(entry.index_type, []).append(entry)
    changes = tuple(
        IndexChange.model_validate({"kind": kind, "new": tuple(e.file.model_copy(update={"external_path": None}) for e in index_entries)})
        for kind, index_entries in files.items()
    )
    partition, bucket = task.bucket_id
    return CommitMessage(partition=partition, bucket=bucket, total_buckets=total, index_changes=changes)


def _copy(source: FileIO, path: str, target: FileIO, new: str, size: int | None) -> None:
    try:
        copy_file(source, path, target, new, size)
    except FileNotFoundError as error:
        raise CorruptFile(path, "is missing, but the snapshot that is copied needs it; nothing was committed") from error


def copy_table(
    source: Engine, target: Engine, predicate: Predicate | None, commit_id: str, storages: tuple[FileIO | None, FileIO | None]
) -> CopyResult:
    """Copy a table into a new one.

    A temporary tag keeps the snapshot meanwhile. ``storages``: of source and target, where this process reaches them.
    """
    source.run(CopySchemas(target=target.path).with_storage(storages[1]))
    if source.ask(Pin(travel=TravelRequest())) is None:
        return CopyResult()
    pin = f"copy-{commit_id}"
    source.run(CreateTag(name=pin, retained_ms=_PIN_MILLIS))
    try:
        return target.run(CopyFiles(commit_id=commit_id, source=source.path, tag=pin, predicate=predicate).with_storage(storages[0]))
    finally:
        with suppress(SnapshotNotFound):  # a concurrent rollback deletes the tag, too
            source.run(DeleteTag(name=pin))
