"""Files that a failed commit may delete."""

from __future__ import annotations

from collections.abc import Sequence

from manifest.commit.history import base_of
from manifest.commit.index_update import compaction_paths, index_path, row_paths
from manifest.commit.message import CommitMessage
from manifest.entry.live import EntryFilter
from manifest.store import FileStore


def uncommitted_files(store: FileStore, user: str, messages: Sequence[CommitMessage], identifier: int | None) -> list[str]:
    """Return files of ``messages`` that no state refers to.

    Returns [] if a snapshot of ``user`` may have them, also because snapshots since the base have expired.

    Args:
        store: The table.
        user: Commit user.
        messages: Changes of the failed commit.
        identifier: Count only this commit of the user. None: any.
    """
    manager = store.snapshots
    if manager.change_under_way() is not None:  # a commit that the interrupted change removes is not found, but may use the files
        return []
    base = base_of(messages) or 0
    oldest_searched = base
    for snapshot in manager.backwards():
        if snapshot.id <= base:
            oldest_searched = 0
            break
        if snapshot.commit_user == user and identifier in {None, snapshot.commit_identifier}:
            return []
        oldest_searched = snapshot.id
    if oldest_searched > base + 1:
        return []
    candidates: set[str] = set()
    for message in messages:
        candidates.update(row_paths(store, message), compaction_paths(store, message))
    written = EntryFilter(partitions={message.partition for message in messages}, buckets={message.bucket for message in messages})
    for state in (manager.latest(), *manager.tags().values()):
        for entry in store.live_entries(state, written).entries() if candidates else ():
            candidates.difference_update(store.physical_files(entry.partition, entry.bucket, entry.file))
        for index in store.index_entries(state) if candidates else ():
            candidates.discard(index_path(store, (index.partition, index.bucket), index))
    return sorted(candidates)
