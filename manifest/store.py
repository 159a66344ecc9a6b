"""A table opened on its storage: the one object from which everything else of the metadata is reached."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fileindex.base.errors import CorruptFile
from fileindex.base.lazy import cached_property
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
from manifest.io.errors import SnapshotExpired, TableNotFound
from manifest.io.file_io import FileIO
from manifest.io.meter import UNMETERED, Meter
from manifest.io.paths import MAIN_BRANCH, FileNames, TablePaths, split_branch
from manifest.io.system_names import refuse_system, split_system
from manifest.options import support
from manifest.options.core_options import CoreOptions
from manifest.schema.describe_path import describe_path
from manifest.schema.manager import SchemaManager
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.manager import SnapshotManager
from manifest.snapshot.snapshot import Snapshot
from manifest.snapshot.snapshot_commit import SnapshotCommit
from manifest.stats.partition_stats import PartitionType
from manifest.stats.table_stats import StatisticsFile
from manifest.storage.resolve import file_io_for
from manifest.types.data_type import DataField

EVERYTHING = EntryFilter()
_INDEPENDENT_OF_STORAGE = ("options", "paths", "partition", "key")
"""Cached properties that hold for whatever storage: parsing options takes longer than reading a small file."""


@dataclass(frozen=True)
class FileStore:
    """A table at ``root``, seen through one version of its schema (with this job's dynamic options)."""

    file_io: FileIO
    root: str
    schema: TableSchema
    cache: EntryCache = field(default_factory=EntryCache, repr=False, compare=False)
    branch: str = MAIN_BRANCH
    commits: SnapshotCommit | None = field(default=None, repr=False, compare=False)
    """Who makes snapshots in the place of the file system, if anybody does."""
    meter: Meter = field(default=UNMETERED, repr=False, compare=False)
    """Told of the data files that are read and written through this store."""

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
        """The table at ``path``, by its latest schema; ``<table>$branch_<name>`` is one of its branches. ``cache`` is shared with its user.

        Raises ``TableNotFound``, ``CorruptFile``, ``UnsupportedOption``; ``SystemTableReadOnly`` or ``UnknownSystemTable`` where the table is
        there, and the path goes on with the name of a system table.
        """
        storage, whole = file_io_for(path, file_io)
        root, branch = split_branch(whole)
        held = EntryCache() if cache is None else cache
        schema = SchemaManager(storage, root, branch, held.files, held.schemas).latest()
        if schema is None:
            if branch != MAIN_BRANCH and SchemaManager(storage, root).ids():
                raise TableNotFound(f"{root}: the table has no branch '{branch}'")
            named = split_system(whole)
            if named is not None and SchemaManager(storage, *split_branch(named[0])).ids():
                refuse_system(*named)
            raise TableNotFound(f"{root}: no Paimon table is here ({describe_path(storage, root) or 'there is no schema file'})")
        store = cls(storage, root, schema, held, branch, commits)
        return store.with_options(dynamic_options) if dynamic_options else store

    def with_options(self, dynamic_options: Mapping[str, str]) -> FileStore:
        """The same table with options that hold for one job and are never stored."""
        return self.with_schema(self.schema.model_copy(update={"options": {**self.schema.options, **dynamic_options}}))

    def with_schema(self, schema: TableSchema) -> FileStore:
        """The same table seen through another version of its schema, as time travel does."""
        return replace(self, schema=schema)

    def __reduce__(self) -> tuple[Callable[..., FileStore], tuple[FileIO, str, TableSchema]]:
        return partial(FileStore, branch=self.branch, commits=self.commits), (self.file_io, self.root, self.schema)

    def through(self, file_io: FileIO) -> FileStore:
        """The same table on the same storage, seen through another ``FileIO``; what it has parsed stays parsed."""
        return self._but(file_io=file_io)

    def metered(self, meter: Meter) -> FileStore:
        """The same table; ``meter`` is told of the data files that are read and written through it."""
        return self._but(meter=meter)

    def _but(self, **changes: Any) -> FileStore:
        seen = replace(self, **changes)
        seen.__dict__.update({name: self.__dict__[name] for name in _INDEPENDENT_OF_STORAGE if name in self.__dict__})
        return seen

    @cached_property
    def branches(self) -> dict[str, FileStore]:
        """Other branches of the table, as they were first opened beside this one."""
        return {}

    @cached_property
    def options(self) -> CoreOptions:
        """The table's options, typed."""
        return self.schema.core

    @cached_property
    def paths(self) -> TablePaths:
        """Where the table's files lie."""
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
        """What serialised partitions mean."""
        return PartitionType(tuple(self.schema.partition_keys), tuple(self.schema.partition_types))

    @cached_property
    def key(self) -> PartitionType | None:
        """What serialised keys mean; None for a table without a primary key."""
        schema = self.schema
        return PartitionType(tuple(schema.trimmed_primary_keys), tuple(schema.key_types)) if schema.is_primary_key_table else None

    @cached_property
    def schemas(self) -> SchemaManager:
        """All versions of the schema."""
        return SchemaManager(self.file_io, self.root, self.branch, self.cache.files, self.cache.schemas)

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
        """Which columns of manifests get ranges: those by which a plan may skip files without looking at others."""
        schema = self.schema
        keys = tuple(
            (schema.field(name).id, data_type) for name, data_type in zip(schema.trimmed_primary_keys, schema.key_types, strict=True)
        )

        def fields_of(schema_id: int) -> Sequence[DataField]:
            return (schema if schema_id == schema.id else self.schemas.get(schema_id)).fields

        return RangePolicy(fields_of, keys, tuple(schema.partition_keys), values=not keys or self.settles_keys)

    def check_readable(self) -> None:
        """Raise ``UnsupportedTable`` if reads would give other rows than Paimon's."""
        support.check_readable(self.options, has_primary_key=self.schema.is_primary_key_table, table=self.root)

    def check_writable(self) -> None:
        """Raise ``UnsupportedTable`` if writes would break a promise of the options."""
        support.check_writable(self.options, has_primary_key=self.schema.is_primary_key_table, table=self.root)

    def check_streamable(self) -> None:
        """Raise ``UnsupportedTable`` if a stream would give other rows than Paimon's."""
        support.check_streamable(self.options, has_primary_key=self.schema.is_primary_key_table, table=self.root)

    @property
    def settles_keys(self) -> bool:
        """Whether compaction leaves one visible version of a key above level 0 (deletion vectors, first-row), so that nothing there is merged.

        Other engines show such a table without what waits on level 0; ours merges that in (``hides_level_0``).
        """
        options = self.options
        return self.schema.is_primary_key_table and (options.deletion_vectors_enabled or options.engine.first_row_wins)

    @property
    def hides_level_0(self) -> bool:
        """Whether reads leave out what waits for a compaction, as ``deletion-vectors.merge-on-read=false`` asks: the view of other engines."""
        return self.settles_keys and not self.options.deletion_vectors_merge_on_read

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
        """When manifests are merged."""
        options = self.options
        return MergePolicy(
            options.manifest_target_file_size, options.manifest_merge_min_count, options.manifest_full_compaction_threshold_size
        )

    @property
    def _compression(self) -> tuple[str, int]:
        return codec_name(self.options.manifest_compression), self.options.zstd_level

    def manifest_metas(self, snapshot: Snapshot) -> list[ManifestFileMeta]:
        """Manifests of the state at ``snapshot``: its base list, then its delta list."""
        with self.reading(snapshot):
            listed = self.file_io.together(*[partial(self._listed, name, size) for name, size in snapshot.manifest_lists])
        return list(itertools.chain.from_iterable(listed))

    def _listed(self, name: str, size: int | None) -> Sequence[ManifestFileMeta]:
        held: Sequence[ManifestFileMeta] | None = self.cache.get(name)
        if held is None:
            path, kind, files = self.paths.manifest(name), ("manifest list", size), self.cache.files
            identity, held = files.recall(self.file_io, path, kind)
            if held is None:
                held = tuple(self.manifest_lists.read(name, size))
                files.keep(path, kind, identity, held, list_weight(held))
            self.cache.put(name, held, list_weight(held), None if identity is None else (kind, path))
        return held

    def delta_entries(self, snapshot: Snapshot) -> EntryColumns:
        """What ``snapshot`` added and deleted."""
        with self.reading(snapshot):
            metas = self.manifest_lists.read(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
            return self.manifests.read_metas(metas)

    def live_entries(self, snapshot: Snapshot | None, wanted: EntryFilter = EVERYTHING) -> EntryColumns:
        """The live files at ``snapshot`` (None: an empty table) that ``wanted`` asks for, all of them ADD entries.

        Raises ``SnapshotExpired`` if the snapshot's files went away with it, ``CorruptFile`` if they should be there.
        """
        if snapshot is None:
            return EntryColumns.of(())
        listed = self.manifest_metas(snapshot)
        metas = wanted.manifests(listed, self.partition, self.paths.manifests)
        with self.reading(snapshot):
            blocks = None if wanted.is_everything else partial(wanted.blocks, partition=self.partition)
            entries = self.manifests.read_metas(metas, blocks)
        return live(wanted.entries(entries, self.partition))

    def index_entries(self, snapshot: Snapshot | None) -> list[IndexManifestEntry]:
        """HASH and deletion-vector files at ``snapshot``."""
        if snapshot is None:
            return []
        with self.reading(snapshot):
            return self.index_manifests.read(snapshot.index_manifest)

    def physical_files(self, partition: bytes, bucket: int, file: DataFileMeta) -> tuple[str, ...]:
        """Paths of a data file and its side files, the data file first."""
        data = self.paths.data_file(self.partition.decode(partition), bucket, file.file_name, file.external_path)
        return data, *(self.paths.extra_file(data, name) for name in file.extra_files)

    @contextmanager
    def reading(self, snapshot: Snapshot) -> Iterator[None]:
        """Explain a metadata file that ``snapshot`` needs and that is not there."""
        try:
            yield
        except FileNotFoundError as error:
            if self.snapshots.still_has(snapshot):
                raise CorruptFile(str(error.filename), f"is missing, but snapshot {snapshot.id} needs it") from error
            raise SnapshotExpired(
                f"{self.root}: snapshot {snapshot.id} has expired while it was read; "
                "raise 'snapshot.num-retained.min' or 'snapshot.time-retained' to keep snapshots longer"
            ) from error


__all__ = ["FileStore"]
