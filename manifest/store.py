"""A table on its storage, with access to its metadata."""

from __future__ import annotations

import itertools
import os
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from manifest.avro.codecs import codec_name
from manifest.entry.cache import EntryCache, list_weight
from manifest.entry.column_ranges import RangePolicy
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta
from manifest.entry.index_manifest import IndexManifest, IndexManifestEntry
from manifest.entry.live import EntryFilter, live
from manifest.entry.manifest_file import ManifestFile
from manifest.entry.manifest_list import ManifestFileMeta, ManifestList
from manifest.entry.manifest_merge import MergePolicy
from manifest.io.errors import KEEP_SNAPSHOTS, PathNotAllowed, SnapshotExpired, TableNotFound, UnsupportedTable
from manifest.io.file_io import FileIO
from manifest.io.paths import EXTERNAL_PATHS, MAIN_BRANCH, FileNames, TablePaths, local_form, refuse_system, split_branch, split_system
from manifest.io.progress import IGNORE_PROGRESS, ProgressListener
from manifest.options import support
from manifest.options.core_options import CoreOptions
from manifest.schema.manager import SchemaManager
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.manager import SnapshotManager
from manifest.snapshot.snapshot import Snapshot, SnapshotCommit
from manifest.stats.column_stats import PartitionType
from manifest.stats.table_stats import StatisticsFile
from manifest.storage.allowed_roots import GuardedFileIO
from manifest.storage.owned_paths import OwnedRoots, restrict_to_owned, without_owner
from manifest.storage.resolve import file_io_for
from manifest.types.data_type import DataField
from paimon_base.errors import CorruptFile, PaimonError, UnsupportedOption, did_you_mean
from paimon_base.lazy import cached_property

EVERYTHING = EntryFilter()
_INDEPENDENT_OF_STORAGE = ("options", "paths", "partition", "key")
"""Cached properties that do not depend on the storage. Parsing options takes longer than reading a small file."""
_ENTRY_BYTES, _VECTOR_BYTES = 1_500, 500
"""Approximate bytes in memory of an index manifest's entry, and of a deletion vector in it."""
_NAMED = 8
_LEVELS = 3


