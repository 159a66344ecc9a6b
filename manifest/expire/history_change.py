"""Replacement of a branch's newest snapshots, for rollback and fast-forward.

A commit prepared on the old history must not become visible on the new one, however late it arrives.

- Local files: the pending file of the change is written first. Then every unfinished snapshot creation is cancelled (``cancel_creates``).
  Then snapshots are deleted or replaced. A commit whose temporary file existed before fails to link it. A later commit finds the pending
  file, or a missing base, in its guard (``SnapshotManager.is_successor``).
- Object stores cannot cancel a put, so no id may become free again. The target's state is committed as a snapshot of the next id, and
  the snapshots in between are overwritten with the same state. A late put fails because its name exists.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from manifest.expire.delete_files import Removed, remove_unreachable
from manifest.expire.tag_lock import lock_tags
from manifest.io import failpoints
from manifest.io.checksum import with_checksum
from manifest.io.errors import HistoryBusy, SnapshotNotFound, StorageError, UnsafeFileIO
from manifest.io.paths import EARLIEST, LATEST, SNAPSHOT, parse_number, tag_name
from manifest.snapshot.commit_info import FAST_FORWARD, commit_properties
from manifest.snapshot.pending_history import UNREADABLE, PendingHistory
from manifest.snapshot.snapshot import BATCH_IDENTIFIER, FIRST_REPLACED, CommitKind, Snapshot, Tag
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from paimon_base.log import logger_of
from paimon_base.plugins import plugin

_LOG = logger_of(__name__)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Removed snapshots, tags and changelogs, whose files may be deleted."""

    target: Snapshot
    tags: Mapping[str, Tag]
    snapshots: Sequence[Snapshot]
    changelogs: Sequence[Snapshot]

    def remove_files(self, store: FileStore) -> Removed:
        """Delete the files that only the removed states used.

        Readers of Iceberg see the remaining state before.
        """
        if store.writes_iceberg:
            plugin("after-commit", "iceberg")(store)
        forgotten_ids = {self.target.id, *(snapshot.id for snapshot in self.snapshots)}
        after_unknown = [snapshot for snapshot in self.snapshots if snapshot.id - 1 not in forgotten_ids]
        data, manifests = remove_unreachable(store, [*self.tags.values(), *after_unknown], [*self.snapshots, *self.changelogs])
        return Removed(len(self.snapshots), tuple(sorted(self.tags)), data, manifests)


@contextmanager
def lock_history(store: FileStore, action: str, seconds: float | None = None) -> Iterator[None]:
    """Lock snapshots of the store's branch against deletion and replacement.

    Raises ``HistoryBusy``.
    """
    # Snapshots are deleted by name: a late deletion would hit another snapshot of that name. Object stores need no lock,
    # because they never reuse an id.
    with store.file_io.lock(store.paths.metadata_root, seconds) as alone:
        if not alone and store.file_io.is_directory(store.paths.metadata_root):
            raise HistoryBusy(
                f"{store.root}: {action} did nothing, because another process rolls back, fast-forwards or expires snapshots; try again"
            )
        yield


def change_history(store: FileStore, pending: PendingHistory) -> Forgotten:
    """Apply a change to the store's branch.

    The caller holds the history lock. Files of removed states stay until ``Forgotten.removed`` is called. Raises ``HistoryBusy``.
    """
    with lock_tags(store, "the change of history"):
        if not store.file_io.cancels_creates:
            return _supersede(store, pending)
        _write_pending_file(store, pending)
        if pending.source is not None and pending.source not in store.snapshots.branch_names():
            # Deleting a branch keeps the files that a pending file names. A branch that exists now keeps all its files.
            store.file_io.delete(store.paths.pending_history)
            raise SnapshotNotFound(f"{store.root}: branch '{pending.source}' was deleted meanwhile; nothing was changed")
        return _replace(store, pending)


def finish_change(store: FileStore, pending: PendingHistory) -> Forgotten:
    """Finish an interrupted change. Raises ``HistoryBusy``.

    The caller holds the history lock.
    """
    action = f"the rollback or fast-forward to snapshot {pending.target.id}"
    with lock_tags(store, action), _report_unfinished(store, action):
        if not store.file_io.cancels_creates:
            return _supersede(store, pending)
        _write_pending_file(store, pending)  # again: the interruption may precede the cancellation of commits
        return _replace(store, pending)


def finish_pending(store: FileStore) -> None:
    """Finish an interrupted change and delete its files.

    Does nothing without one. The caller holds the history lock.
    """
    pending = store.snapshots.pending_history()
    if pending is not None:
        finish_change(store, pending).remove_files(store)
        _LOG.info("%s: finished the interrupted change to snapshot %d", store.root, pending.target.id)


