"""Replace the newest part of a branch's history: the common core of rollback and fast-forward.

A commit that was prepared on the old history must not become visible on the new one, however late it comes. How that is prevented depends
on the storage:

* Local files: the note of the change is written first, then every unfinished creation of a snapshot is cancelled (``cancel_creates``), then
  snapshots are deleted or replaced. A commit whose temporary file existed before that fails to link it; one that begins later sees the note,
  or a base that is gone, in its guard (``SnapshotManager.is_successor``).
* Object stores cannot cancel a put. There no id becomes free again: the target's state is committed as a snapshot of the next id, and the
  snapshots in between are overwritten with the same state. A late put fails because its name is taken.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from fileindex.base.log import logger_of
from manifest.expire.removal import Removed, remove_unreachable
from manifest.expire.tags import tags_locked
from manifest.io import failpoints
from manifest.io.errors import HistoryBusy, SnapshotNotFound, StorageError, UnsafeFileIO
from manifest.io.paths import EARLIEST, LATEST, SNAPSHOT, numbered, tag_name
from manifest.io.seal import sealed
from manifest.snapshot.pending_history import PendingHistory
from manifest.snapshot.snapshot import BATCH_IDENTIFIER, FIRST_REPLACED, CommitKind, Snapshot
from manifest.snapshot.tag import Tag
from manifest.store import FileStore

_LOG = logger_of(__name__)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Snapshots, tags and changelogs that can no longer be read, whose files may go."""

    target: Snapshot
    tags: Mapping[str, Tag]
    snapshots: Sequence[Snapshot]
    changelogs: Sequence[Snapshot]

    def removed(self, store: FileStore) -> Removed:
        """Delete the files that only the forgotten states used."""
        known = {self.target.id, *(snapshot.id for snapshot in self.snapshots)}
        after_unknown = [snapshot for snapshot in self.snapshots if snapshot.id - 1 not in known]
        data, manifests = remove_unreachable(store, [*self.tags.values(), *after_unknown], [*self.snapshots, *self.changelogs])
        return Removed(len(self.snapshots), tuple(sorted(self.tags)), data, manifests)


@contextmanager
def history_locked(store: FileStore, action: str, seconds: float | None = None) -> Iterator[None]:
    """Keep other processes from deleting or replacing snapshots of the store's branch. Raises ``HistoryBusy``.

    A snapshot is deleted by its name, and a late deletion would meet another snapshot of that name. Object stores have no lock and need
    none: there no id is given again.
    """
    with store.file_io.lock(store.paths.metadata_root, seconds) as alone:
        if not alone and store.file_io.is_directory(store.paths.metadata_root):
            raise HistoryBusy(
                f"{store.root}: {action} has to wait for another process that rolls back, fast-forwards or expires snapshots; nothing was "
                "done by this call, try again"
            )
        yield


def change_history(store: FileStore, pending: PendingHistory) -> Forgotten:
    """Carry out a change of the store's branch; the caller holds its history locked.

    Files of what is forgotten stay until ``Forgotten.removed`` is called. Raises ``HistoryBusy``.
    """
    with tags_locked(store, "the change of history"):
        if not store.file_io.cancels_creates:
            return _superseded(store, pending)
        _write_note(store, pending)
        if pending.source is not None and pending.source not in store.snapshots.branch_names():
            # Deleting a branch keeps the files that a note names, so that a branch that is there now loses none of them.
            store.file_io.delete(store.paths.pending_history)
            raise SnapshotNotFound(f"{store.root}: branch '{pending.source}' was deleted meanwhile; nothing was changed")
        return _replaced(store, pending)


def finish_change(store: FileStore, pending: PendingHistory) -> Forgotten:
    """Finish a change that was cut off; the caller holds the history locked. Raises ``HistoryBusy``."""
    action = f"the rollback or fast-forward to snapshot {pending.target.id}"
    with tags_locked(store, action), _reported_unfinished(store, action):
        if not store.file_io.cancels_creates:
            return _superseded(store, pending)
        _write_note(store, pending)  # again: it may have been cut off before commits were cancelled
        return _replaced(store, pending)


