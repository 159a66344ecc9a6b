"""A commit happens once, however often and from wherever it is run: each run leaves a note before it can make a snapshot.

Snapshots tell who committed what until they expire; notes tell it longer. A note is an empty file, named by the commit, the newest
snapshot at that time and the run: the run commits after that snapshot or never. So a commit of which there is no note never happened,
and one with notes is in a snapshot after the oldest of them, was never made, or has expired: then it is not made again. Notes that
came meanwhile need not be looked for: their snapshots are newer than ours, and every attempt looks at those.

Notes of numbered batches go when the batch is committed, for ``commit.stream`` remembers the last one of each user; the others when
they are older than ``commit-id.time-retained``.
"""

from __future__ import annotations

import json
from dataclasses import replace

from fileindex.base.errors import CorruptFile, InvalidArgument
from manifest.commit.history import CommitHistory, commit_history
from manifest.commit.message import CommitResult
from manifest.commit.run_notes import CommitRun, leave_note, notes_of, refuse_expired_run
from manifest.io.errors import CommitReplayed
from manifest.io.seal import check_seal, sealed
from manifest.snapshot.snapshot import BATCH_IDENTIFIER, CommitKind
from manifest.store import FileStore

_IDENTIFIER, _BASE = "commitIdentifier", "baseSnapshot"


def earlier_commit(store: FileStore, user: str, identifier: int) -> CommitResult | None:
    """What the first run of a batch committed, None if it surely never did: then it is to be written.

    Without snapshot ids if they have expired. Raises ``CommitReplayed`` if the batch was begun and nobody can tell how it ended.
    """
    if not 0 <= identifier < BATCH_IDENTIFIER:
        raise InvalidArgument(f"a batch is numbered from 0 up, not {identifier}")
    newest = _newest_batch(store, user)
    if newest is not None:
        return None if newest < identifier else commit_history(store, user, identifier, None).result
    announced = _announced(store, user)
    if announced is None or announced[0] < identifier:
        return None
    if announced[0] > identifier:
        return CommitResult(replayed=True)
    base, manager = announced[1], store.snapshots
    if base + 1 > (manager.latest_id() or 0) or manager.exists(base + 1):
        return None
    raise CommitReplayed(
        f"{store.root}: batch {identifier} of '{user}' was begun after snapshot {base}, and the snapshots since have expired: nobody can "
        f"tell whether it is in the table, and it is not written again. If it is not, delete {store.paths.writer(user)} and run it again; "
        "if it is, go on with another checkpoint"
    )


def announce(store: FileStore, user: str, identifier: int, base: int | None = None) -> None:
    """Say durably that the batch is about to be committed, after snapshot ``base`` (None: the newest), up to which it was not."""
    base = (store.snapshots.latest_id() or 0) if base is None else base
    path = store.paths.writer(user)
    store.file_io.write(path, sealed(path, json.dumps({_IDENTIFIER: identifier, _BASE: base})), overwrite=True)


def _newest_batch(store: FileStore, user: str) -> int | None:
    """The user's last batch that brought rows, by the snapshots that are there; a look at few of them while the user commits often."""
    for snapshot in store.snapshots.backwards():
        if (
            snapshot.commit_user == user
            and snapshot.commit_identifier < BATCH_IDENTIFIER
            and snapshot.commit_kind is not CommitKind.COMPACT
        ):
            return snapshot.commit_identifier
    return None


def _announced(store: FileStore, user: str) -> tuple[int, int] | None:
    """The batch that was announced last, and the newest snapshot then."""
    path = store.paths.writer(user)
    try:
        content = store.file_io.read(path)
        check_seal(path, content)
        found = json.loads(content)
        return int(found[_IDENTIFIER]), int(found[_BASE])
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError) as error:
        raise CorruptFile(path, "not what a writer announced") from error


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


__all__ = ["announce", "begun", "committed_before", "earlier_commit"]