def finish_replacing(store: FileStore, newest: Snapshot) -> None:
    """Finish the rollback of an object store that committed ``newest``."""
    first = newest.first_replaced
    if first is None:
        return
    # Older snapshots are overwritten in descending order, so that the oldest is the last.
    oldest = store.snapshots.stored(max(first, store.snapshots.earliest_id() or first))
    if oldest is not None and oldest.delta_manifest_list != newest.delta_manifest_list:
        Forgotten(newest, {}, _overwrite_older(store, newest, oldest.id), ()).remove_files(store)


@contextmanager
def changing_history(store: FileStore, action: str) -> Iterator[None]:
    """Lock the history and finish an interrupted change first.

    ``action`` describes the block in errors. A storage error of the block is reported as a possibly partial change. Raises ``HistoryBusy``.
    """
    with store.file_io.fair_lock(store.paths.snapshots), lock_history(store, action), _report_unfinished(store, action):
        finish_pending(store)
        yield


def finish_interrupted(store: FileStore, action: str) -> None:
    """Finish an interrupted change of history before ``action``.

    Does nothing without one. Raises ``HistoryBusy``.
    """
    if store.snapshots.change_under_way() is not None:
        with changing_history(store, action):
            pass


@contextmanager
def _report_unfinished(store: FileStore, action: str) -> Iterator[None]:
    """Report storage errors of the block as a partial change."""
    try:
        yield
    except StorageError as error:
        reason = (
            f"{store.root}: {action} was interrupted and may be partly or completely done ({error.strerror}); call it again to finish it"
        )
        raise type(error)(error.errno, reason, error.filename) from error


def _replace(store: FileStore, pending: PendingHistory) -> Forgotten:
    """Replace the history on storage that can cancel creations.

    The pending file is already written.
    """
    file_io, manager = store.file_io, store.snapshots
    _lower_hint(store, pending)
    tags = _delete_tags(store, pending)  # before their ids are reused
    changelogs = manager.kept.forget_unless(pending.keeps)
    _write_schemas(store, pending)
    _delete_newer_schemas(store, pending)
    gone = _write_snapshots(store, pending)
    gone += _delete_doomed(store, pending)
    tags |= _delete_tags(store, pending)  # created meanwhile
    for name, text in pending.tags.items():
        file_io.write(store.paths.tag(tag_name(name)), text.encode(), overwrite=True)
    with suppress(OSError):  # the pending file of a finished change has no effect
        file_io.delete(store.paths.pending_history)
    return Forgotten(pending.target, tags, sorted(gone, key=lambda snapshot: snapshot.id), changelogs)


def _write_pending_file(store: FileStore, pending: PendingHistory) -> None:
    """Write the pending file, then cancel all unfinished commits."""
    path = store.paths.pending_history
    store.file_io.write(path, pending.to_json(path), overwrite=True)
    store.file_io.cancel_creates(store.paths.snapshots, lambda name: name in {LATEST, EARLIEST} or parse_number(name, SNAPSHOT) is not None)


def _lower_hint(store: FileStore, pending: PendingHistory) -> None:
    """Point the hints to the target, for other engines."""
    # Our readers read the pending file.
    target = store.snapshots.stored_delta(pending.target.id)
    with suppress(OSError):  # a missing hint costs a listing
        if pending.restores:  # snapshots older than the current oldest may be restored
            store.file_io.delete(store.paths.earliest_hint)
        if target == pending.target.delta_manifest_list:
            store.snapshots.write_latest_hint(pending.target.id)
        else:
            store.file_io.delete(store.paths.latest_hint)
    failpoints.point("inside-rollback")


def _delete_tags(store: FileStore, pending: PendingHistory, newest: Snapshot | None = None) -> dict[str, Tag]:
    """Delete the tags of the old history.

    ``newest`` is the commit that replaces it. Its tags and later ones stay.
    """
    tags = {name: tag for name, tag in store.snapshots.stored_tags().items() if not pending.keeps(tag)}
    if newest is not None:
        tags = {name: tag for name, tag in tags.items() if tag.id < newest.id and tag.delta_manifest_list != newest.delta_manifest_list}
    deleted: dict[str, Tag] = {}
    for name, tag in tags.items():
        # A later change of history may have written a tag of that name, and deletion does not compare the content.
        if newest is not None and not _is_intact(store, newest):
            break
        if name not in pending.tags:  # the others are overwritten
            store.snapshots.delete_tag(name)
        deleted[name] = tag
    return deleted


