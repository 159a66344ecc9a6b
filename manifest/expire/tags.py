"""Delete, replace, rename and expire tags (Paimon's ``TagManager``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from fileindex.base.errors import InvalidArgument
from manifest.expire.removal import Removed, remove_unreachable
from manifest.io.errors import CommitConflict, HistoryBusy, SnapshotExpired, SnapshotNotFound
from manifest.io.paths import tag_name
from manifest.io.seal import sealed
from manifest.snapshot.snapshot import Snapshot
from manifest.snapshot.tag import Tag
from manifest.store import FileStore


@contextmanager
def tags_locked(store: FileStore, action: str) -> Iterator[None]:
    """Keep other processes from replacing tags of the store's branch. Raises ``HistoryBusy``.

    On local files a tag is replaced in two steps, a comparison and a rename: a deletion between them would be undone.
    """
    with store.file_io.lock(store.paths.tags) as alone:
        if not alone and store.file_io.is_directory(store.paths.tags):
            raise HistoryBusy(
                f"{store.root}: {action} has to wait for another process that replaces or deletes a tag; nothing was done by this call, try again"
            )
        yield


def delete_tag(store: FileStore, name: str) -> Removed:
    """Delete a tag and the files that only it used. Raises ``SnapshotNotFound``, ``HistoryBusy``."""
    with tags_locked(store, f"the deletion of tag '{name}'"):
        tag = store.snapshots.tag(name)
        deleted = store.snapshots.delete_tag(name)
    if not deleted:
        return Removed()
    if store.snapshots.holds(tag):
        return Removed(tags=(name,))
    data, manifests = remove_unreachable(store, [tag], ())
    return Removed(0, (name,), data, manifests)


def replace_tag(store: FileStore, name: str, snapshot: Snapshot, retained_ms: int | None) -> Removed:
    """Point a tag to another snapshot in one step and delete the files that only its old one used.

    Raises ``SnapshotNotFound`` if there is no such tag, ``SnapshotExpired`` if the snapshot expires meanwhile, ``CommitConflict`` if
    another process replaces or deletes the tag meanwhile, ``UnsafeFileIO`` where a store cannot compare and replace in one step.
    """
    store.snapshots.tag(name)  # raises with the names that exist
    path = store.paths.tag(tag_name(name))
    before = store.file_io.read(path)
    old, after = Tag.from_json(before, path), sealed(path, Tag.of(snapshot, retained_ms).to_json())
    if not store.file_io.replace(path, before, after):
        raise CommitConflict(
            f"{store.root}: tag '{name}' was replaced or deleted by another process meanwhile; nothing was changed by this call"
        )
    if not store.snapshots.holds(snapshot):  # expiry deletes the snapshot first and looks for tags afterwards
        if not store.file_io.replace(path, after, before):
            raise SnapshotExpired(
                f"{store.root}: snapshot {snapshot.id} has expired, and another process has replaced or deleted tag '{name}' since"
            )
        raise SnapshotExpired(f"{store.root}: snapshot {snapshot.id} has expired; tag '{name}' is as it was")
    if old.key == snapshot.key or store.snapshots.holds(old):
        return Removed()
    data, manifests = remove_unreachable(store, [old], ())
    return Removed(0, (), data, manifests)


def rename_tag(store: FileStore, name: str, new_name: str) -> Tag:
    """Rename a tag; for a moment both names hold the state, so that none of its files can be deleted.

    Raises ``SnapshotNotFound`` if there is no such tag, ``InvalidArgument`` if the new name is taken, ``CommitConflict`` if another
    process replaces the tag meanwhile.
    """
    manager = store.snapshots
    tag = manager.tag(name)
    path, old_path = store.paths.tag(tag_name(new_name)), store.paths.tag(tag_name(name))
    if not store.file_io.create_exclusive(path, sealed(path, tag.to_json())):
        raise InvalidArgument(f"{store.root}: tag '{new_name}' exists")
    with store.file_io.lock(old_path.rpartition("/")[0]) as alone:  # those who replace a tag hold it, too
        # Asked before the deletion: the answer to a deletion may be lost, so that it does not tell who deleted the tag. Whoever deletes the
        # old tag after this question sees the new one when it looks for files in use.
        try:
            is_same = alone and manager.stored_tag(name).key == tag.key
        except FileNotFoundError as error:
            manager.delete_tag(new_name)
            raise SnapshotNotFound(f"{store.root}: tag '{name}' was deleted while it was renamed") from error
        if not is_same:
            manager.delete_tag(new_name)
            raise CommitConflict(
                f"{store.root}: tag '{name}' was replaced while it was renamed; nothing was changed by this call, try again"
            )
        manager.delete_tag(name)
    return tag


def expire_tags(store: FileStore, now: datetime | None = None) -> Removed:
    """Delete tags whose retention is over by the local wall clock, and the files that only they used. Raises ``HistoryBusy``."""
    clock = datetime.now() if now is None else now  # noqa: DTZ005 -- tags note the wall clock's time
    with tags_locked(store, "the expiry of tags"):
        over = {name: tag for name, tag in store.snapshots.tags().items() if tag.expires_at is not None and tag.expires_at <= clock}
        deleted = {name: tag for name, tag in over.items() if store.snapshots.delete_tag(name)}
    data, manifests = remove_unreachable(store, deleted.values(), ()) if deleted else (0, 0)
    return Removed(0, tuple(sorted(deleted)), data, manifests)


__all__ = ["delete_tag", "expire_tags", "rename_tag", "replace_tag", "tags_locked"]
