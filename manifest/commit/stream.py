"""Exactly once for a user who commits one batch after the other: which batches are in the table, also after their snapshots expired.

A batch is (user, identifier), and identifiers grow. As long as a snapshot of the user is there, its identifier tells. For the time
after that the user announces each batch in a small file before it commits, with the newest snapshot then: a batch that was
never announced never happened, one that was announced happened in a snapshot after that one, or not at all.
"""

from __future__ import annotations

import json

from fileindex.base.errors import CorruptFile, InvalidArgument
from manifest.commit.history import commit_history
from manifest.commit.message import CommitResult
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


__all__ = ["announce", "earlier_commit"]
