"""Going back without forgetting: the change that makes the state of an older snapshot the newest one, on top of all history."""

from __future__ import annotations

import numpy as np

from manifest.commit.attempt import CommitChange
from manifest.entry.columns import EntryColumns
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore


def restore_change(target: Snapshot, store: FileStore, latest: Snapshot | None) -> CommitChange | None:
    """DELETE what ``target`` has not, ADD what it has and ``latest`` has not; its index files are those of the new state.

    Files that both have stay as they are now, whatever index they got since. None if the states do not differ.
    """
    now, then = store.live_entries(latest), store.live_entries(target)
    here, there = now.identities(), then.identities()
    gone, back = _without(here, there), _without(there, here)
    same_indexes = latest is not None and latest.index_manifest == target.index_manifest
    if not (gone.any() or back.any()) and same_indexes:
        return None
    added = then.select(back)
    indexes = frozenset(entry.file_name for entry in store.index_entries(target))
    own = frozenset(entry.file_name for entry in store.index_entries(latest))
    return CommitChange(
        EntryColumns.concat([now.select(gone).deleted(), added]),
        index_changed=True,
        index_manifest=target.index_manifest,
        index_files=indexes - own,
        revives=bool(len(added)),
    )


def _without(these: list[tuple[bytes, ...]], those: list[tuple[bytes, ...]]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of ``these`` are not among ``those``."""
    known = set(those)
    return np.fromiter((one not in known for one in these), np.bool_, len(these))


__all__ = ["restore_change"]
