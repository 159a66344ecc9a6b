"""Publication: Iceberg metadata of the newest snapshot.

It follows the commit. Version N describes snapshot N, and its file is created only if it is absent, so a version has one content.
If a process dies before, the next commit publishes the changes of all snapshots since the last version.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from manifest.io import failpoints
from manifest.io.errors import SnapshotNotFound, StorageError, UnsupportedTable
from manifest.io.group_sync import GroupSync
from manifest.io.paths import local_form, parse_number
from manifest.schema.iceberg_schema import (
    WITH_VECTORS,
    IcebergOptions,
    first_unreadable,
    has_vectors,
    metadata_directory,
    partition_spec,
    schema_json,
)
from manifest.snapshot.snapshot import CommitKind, Snapshot
from manifest.store import FileStore
from paimon_base.lazy import cached_property
from paimon_base.log import logger_of
from pyspark_paimon.plugins.iceberg.changes import EntryBuilder, FileChanges
from pyspark_paimon.plugins.iceberg.manifests import DATA, DELETED, EXISTING, Entry, IcebergManifest, IcebergManifests, partition_record
from pyspark_paimon.plugins.iceberg.metadata import Json, TableMetadata, snapshot_json, table_metadata
from pyspark_paimon.plugins.iceberg.vectors import POSITION_DELETES, VectorSource, puffin_file, read_blob, vector_sources

_LOG = logger_of(__name__)
_ATTEMPTS = 10
_PATIENCE = 3
_HINT = "version-hint.text"
_HINT_DIGITS = 18
_SUFFIX = ".metadata.json"


def publish(store: FileStore, *, anew: bool = False) -> int | None:
    """Write the metadata of the newest snapshot, unless it exists.

    Returns the snapshot's id, None for an empty table.

    Args:
        store: The table.
        anew: Continue no earlier version, and delete the files of all.

    Raises:
        UnsupportedTable: Iceberg readers cannot read a file or the table.
        StorageError: The storage failed, or too many races were lost.
    """
    newest = store.schemas.latest()
    if newest is None:
        return None
    current = store.with_schema(newest)
    for attempt in range(_ATTEMPTS):
        snapshot = store.snapshots.latest()
        if snapshot is None:
            return None
        publication = _Publication(store, current, snapshot)
        try:
            if publication.run(listing=attempt > 0, anew=anew):
                return snapshot.id
        except FileNotFoundError:  # another process published and deleted what it replaced
            if attempt + 1 == _ATTEMPTS:
                raise
            anew |= attempt >= _PATIENCE  # a manifest is lost
        except (OSError, UnsupportedTable):
            raise
        except Exception:
            if anew:
                raise
            # Metadata of Iceberg is advice, and other programs may have damaged it: continue none of it.
            _LOG.warning("%s: earlier Iceberg metadata is damaged, and is written from scratch", store.root, exc_info=True)
            anew = True
    raise StorageError(errno.EAGAIN, f"{store.root}: lost {_ATTEMPTS} races for Iceberg metadata; the next commit writes it")


def publish_or_log(store: FileStore, *, anew: bool = False) -> None:
    """Publish after a commit or a rollback.

    A failure of any kind is logged: the commit stands, and the next one publishes.
    """
    try:
        publish(store, anew=anew)
    except Exception:  # noqa: BLE001 -- the commit stands, and the caller must learn that
        _LOG.warning("%s: the commit stands, but its Iceberg metadata is not written; the next commit does it", store.root, exc_info=True)


def _path(directory: str, version: int) -> str:
    return f"{directory}/v{version}{_SUFFIX}"


def _read_hint(store: FileStore, directory: str) -> int | None:
    with suppress(FileNotFoundError):
        text = store.file_io.read(f"{directory}/{_HINT}").strip()
        if text.isdigit() and len(text) <= _HINT_DIGITS:
            return int(text)
    return None


@dataclass(slots=True)
class _Base:
    """The version that a publication continues, and snapshots since."""

    version: int
    metadata: TableMetadata
    following: list[Snapshot]


class _Publication:
    """One attempt at the metadata of ``target``.

    Args:
        options_of: The table with the options of this job.
        store: The table with its newest schema.
        target: Snapshot to publish.
    """

    def __init__(self, options_of: FileStore, store: FileStore, target: Snapshot) -> None:
        self._store = store
        self._target = target
        self._options = IcebergOptions.of(options_of.options)
        self._core = options_of.options
        self._directory = metadata_directory(options_of.options, store.root)
        self._hint = _read_hint(store, self._directory)
        self._versions: list[int] = []
        self._listed = False
        self._read: dict[int, tuple[bytes, TableMetadata | None]] = {}

    def run(self, *, listing: bool, anew: bool) -> bool:
        """Publish. Returns False after a lost race.

        Args:
            listing: Whether to look at all versions. False: at the one of the hint, where it is the base.
            anew: Continue no earlier version.
        """
        target, base = self._target, None
        if not (listing or anew) and self._hint is not None and self._hint < target.id:
            self._versions = [self._hint]
            base = self._find_base()
        if base is None:
            self._versions, self._listed = self._list_versions(), True
            self._refuse_foreign()
            base = None if anew else self._find_base()
        stale = self._stale_version()
        if stale is None and target.id in self._versions:
            self._finish()
            self._delete_versions(None)
            return True
        data = self._build(base)
        failpoints.point("after-iceberg-manifests")
        file_io, path = self._store.file_io, _path(self._directory, target.id)
        if not (file_io.create_exclusive(path, data) if stale is None else file_io.replace(path, stale, data)):
            self._manifests.delete_written()
            return False
        failpoints.point("after-iceberg-metadata")
        newest = self._finish()
        if newest is None or newest.id < target.id or (newest.id == target.id and newest.key != target.key):
            return False  # another process rolled back meanwhile: the next attempt deletes this version
        with suppress(Exception):  # what stays is an orphan
            published = TableMetadata(json.loads(data))
            if anew:
                self._delete_replaced(published)
            elif base is not None:
                self._expire_snapshots(base.metadata, published)
            self._delete_versions(base)
        return True

    @cached_property
    def _prefix(self) -> str:
        """What metadata has before a path: "" or ``file:``."""
        # As in earlier versions: the engine that wrote them finds its files by their text.
        readable = (metadata for version in sorted(self._versions, reverse=True) if (metadata := self._metadata(version)) is not None)
        return next((metadata.prefix for metadata in readable if self._is_here(metadata)), "")

    @cached_property
    def _manifests(self) -> IcebergManifests:
        schema = self._store.schema
        headers = {
            b"schema": json.dumps(schema_json(schema)).encode(),
            b"partition-spec": json.dumps(partition_spec(schema)["fields"]).encode(),
            b"partition-spec-id": b"0",
            b"format-version": str(self._options.format_version).encode(),
        }
        return IcebergManifests(
            GroupSync(self._store.file_io),
            self._directory,
            self._prefix,
            self._store.partition,
            self._options,
            self._core.manifest_target_file_size,
            headers,
        )

    def _list_versions(self) -> list[int]:
        names = [status.name for status in self._store.file_io.list(self._directory) if status.name.endswith(_SUFFIX)]
        return sorted(version for name in names if (version := parse_number(name.removesuffix(_SUFFIX), "v")) is not None)

    def _metadata(self, version: int) -> TableMetadata | None:
        if version not in self._read:
            data = b""
            with suppress(FileNotFoundError):
                data = self._store.file_io.read(_path(self._directory, version))
            self._read[version] = data, TableMetadata.parse(data)
        return self._read[version][1]

    def _is_here(self, metadata: TableMetadata) -> bool:
        return local_form(metadata.json["location"]) == self._store.root

    def _refuse_foreign(self) -> None:
        """Raise ``UnsupportedTable`` if the directory has a table that is Iceberg's own."""
        metadata = self._metadata(self._versions[-1]) if self._versions else None
        if metadata is not None and metadata.is_native(self._directory, self._store.root):
            raise UnsupportedTable(
                f"{self._store.root}: option 'metadata.iceberg.storage': {self._directory.rpartition('/')[0]} is a table of Iceberg; "
                "rename this table, or use table-location"
            )

    def _stale_version(self) -> bytes | None:
        """Return the content of this version that describes another snapshot."""
        # A rollback frees ids of snapshots, and so numbers of versions.
        if self._target.id not in self._versions:
            return None
        metadata = self._metadata(self._target.id)
        if metadata is not None and metadata.describes(self._store.root, self._store.schema, self._target, self._options.format_version):
            return None
        return self._read[self._target.id][0]

    def _find_base(self) -> _Base | None:
        """Return the newest version whose successors' changes are known."""
        following = [self._target]
        for version in reversed([version for version in self._versions if version < self._target.id]):
            try:
                while following[0].id > version + 1:
                    following.insert(0, self._store.snapshots.get(following[0].id - 1))
                described = self._store.snapshots.get(version)
            except SnapshotNotFound:
                return None
            metadata = self._metadata(version)
            # The snapshot after a rollback on object stores repeats an older state: its changes say nothing about the one before.
            if metadata is not None and metadata.describes(self._store.root, self._store.schema, described, self._options.format_version):
                if any(later.first_replaced is not None for later in following) or not self._is_readable(metadata):
                    return None
                return _Base(version, metadata, following)
        return None

    def _is_readable(self, metadata: TableMetadata) -> bool:
        """Return whether Iceberg readers can read the files of a version as the table's present columns."""
        # A type may have changed to any other while the table had no metadata.
        schema, schema_id = self._store.schema, metadata.json.get("current-schema-id")
        return schema_id == schema.id or (
            isinstance(schema_id, int) and first_unreadable(self._store.schemas.get(schema_id), schema) is None
        )

    def _build(self, base: _Base | None) -> bytes:
        """Write manifests and their list. Return the metadata."""
        try:
            return self._build_on(base)
        except BaseException:
            self._manifests.delete_written()
            raise

    def _build_on(self, base: _Base | None) -> bytes:
        store, target = self._store, self._target
        manifests, summary = self._all_manifests() if base is None else self._changed_manifests(base)
        rows = sum(manifest.live_rows for manifest in manifests)
        if base is not None and store.schema.kind.changes_files and rows != target.total_record_count:
            _LOG.warning(
                "%s: the Iceberg metadata had %d of %d rows and is written from scratch", store.root, rows, target.total_record_count
            )
            self._manifests.delete_written()
            manifests, summary = self._all_manifests()
            base = None
        vectors = self._vector_manifests(base)
        row_ids = 0 if base is None else base.metadata.next_row_id
        manifests, next_row_id = _with_row_ids(manifests, row_ids) if self._options.format_version >= WITH_VECTORS else (manifests, 0)
        manifest_list = self._manifests.write_list([*manifests, *vectors])
        files = sum(manifest.live_files for manifest in manifests)
        summary |= {"total-data-files": str(files), "total-records": str(sum(manifest.live_rows for manifest in manifests))}
        earlier = [] if base is None else self._kept(base.metadata.snapshots)
        parent = None if base is None else base.version
        new = snapshot_json(target, parent, summary, manifest_list, store.schema.id)
        if self._options.format_version >= WITH_VECTORS:
            new |= {"first-row-id": row_ids, "added-rows": next_row_id - row_ids}
        ids = {snapshot["snapshot-id"] for snapshot in earlier} | {target.id}
        predecessor = self._predecessor(base)
        data = table_metadata(
            self._options.format_version,
            self._prefix + store.root,
            store.schema,
            [*earlier, new],
            known_schemas=[] if base is None else base.metadata.json["schemas"],
            schema_of=store.schemas.get,
            tags={name: tag.id for name, tag in store.snapshots.tags().items() if tag.id in ids},
            table_uuid=None if predecessor is None else predecessor.json["table-uuid"],
            next_row_id=next_row_id,
        )
        sync = self._manifests.file_io
        assert isinstance(sync, GroupSync)
        sync.flush()
        return data

    def _predecessor(self, base: _Base | None) -> TableMetadata | None:
        """Return metadata of the same table, whose id it keeps."""
        if base is not None:
            return base.metadata
        readable = (metadata for version in reversed(self._versions) if (metadata := self._metadata(version)) is not None)
        newest = next(filter(self._is_here, readable), None)
        # Of a table with its first snapshot, unless it was rolled back, earlier metadata is that of a dropped table.
        return None if newest is not None and self._target.id == 1 and not newest.has(self._target) else newest

    def _all_manifests(self) -> tuple[list[IcebergManifest], dict[str, str]]:
        changes = FileChanges()
        changes.follow(self._store, self._store.live_entries(self._target))
        entries = self._builder.build(changes.added.items())
        return self._manifests.write(entries, self._target.id), _summary("append", entries)

    @cached_property
    def _builder(self) -> EntryBuilder:
        return EntryBuilder(self._store, self._prefix, self._target.id)

    def _changed_manifests(self, base: _Base) -> tuple[list[IcebergManifest], dict[str, str]]:
        """Return the manifests of the base with the changes since."""
        changes = FileChanges()
        for snapshot in base.following:
            changes.follow(self._store, self._store.delta_entries(snapshot))
        partition = self._store.partition
        touched = {*changes.deleted.values(), *(changes.added[path].partition for path in changes.moved)}
        where = [partition_record(partition, partition.decode(value)) for value in touched]
        unchanged: list[IcebergManifest] = []
        rewritten: list[Entry] = []
        for manifest in self._manifests.read_list(base.metadata.current["manifest-list"]):
            if manifest.content == DATA and manifest.live_files:
                entries = self._without(manifest, changes) if self._manifests.may_hold(manifest, where) else None
                if entries is None:
                    unchanged.append(manifest)
                else:
                    rewritten += entries
        added = self._builder.build(changes.added.items())
        unchanged, merged = self._merge(unchanged, len(rewritten) + len(added))
        new = [*merged, *rewritten, *added]
        deleted = [entry for entry in rewritten if entry["status"] == DELETED]
        return [*unchanged, *self._manifests.write(new, self._target.id)], _summary(self._operation(base, deleted), added, deleted)

    def _vector_manifests(self, base: _Base | None) -> list[IcebergManifest]:
        """Return the manifests of deletion vectors.

        Those of the base stay if no vector changed.
        """
        if not has_vectors(self._store.options):
            return []
        target_sources = vector_sources(self._store, self._target)
        listed = [] if base is None else self._manifests.read_list(base.metadata.current["manifest-list"])
        before = [manifest for manifest in listed if manifest.content == POSITION_DELETES]
        base_sources = {} if base is None else vector_sources(self._store, self._store.snapshots.get(base.version))
        directory_prefix = f"{self._directory}/"
        entries = {
            local_form(entry["data_file"]["referenced_data_file"]): entry
            for manifest in before
            for entry in self._manifests.read(manifest)
            # The engine refers to Paimon's index files, which most readers refuse.
            if entry["status"] != DELETED and local_form(entry["data_file"]["file_path"]).startswith(directory_prefix)
        }
        unchanged = {path for path, source in target_sources.items() if path in entries and base_sources.get(path) == source}
        if len(unchanged) == len(target_sources) == sum(manifest.live_files for manifest in before):
            return before
        changed = {path: source for path, source in target_sources.items() if path not in unchanged}
        new = [self._carried(entries[path], deleted=False) for path in sorted(unchanged)] + self._new_vectors(changed)
        return self._manifests.write(new, self._target.id, POSITION_DELETES)

    def _new_vectors(self, sources: dict[str, VectorSource]) -> list[Entry]:
        """Write vectors into a Puffin file and return their entries."""
        if not sources:
            return []
        blobs = [read_blob(self._store, source, self._prefix + path) for path, source in sources.items()]
        data, offsets = puffin_file(blobs, self._target.id)
        path = self._manifests.write_vectors(data)
        return [
            self._builder.build_vector(source.partition, path, len(data), blob, offset)
            for source, blob, offset in zip(sources.values(), blobs, offsets, strict=True)
        ]

    def _operation(self, base: _Base, deleted: Sequence[Entry]) -> str:
        if not deleted:
            return "append"
        compacts = all(snapshot.commit_kind is CommitKind.COMPACT for snapshot in base.following)
        return "replace" if compacts and self._store.schema.kind.changes_files else "overwrite"

    def _without(self, manifest: IcebergManifest, changes: FileChanges) -> list[Entry] | None:
        """Return the entries of a manifest, deleted files marked.

        None: it has no deleted file. Forgets added files that it has.
        """
        entries = [entry for entry in self._manifests.read(manifest) if entry["status"] != DELETED]
        paths = [local_form(entry["data_file"]["file_path"]) for entry in entries]
        for path in changes.moved.intersection(paths):
            changes.moved.discard(path)
            del changes.added[path]
        if changes.deleted.keys().isdisjoint(paths):
            return None
        return [self._carried(entry, deleted=path in changes.deleted) for entry, path in zip(entries, paths, strict=True)]

    def _carried(self, entry: Entry, *, deleted: bool) -> Entry:
        if not deleted:
            return {**entry, "status": EXISTING}
        unknown: Entry = {"null_value_counts": [], "lower_bounds": [], "upper_bounds": []}  # no values of deleted rows
        return {**entry, "status": DELETED, "snapshot_id": self._target.id, "data_file": {**entry["data_file"], **unknown}}

    def _merge(self, manifests: list[IcebergManifest], new_entries: int) -> tuple[list[IcebergManifest], list[Entry]]:
        """Return manifests to keep, and the entries of small ones to write together."""
        target = self._core.manifest_target_file_size
        small = [manifest for manifest in manifests if manifest.manifest_length < target * 2 // 3]
        count, size = len(small) + bool(new_entries), sum(manifest.manifest_length for manifest in small)
        if count < self._options.compact_min or (count < self._options.compact_max and size < target):
            return manifests, []
        entries = [entry for manifest in small for entry in self._manifests.read(manifest) if entry["status"] != DELETED]
        merged = {manifest.manifest_path for manifest in small}
        unmerged = [manifest for manifest in manifests if manifest.manifest_path not in merged]
        return unmerged, [self._carried(entry, deleted=False) for entry in entries]

    def _kept(self, snapshots: Sequence[Json]) -> list[Json]:
        """Return the earlier snapshots whose data files exist, by the table's retention."""
        core, target = self._core, self._target
        ids = {snapshot["snapshot-id"] for snapshot in snapshots}
        oldest = min(ids, default=0)
        if ids and not self._store.snapshots.exists(oldest):
            oldest = self._store.snapshots.earliest_id() or target.id

        def is_kept(snapshot: Json) -> bool:
            snapshot_id: int = snapshot["snapshot-id"]
            if snapshot_id < oldest or snapshot_id <= target.id - core.snapshot_num_retained_max:
                return False
            expires = target.time_millis - core.snapshot_time_retained
            return bool(snapshot_id > target.id - core.snapshot_num_retained_min or snapshot["timestamp-ms"] >= expires)

        # The last one stays: another process may be continuing its manifests.
        return list(snapshots[next((index for index, snapshot in enumerate(snapshots) if is_kept(snapshot)), -1) :])

    def _finish(self) -> Snapshot | None:
        """Point the hint to this version, or to a newer one that exists.

        Returns the newest snapshot of the table.
        """
        file_io, hint, goal = self._store.file_io, self._hint, self._target.id
        follows = hint is None or hint < goal
        while True:
            if follows and hint != goal:
                file_io.write(f"{self._directory}/{_HINT}", str(goal).encode(), overwrite=True)
                hint = goal
            # The writer of a newer version may have written the hint before.
            newest = self._store.snapshots.latest()
            if newest is not None and newest.id > goal and file_io.exists(_path(self._directory, newest.id)):
                goal = newest.id
            elif hint == goal:
                return newest
            follows = True

    def _delete_versions(self, base: _Base | None) -> None:
        """Delete older versions, and those of snapshots that a rollback removed."""
        doomed: list[int] = []
        if self._listed:
            newest = self._store.snapshots.latest()
            doomed += [version for version in self._versions if newest is not None and version > newest.id]
        if self._options.delete_after_commit:
            first_kept = self._target.id - self._options.previous_versions_max
            since = (
                self._versions if self._listed or base is None else range(base.version - self._options.previous_versions_max, first_kept)
            )
            doomed += [version for version in since if 0 < version < first_kept]
        self._store.file_io.delete_many([_path(self._directory, version) for version in doomed])

    def _expire_snapshots(self, base: TableMetadata, published: TableMetadata) -> None:
        """Delete lists of expired snapshots, and what only they need."""
        kept_ids = {snapshot["snapshot-id"] for snapshot in published.snapshots}
        for expired, following in pairwise(base.snapshots):
            if expired["snapshot-id"] in kept_ids:
                return
            self._delete_lists([expired["manifest-list"]], following["manifest-list"])

    def _delete_replaced(self, published: TableMetadata) -> None:
        """Delete all lists and manifests of earlier versions."""
        earlier = [metadata for version in self._versions if version < self._target.id and (metadata := self._metadata(version))]
        lists = {snapshot["manifest-list"] for metadata in earlier for snapshot in metadata.snapshots}
        self._delete_lists(sorted(lists), published.current["manifest-list"])

    def _delete_lists(self, lists: Sequence[str], remaining_list: str) -> None:
        """Delete lists, and their manifests that the list ``remaining_list`` lacks."""
        needed = {manifest.manifest_path: manifest for manifest in self._manifests.read_list(remaining_list)}
        doomed: dict[str, IcebergManifest] = {}
        for path in lists:
            with suppress(FileNotFoundError):
                doomed |= {
                    manifest_file.manifest_path: manifest_file
                    for manifest_file in self._manifests.read_list(path)
                    if manifest_file.manifest_path not in needed
                }
        vectors = self._vector_files(doomed.values()) - self._vector_files(needed.values())
        # Paths in Iceberg's files are advice of anyone: only files of this directory are deleted, by their names.
        named = [local_form(path).rpartition("/") for path in (*vectors, *doomed, *lists)]
        paths = [f"{self._directory}/{name}" for directory, _, name in named if directory == self._directory]
        self._store.file_io.delete_many([path for path in paths if self._store.owned.owns(path)])

    def _vector_files(self, manifests: Iterable[IcebergManifest]) -> set[str]:
        return {
            entry["data_file"]["file_path"]
            for manifest in manifests
            if manifest.content == POSITION_DELETES
            for entry in self._manifests.read(manifest)
        }


def _with_row_ids(manifests: Sequence[IcebergManifest], first: int) -> tuple[list[IcebergManifest], int]:
    """Assign first row ids to new manifests.

    Returns all manifests, and the next unused id.
    """
    numbered: list[IcebergManifest] = []
    for manifest in manifests:
        if manifest.first_row_id is None:
            numbered.append(replace(manifest, first_row_id=first))
            first += manifest.live_rows
        else:
            numbered.append(manifest)
    return numbered, first


def _summary(operation: str, added: Sequence[Entry], deleted: Sequence[Entry] = ()) -> dict[str, str]:
    """Return the summary of a snapshot, with Iceberg's names."""

    def rows(entries: Sequence[Entry]) -> str:
        return str(sum(entry["data_file"]["record_count"] for entry in entries))

    summary: dict[str, Any] = {"operation": operation}
    if added:
        summary |= {"added-data-files": str(len(added)), "added-records": rows(added)}
    if deleted:
        summary |= {"deleted-data-files": str(len(deleted)), "deleted-records": rows(deleted)}
    return summary
