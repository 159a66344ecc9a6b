"""Deletion, replacement, renaming and expiry of tags (Paimon's ``TagManager``)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from manifest.expire.delete_files import Removed, remove_unreachable
from manifest.expire.history_change import finish_interrupted
from manifest.expire.tag_lock import lock_tags
from manifest.io.checksum import with_checksum
from manifest.io.errors import CommitConflict, SnapshotExpired, SnapshotNotFound, TagExists
from manifest.io.paths import TAG, tag_name
from manifest.snapshot.snapshot import Snapshot, Tag
from manifest.store import FileStore
from paimon_base.errors import CorruptFile


def create_tag(store: FileStore, name: str, snapshot: Snapshot, retained_ms: int | None = None) -> Tag:
    """Create a tag of ``snapshot``, which keeps its files.

    ``retained_ms`` is the time after which the tag expires. None: never. Raises ``TagExists``, ``SnapshotExpired``, ``HistoryBusy``.
    """
    finish_interrupted(store, f"the creation of tag '{name}'")
    return store.snapshots.create_tag(name, snapshot, retained_ms)


def delete_tag(store: FileStore, name: str) -> Removed:
    """Delete a tag and its unshared files.

    Raises ``SnapshotNotFound``, ``HistoryBusy``.
    """
    finish_interrupted(store, f"the deletion of tag '{name}'")
    with lock_tags(store, f"the deletion of tag '{name}'"):
        try:
            tag = store.snapshots.tag(name)
        except CorruptFile:  # nobody knows which files it needs: they become orphans
            tag = None
        deleted = store.snapshots.delete_tag(name)
    if not deleted:
        return Removed()
    if tag is None or store.snapshots.holds(tag):
        return Removed(tags=(name,))
    data, manifests = remove_unreachable(store, [tag], ())
    return Removed(0, (name,), data, manifests)


def replace_tag(store: FileStore, name: str, snapshot: Snapshot, retained_ms: int | None) -> Removed:
    """Point a tag to another snapshot and delete unreferenced files.

    Raises ``SnapshotNotFound`` if the tag does not exist, ``SnapshotExpired`` if the snapshot expires meanwhile, ``CommitConflict`` if
    another process replaces or deletes the tag meanwhile. Raises ``UnsafeFileIO`` if the storage cannot compare and replace in one step.
    """
    finish_interrupted(store, f"the replacement of tag '{name}'")
    store.snapshots.tag(name)  # the error lists the existing names
    path = store.paths.tag(tag_name(name))
    before = store.file_io.read(path)
    old, after = Tag.from_json(before, path), with_checksum(path, Tag.of(snapshot, retained_ms).to_json())
    if not store.file_io.replace(path, before, after):
        raise CommitConflict(
            f"{store.root}: tag '{name}' was replaced or deleted by another process meanwhile; nothing was changed by this call"
        )
    if not store.snapshots.holds(snapshot):  # expiry deletes the snapshot first and lists tags afterwards
        if not store.file_io.replace(path, after, before):
            raise SnapshotExpired(
                f"{store.root}: snapshot {snapshot.id} has expired, and another process has replaced or deleted tag '{name}' since"
            )
        raise SnapshotExpired(f"{store.root}: snapshot {snapshot.id} has expired; tag '{name}' is unchanged")
    if old.key == snapshot.key or store.snapshots.holds(old):
        return Removed()
    data, manifests = remove_unreachable(store, [old], ())
    return Removed(0, (), data, manifests)


def rename_tag(store: FileStore, name: str, new_name: str) -> Tag:
    """Rename a tag.

    Raises ``SnapshotNotFound`` if the tag does not exist, ``TagExists`` if the new name exists, ``CommitConflict`` if another
    process replaces the tag meanwhile.
    """
    finish_interrupted(store, f"the renaming of tag '{name}'")
    manager = store.snapshots
    tag = manager.tag(name)
    path, old_path = store.paths.tag(tag_name(new_name)), store.paths.tag(tag_name(name))
    # For a moment both names hold the state, so that none of its files can be deleted.
    if not store.file_io.create_exclusive(path, with_checksum(path, tag.to_json())):
        raise TagExists(f"{store.root}: tag '{new_name}' exists; choose another name, or delete it first")
    with store.file_io.lock(old_path.rpartition("/")[0]) as alone:  # replacing a tag takes the same lock
        # Check before the deletion: a deletion whose answer is lost does not show which process deleted the tag. A process that deletes the
        # old tag after this check sees the new one when it lists files in use.
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


def expire_tags(store: FileStore, now: datetime | None = None, older_than: datetime | None = None) -> Removed:
    """Delete expired tags and their unshared files. Raises ``HistoryBusy``.

    Retention is measured by the local wall clock. ``now`` defaults to the current time. ``older_than``: tags created before it expire, too.
    """
    clock = datetime.now() if now is None else now  # noqa: DTZ005 -- tags store wall clock times
    finish_interrupted(store, "the expiry of tags")
    with lock_tags(store, "the expiry of tags"):
        tags = store.snapshots.tags()
        over = {name: tag for name, tag in tags.items() if tag.expires_at is not None and tag.expires_at <= clock}
        if older_than is not None:
            over |= {name: tags[name] for name, time in _creation_times(store, tags).items() if time < older_than}
        deleted = {name: tag for name, tag in over.items() if store.snapshots.delete_tag(name)}
    data, manifests = remove_unreachable(store, deleted.values(), ()) if deleted else (0, 0)
    return Removed(0, tuple(sorted(deleted)), data, manifests)


def _creation_times(store: FileStore, tags: Mapping[str, Tag]) -> dict[str, datetime]:
    """Return the local time of each tag's creation."""
    # A tag that never expires stores no time: that of its file counts.
    times = {status.name.removeprefix(TAG): status.mtime_ms / 1000 for status in store.file_io.list(store.paths.tags)}
    files = {name: datetime.fromtimestamp(time) for name, time in times.items()}  # noqa: DTZ006 -- tags store wall clock times
    return {name: time for name, tag in tags.items() if (time := tag.tag_create_time or files.get(name)) is not None}
