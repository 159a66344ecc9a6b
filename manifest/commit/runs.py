"""A commit happens once, however often and from wherever it is run: each run leaves a note before it can make a snapshot.

Snapshots tell who committed what until they expire; notes tell it longer. A note is an empty file, named by the commit, the newest
snapshot at that time and the run: the run commits after that snapshot or never. So a commit of which there is no note never happened,
and one with notes is in a snapshot after the oldest of them, was never made, or has expired: then it is not made again. Notes that
came meanwhile need not be looked for: their snapshots are newer than ours, and every attempt looks at those.

Notes of numbered batches go when the batch is committed, for ``commit.stream`` remembers the last one of each user; the others when
they are older than ``commit-id.time-retained``.
"""

from __future__ import annotations

from dataclasses import replace

from manifest.commit.history import CommitHistory, commit_history
from manifest.commit.message import CommitResult
from manifest.commit.run_notes import CommitRun, leave_note, notes_of, refuse_expired_run
from manifest.commit.stream import announce, earlier_commit
from manifest.io.errors import CommitReplayed
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from manifest.store import FileStore


def committed_before(store: FileStore, user: str, identifier: int = BATCH_IDENTIFIER) -> CommitResult | None:
    """What an earlier run of a commit left, None if there is nothing yet. Raises ``CommitReplayed`` if that cannot be told any more."""
    if identifier < BATCH_IDENTIFIER:
        return earlier_commit(store, user, identifier)
    notes = notes_of(store, user, identifier)
    history = commit_history(store, user, identifier, min(notes.values(), default=None))
    if history.found:
        return history.result
    refuse_expired_run(store, user, notes, history.reached)
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
    notes = notes_of(store, user, identifier)
    history = commit_history(store, user, identifier, None if since is None else min([since, *notes.values()]))
    if history.found:
        return history
    if history.reached > newest:  # a whole retention passed between two lines
        notes = notes_of(store, user, identifier)
    refuse_expired_run(store, user, notes, history.reached)
    run = CommitRun(store, user, identifier, leave_note(store, user, identifier, newest), newest)
    if batch:
        announce(store, user, identifier, newest)
    return replace(history, run=run)


__all__ = ["begun", "committed_before"]
