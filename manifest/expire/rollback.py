"""Rollback to an older snapshot or tag (Paimon's ``RollbackHelper``)."""

from __future__ import annotations

from manifest.expire.delete_files import Removed
from manifest.expire.history_change import change_history, changing_history
from manifest.snapshot.pending_history import PendingHistory
from manifest.snapshot.snapshot import Snapshot, Tag
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument
from paimon_base.log import logger_of

_LOG = logger_of(__name__)


def rollback_to(store: FileStore, target: Snapshot) -> Removed:
    """Make ``target`` the newest state and delete everything newer.

    ``target`` is a snapshot or tag of the store's branch. Concurrent commits are deleted too. Schemas stay. On an object store the newest
    snapshot then has the target's state and a new id. Raises ``InvalidArgument`` if the target is gone.
    """
    manager = store.snapshots
    with changing_history(store, f"the rollback to snapshot {target.id}"):
        candidates = manager.tags().values() if isinstance(target, Tag) else [manager.stored(target.id)]
        if not any(candidate is not None and candidate.key == target.key for candidate in candidates):
            raise InvalidArgument(f"{store.root}: {'the tag of ' if isinstance(target, Tag) else ''}snapshot {target.id} no longer exists")
        restored = target.state if isinstance(target, Tag) else target
        newer = manager.stored_deltas(after=target.id)
        forgotten = change_history(store, PendingHistory(restored, newer, isinstance(target, Tag)))
    _LOG.info("%s: rolled back to snapshot %d, removed %d newer ones", store.root, target.id, len(newer))
    return forgotten.remove_files(store)