def finish_pending(store: FileStore) -> None:
    """Finish the change that was cut off, if there is one, and delete its files; the caller holds the history locked."""
    pending = store.snapshots.pending_history()
    if pending is not None:
        finish_change(store, pending).removed(store)
        _LOG.info("%s: finished the change to snapshot %d, which had been cut off", store.root, pending.target.id)


def finish_replacing(store: FileStore, newest: Snapshot) -> None:
    """On an object store, finish the rollback that committed ``newest`` if it was cut off."""
    first = newest.first_replaced
    if first is None:
        return
    # Older snapshots are overwritten in descending order, so that the oldest is the last.
    oldest = store.snapshots.stored(max(first, store.snapshots.earliest_id() or first))
    if oldest is not None and oldest.delta_manifest_list != newest.delta_manifest_list:
        Forgotten(newest, {}, _overwrite_older(store, newest, oldest.id), ()).removed(store)


@contextmanager
def changing_history(store: FileStore, action: str) -> Iterator[None]:
    """Lock the history for ``action``, finish what was cut off before, and say in a storage error that it may be done in part.

    Raises ``HistoryBusy``.
    """
    with store.file_io.turn(store.paths.snapshots), history_locked(store, action), _reported_unfinished(store, action):
        finish_pending(store)
        yield


@contextmanager
def _reported_unfinished(store: FileStore, action: str) -> Iterator[None]:
    """Say in a storage error that the change may be done in part and has to be finished."""
    try:
        yield
    except StorageError as error:
        reason = f"{store.root}: {action} was cut off, and may be done in part or whole ({error.strerror}); call it again to finish it"
        raise type(error)(error.errno, reason, error.filename) from error


def _replaced(store: FileStore, pending: PendingHistory) -> Forgotten:
    """Change the history where unfinished creations can be cancelled; the note is written."""
    file_io, manager = store.file_io, store.snapshots
    _lower_hint(store, pending)
    tags = _delete_tags(store, pending)  # before the ids that they name are given again
    changelogs = manager.kept.forget_unless(pending.keeps)
    _write_schemas(store, pending)
    gone = _write_snapshots(store, pending)
    gone += _delete_doomed(store, pending)
    tags |= _delete_tags(store, pending)  # made meanwhile
    for name, text in pending.tags.items():
        file_io.write(store.paths.tag(tag_name(name)), text.encode(), overwrite=True)
    with suppress(OSError):  # a finished note says nothing
        file_io.delete(store.paths.pending_history)
    return Forgotten(pending.target, tags, sorted(gone, key=lambda snapshot: snapshot.id), changelogs)


def _write_note(store: FileStore, pending: PendingHistory) -> None:
    """Make the change known, then cancel the commits that cannot have seen it."""
    path = store.paths.pending_history
    store.file_io.write(path, pending.to_json(path), overwrite=True)
    store.file_io.cancel_creates(store.paths.snapshots, lambda name: name in {LATEST, EARLIEST} or numbered(name, SNAPSHOT) is not None)


def _lower_hint(store: FileStore, pending: PendingHistory) -> None:
    """Have the hints lead other engines to the target; readers of ours have the note."""
    target = store.snapshots.stored(pending.target.id)
    with suppress(OSError):  # a missing hint costs a listing
        if pending.restores:  # older snapshots than the oldest may come back
            store.file_io.delete(store.paths.earliest_hint)
        if target is not None and target.key == pending.target.key:
            store.snapshots.write_latest_hint(target.id)
        else:
            store.file_io.delete(store.paths.latest_hint)
    failpoints.point("inside-rollback")