@dataclass(frozen=True)
class FileStore:
    """A table at ``root`` with one version of its schema.

    The schema includes the dynamic options of this job.
    """

    file_io: FileIO
    root: str
    schema: TableSchema
    cache: EntryCache = field(default_factory=EntryCache, repr=False, compare=False)
    branch: str = MAIN_BRANCH
    commits: SnapshotCommit | None = field(default=None, repr=False, compare=False)
    """Catalog that commits snapshots. None: the file system."""
    listener: ProgressListener = field(default=IGNORE_PROGRESS, repr=False, compare=False)
    """Listener of the data files read and written through this store."""
    pending: TableSchema | None = field(default=None, repr=False, compare=False)
    """Version of the schema that the commit of a write stores."""

    def __post_init__(self) -> None:
        roots = OwnedRoots(self.root, _directories_elsewhere(self.schema.core, self.root))
        object.__setattr__(self, "file_io", restrict_to_owned(self.file_io, roots))

    @property
    def storage(self) -> FileIO:
        """Storage of the table, for files of others."""
        return without_owner(self.file_io)

    @property
    def owned(self) -> OwnedRoots:
        """Directories in which the table writes and deletes."""
        assert isinstance(self.file_io, GuardedFileIO)
        assert isinstance(self.file_io.policy, OwnedRoots)
        return self.file_io.policy

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        file_io: FileIO | None = None,
        dynamic_options: Mapping[str, str] | None = None,
        *,
        cache: EntryCache | None = None,
        commits: SnapshotCommit | None = None,
    ) -> FileStore:
        """Open the table at ``path`` with its newest schema.

        ``<table>$branch_<name>`` is one of its branches. ``cache`` is shared with the caller. Raises ``TableNotFound``, ``CorruptFile``,
        ``UnsupportedOption``. Raises ``SystemTableReadOnly`` or ``UnknownSystemTable`` if the path is an existing table's path with the name of a
        system table.
        """
        storage, absolute = file_io_for(path, file_io)
        root, branch = split_branch(absolute)
        entry_cache = EntryCache() if cache is None else cache
        schema = SchemaManager(storage, root, branch, entry_cache.files, entry_cache.schemas).latest()
        if schema is None:
            if branch != MAIN_BRANCH and SchemaManager(storage, root).ids():
                raise TableNotFound(f"{root}: the table has no branch '{branch}'")
            named = split_system(absolute)
            if named is not None and SchemaManager(storage, *split_branch(named[0])).ids():
                refuse_system(*named)
            raise TableNotFound(f"{root}: no Paimon table is here ({describe_path(storage, root) or 'there is no schema file'})")
        store = cls(storage, root, schema, entry_cache, branch, commits)
        return store.with_options(dynamic_options) if dynamic_options else store

    def with_options(self, dynamic_options: Mapping[str, str]) -> FileStore:
        """Return the table with options for one job, never stored."""
        return self.with_schema(self.schema.model_copy(update={"options": {**self.schema.options, **dynamic_options}}))

    def with_schema(self, schema: TableSchema) -> FileStore:
        """Return the table with another schema version, for time travel."""
        return replace(self, schema=schema)

    def with_pending(self, schema: TableSchema) -> FileStore:
        """Return the table with a version of its schema that is not stored yet.

        Options of this job apply to it, too.
        """
        options = {**schema.options, **self.schema.options}
        # Caches know schemas by their ids, and another writer may store another schema with this one.
        return replace(self, schema=schema.model_copy(update={"options": options}), cache=EntryCache(), pending=schema)

    def __reduce__(self) -> tuple[Callable[..., FileStore], tuple[FileIO, str, TableSchema]]:
        return partial(FileStore, branch=self.branch, commits=self.commits), (self.file_io, self.root, self.schema)

    def through(self, file_io: FileIO) -> FileStore:
        """Return the table with another ``FileIO``, around its ``storage``.

        Parsed metadata is kept.
        """
        return self._replace(file_io=file_io)

    def with_listener(self, listener: ProgressListener) -> FileStore:
        """Return the table with a listener of data file access."""
        return self._replace(listener=listener)

    def _replace(self, **changes: Any) -> FileStore:
        copy = replace(self, **changes)
        for name in _INDEPENDENT_OF_STORAGE:
            copy.__dict__[name] = getattr(self, name)
        return copy

    @cached_property
    def branches(self) -> dict[str, FileStore]:
        """Other branches opened with this table."""
        return {}

    @cached_property
    def options(self) -> CoreOptions:
        """Typed options of the table."""
        return self.schema.core

    @cached_property
    def paths(self) -> TablePaths:
        """Paths of the table's files."""
        options = self.options
        return TablePaths(
            self.root,
            tuple(self.schema.partition_keys),
            tuple(kind.column_type for kind in self.schema.partition_types),
            default_partition=options.partition_default_name,
            legacy_names=options.partition_legacy_name,
            data_directory=options.data_file_path_directory,
            index_in_data_directory=options.raw.get("index-file-in-data-file-dir", "").lower() == "true",
            branch=self.branch,
        )

    @cached_property
    def partition(self) -> PartitionType:
        """Names and types of the partition columns."""
        return PartitionType(tuple(self.schema.partition_keys), tuple(self.schema.partition_types))

    @cached_property
    def key(self) -> PartitionType | None:
        """Names and types of the key columns.

        None for a table without primary key.
        """
        schema = self.schema
        return PartitionType(schema.trimmed_primary_keys, schema.key_types) if schema.primary_keys else None

    @cached_property
    def schemas(self) -> SchemaManager:
        """All versions of the schema."""
        schema_by_id = self.cache.schemas if self.pending is None else {**self.cache.schemas, self.pending.id: self.pending}
        return SchemaManager(self.file_io, self.root, self.branch, self.cache.files, schema_by_id)

    @cached_property
    def snapshots(self) -> SnapshotManager:
        """All snapshots and tags."""
        return SnapshotManager(self.file_io, self.paths, self.cache.newest, self.commits)

    @cached_property
    def manifests(self) -> ManifestFile:
        """Reader and writer of manifests."""
        codec, level = self._compression
        target = self.options.manifest_target_file_size
        names, file_format = FileNames("manifest-"), self.options.manifest_format
        return ManifestFile(
            self.file_io, self.paths, self.partition, codec, level, target, names, self.cache, self.range_policy, file_format
        )

    @cached_property
    def range_policy(self) -> RangePolicy:
        """Selection of columns with manifest ranges.

        A plan must be able to skip files by these columns without reading other files.
        """
        schema = self.schema
        keys = tuple(
            (schema.field(name).id, data_type) for name, data_type in zip(schema.trimmed_primary_keys, schema.key_types, strict=True)
        )

        def fields_of(schema_id: int) -> Sequence[DataField]:
            return (schema if schema_id == schema.id else self.schemas.get(schema_id)).fields

        return RangePolicy(fields_of, keys, tuple(schema.partition_keys), values=schema.kind.prunes_by_value)

    def check_readable(self) -> None:
        """Raise ``UnsupportedTable`` if reads would return wrong rows."""
        self.schema.kind.check_readable(self.root)

    def check_writable(self) -> None:
        """Raise ``UnsupportedTable`` if writes would violate an option."""
        self.check_readable()
        support.check_writable(self.options, self.root)
        if self.paths.data != self.root and not self.owned.owns(self.paths.data):
            raise UnsupportedTable(
                f"{self.root}: option 'data-file.path-directory': '{self.options.data_file_path_directory}' is not a directory below the table. "
                "Nothing is written or deleted there"
            )
        if self.writes_iceberg:
            from manifest.schema.iceberg_schema import check_iceberg, metadata_directory  # noqa: PLC0415  # few tables need it

            metadata_directory(self.options, self.root)
            try:
                check_iceberg(self.schema)
            except UnsupportedOption as error:
                raise UnsupportedTable(f"{self.root}: {error}") from error

    @property
    def writes_iceberg(self) -> bool:
        """Whether commits to this branch write Iceberg metadata."""
        return self.branch == MAIN_BRANCH and self.options.has_iceberg_metadata

    def check_streamable(self) -> None:
        """Raise ``UnsupportedTable`` if streams would return wrong rows."""
        self.check_readable()
        support.check_streamable(self.options, self.root)

    @property
    def skips_level0(self) -> bool:
        """Whether reads omit level 0, as other engines do.

        Set by ``deletion-vectors.merge-on-read=false``.
        """
        return self.schema.kind.has_single_version and not self.options.deletion_vectors_merge_on_read

    @cached_property
    def manifest_lists(self) -> ManifestList:
        """Reader and writer of manifest lists."""
        codec, level = self._compression
        return ManifestList(self.file_io, self.paths, codec, level, FileNames("manifest-list-"), self.options.manifest_format)

    @cached_property
    def statistics_files(self) -> StatisticsFile:
        """Reader and writer of statistics files."""
        return StatisticsFile(self.file_io, self.paths, FileNames("stat-"))

    @cached_property
    def index_manifests(self) -> IndexManifest:
        """Reader and writer of index manifests."""
        codec, level = self._compression
        return IndexManifest(self.file_io, self.paths, codec, level, FileNames("index-manifest-"), self.options.manifest_format)

    @property
    def merge_policy(self) -> MergePolicy:
        """Thresholds for merging manifests."""
        options = self.options
        return MergePolicy(
            options.manifest_target_file_size, options.manifest_merge_min_count, options.manifest_full_compaction_threshold_size
        )

    @property
    def _compression(self) -> tuple[str, int]:
        return codec_name(self.options.manifest_compression), self.options.zstd_level

    def manifest_metas(self, snapshot: Snapshot) -> list[ManifestFileMeta]:
        """Return the manifests of a snapshot.

        Its base list comes first, then its delta list.
        """
        with self.reading(snapshot):
            return self._read_lists(snapshot)

    def _read_lists(self, snapshot: Snapshot) -> list[ManifestFileMeta]:
        listed = self.file_io.run_parallel(*[partial(self._read_list, name, size) for name, size in snapshot.manifest_lists])
        return list(itertools.chain.from_iterable(listed))

    def _read_list(self, name: str, size: int | None) -> Sequence[ManifestFileMeta]:
        metas: Sequence[ManifestFileMeta] | None = self.cache.get(name)
        if metas is None:
            path, kind, files = self.paths.manifest(name), ("manifest list", size), self.cache.files
            identity, metas = files.recall(self.file_io, path, kind)
            if metas is None:
                metas = tuple(self.manifest_lists.read(name, size))
                files.keep(path, kind, identity, metas, list_weight(metas))
            self.cache.put(name, metas, list_weight(metas), None if identity is None else (kind, path))
        return metas

    def delta_entries(self, snapshot: Snapshot) -> EntryColumns:
        """Return the entries that ``snapshot`` added and deleted."""
        with self.reading(snapshot):
            metas = self.manifest_lists.read(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
            return self.manifests.read_metas(metas)

    def live_entries(self, snapshot: Snapshot | None, entry_filter: EntryFilter = EVERYTHING) -> EntryColumns:
        """Return the live files at ``snapshot`` that ``entry_filter`` selects.

        All are ADD entries. ``snapshot`` None is an empty table. Raises ``SnapshotExpired`` if the snapshot expired meanwhile, ``CorruptFile`` if
        its files are missing otherwise.
        """
        if snapshot is None:
            return EntryColumns.of(())
        with self.reading(snapshot):
            metas = entry_filter.manifests(self._read_lists(snapshot), self.partition, self.paths.manifests)
            blocks = None if entry_filter.is_everything else partial(entry_filter.blocks, partition=self.partition)
            entries = self.manifests.read_metas(metas, blocks)
        return live(entry_filter.entries(entries, self.partition))

    def live_partitions(self, snapshot: Snapshot | None, entry_filter: EntryFilter = EVERYTHING) -> list[bytes]:
        """Return the partitions of the files that ``live_entries`` returns."""
        return list(self.live_entries(snapshot, entry_filter).partition_codes[1])

    def index_entries(self, snapshot: Snapshot | None) -> list[IndexManifestEntry]:
        """Return the index files at ``snapshot``."""
        if snapshot is None or snapshot.index_manifest is None:
            return []
        path, read = self.paths.manifest(snapshot.index_manifest), partial(self.index_manifests.read, snapshot.index_manifest)
        with self.reading(snapshot):
            entries = self.cache.files.load(self.file_io, path, "index manifest", read, _index_weight)
        return list(entries)

    def physical_files(self, partition: bytes, bucket: int, file: DataFileMeta) -> tuple[str, ...]:
        """Return the paths of a data file and side files.

        The data file comes first.
        """
        data = self.paths.data_file(self.partition.decode(partition), bucket, file.file_name, file.external_path)
        return data, *(self.paths.extra_file(data, name) for name in file.extra_files)

    @contextmanager
    def reading(self, snapshot: Snapshot) -> Iterator[None]:
        """Convert a missing file to ``SnapshotExpired`` or ``CorruptFile``.

        The block reads metadata that ``snapshot`` needs.
        """
        try:
            yield
        except FileNotFoundError as error:
            if self.snapshots.still_has(snapshot):
                raise CorruptFile(str(error.filename), f"is missing, but snapshot {snapshot.id} needs it") from error
            raise SnapshotExpired(f"{self.root}: snapshot {snapshot.id} expired while it was read; {KEEP_SNAPSHOTS}") from error


def _directories_elsewhere(options: CoreOptions, root: str) -> tuple[str, ...]:
    """Return the directories outside of the table that its options name for its own files."""
    external = options.raw.get(EXTERNAL_PATHS, "")
    if not external and not options.has_iceberg_metadata:
        return ()
    directories = [local_form(path.strip()).rstrip("/") for path in external.split(",") if path.strip()]
    if options.has_iceberg_metadata:
        from manifest.schema.iceberg_schema import metadata_directory  # noqa: PLC0415  # few tables need it

        with suppress(UnsupportedOption, UnsupportedTable):  # a commit raises it
            directories.append(metadata_directory(options, root))
    return tuple(directory for directory in directories if directory and not directory.startswith(f"{root}/"))


def table_around(store: FileStore, directory: str) -> str | None:
    """Return another table that has ``directory`` among its files, or None.

    A table inside of ``store`` counts, too.
    """
    while directory not in {store.root, ""} and not directory.endswith(":/"):
        with suppress(PathNotAllowed):  # no table is above the allowed directories
            if _is_table(store.storage, directory):
                return directory
        directory = directory.rpartition("/")[0]
    return None


def describe_path(file_io: FileIO, path: str) -> str:
    """Return a hint about a path without a table.

    The path may be a file, a part of a table, a directory of tables, or a misspelt table name. Otherwise "". Checks local paths only, where
    access is cheap.
    """
    if not path.startswith("/"):
        return ""
    with suppress(OSError, PaimonError):
        if file_io.exists(path) and not file_io.is_directory(path):
            return "a file is here; a table is a directory"
        above = path
        for _ in range(_LEVELS):
            above = posixpath.dirname(above)
            if _is_table(file_io, above):
                return f"this is inside the table {above}"
        if below := sorted(_tables(file_io, path)):
            return f"this is a directory of tables: {', '.join(below[:_NAMED])}"
        if near := did_you_mean(posixpath.basename(path), _tables(file_io, posixpath.dirname(path))):
            return f"there is no schema file{near}"
    return ""


def _tables(file_io: FileIO, directory: str) -> Iterator[str]:
    if file_io.is_directory(directory):
        yield from (status.name for status in file_io.list(directory) if status.is_dir and _is_table(file_io, f"{directory}/{status.name}"))


def _is_table(file_io: FileIO, path: str) -> bool:
    return file_io.exists(f"{path}/schema/schema-0")


def _index_weight(entries: Sequence[IndexManifestEntry]) -> int:
    """Return the approximate bytes of decoded entries in memory."""
    metas = [entry.indexed for entry in entries if entry.indexed is not None]
    vectors = sum([len(entry.vectors or ()) for entry in entries])
    return (
        _ENTRY_BYTES * len(entries) + _VECTOR_BYTES * vectors + sum([len(m.source_meta or b"") + len(m.index_meta or b"") for m in metas])
    )
