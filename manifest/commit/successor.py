"""Whether a snapshot that was just created follows the one it was made on, and is still there: other engines may rename theirs over it."""

from __future__ import annotations

import errno
import time
from contextlib import suppress

from fileindex.base.errors import PaimonError
from manifest.commit.attempt import CommitChange
from manifest.commit.run_notes import leave_note, notes_of
from manifest.entry.manifest_entry import FileKind
from manifest.io.errors import CatalogRefused, StorageError
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore

_PATIENCE_SECONDS = (0.02, 0.2)


def stands(store: FileStore, snapshot: Snapshot, latest: Snapshot | None, change: CommitChange) -> bool:
    """Whether the snapshot just created is the successor of ``latest``, not in the place of one that has expired.

    Raises ``StorageError`` that tells of the commit if the storage does not answer, again and again: it is there, but that cannot be seen.
    """
    for patience in _PATIENCE_SECONDS:
        with suppress(StorageError, CatalogRefused):
            return _succeeds(store, snapshot, latest, change)
        time.sleep(patience)
    try:
        return _succeeds(store, snapshot, latest, change)
    except (StorageError, CatalogRefused) as error:
        remember(store, snapshot)
        number, reason, file = (error.errno, error.strerror, error.filename) if isinstance(error, OSError) else (errno.EACCES, error, None)
        raise StorageError(
            number,
            f"{store.root}: committed as snapshot {snapshot.id} by '{snapshot.commit_user}', but the storage failed when it was looked at again "
            f"({reason}); repeat the call with that commit_id to be sure, it will not commit twice",
            file,
        ) from error


def remember(store: FileStore, snapshot: Snapshot) -> None:
    """Leave a note of a commit whose name is told to people, so that a repetition is known also after ``snapshot`` has expired."""
    with suppress(PaimonError, OSError):  # what is told matters more
        if not notes_of(store, snapshot.commit_user, snapshot.commit_identifier):
            leave_note(store, snapshot.commit_user, snapshot.commit_identifier, snapshot.id - 1)


def _succeeds(store: FileStore, snapshot: Snapshot, latest: Snapshot | None, change: CommitChange) -> bool:
    """As ``stands``, asked once.

    Snapshots expire in order, so as long as ``latest`` is there, the next id was free. If it is gone, either others
    have committed on top of ours and expired it, or they had done so before: the newest files tell which.
    """
    manager = store.snapshots
    if latest is None or manager.shows(latest.id):
        return True
    newest = manager.latest_listed()
    if newest is None or newest.id == snapshot.id or manager.exists(latest.id):
        return True
    if change.index_files and not change.index_files.isdisjoint(entry.file_name for entry in store.index_entries(newest)):
        return True
    if change.statistics is not None and newest.statistics == change.statistics:
        return True
    identities = change.entries.identities()
    alive = set(store.live_entries(newest).identities())
    added = {row for row, kind in enumerate(change.entries.kind.tolist()) if kind == FileKind.ADD}
    seen = any((identities[row] in alive) == (row in added) for row in added or range(len(identities)))
    if not seen:
        store.file_io.delete(store.paths.snapshot_file(snapshot.id))
    return seen


__all__ = ["remember", "stands"]
