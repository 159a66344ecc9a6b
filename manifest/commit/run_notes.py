"""Notes of runs: an empty file says that a run of a commit has begun, after which snapshot, before it can make one.

A note is named by the commit, the newest snapshot at that time and the run: the run commits after that snapshot or never. Other
engines look at none of them. Those of commits without a number go when they are older than ``commit-id.time-retained``.
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
class CommitRun:
    """One run of a commit: its note at ``path``, the snapshot ``base`` after which it commits, and how many attempts may have done so."""

    store: FileStore
    user: str
    identifier: int
    path: str
    base: int
    unknown_outcomes: int = 0

    def check(self, newest: int, reached: int) -> None:
        """Before an attempt on top of ``newest``: snapshots after ``reached`` were searched. Raises ``CommitReplayed`` if that is not enough."""
        if newest < self.base:  # the table was rolled back: the note must not say that we commit later than we do
            path, self.path, self.base = self.path, leave_note(self.store, self.user, self.identifier, newest), newest
            self.store.file_io.delete(path)
        if reached > self.base:
            others = notes_of(self.store, self.user, self.identifier)
            others.pop(self.path, None)
            refuse_expired_run(self.store, self.user, others, reached)

    def end(self, *, committed: bool) -> None:
        """Take the note away where nothing was committed, or where it is remembered otherwise; while an outcome is unknown it stays."""
        if not self.unknown_outcomes and (not committed or self.identifier < BATCH_IDENTIFIER):
            with suppress(OSError):  # it does no harm
                self.store.file_io.delete(self.path)


def refuse_expired_run(store: FileStore, user: str, notes: dict[str, int], reached: int) -> None:
    """Raise if a run that is noted may have committed in a snapshot up to ``reached``, before which nobody can look."""
    unknown = [path for path, base in notes.items() if base < reached]
    if unknown:
        raise CommitReplayed(
            f"{store.root}: commit '{user}' was begun before and may have been made by a snapshot that has expired since; it is not made "
            f"again. If its rows are not in the table, use another commit_id, or delete {unknown[0]}"
        )


def notes_of(store: FileStore, user: str, identifier: int) -> dict[str, int]:
    """The base of each run of a commit, by the path of its note."""
    directory, lead = _directory(store, user), f"{user}.{identifier}."
    names = (status.name for status in store.file_io.list(directory))
    return {f"{directory}/{name}": int(name.split(".")[-2]) for name in names if name.startswith(lead)}


def leave_note(store: FileStore, user: str, identifier: int, base: int) -> str:
    """Leave a note; those beside it that are too old go. A batch's need not outlive the machine."""
    directory = _directory(store, user)
    path = f"{directory}/{user}.{identifier}.{base}.{uuid.uuid4()}"
    store.file_io.write(path, b"", durable=identifier == BATCH_IDENTIFIER)
    oldest = time.time_ns() // 1_000_000 - store.options.commit_id_time_retained
    for status in store.file_io.list(directory):
        if status.mtime_ms < oldest:
            with suppress(OSError):
                store.file_io.delete(f"{directory}/{status.name}")
    return path


def _directory(store: FileStore, user: str) -> str:
    """One of 256, so that none is long to list; other engines look at none of them."""
    return f"{store.paths.writers}/{hashlib.sha256(user.encode()).hexdigest()[:2]}"


__all__ = ["CommitRun", "leave_note", "notes_of", "refuse_expired_run"]