def _is_intact(store: FileStore, newest: Snapshot) -> bool:
    """Return whether no later history change has overwritten ``newest``."""
    stored = store.snapshots.stored(newest.id)
    return stored is not None and stored.key == newest.key


def _write_schemas(store: FileStore, pending: PendingHistory) -> None:
    """Write the schemas of the new history."""
    for schema_id, text in pending.schemas.items():
        store.file_io.write(store.paths.schema_file(schema_id), text.encode(), overwrite=True)


def _delete_newer_schemas(store: FileStore, pending: PendingHistory) -> None:
    """Delete schemas newer than those of the new history."""
    for schema_id in reversed(store.schemas.stored_ids() if pending.schemas else ()):
        if schema_id > max(pending.schemas):
            store.file_io.delete(store.paths.schema_file(schema_id))


def _write_snapshots(store: FileStore, pending: PendingHistory) -> list[Snapshot]:
    """Write snapshots of the new history and return overwritten ones."""
    gone: list[Snapshot] = []
    # Newest first: until the last write, the old history ends with its newest snapshot.
    for snapshot_id in sorted(pending.contents, reverse=True):
        delta = store.snapshots.stored_delta(snapshot_id)
        if delta == pending.expected[snapshot_id]:
            continue
        gone += _parsed(store, snapshot_id, delta)
        store.file_io.write(store.paths.snapshot_file(snapshot_id), pending.contents[snapshot_id].encode(), overwrite=True)
    return gone


def _parsed(store: FileStore, snapshot_id: int, delta: str | None) -> list[Snapshot]:
    """Return the stored snapshot. Files of an unreadable one stay as orphans."""
    stored = None if delta in {None, UNREADABLE} else store.snapshots.stored(snapshot_id)
    return [] if stored is None else [stored]


def _delete_doomed(store: FileStore, pending: PendingHistory) -> list[Snapshot]:
    """Delete snapshots that the new history lacks and return them.

    Newest first. Restores an expired target before deleting the last one. Stops if another process finished the change and committed since.
    """
    manager, paths = store.snapshots, store.paths
    gone: list[Snapshot] = []
    while rest := _to_delete(store, pending):
        if any(pending.doomed.get(i, delta) != delta for i, delta in rest.items()):
            return gone
        if not rest.keys() <= pending.doomed.keys():  # committed by an engine that ignores the pending file
            pending = replace(pending, doomed={**pending.doomed, **rest})
            _write_pending_file(store, pending)
        for snapshot_id in reversed(rest):
            gone += _parsed(store, snapshot_id, rest[snapshot_id])
            if snapshot_id == min(rest):
                _put_back(store, pending)
            store.file_io.delete(paths.snapshot_file(snapshot_id))
    _put_back(store, pending)
    with suppress(OSError):
        manager.write_latest_hint(pending.target.id)
        manager.write_earliest_hint(min(manager.stored_ids()))
    return gone


def _to_delete(store: FileStore, pending: PendingHistory) -> dict[int, str]:
    """Return the deltas of snapshots that remain to be deleted, ascending by id."""
    manager, expected = store.snapshots, pending.expected
    # Newer than the target, or listed as doomed and not overwritten.
    ids = (i for i in manager.stored_ids() if i > pending.target.id or (i in pending.doomed and i not in expected))
    return {i: delta for i in ids if (delta := manager.stored_delta(i)) is not None}


def _put_back(store: FileStore, pending: PendingHistory) -> None:
    """Restore the target's snapshot file if it has expired."""
    stored = store.snapshots.stored_delta(pending.target.id)
    path = store.paths.snapshot_file(pending.target.id)
    content = with_checksum(path, pending.target.to_json())
    if pending.restores and stored == UNREADABLE:
        store.file_io.write(path, content, overwrite=True)
    elif pending.restores and stored is None:
        store.file_io.create_exclusive(path, content)


def _newest_parsed(store: FileStore) -> Snapshot | None:
    """Return the newest snapshot whose file can be parsed."""
    manager = store.snapshots
    if manager.commits is not None:
        return manager.latest_listed()
    readable = [i for i, delta in manager.stored_deltas().items() if delta != UNREADABLE]
    return manager.stored(readable[-1]) if readable else None