def _delete_tags(store: FileStore, pending: PendingHistory, newest: Snapshot | None = None) -> dict[str, Tag]:
    """Delete the tags of the history that was. ``newest`` is the commit that replaces it: tags of it and of later ones stay."""
    tags = {name: tag for name, tag in store.snapshots.stored_tags().items() if not pending.keeps(tag)}
    if newest is not None:
        tags = {name: tag for name, tag in tags.items() if tag.id < newest.id and tag.delta_manifest_list != newest.delta_manifest_list}
    deleted: dict[str, Tag] = {}
    for name, tag in tags.items():
        # A later change of history may have written a tag of that name. Stores do not compare before they delete.
        if newest is not None and not _is_intact(store, newest):
            break
        if name not in pending.tags:  # else it is overwritten
            store.snapshots.delete_tag(name)
        deleted[name] = tag
    return deleted


def _is_intact(store: FileStore, newest: Snapshot) -> bool:
    """Return whether no later change of history has overwritten the commit of this one."""
    stored = store.snapshots.stored(newest.id)
    return stored is not None and stored.key == newest.key


def _write_schemas(store: FileStore, pending: PendingHistory) -> None:
    """Write the schemas of the history to be and delete newer ones."""
    for schema_id, text in pending.schemas.items():
        store.file_io.write(store.paths.schema_file(schema_id), text.encode(), overwrite=True)
    for schema_id in reversed(store.schemas.stored_ids() if pending.schemas else ()):
        if schema_id > max(pending.schemas):
            store.file_io.delete(store.paths.schema_file(schema_id))


def _write_snapshots(store: FileStore, pending: PendingHistory) -> list[Snapshot]:
    """Write the snapshots of the history to be, the newest first: until then the old end is the newest. Returns those overwritten."""
    gone: list[Snapshot] = []
    for snapshot_id in sorted(pending.contents, reverse=True):
        stored = store.snapshots.stored(snapshot_id)
        if stored is not None and stored.delta_manifest_list == pending.expected[snapshot_id]:
            continue
        if stored is not None:
            gone.append(stored)
        store.file_io.write(store.paths.snapshot_file(snapshot_id), pending.contents[snapshot_id].encode(), overwrite=True)
    return gone


def _delete_doomed(store: FileStore, pending: PendingHistory) -> list[Snapshot]:
    """Delete snapshots that are not in the history to be, the newest first. Returns them.

    A target that has expired comes back before the last of them goes. Stops where another process has finished the change and committed since.
    """
    manager, paths = store.snapshots, store.paths
    gone: list[Snapshot] = []
    while rest := _to_delete(store, pending):
        if any(pending.doomed.get(i, found.delta_manifest_list) != found.delta_manifest_list for i, found in rest.items()):
            return gone
        if not rest.keys() <= pending.doomed.keys():  # committed by an engine that does not see the note
            more = {i: found.delta_manifest_list for i, found in rest.items()}
            pending = replace(pending, doomed={**pending.doomed, **more})
            _write_note(store, pending)
        for snapshot_id in reversed(rest):
            gone.append(rest[snapshot_id])
            if snapshot_id == min(rest):
                _put_back(store, pending)
            store.file_io.delete(paths.snapshot_file(snapshot_id))
    _put_back(store, pending)
    with suppress(OSError):
        manager.write_latest_hint(pending.target.id)
        manager.write_earliest_hint(min(manager.stored_ids()))
    return gone


def _to_delete(store: FileStore, pending: PendingHistory) -> dict[int, Snapshot]:
    """Return the stored snapshots that are newer than the target, or doomed and not overwritten, by id, ascending."""
    manager, expected = store.snapshots, pending.expected
    ids = (i for i in manager.stored_ids() if i > pending.target.id or (i in pending.doomed and i not in expected))
    return {i: found for i in ids if (found := manager.stored(i)) is not None}


def _put_back(store: FileStore, pending: PendingHistory) -> None:
    """Create the snapshot of a tag again if it has expired."""
    if not pending.restores or store.snapshots.exists(pending.target.id):
        return
    path = store.paths.snapshot_file(pending.target.id)
    store.file_io.create_exclusive(path, sealed(path, pending.target.to_json()))


