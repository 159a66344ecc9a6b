"""Start snapshot of ``scan.mode = compacted-full``."""

from __future__ import annotations

from manifest.snapshot.snapshot import BATCH_IDENTIFIER, CommitKind, Snapshot
from manifest.store import FileStore


def compacted_snapshot(store: FileStore) -> Snapshot | None:
    """Return the newest compaction snapshot.

    Only full compactions count if the table schedules them. Without a compaction, returns the newest snapshot.
    """
    options = store.options
    scheduled = options.changelog_producer == "full-compaction" or options.full_compaction_delta_commits is not None
    every = (options.full_compaction_delta_commits or 1) if scheduled else 1
    for snapshot in store.snapshots.backwards():
        is_full = snapshot.commit_identifier % every == 0 or snapshot.commit_identifier == BATCH_IDENTIFIER
        if snapshot.commit_kind is CommitKind.COMPACT and is_full:
            return snapshot
    return store.snapshots.latest()


__all__ = ["compacted_snapshot"]
