"""Markers of commit runs: empty files, written before the snapshot.

A marker's name has the commit, the newest snapshot at that time and the run. The run commits after that snapshot or never.
Other engines ignore markers. Markers of commits without a batch number expire after ``commit-id.time-retained``.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass

from manifest.io.errors import CommitReplayed
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from manifest.store import FileStore


@dataclass
class CommitMarker:
    """Marker of one run of a commit.

    Args:
        store: The table.
        user: Commit user.
        identifier: Commit identifier.
        path: Path of the marker file.
        base: Snapshot after which the run commits.
        unknown_outcomes: Attempts that may have committed.
    """

    store: FileStore
    user: str
    identifier: int
    path: str
    base: int
    unknown_outcomes: int = 0

    def check(self, newest: int, reached: int) -> None:
        """Check the marker before an attempt on top of ``newest``.

        Snapshots after ``reached`` were searched. Raises ``CommitReplayed`` if an expired snapshot may be this commit.
        """
        if newest < self.base:  # the table was rolled back: the marker must not have a base after our snapshot
            path, self.path, self.base = self.path, write_marker(self.store, self.user, self.identifier, newest), newest
            self.store.file_io.delete(path)
        if reached > self.base:
            other_markers = list_markers(self.store, self.user, self.identifier)
            other_markers.pop(self.path, None)
            refuse_expired_run(self.store, self.user, other_markers, reached)

    def end(self, *, committed: bool) -> None:
        """Delete the marker if it is no longer needed.

        It stays while an outcome is unknown.
        """
        # A committed batch is remembered by the announcement of its writer.
        if not self.unknown_outcomes and (not committed or self.identifier < BATCH_IDENTIFIER):
            with suppress(OSError):  # a stale marker is harmless
                self.store.file_io.delete(self.path)


def refuse_expired_run(store: FileStore, user: str, markers: dict[str, int], reached: int) -> None:
    """Raise ``CommitReplayed`` if an expired snapshot may be a run's.

    Snapshots up to ``reached`` were not searched.
    """
    unknown = [path for path, base in markers.items() if base < reached]
    if unknown:
        raise CommitReplayed(
            f"{store.root}: commit '{user}' was started before and may be in a snapshot that has expired since; it is not "
            f"repeated. If its rows are not in the table, use another commit_id, or delete {unknown[0]}"
        )


def list_markers(store: FileStore, user: str, identifier: int) -> dict[str, int]:
    """Return the base snapshot of each run by marker path."""
    directory, lead = _directory(store, user), f"{user}.{identifier}."
    names = (status.name for status in store.file_io.list(directory))
    return {f"{directory}/{name}": int(name.split(".")[-2]) for name in names if name.startswith(lead)}


def write_marker(store: FileStore, user: str, identifier: int, base: int) -> str:
    """Write a marker and delete expired ones in its directory."""
    directory = _directory(store, user)
    path = f"{directory}/{user}.{identifier}.{base}.{uuid.uuid4()}"
    # A batch needs no fsync: its announcement is durable.
    store.file_io.write(path, b"", durable=identifier == BATCH_IDENTIFIER)
    oldest = time.time_ns() // 1_000_000 - store.options.commit_id_time_retained
    for status in store.file_io.list(directory):
        if status.mtime_ms < oldest:
            with suppress(OSError):
                store.file_io.delete(f"{directory}/{status.name}")
    return path


def _directory(store: FileStore, user: str) -> str:
    """Return one of 256 directories, which keeps listings short."""
    return f"{store.paths.writers}/{hashlib.sha256(user.encode()).hexdigest()[:2]}"
