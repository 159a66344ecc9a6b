"""One attempt at a commit: it writes metadata, publishes a snapshot, or takes everything back."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from fileindex.base.thresholds import thresholds
from manifest.commit.partition_statistics import partition_statistics
from manifest.commit.row_tracking import first_row_id, with_row_ids
from manifest.entry.cache import entries_weight, list_weight
from manifest.entry.columns import EntryColumns
from manifest.entry.manifest_entry import FileKind
from manifest.entry.manifest_merge import forget_deletes, merge_manifests
from manifest.io import failpoints
from manifest.io.errors import SnapshotExpired
from manifest.io.file_io import FileIO
from manifest.io.group_sync import GroupSync
from manifest.io.wrapped import WrappedFileIO
from manifest.snapshot.snapshot import NO_WATERMARK, CommitKind, Snapshot
from manifest.snapshot.snapshot_commit import PartitionStatistics
from manifest.store import FileStore


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """Who commits, which of his commits, and what he says with it."""

    user: str
    identifier: int
    kind: CommitKind
    properties: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class CommitChange:
    """The entries of a snapshot and of its changelog; ``index_manifest`` replaces the inherited one if ``index_changed``.

    ``index_files`` are the names of the index files that it adds; ``statistics`` replaces the inherited file. ``revives``: an ADD
    has the identity of a file that was deleted before, so that DELETE must go from the manifests.
    """

    entries: EntryColumns
    index_changed: bool = False
    index_manifest: str | None = None
    index_files: frozenset[str] = frozenset()
    statistics: str | None = None
    changelog: EntryColumns = field(default_factory=lambda: EntryColumns.of(()))
    revives: bool = False


class CommitAttempt:
    """Writes the metadata of one snapshot through ``store``, and knows every file that it wrote."""

    def __init__(self, store: FileStore) -> None:
        self._together = GroupSync(store.file_io)
        self._record = _Recording(self._together)
        self.store = store.through(self._record)
        self._changes: EntryColumns | None = None

    def prepare(self, latest: Snapshot | None, change: CommitChange, identity: CommitIdentity, *, merging: bool) -> Snapshot:
        """Write the manifests and the two lists of ``change`` on top of ``latest``, durably, and compose the snapshot."""
        store = self.store
        snapshot_id = 1 if latest is None else latest.id + 1
        entries, next_row_id = change.entries, (latest.next_row_id if latest else None) or 0
        if store.options.row_tracking_enabled:
            entries, next_row_id = with_row_ids(entries, first_row_id(store, latest), snapshot_id)
        self._changes = entries
        many = len(entries) >= thresholds().clustered_entries
        delta = (store.manifests.write_clustered if many else store.manifests.write)(entries)
        if len(delta) == 1:
            store.cache.put(delta[0].file_name, entries, entries_weight(entries))  # the next commit of this process need not read it
        failpoints.point("after-manifest")
        base = [] if latest is None else store.manifest_metas(latest)
        if change.revives and latest is not None:
            with store.reading(latest):
                base = forget_deletes(base, store.manifests)
        elif merging and latest is not None:
            with store.reading(latest):
                base = merge_manifests(base, store.manifests, store.merge_policy)
        base_list, base_size = store.manifest_lists.write(base)
        delta_list, delta_size = store.manifest_lists.write(delta)
        has_changelog = len(change.changelog) > 0
        log_list, log_size = store.manifest_lists.write(store.manifests.write(change.changelog)) if has_changelog else (None, None)
        for name, metas in ((base_list, base), (delta_list, delta)):
            store.cache.put(name, tuple(metas), list_weight(metas))
        schema_id, *_ = store.file_io.together(partial(_schema_id, store), self._together.settle, partial(_check_there, store, latest))
        failpoints.point("after-manifest-list")
        records = record_count(entries)
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
            time_millis=time.time_ns() // 1_000_000,
            total_record_count=records + (latest.total_record_count if latest else 0),
            delta_record_count=records,
            watermark=None if latest is None or latest.watermark == NO_WATERMARK else latest.watermark,
            statistics=change.statistics or (latest.statistics if latest is not None and latest.schema_id == schema_id else None),
            properties=dict(identity.properties) if identity.properties else None,
            next_row_id=next_row_id,
        )

    def changed(self) -> list[PartitionStatistics]:
        """What the prepared snapshot does to each partition."""
        return [] if self._changes is None else partition_statistics(self.store, self._changes)

    def discard(self) -> None:
        """Delete what this attempt wrote."""
        self._together.close()
        for path in self._record.written:
            with suppress(OSError):
                self._record.inner.delete(path)
        self._record.written.clear()

    @contextmanager
    def or_nothing(self) -> Iterator[None]:
        """Discard if the block fails in any way, before its snapshot could exist."""
        try:
            yield
        except BaseException:
            self.discard()
            raise


def _schema_id(store: FileStore) -> int:
    """Return the id of the newest schema. Raises ``TableNotFound`` if the table is gone, or is another one."""
    if store.commits is not None:  # the server asks for the table's own id
        newest = store.schemas.latest()
        return store.schema.id if newest is None else newest.id
    return store.schemas.newest_of(store.schema).id


def _check_there(store: FileStore, latest: Snapshot | None) -> None:
    """Raise ``SnapshotExpired`` for a base that is gone: there are newer snapshots then, and the next id was taken, too."""
    if latest is not None and not store.snapshots.exists(latest.id):
        raise SnapshotExpired(f"{store.root}: snapshot {latest.id} has expired while a commit was made on it")


def record_count(entries: EntryColumns) -> int:
    """Rows added minus rows deleted."""
    signs = np.where(entries.kind == FileKind.ADD, 1, -1)
    return int((signs * entries.row_count).sum())


class _Recording(WrappedFileIO):
    """Remembers which files were written."""

    def __init__(self, inner: FileIO) -> None:
        super().__init__(inner)
        self.written: list[str] = []

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:
        """Write and remember; a file that failed halfway is remembered too."""
        self.written.append(path)
        self.inner.write(path, data, overwrite=overwrite, durable=durable)


__all__ = ["CommitAttempt", "CommitChange", "CommitIdentity"]
