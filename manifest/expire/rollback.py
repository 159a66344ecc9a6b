"""Taking back states of a table: rolling back to an older one, forgetting a tag; the files that only they used go too.

Follows Paimon's ``RollbackHelper`` and ``TagManager``. The hint is lowered before the snapshots that it points to are deleted,
the newest first, so that readers never believe in one that is gone. A note of what is going (``PendingRollback``) is written before:
when the hint is lowered the rollback is done for all readers of ours, and one that was killed is finished by the next commit or rollback.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime

from fileindex.base.errors import InvalidArgument, PaimonError
from fileindex.base.log import logger_of
from manifest.entry.manifest_entry import ManifestEntry
from manifest.expire.delete_files import delete_files, delete_metadata, entries_of
from manifest.expire.reachable import everything_reachable
from manifest.io import failpoints
from manifest.io.errors import CommitConflict, SnapshotExpired, SnapshotNotFound, StorageError
from manifest.io.paths import tag_name
from manifest.io.seal import sealed
from manifest.snapshot.pending_rollback import PendingRollback
from manifest.snapshot.snapshot import Snapshot
from manifest.snapshot.tag import Tag
from manifest.store import FileStore

_LOG = logger_of(__name__)


@dataclass(frozen=True, slots=True)
class Removed:
    """How many snapshots went, the names of the tags that went, and how many files with them."""

    snapshots: int = 0
    tags: tuple[str, ...] = ()
    data_files: int = 0
    manifests: int = 0


def rollback_to(store: FileStore, target: Snapshot) -> Removed:
    """Make ``target``, a snapshot or a tag of the store's branch, the newest state; everything newer is deleted.

    Commits that others make meanwhile are deleted too; schemas stay. Raises ``InvalidArgument`` if the target is gone.
    """
    manager = store.snapshots
    going = f"the rollback to snapshot {target.id}"
    with store.file_io.turn(store.paths.snapshots), told_unfinished(store, going):  # no commit of ours comes between
        if (cut_off := manager.pending_rollback()) is not None:
            finish_rollback(store, cut_off)
        if not isinstance(target, Tag) and not manager.exists(target.id):
            raise InvalidArgument(f"{store.root}: snapshot {target.id} is gone")
        restored = target.state if isinstance(target, Tag) else target
        forgotten = _forget(store, PendingRollback(restored, _newer(store, target.id), isinstance(target, Tag)))
    _LOG.info("%s: rolled back to snapshot %d, %d newer ones went", store.root, target.id, len(forgotten.snapshots))
    return forgotten.removed(store)


def forget_rolled_back(store: FileStore, pending: PendingRollback) -> None:
    """As ``finish_rollback``, but the files that only the forgotten states used are left to orphan removal."""
    with told_unfinished(store, f"the rollback to snapshot {pending.target.id}"):
        _forget(store, pending)


def finish_rollback(store: FileStore, pending: PendingRollback) -> Snapshot:
    """Finish a rollback that was cut off; who calls has its turn at the snapshots. Returns the newest snapshot then."""
    with told_unfinished(store, f"the rollback to snapshot {pending.target.id}"):
        forgotten = _forget(store, pending)
    forgotten.removed(store)
    _LOG.info("%s: finished the rollback to snapshot %d, which had been cut off", store.root, pending.target.id)
    return pending.target


@dataclass(frozen=True, slots=True)
class _Forgotten:
    """What nobody can read any more, and whose files may go."""

    target: Snapshot
    tags: Mapping[str, Tag]
    snapshots: Sequence[Snapshot]
    changelogs: Sequence[Snapshot]

    def removed(self, store: FileStore) -> Removed:
        known = {self.target.id, *(snapshot.id for snapshot in self.snapshots)}
        after_expired = [snapshot for snapshot in self.snapshots if snapshot.id - 1 not in known]  # these held what those had added
        states = [*self.tags.values(), *after_expired]
        data, manifests = remove_unreachable(store, states, [*self.snapshots, *self.changelogs])
        return Removed(len(self.snapshots), tuple(sorted(self.tags)), data, manifests)


def _forget(store: FileStore, pending: PendingRollback) -> _Forgotten:
    target, file_io = pending.target, store.file_io
    _note(store, pending)
    _lower_hint(store, target)
    tags = _delete_newer_tags(store, target)  # before the ids that they name can be given again
    changelogs = store.snapshots.kept.forget_after(target.id)
    gone = _delete_newer(store, pending)
    tags |= _delete_newer_tags(store, target)  # made meanwhile
    with suppress(OSError):  # a note of snapshots that are gone says nothing
        file_io.delete(store.paths.pending_rollback)
    return _Forgotten(target, tags, gone, changelogs)


def _newer(store: FileStore, target: int) -> dict[int, str]:
    """The delta manifest list of each snapshot after ``target``, by id, ascending."""
    newer: dict[int, str] = {}
    for snapshot_id in store.snapshots.ids():
        if snapshot_id > target:
            with suppress(SnapshotNotFound):  # another process finishes the same rollback
                newer[snapshot_id] = store.snapshots.get(snapshot_id).delta_manifest_list
    return newer


def _note(store: FileStore, pending: PendingRollback) -> None:
    path = store.paths.pending_rollback
    store.file_io.write(path, pending.to_json(path), overwrite=True)


def _lower_hint(store: FileStore, target: Snapshot) -> None:
    """From here on the newest snapshot is ``target`` for whoever reads the note."""
    if store.snapshots.exists(target.id):
        with suppress(OSError):  # a missing hint costs a listing
            store.snapshots.write_latest_hint(target.id)
    else:
        store.file_io.delete(store.paths.latest_hint)
    failpoints.point("inside-rollback")


@contextmanager
def told_unfinished(store: FileStore, going: str) -> Iterator[None]:
    """An error of the storage in the block leaves something half done that can only be finished: it says so."""
    try:
        yield
    except StorageError as error:
        reason = f"{store.root}: {going} was cut off, and may be done in part or whole ({error.strerror}); call it again to finish it"
        raise type(error)(error.errno, reason, error.filename) from error


def _delete_newer_tags(store: FileStore, target: Snapshot) -> dict[str, Tag]:
    tags = {name: tag for name, tag in store.snapshots.tags().items() if tag.id > target.id}
    for name in tags:
        store.snapshots.delete_tag(name)
    return tags


def _delete_newer(store: FileStore, pending: PendingRollback) -> list[Snapshot]:
    """Delete the snapshot files after the target, the newest first; its own, if it has expired, comes back before the last of them goes.

    Stops where another process has finished the rollback and committed since.
    """
    manager, file_io, paths, target = store.snapshots, store.file_io, store.paths, pending.target
    there, gone = manager.exists(target.id), list[Snapshot]()
    while newer := _newer(store, target.id):
        if any(pending.doomed.get(i, name) != name for i, name in newer.items()):
            return gone
        if not newer.keys() <= pending.doomed.keys():  # committed meanwhile by who does not wait for a turn
            pending = replace(pending, doomed={**pending.doomed, **newer})
            _note(store, pending)
        for snapshot_id in reversed(newer):
            with suppress(SnapshotNotFound):
                gone.append(manager.get(snapshot_id))
            if snapshot_id == min(newer) and not there:
                with suppress(OSError):  # other engines believe in what it names
                    file_io.delete(paths.earliest_hint)
                _put_back(store, pending)
            file_io.delete(paths.snapshot_file(snapshot_id))
    _put_back(store, pending)
    with suppress(OSError):
        manager.write_latest_hint(target.id)
        manager.write_earliest_hint(min(manager.ids()))
    return gone


def _put_back(store: FileStore, pending: PendingRollback) -> None:
    """Make the snapshot of a tag anew if it has expired, without its changelog, which a tag does not pin."""
    if pending.restores and not store.snapshots.exists(pending.target.id):
        path = store.paths.snapshot_file(pending.target.id)
        store.file_io.create_exclusive(path, sealed(path, pending.target.to_json()))


def delete_tag(store: FileStore, name: str) -> Removed:
    """Forget a tag and delete the files that only it used. Raises ``SnapshotNotFound``."""
    tag = store.snapshots.tag(name)
    if not store.snapshots.delete_tag(name):
        return Removed()
    if store.snapshots.exists(tag.id):
        return Removed(tags=(name,))
    data, manifests = remove_unreachable(store, [tag], ())
    return Removed(0, (name,), data, manifests)


def replace_tag(store: FileStore, name: str, snapshot: Snapshot, retained_ms: int | None) -> Removed:
    """Have a tag name another snapshot, in one step for readers; the files that only its old one used go.

    Raises ``SnapshotNotFound`` if there is no such tag, ``SnapshotExpired`` if the snapshot goes meanwhile, ``CommitConflict`` if another
    replaces or deletes the tag meanwhile, ``UnsafeFileIO`` where a store could not tell.
    """
    store.snapshots.tag(name)  # says what there is, if this one is not
    path = store.paths.tag(tag_name(name))
    before = store.file_io.read(path)
    old, after = Tag.from_json(before, path), sealed(path, Tag.of(snapshot, retained_ms).to_json())
    if not store.file_io.replace(path, before, after):
        raise CommitConflict(f"{store.root}: tag '{name}' was replaced or deleted by another meanwhile; nothing was changed by this call")
    if not store.snapshots.exists(snapshot.id):  # whoever deletes it looked for tags after that
        if not store.file_io.replace(path, after, before):
            raise SnapshotExpired(f"{store.root}: snapshot {snapshot.id} has expired, and another has replaced tag '{name}' since")
        raise SnapshotExpired(f"{store.root}: snapshot {snapshot.id} has expired; tag '{name}' is as it was")
    if old.id == snapshot.id or store.snapshots.exists(old.id):
        return Removed()
    data, manifests = remove_unreachable(store, [old], ())
    return Removed(0, (), data, manifests)


def rename_tag(store: FileStore, name: str, new_name: str) -> Tag:
    """Give a tag another name; for a moment both name the state, so that nothing of it can go.

    Raises ``SnapshotNotFound`` if there is no such tag, ``InvalidArgument`` if the new name is taken.
    """
    tag = store.snapshots.tag(name)
    path = store.paths.tag(tag_name(new_name))
    if not store.file_io.create_exclusive(path, sealed(path, tag.to_json())):
        raise InvalidArgument(f"{store.root}: tag '{new_name}' exists")
    if not store.snapshots.delete_tag(name):  # somebody else deleted it, perhaps with its files
        store.snapshots.delete_tag(new_name)
        raise SnapshotNotFound(f"{store.root}: tag '{name}' was deleted while it was renamed")
    return tag


def expire_tags(store: FileStore, now: datetime | None = None) -> Removed:
    """Delete the tags whose time is over (local wall clock), with the files that only they used."""
    clock = datetime.now() if now is None else now  # noqa: DTZ005 -- tags note the wall clock's time
    over = {name: tag for name, tag in store.snapshots.tags().items() if tag.expires_at is not None and tag.expires_at <= clock}
    deleted = {name: tag for name, tag in over.items() if store.snapshots.delete_tag(name)}
    data, manifests = remove_unreachable(store, deleted.values(), ()) if deleted else (0, 0)
    return Removed(0, tuple(sorted(deleted)), data, manifests)


def remove_unreachable(store: FileStore, states: Iterable[Snapshot], changes: Sequence[Snapshot]) -> tuple[int, int]:
    """Delete the files that the forgotten ``states`` and ``changes`` named and nothing retained reaches: data files, manifests.

    ``states`` count with all their files, ``changes`` with those that they added or removed. Files that no snapshot has named
    belong to running writes and are not touched. Nothing here can undo that they are forgotten: an error is logged, and leaves orphans.
    """
    try:
        return _removed_unreachable(store, states, changes)
    except (PaimonError, OSError):
        _LOG.warning("%s: not all files that only deleted states used could be deleted; they are orphans now", store.root, exc_info=True)
        return 0, 0


def _removed_unreachable(store: FileStore, states: Iterable[Snapshot], changes: Sequence[Snapshot]) -> tuple[int, int]:
    kept = everything_reachable(store)
    dead: list[ManifestEntry] = []
    forgotten = [*states, *changes]
    for state in forgotten[: len(forgotten) - len(changes)]:
        for name, _ in state.manifest_lists:
            dead += entries_of(store, name).entries()
    for change in changes:
        dead += entries_of(store, change.delta_manifest_list).entries()
    for snapshot in forgotten:
        if snapshot.changelog_manifest_list:
            dead += entries_of(store, snapshot.changelog_manifest_list).entries()
    return delete_files(store, dead, kept), delete_metadata(store, forgotten, kept)


__all__ = [
    "Removed",
    "delete_tag",
    "expire_tags",
    "finish_rollback",
    "forget_rolled_back",
    "remove_unreachable",
    "rename_tag",
    "replace_tag",
    "rollback_to",
    "told_unfinished",
]
