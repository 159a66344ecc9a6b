"""One attempt at a commit: write metadata or discard it."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from manifest.commit.commit_markers import list_markers, write_marker
from manifest.entry.cache import entries_weight, list_weight
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind, FileSource, ManifestEntry
from manifest.entry.manifest_merge import MergePolicy, forget_deletes, merge_manifests
from manifest.io import failpoints
from manifest.io.errors import SnapshotExpired, StorageError
from manifest.io.group_sync import GroupSync
from manifest.io.paths import partition_text
from manifest.snapshot.snapshot import NO_WATERMARK, CommitKind, PartitionStatistics, Snapshot
from manifest.store import FileStore
from paimon_base.errors import PaimonError
from paimon_base.log import logger_of
from paimon_base.thresholds import thresholds

_LOG = logger_of(__name__)
_CLOCK_SKEW_MILLIS = 60_000
_PATIENCE_SECONDS = (0.02, 0.2)


def partition_statistics(store: FileStore, entries: EntryColumns) -> list[PartitionStatistics]:
    """Return the change of each partition that ``entries`` touch.

    An unpartitioned table has one partition with an empty ``spec``.
    """
    codes, partitions = entries.partition_codes
    count = len(partitions)
    signs = np.where(entries.kind == FileKind.ADD, 1, -1)

    def sum_by_code(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
        totals = np.zeros(count, np.int64)
        np.add.at(totals, codes, signs * values)
        return list(map(int, totals))

    newest, buckets = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.maximum.at(newest, codes, entries.numbers("_FILE._CREATION_TIME"))
    np.maximum.at(buckets, codes, entries.total_buckets)
    sums = zip(sum_by_code(entries.row_count), sum_by_code(entries.file_size), sum_by_code(np.ones(len(entries), np.int64)), strict=True)
    return [
        PartitionStatistics(
            spec=_spec(store, partition),
            record_count=rows,
            file_size_in_bytes=size,
            file_count=files,
            last_file_creation_time=created,
            total_buckets=of_buckets,
        )
        for partition, (rows, size, files), created, of_buckets in zip(partitions, sums, newest.tolist(), buckets.tolist(), strict=True)
    ]


def _spec(store: FileStore, partition: bytes) -> dict[str, str]:
    """Return partition values as text, before directory escaping."""
    options, schema = store.options, store.schema
    values = zip(schema.partition_keys, store.partition.decode(partition), schema.partition_types, strict=True)
    default, legacy = options.partition_default_name, options.partition_legacy_name
    return {name: partition_text(value, kind.column_type, default, legacy=legacy) for name, value, kind in values}


def first_row_id(store: FileStore, latest: Snapshot | None) -> int:
    """Return the first unused row id."""
    if latest is None:
        return 0
    # Some engines omit nextRowId, or leave it 0, although files have row ids. Reusing an id would replace rows.
    metas, following = store.manifest_metas(latest), latest.next_row_id or 0
    following = max([following, *(meta.max_row_id + 1 for meta in metas if meta.max_row_id is not None)])
    unknown = [meta for meta in metas if meta.max_row_id is None]
    if unknown and not latest.next_row_id:
        with store.reading(latest):
            entries = store.manifests.read_metas(unknown)
        ends = (entries.numbers("_FILE._FIRST_ROW_ID") + entries.row_count)[entries.present("_FILE._FIRST_ROW_ID")]
        following = max(following, int(ends.max(initial=0)))
    return following


def with_row_ids(entries: EntryColumns, first: int, snapshot_id: int) -> tuple[EntryColumns, int]:
    """Assign row ids from ``first`` to new files in order.

    Returns the entries and the next unused row id. New files get ``snapshot_id`` as sequence number, also those with columns of rows that
    have ids. Compacted files, and copies that have ids and numbers, stay as they are.
    """
    entries_with_ids: list[ManifestEntry] = []
    listed = entries.entries()
    following = max(
        [first, *(e.file.first_row_id + e.file.row_count for e in listed if e.kind is FileKind.ADD and e.file.first_row_id is not None)]
    )
    blobs: dict[str, int] = {}
    start = following
    for entry in listed:
        file = entry.file
        is_new = entry.kind is FileKind.ADD and file.file_source == FileSource.APPEND
        if is_new and (file.first_row_id is None or not file.min_sequence_number):
            numbers = {"first_row_id": file.first_row_id, "min_sequence_number": snapshot_id, "max_sequence_number": snapshot_id}
            if file.first_row_id is None and file.is_blob:  # it has rows of the file before it
                name = "".join(file.write_cols or ())
                numbers["first_row_id"] = blobs.get(name, start)
                blobs[name] = blobs.get(name, start) + file.row_count
            elif file.first_row_id is None:
                blobs, start = {}, following
                numbers["first_row_id"], following = following, following + file.row_count
            entries_with_ids.append(entry.model_copy(update={"file": file.model_copy(update=numbers)}))
        else:
            entries_with_ids.append(entry)
    return EntryColumns.of(entries_with_ids), following


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """User, identifier, kind and properties of a commit."""

    user: str
    identifier: int
    kind: CommitKind
    properties: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class CommitChange:
    """Entries of a snapshot and of its changelog.

    Args:
        entries: ADD and DELETE entries of data files.
        index_changed: Whether ``index_manifest`` replaces the inherited one.
        index_manifest: Name of the new index manifest. None: no index files.
        index_files: Names of the index files that the snapshot adds.
        statistics: Statistics file that replaces the inherited one. None: inherit.
        changelog: Entries of changelog files.
        merges: Thresholds for merging the manifests before it. None: those of the table, at the first attempt.
        revives: Whether an ADD has the identity of a file deleted before. The old DELETE must then leave the manifests.
        forgets: Whether the snapshot refers to live files only: neither to DELETEs of others nor to statistics of the table.
    """

    entries: EntryColumns
    index_changed: bool = False
    index_manifest: str | None = None
    index_files: frozenset[str] = frozenset()
    statistics: str | None = None
    changelog: EntryColumns = field(default_factory=lambda: EntryColumns.of(()))
    merges: MergePolicy | None = None
    revives: bool = False
    forgets: bool = False


class CommitAttempt:
    """Writer of one snapshot's metadata. Records every written file."""

    def __init__(self, store: FileStore) -> None:
        self._files = GroupSync(store.storage)
        self.store = store.through(self._files)
        self._changes: EntryColumns | None = None

    def prepare(self, latest: Snapshot | None, change: CommitChange, identity: CommitIdentity, *, merging: bool) -> Snapshot:
        """Write manifests and lists of ``change`` and build its snapshot.

        The files are durable on return.
        """
        store = self.store
        snapshot_id = 1 if latest is None else latest.id + 1
        entries, next_row_id = change.entries, (latest.next_row_id if latest else None) or 0
        if store.options.row_tracking_enabled:
            entries, next_row_id = with_row_ids(entries, first_row_id(store, latest), snapshot_id)
        self._changes = entries
        is_clustered = len(entries) >= thresholds.clustered_entries
        delta = (store.manifests.write_clustered if is_clustered else store.manifests.write)(entries)
        if len(delta) == 1:
            store.cache.put(delta[0].file_name, entries, entries_weight(entries))  # saves the next commit of this process a read
        failpoints.point("after-manifest")
        base = [] if latest is None else store.manifest_metas(latest)
        if (change.revives or change.forgets) and latest is not None:
            with store.reading(latest):
                base = forget_deletes(base, store.manifests)
        elif latest is not None and (merging or change.merges is not None):
            with store.reading(latest):
                base = merge_manifests(base, store.manifests, change.merges or store.merge_policy)
        base_list, base_size = store.manifest_lists.write(base)
        delta_list, delta_size = store.manifest_lists.write(delta)
        has_changelog = len(change.changelog) > 0
        log_list, log_size = store.manifest_lists.write(store.manifests.write(change.changelog)) if has_changelog else (None, None)
        for name, metas in ((base_list, base), (delta_list, delta)):
            store.cache.put(name, tuple(metas), list_weight(metas))
        # All files are durable before the snapshot that names them exists.
        schema_id, *_ = store.file_io.run_parallel(partial(_schema_id, store), self._files.flush, partial(_check_exists, store, latest))
        failpoints.point("after-manifest-list")
        records, now = record_count(entries), time.time_ns() // 1_000_000
        if latest is not None and latest.time_millis > now + _CLOCK_SKEW_MILLIS:
            _LOG.warning(
                "%s: the newest snapshot is %d s ahead of this machine's clock; set the clocks",
                store.root,
                (latest.time_millis - now) // 1000,
            )
        inherits = latest is not None and latest.schema_id == schema_id and not change.forgets
        return Snapshot(
            id=snapshot_id,
            schema_id=schema_id,
            base_manifest_list=base_list,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_list,
            delta_manifest_list_size=delta_size,
            changelog_manifest_list=log_list,
            changelog_manifest_list_size=log_size,
            changelog_record_count=record_count(change.changelog) if has_changelog else None,
            index_manifest=change.index_manifest if change.index_changed or latest is None else latest.index_manifest,
            commit_user=identity.user,
            commit_identifier=identity.identifier,
            commit_kind=identity.kind,
            # Time travel searches by time, so a clock that is behind must not take it back.
            time_millis=now if latest is None else max(now, latest.time_millis),
            total_record_count=records + (latest.total_record_count if latest else 0),
            delta_record_count=records,
            watermark=None if latest is None or latest.watermark == NO_WATERMARK else latest.watermark,
            statistics=change.statistics or (latest.statistics if inherits and latest is not None else None),
            properties=dict(identity.properties) if identity.properties else None,
            next_row_id=next_row_id,
        )

    def changed(self) -> list[PartitionStatistics]:
        """Return the change of each partition by the prepared snapshot."""
        return [] if self._changes is None else partition_statistics(self.store, self._changes)

    def discard(self) -> None:
        """Delete all files that this attempt wrote."""
        self._files.close()
        for path in self._files.written:
            with suppress(OSError):
                self._files.delete(path)
        self._files.written.clear()

    @contextmanager
    def discard_on_error(self) -> Iterator[None]:
        """Discard the attempt if the block raises.

        For the time before the snapshot file can exist.
        """
        try:
            yield
        except BaseException:
            self.discard()
            raise


