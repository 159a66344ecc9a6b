"""States of a table that still reach some data files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind, ManifestEntry
from manifest.expire.delete_files import entries_of
from manifest.expire.orphans import branches_of
from manifest.io.errors import SnapshotExpired, SnapshotNotFound
from manifest.io.paths import with_branch
from manifest.snapshot.manager import SnapshotManager
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore

Find = Callable[[FileStore, Sequence[ManifestEntry]], set[str]]
"""Returns the names of those files of a branch that are searched for."""


@dataclass(frozen=True, slots=True)
class FileHolder:
    """A snapshot, tag, changelog, branch or consumer that keeps files.

    Args:
        kind: ``snapshot``, ``tag``, ``changelog``, ``branch`` or ``consumer``.
        name: Its name; of a snapshot or changelog its id.
        files: Number of the files.
    """

    kind: str
    name: str
    files: int


def holders_of(store: FileStore, find: Find) -> tuple[FileHolder, ...]:
    """Return what keeps files that ``find`` returns.

    Index files of other engines count, because they may have any value. Another branch counts as a whole. A consumer is listed if one of these snapshots does not expire because of it.
    """
    file_holders: list[FileHolder] = []
    is_hit_by_name: dict[str, bool] = {}
    for manager in branches_of(store):
        branch = manager.paths.branch
        is_current = branch == store.branch
        branch_store = store if is_current else FileStore.open(with_branch(store.paths.root, branch), store.file_io)
        states = [
            (kind, name, _held(branch_store, entries, find, is_hit_by_name) | indexes)
            for kind, name, entries, indexes in _states(branch_store, manager)
        ]
        holders = [FileHolder(kind, name, len(files)) for kind, name, files in states if files]
        if is_current:
            snapshots = [holder for holder in holders if holder.kind == "snapshot"]
            newest = max((int(holder.name) for holder in snapshots), default=0)
            max_files = max((holder.files for holder in snapshots), default=0)
            file_holders += holders
            file_holders += [
                FileHolder("consumer", name, max_files) for name, following in sorted(manager.consumers().items()) if following <= newest
            ]
        elif holders:
            file_holders.append(FileHolder("branch", branch, len(set[str]().union(*(files for _, _, files in states)))))
    return tuple(file_holders)


def _held(store: FileStore, entries: EntryColumns, find: Find, is_hit_by_name: dict[str, bool]) -> set[str]:
    """Return the files of a state that ``find`` returns.

    Each file is searched once; ``is_hit_by_name`` has the results.
    """
    fresh = [entry for entry in entries.select(entries.kind == FileKind.ADD).entries() if entry.file.file_name not in is_hit_by_name]
    hits = find(store, fresh) if fresh else set[str]()
    is_hit_by_name.update({entry.file.file_name: entry.file.file_name in hits for entry in fresh})
    return {name for name in entries.file_name if is_hit_by_name.get(name)}


def _states(store: FileStore, manager: SnapshotManager) -> Iterator[tuple[str, str, EntryColumns, set[str]]]:
    """Yield kind, name, files and unsearchable index files of each state of a branch."""
    # Files of a history that an interrupted rollback removes are still there.
    for name, tag in sorted(manager.stored_tags().items()):
        with suppress(SnapshotExpired, FileNotFoundError):  # deleted meanwhile, as below
            yield "tag", name, store.live_entries(tag), _unsearchable(store, tag)
    for snapshot_id, snapshot in manager.all_stored().items():
        with suppress(SnapshotNotFound, SnapshotExpired, FileNotFoundError):
            files = [store.live_entries(snapshot), *_changelog(store, snapshot)]
            yield "snapshot", str(snapshot_id), EntryColumns.concat(files), _unsearchable(store, snapshot)
    for changelog in manager.kept.all():
        with suppress(FileNotFoundError):
            # Without changelog files, appended files are the changelog.
            files = _changelog(store, changelog) or [entries_of(store, changelog.delta_manifest_list)]
            yield "changelog", str(changelog.id), EntryColumns.concat(files), set()


def _unsearchable(store: FileStore, state: Snapshot) -> set[str]:
    return {entry.file_name for entry in store.index_entries(state) if entry.may_have_values}


def _changelog(store: FileStore, snapshot: Snapshot) -> list[EntryColumns]:
    name = snapshot.changelog_manifest_list
    return [] if name is None else [entries_of(store, name)]