def _superseded(store: FileStore, pending: PendingHistory) -> Forgotten:
    """Change the history where a late commit cannot be cancelled: every id stays taken."""
    manager, target = store.snapshots, pending.target
    newest = manager.latest_listed()
    if not pending.doomed and newest is not None and newest.delta_manifest_list == target.delta_manifest_list:
        return Forgotten(target, {}, (), ())
    _write_schemas(store, pending)
    base_list, base_size = store.manifest_lists.write(store.manifest_metas(target))
    delta_list, delta_size = store.manifest_lists.write([])
    oldest = min(pending.doomed, default=target.id + 1)
    # Tags may name snapshots between the target and the oldest that is there.
    first = target.id + 1 if pending.source is None else oldest
    while True:
        newest_id, newest_time, row_id = (0, 0, None) if newest is None else (newest.id, newest.time_millis, newest.next_row_id)
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
                "properties": {FIRST_REPLACED: str(first)},
                "next_row_id": max((i for i in (row_id, target.next_row_id) if i is not None), default=None),
            }
        )
        if manager.try_create(snapshot):
            break
        newest = manager.latest_listed()
    manager.tell_created(snapshot.id)
    changelogs = manager.kept.forget_unless(pending.keeps)
    gone = _overwrite_older(store, snapshot, oldest)
    # After the snapshots: a tag of one that is made until then finds it gone, or is found here.
    tags = _delete_tags(store, pending, snapshot)
    _write_tags(store, pending, snapshot)
    with suppress(OSError):
        store.file_io.delete(store.paths.pending_history)  # an older version may have left one
    return Forgotten(target, tags, gone, changelogs)


def _write_tags(store: FileStore, pending: PendingHistory, newest: Snapshot) -> None:
    """Write the tags of the history to be, but not those that a rollback of ``newest`` has removed meanwhile."""
    for name, text in pending.tags.items():
        store.file_io.write(store.paths.tag(tag_name(name)), text.encode(), overwrite=True)
    # A rollback overwrites ``newest`` before it lists the tags: if it is intact here, that listing will have these.
    later = store.snapshots.stored(newest.id) if pending.tags else None
    if later is None or later.key == newest.key or later.first_replaced is None:
        return
    for name, text in pending.tags.items():
        tag = Tag.from_json(text, store.paths.tag(tag_name(name)))
        if tag.id >= later.first_replaced and tag.delta_manifest_list != later.delta_manifest_list:
            store.snapshots.delete_tag(name)


def _overwrite_older(store: FileStore, newest: Snapshot, oldest: int) -> list[Snapshot]:
    """Overwrite the snapshots from ``oldest`` to before ``newest`` with its state. Returns what they were, ascending.

    Stops if ``newest`` is overwritten itself, by a later rollback.
    """
    gone: list[Snapshot] = []
    for snapshot_id in range(newest.id - 1, oldest - 1, -1):
        path = store.paths.snapshot_file(snapshot_id)
        try:
            before = store.file_io.read(path)
        except FileNotFoundError:  # expired
            continue
        old = Snapshot.from_json(before, path)
        copy = newest.model_copy(update={"id": snapshot_id, "time_millis": old.time_millis, "schema_id": newest.schema_id})
        content = sealed(path, copy.to_json())
        if content == before:
            continue
        # A later rollback overwrites ``newest`` before the older ones. Asked after the read, this makes the replacement below safe.
        if not _is_intact(store, newest):
            break
        gone.append(old)
        try:
            store.file_io.replace(path, before, content)
        except UnsafeFileIO:  # only an expiry at this very moment could make a difference
            store.file_io.write(path, content, overwrite=True)
    return gone[::-1]


__all__ = ["Forgotten", "change_history", "changing_history", "finish_change", "finish_pending", "finish_replacing", "history_locked"]
