"""Whether a snapshot that was just created is part of the table's history, where creating it does not prove that."""

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


def verify_successor(store: FileStore, snapshot: Snapshot, latest: Snapshot | None, change: CommitChange) -> None:
    """Raise ``StorageError`` unless the snapshot just created surely follows ``latest``.

    A creation that is guarded (``FileIO.cancels_creates``) or a catalog's server proves that. On an object store the put may have come so
    late that the snapshots up to its id had expired, so that its name was free again. Nothing is deleted then: others may have committed
    on top of this snapshot and expired ``latest`` afterwards, which looks the same.
    """
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
    told = (
        f"snapshot {snapshot.id} of '{snapshot.commit_user}' was created when those before it had expired, so that nobody can tell whether "
        "it was committed"
        if reason is None
        else f"committed as snapshot {snapshot.id} by '{snapshot.commit_user}', but the storage failed when it was looked at again "
        f"({reason.strerror})"
    )
    raise StorageError(
        errno.ESTALE if reason is None else reason.errno or errno.EIO,
        f"{store.root}: {told}; repeat the call with that commit_id to be sure, it will not commit twice",
        None if reason is None else reason.filename,
    ) from reason


def _follows(store: FileStore, snapshot: Snapshot, latest: Snapshot | None) -> bool:
    """Whether the base is still there: snapshots expire in order, so the next id was free then."""
    manager = store.snapshots
    if latest is not None and manager.exists(latest.id):
        return True
    newest = manager.latest_listed()
    return newest is None or newest.id == snapshot.id


def is_included(store: FileStore, change: CommitChange) -> bool:
    """Whether the newest state shows that ``change`` was committed. False proves nothing: later commits may have compacted its files away."""
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
    """Leave a note of a commit whose name is told to people, so that a repetition is known also after ``snapshot`` has expired."""
    with suppress(PaimonError, OSError):  # what is told matters more
        if not notes_of(store, snapshot.commit_user, snapshot.commit_identifier):
            leave_note(store, snapshot.commit_user, snapshot.commit_identifier, snapshot.id - 1)


__all__ = ["is_included", "remember", "verify_successor"]
