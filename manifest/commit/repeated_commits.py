"""Idempotent commits: a commit id is committed once, across processes.

Snapshots record commits until they expire. Markers record them longer. A marker is an empty file whose name has the commit, the
newest snapshot at that time and the run. A run writes it before it creates a snapshot, and commits after that snapshot or never.

- A commit without markers never happened.
- A commit with markers is in a snapshot after the oldest of them, never happened, or has expired. An expired one is not repeated.
- Markers that appear meanwhile are not searched: their snapshots are newer than ours, and every attempt searches newer snapshots.

Markers of numbered batches are deleted at the commit: ``commit.stream`` remembers the last batch of each user. Others are deleted after
``commit-id.time-retained``.
"""

from __future__ import annotations

import json
from dataclasses import replace

from manifest.commit.commit_markers import CommitMarker, list_markers, refuse_expired_run, write_marker
from manifest.commit.history import CommitHistory, commit_history
from manifest.commit.message import CommitResult
from manifest.io.checksum import verify_checksum, with_checksum
from manifest.io.errors import CommitReplayed
from manifest.snapshot.snapshot import BATCH_IDENTIFIER, CommitKind
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, InvalidArgument

_IDENTIFIER, _BASE = "commitIdentifier", "baseSnapshot"


def earlier_commit(store: FileStore, user: str, identifier: int) -> CommitResult | None:
    """Return the result of an earlier run of a batch.

    None means that the batch was never committed and has to be written. The result has no snapshot ids if they have expired.
    Raises ``CommitReplayed`` if the batch was started and its outcome is unknown.
    """
    if not 0 <= identifier < BATCH_IDENTIFIER:
        raise InvalidArgument(f"batch_id must be 0 or greater, not {identifier}")
    newest = _newest_batch(store, user)
    if newest is not None:
        return None if newest < identifier else commit_history(store, user, identifier, None).result
    announcement = _read_announcement(store, user)
    if announcement is None or announcement[0] < identifier:
        return None
    if announcement[0] > identifier:
        return CommitResult(replayed=True)
    base, manager = announcement[1], store.snapshots
    if base + 1 > (manager.latest_id() or 0) or manager.exists(base + 1):
        return None
    raise CommitReplayed(
        f"{store.root}: batch {identifier} of '{user}' was started after snapshot {base}, and the snapshots since have expired: it is "
        f"unknown whether it is in the table, and it is not written again. If it is not, delete {store.paths.writer(user)} and run it again; "
        "if it is, go on with another checkpoint"
    )


def announce(store: FileStore, user: str, identifier: int, base: int | None = None) -> None:
    """Durably record that the batch will be committed after ``base``.

    ``base`` is a snapshot up to which the batch was not committed. None: the newest one.
    """
    base = (store.snapshots.latest_id() or 0) if base is None else base
    path = store.paths.writer(user)
    store.file_io.write(path, with_checksum(path, json.dumps({_IDENTIFIER: identifier, _BASE: base})), overwrite=True)


def _newest_batch(store: FileStore, user: str) -> int | None:
    """Return the user's last batch with rows in retained snapshots."""
    # Reads few snapshots while the user commits often.
    for snapshot in store.snapshots.backwards():
        if (
            snapshot.commit_user == user
            and snapshot.commit_identifier < BATCH_IDENTIFIER
            and snapshot.commit_kind is not CommitKind.COMPACT
        ):
            return snapshot.commit_identifier
    return None


def _read_announcement(store: FileStore, user: str) -> tuple[int, int] | None:
    """Return the last announced batch and its base snapshot."""
    path = store.paths.writer(user)
    try:
        content = store.file_io.read(path)
        verify_checksum(path, content)
        announcement = json.loads(content)
        return int(announcement[_IDENTIFIER]), int(announcement[_BASE])
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError) as error:
        raise CorruptFile(path, "not a valid announcement of a batch") from error


def committed_before(store: FileStore, user: str, identifier: int = BATCH_IDENTIFIER) -> CommitResult | None:
    """Return the result of an earlier run of a commit.

    None if it never happened. Raises ``CommitReplayed`` if that is unknown.
    """
    if identifier < BATCH_IDENTIFIER:
        return earlier_commit(store, user, identifier)
    markers = list_markers(store, user, identifier)
    history = commit_history(store, user, identifier, min(markers.values(), default=None))
    if history.snapshot_by_kind:
        return history.result
    refuse_expired_run(store, user, markers, history.reached)
    return None


def begin_commit(store: FileStore, user: str, identifier: int, since: int | None) -> CommitHistory:
    """Return earlier snapshots of a commit, and mark this run.

    A commit found in them gets no marker. Searches back to ``since`` (None: the first snapshot) and to every marker. Raises ``CommitReplayed``.
    """
    newest = store.snapshots.latest_id() or 0  # read before the markers: a run without a marker so far commits after this
    batch = identifier < BATCH_IDENTIFIER
    if batch and earlier_commit(store, user, identifier) is not None:
        history = commit_history(store, user, identifier, None)
        if not history.snapshot_by_kind:
            raise CommitReplayed(f"{store.root}: batch {identifier} of '{user}' is already in the table, in a snapshot that has expired")
        return history
    markers = list_markers(store, user, identifier)
    history = commit_history(store, user, identifier, None if since is None else min([since, *markers.values()]))
    if history.snapshot_by_kind:
        return history
    if history.reached > newest:  # snapshots expired since the markers were read
        markers = list_markers(store, user, identifier)
    refuse_expired_run(store, user, markers, history.reached)
    run = CommitMarker(store, user, identifier, write_marker(store, user, identifier, newest), newest)
    if batch:
        announce(store, user, identifier, newest)
    return replace(history, run=run)
