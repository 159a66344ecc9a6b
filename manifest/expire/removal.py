"""Deletion of files that only removed states used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fileindex.base.errors import PaimonError
from fileindex.base.log import logger_of
from manifest.entry.manifest_entry import ManifestEntry
from manifest.expire.delete_files import delete_files, delete_metadata, entries_of
from manifest.expire.reachable import everything_reachable
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore

_LOG = logger_of(__name__)


@dataclass(frozen=True, slots=True)
class Removed:
    """Numbers of deleted snapshots and files, and names of tags."""

    snapshots: int = 0
    tags: tuple[str, ...] = ()
    data_files: int = 0
    manifests: int = 0


def remove_unreachable(store: FileStore, states: Iterable[Snapshot], changes: Sequence[Snapshot]) -> tuple[int, int]:
    """Delete files of removed snapshots that no retained state reaches.

    Returns the numbers of data files and manifests. Files that no snapshot refers to may belong to running writes and stay. An error is
    logged and leaves orphans, because the caller's history change has already happened.

    Args:
        store: The table.
        states: Removed snapshots or tags, with all files of their state.
        changes: Removed snapshots, with the files that they added and deleted.
    """
    try:
        return _delete_unreachable(store, states, changes)
    except (PaimonError, OSError):
        _LOG.warning("%s: some files of deleted states could not be deleted; they are orphans now", store.root, exc_info=True)
        return 0, 0


def _delete_unreachable(store: FileStore, states: Iterable[Snapshot], changes: Sequence[Snapshot]) -> tuple[int, int]:
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


__all__ = ["Removed", "remove_unreachable"]