def _supersede(store: FileStore, pending: PendingHistory) -> Forgotten:
    """Commit the target's state again and overwrite older snapshots."""
    # A late put cannot be cancelled here, so every id must stay in use.
    manager, target = store.snapshots, pending.target
    newest = _newest_parsed(store)
    _write_schemas(store, pending)
    if not pending.doomed and newest is not None and newest.delta_manifest_list == target.delta_manifest_list:
        _delete_newer_schemas(store, pending)
        _write_tags(store, pending, newest)
        return Forgotten(target, {}, (), ())
    base_list, base_size = store.manifest_lists.write(store.manifest_metas(target))
    delta_list, delta_size = store.manifest_lists.write([])
    oldest = min(pending.doomed, default=target.id + 1)
    # Tags may name snapshots between the target and the oldest one that still exists.
    first = target.id + 1 if pending.source is None else oldest
    while True:
        newest_time, row_id = (0, None) if newest is None else (newest.time_millis, newest.next_row_id)
        newest_id = max(manager.stored_ids(), default=0)
        snapshot = target.model_copy(
            update={
                "id": newest_id + 1,
                "uuid": None,
                "base_manifest_list": base_list,
                "base_manifest_list_size": base_size,
                "delta_manifest_list": delta_list,
                "delta_manifest_list_size": delta_size,
                "changelog_manifest_list": None,
                "changelog_manifest_list_size": None,
                "changelog_record_count": None,
                "commit_user": str(uuid.uuid4()),
                "commit_identifier": BATCH_IDENTIFIER,
                "commit_kind": CommitKind.OVERWRITE,
                "time_millis": max(time.time_ns() // 1_000_000, newest_time),
                "delta_record_count": 0,
                "properties": {FIRST_REPLACED: str(first), **commit_properties("rollback" if pending.source is None else FAST_FORWARD)},
                "next_row_id": max((i for i in (row_id, target.next_row_id) if i is not None), default=None),
            }
        )
        if manager.try_create(snapshot):
            break
        newest = _newest_parsed(store)
    manager.tell_created(snapshot.id)
    changelogs = manager.kept.forget_unless(pending.keeps)
    gone = _overwrite_older(store, snapshot, oldest)
    # Snapshots of the old history need the newer schemas until they are overwritten.
    _delete_newer_schemas(store, pending)
    # After the snapshots: a tag created until now either finds its snapshot gone, or is found here.
    tags = _delete_tags(store, pending, snapshot)
    _write_tags(store, pending, snapshot)
    with suppress(OSError):
        store.file_io.delete(store.paths.pending_history)  # an older version of this package may have left one
    return Forgotten(target, tags, gone, changelogs)


def _write_tags(store: FileStore, pending: PendingHistory, newest: Snapshot) -> None:
    """Write the tags of the new history."""
    for name, text in pending.tags.items():
        store.file_io.write(store.paths.tag(tag_name(name)), text.encode(), overwrite=True)
    # A rollback overwrites ``newest`` before it lists the tags: if ``newest`` is intact here, that listing has these tags.
    # Delete them again if a rollback of newest removed their snapshots meanwhile.
    later = store.snapshots.stored(newest.id) if pending.tags else None
    if later is None or later.key == newest.key or later.first_replaced is None:
        return
    for name, text in pending.tags.items():
        tag = Tag.from_json(text, store.paths.tag(tag_name(name)))
        if tag.id >= later.first_replaced and tag.delta_manifest_list != later.delta_manifest_list:
            store.snapshots.delete_tag(name)


def _overwrite_older(store: FileStore, newest: Snapshot, oldest: int) -> list[Snapshot]:
    """Overwrite snapshots before ``newest`` with its state.

    Goes down to ``oldest``. Returns the overwritten snapshots, ascending. Stops if a later rollback overwrites ``newest`` itself.
    """
    gone: list[Snapshot] = []
    for snapshot_id in range(newest.id - 1, oldest - 1, -1):
        path = store.paths.snapshot_file(snapshot_id)
        try:
            before = store.file_io.read(path)
        except FileNotFoundError:  # expired
            continue
        old: Snapshot | None = None
        with suppress(CorruptFile):  # overwritten all the same
            old = Snapshot.from_json(before, path)
        time_millis = newest.time_millis if old is None else old.time_millis
        copy = newest.model_copy(update={"id": snapshot_id, "time_millis": time_millis, "schema_id": newest.schema_id})
        content = with_checksum(path, copy.to_json())
        if content == before:
            continue
        # A later rollback overwrites ``newest`` before the older ones. Checking after the read makes the replacement below safe.
        if not _is_intact(store, newest):
            break
        gone += [] if old is None else [old]
        try:
            store.file_io.replace(path, before, content)
        except UnsafeFileIO:  # differs from replace only if an expiry deletes the file right now
            store.file_io.write(path, content, overwrite=True)
    return gone[::-1]