def _schema_id(store: FileStore) -> int:
    """Return the id of the newest schema. Raises ``TableNotFound``."""
    if store.commits is not None:  # the server checks the id of the table itself
        newest = store.schemas.latest()
        return store.schema.id if newest is None else newest.id
    return store.schemas.newest_of(store.schema).id


def _check_exists(store: FileStore, latest: Snapshot | None) -> None:
    """Raise ``SnapshotExpired`` if the base snapshot no longer exists."""
    # An expired base has successors, so the next id was used too and its file may have expired: a create would succeed wrongly.
    if latest is not None and not store.snapshots.exists(latest.id):
        raise SnapshotExpired(f"{store.root}: snapshot {latest.id} has expired while a commit based on it was prepared")


def record_count(entries: EntryColumns) -> int:
    """Return rows added minus rows deleted."""
    signs = np.where(entries.kind == FileKind.ADD, 1, -1)
    return int((signs * entries.row_count).sum())


def verify_not_overwritten(store: FileStore, snapshot: Snapshot, latest: Snapshot | None, change: CommitChange) -> None:
    """Raise ``StorageError`` unless the created snapshot surely follows ``latest``.

    Files are kept even then. Other commits may lie on top of this snapshot and may have expired ``latest``, which looks the same.
    """
    # Guarded creates and catalog servers prove the order. An object store's put may arrive after snapshots up to its id have
    # expired, when the name is free again.
    if store.file_io.cancels_creates or store.commits is not None:
        return
    reason: StorageError | None = None
    for patience in (0.0, *_PATIENCE_SECONDS):
        time.sleep(patience)
        try:
            if _follows(store, snapshot, latest) or is_included(store, change):
                return
            reason = None
            break
        except StorageError as error:
            reason = error
    remember(store, snapshot)
    problem = (
        f"snapshot {snapshot.id} of '{snapshot.commit_user}' was created after its predecessors had expired, so it is unknown whether "
        "it was committed"
        if reason is None
        else f"committed as snapshot {snapshot.id} by '{snapshot.commit_user}', but the storage failed during verification "
        f"({reason.strerror})"
    )
    raise StorageError(
        errno.ESTALE if reason is None else reason.errno or errno.EIO,
        f"{store.root}: {problem}; repeat the call with that commit_id to be sure, it will not commit twice",
        None if reason is None else reason.filename,
    ) from reason


