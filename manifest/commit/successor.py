"""Verification that a new snapshot replaced no older one."""

from __future__ import annotations

import errno
import time
from contextlib import suppress

from fileindex.base.errors import PaimonError
from manifest.commit.attempt import CommitChange
from manifest.commit.run_notes import leave_note, notes_of
from manifest.entry.manifest_entry import FileKind
from manifest.io.errors import StorageError
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore

_PATIENCE_SECONDS = (0.02, 0.2)


def verify_not_overwritten(store: FileStore, snapshot: Snapshot, latest: Snapshot | None, change: CommitChange) -> None:
    """Raise ``StorageError`` unless the created snapshot surely follows ``latest``.

    Files are kept even then. Other commits may lie on top of this snapshot and may have expired ``latest``, which looks the same.
    """
    # Guarded creates and catalog servers prove the order. An object store's put may arrive after snapshots up to its id have
    # expired, when the name is free again.
    if store.file_io.cancels_creates or store.commits is not None:
        return
    reason: StorageError | None = None
    for patience in (0.0, *_PATIENCE_SECONDS):
        time.sleep(patience)
        try:
            if _follows(store, snapshot, latest) or is_included(store, change):
                return
            reason = None
            break
        except StorageError as error:
            reason = error
    remember(store, snapshot)
    problem = (
        f"snapshot {snapshot.id} of '{snapshot.commit_user}' was created after its predecessors had expired, so it is unknown whether "
        "it was committed"
        if reason is None
        else f"committed as snapshot {snapshot.id} by '{snapshot.commit_user}', but the storage failed during verification "
        f"({reason.strerror})"
    )
    raise StorageError(
        errno.ESTALE if reason is None else reason.errno or errno.EIO,
        f"{store.root}: {problem}; repeat the call with that commit_id to be sure, it will not commit twice",
        None if reason is None else reason.filename,
    ) from reason


def _follows(store: FileStore, snapshot: Snapshot, latest: Snapshot | None) -> bool:
    """Return whether the base snapshot still exists.

    Snapshots expire in order, so an existing base proves that the next id was never used.
    """
    manager = store.snapshots
    if latest is not None and manager.exists(latest.id):
        return True
    newest = manager.latest_listed()
    return newest is None or newest.id == snapshot.id


def is_included(store: FileStore, change: CommitChange) -> bool:
    """Return whether the newest state proves that ``change`` was committed.

    False proves nothing: later commits may have compacted its files away.
    """
    newest = store.snapshots.latest_listed()
    if newest is None:
        return False
    if change.index_files and not change.index_files.isdisjoint(entry.file_name for entry in store.index_entries(newest)):
        return True
    if change.statistics is not None and newest.statistics == change.statistics:
        return True
    identities = change.entries.identities()
    alive = set(store.live_entries(newest).identities())
    added = {row for row, kind in enumerate(change.entries.kind.tolist()) if kind == FileKind.ADD}
    return any((identities[row] in alive) == (row in added) for row in added or range(len(identities)))


def remember(store: FileStore, snapshot: Snapshot) -> None:
    """Leave a marker of a commit, unless it has one.

    For commits that a message names: a repetition is then recognised after ``snapshot`` has expired.
    """
    with suppress(PaimonError, OSError):  # the message about the commit matters more
        if not notes_of(store, snapshot.commit_user, snapshot.commit_identifier):
            leave_note(store, snapshot.commit_user, snapshot.commit_identifier, snapshot.id - 1)


__all__ = ["is_included", "remember", "verify_not_overwritten"]
