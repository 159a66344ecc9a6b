"""Delete the files that only forgotten states of a table used."""

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
    """Numbers of snapshots and files that were deleted, and names of tags."""

    snapshots: int = 0
    tags: tuple[str, ...] = ()
    data_files: int = 0
    manifests: int = 0


def remove_unreachable(store: FileStore, states: Iterable[Snapshot], changes: Sequence[Snapshot]) -> tuple[int, int]:
    """Delete files of forgotten snapshots that nothing retained reaches. Returns the numbers of data files and manifests.

    Files that no snapshot has named belong to running writes and are not touched. An error is logged and leaves orphans: the caller's
    change of history has happened already.

    Args:
        store: The table.
        states: Forgotten snapshots or tags of which all files count.
        changes: Forgotten snapshots of which the added and removed files count.
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


__all__ = ["Removed", "remove_unreachable"]