def _follows(store: FileStore, snapshot: Snapshot, latest: Snapshot | None) -> bool:
    """Return whether the base snapshot still exists.

    Snapshots expire in order, so an existing base proves that the next id was never used.
    """
    manager = store.snapshots
    if latest is not None and manager.exists(latest.id):
        return True
    newest = manager.latest_listed()
    return newest is None or newest.id == snapshot.id


def is_included(store: FileStore, change: CommitChange) -> bool:
    """Return whether the newest state proves that ``change`` was committed.

    False proves nothing: later commits may have compacted its files away.
    """
    newest = store.snapshots.latest_listed()
    if newest is None:
        return False
    if change.index_files and not change.index_files.isdisjoint(entry.file_name for entry in store.index_entries(newest)):
        return True
    if change.statistics is not None and newest.statistics == change.statistics:
        return True
    identities = change.entries.identities()
    alive = set(store.live_entries(newest).identities())
    added = {row for row, kind in enumerate(change.entries.kind.tolist()) if kind == FileKind.ADD}
    return any((identities[row] in alive) == (row in added) for row in added or range(len(identities)))


def remember(store: FileStore, snapshot: Snapshot) -> None:
    """Leave a marker of a commit, unless it has one.

    For commits that a message names: a repetition is then recognised after ``snapshot`` has expired.
    """
    with suppress(PaimonError, OSError):  # the message about the commit matters more
        if not list_markers(store, snapshot.commit_user, snapshot.commit_identifier):
            write_marker(store, snapshot.commit_user, snapshot.commit_identifier, snapshot.id - 1)
