"""A commit happens once, however often and from wherever it is run: each run leaves a note before it can make a snapshot.

Snapshots tell who committed what until they expire; notes tell it longer. A note is an empty file, named by the commit, the newest
snapshot at that time and the run: the run commits after that snapshot or never. So a commit of which there is no note never happened,
and one with notes is in a snapshot after the oldest of them, was never made, or has expired: then it is not made again. Notes that
came meanwhile need not be looked for: their snapshots are newer than ours, and every attempt looks at those.

Notes of numbered batches go when the batch is committed, for ``stream_commits`` remembers the last one of each user; the others when
they are older than ``commit-id.time-retained``.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from manifest.commit.history import CommitHistory, commit_history
from manifest.commit.message import CommitResult
from manifest.commit.stream import announce, earlier_commit
from manifest.io.errors import CommitReplayed
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from manifest.store import FileStore


def committed_before(store: FileStore, user: str, identifier: int = BATCH_IDENTIFIER) -> CommitResult | None:
    """What an earlier run of a commit left, None if there is nothing yet. Raises ``CommitReplayed`` if that cannot be told any more."""
    if identifier < BATCH_IDENTIFIER:
        return earlier_commit(store, user, identifier)
    notes = _notes(store, user, identifier)
    history = commit_history(store, user, identifier, min(notes.values(), default=None))
    if history.found:
        return history.result
    _refuse_expired(store, user, notes, history.reached)
    return None


def begun(store: FileStore, user: str, identifier: int, since: int | None) -> CommitHistory:
    """The history of a commit that is about to be made, with a note of this run if it was not made before.

    It reaches back to ``since`` (None: to the first snapshot) and to every note. Raises ``CommitReplayed``.
    """
    newest = store.snapshots.latest_id() or 0  # before the notes: a run whose note is not there yet commits after this
    batch = identifier < BATCH_IDENTIFIER
    if batch and earlier_commit(store, user, identifier) is not None:
        history = commit_history(store, user, identifier, None)
        if not history.found:
            raise CommitReplayed(f"{store.root}: batch {identifier} of '{user}' is in the table already, by a snapshot that has expired")
        return history
    notes = _notes(store, user, identifier)
    history = commit_history(store, user, identifier, None if since is None else min([since, *notes.values()]))
    if history.found:
        return history
    if history.reached > newest:  # a whole retention passed between two lines
        notes = _notes(store, user, identifier)
    _refuse_expired(store, user, notes, history.reached)
    run = CommitRun(store, user, identifier, _noted(store, user, identifier, newest), newest)
    if batch:
        announce(store, user, identifier, newest)
    return replace(history, run=run)


@dataclass
class CommitRun:
    """One run of a commit: its note at ``path``, the snapshot ``base`` after which it commits, and how many attempts may have done so."""

    store: FileStore
    user: str
    identifier: int
    path: str
    base: int
    doubts: int = 0

    def checked(self, newest: int, reached: int) -> None:
        """Before an attempt on top of ``newest``: snapshots after ``reached`` were searched. Raises ``CommitReplayed`` if that is not enough."""
        if newest < self.base:  # the table was rolled back: the note must not say that we commit later than we do
            path, self.path, self.base = self.path, _noted(self.store, self.user, self.identifier, newest), newest
            self.store.file_io.delete(path)
        if reached > self.base:
            others = _notes(self.store, self.user, self.identifier)
            others.pop(self.path, None)
            _refuse_expired(self.store, self.user, others, reached)

    @contextmanager
    def doubting(self) -> Iterator[Callable[[], None]]:
        """While a snapshot is made: unless what is yielded is called, there remains a doubt whether it is there."""
        self.doubts += 1
        yield self._settled

    def _settled(self) -> None:
        self.doubts -= 1

    def ended(self, *, committed: bool) -> None:
        """Take the note away where nothing was committed, or where it is remembered otherwise; in doubt it stays."""
        if not self.doubts and (not committed or self.identifier < BATCH_IDENTIFIER):
            with suppress(OSError):  # it does no harm
                self.store.file_io.delete(self.path)


def _refuse_expired(store: FileStore, user: str, notes: dict[str, int], reached: int) -> None:
    """Raise if a run that is noted may have committed in a snapshot up to ``reached``, before which nobody can look."""
    unknown = [path for path, base in notes.items() if base < reached]
    if unknown:
        raise CommitReplayed(
            f"{store.root}: commit '{user}' was begun before and may have been made by a snapshot that has expired since; it is not made "
            f"again. If its rows are not in the table, use another commit_id, or delete {unknown[0]}"
        )


def _notes(store: FileStore, user: str, identifier: int) -> dict[str, int]:
    """The base of each run of a commit, by the path of its note."""
    directory, lead = _directory(store, user), f"{user}.{identifier}."
    names = (status.name for status in store.file_io.list(directory))
    return {f"{directory}/{name}": int(name.split(".")[-2]) for name in names if name.startswith(lead)}


def _noted(store: FileStore, user: str, identifier: int, base: int) -> str:
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


__all__ = ["CommitRun", "begun", "committed_before"]
