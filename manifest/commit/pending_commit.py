"""A snapshot that is to be committed, over all its attempts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from manifest.commit.attempt import CommitChange, CommitIdentity
from manifest.commit.commit_markers import CommitMarker
from manifest.commit.history import committed_since
from manifest.commit.transaction import AttemptOutcome, Unknown
from manifest.snapshot.snapshot import EMPTY_TABLE, Snapshot, SnapshotKey
from manifest.store import FileStore

Plan = Callable[[FileStore, Snapshot | None], CommitChange | None]
"""Returns the change to commit on top of a snapshot. Writes its files through the given store. None: nothing to commit. Raises ``CommitConflict``."""


@dataclass(slots=True)
class PendingCommit:
    """One snapshot to commit, and the state of its attempts.

    Args:
        store: The table.
        identity: Identity of the commit.
        plan: Computes the change.
        last_searched: Newest snapshot already searched for the commit. None: do not search.
        run: Marker of this run of the commit. None: no other run can exist.
        committed: Id of the created snapshot.
    """

    store: FileStore
    identity: CommitIdentity
    plan: Plan
    last_searched: SnapshotKey | None
    run: CommitMarker | None
    committed: int | None = None

    def search(self) -> int | None:
        """Search the snapshots since the last search for this commit."""
        return self._commits_since_read(None)[0]

    def search_to(self, latest: Snapshot | None) -> int | None:
        """Search snapshots up to ``latest`` for this commit.

        Raises ``CommitReplayed`` if it may be in a snapshot that has expired.
        """
        snapshot_id, reached = self._commits_since_read(latest)
        self.last_searched = latest.key if latest else EMPTY_TABLE
        if snapshot_id is None and self.run is not None:
            self.run.check(self.last_searched.id, reached)
        return snapshot_id

    def begin_create(self) -> None:
        """Count an attempt whose outcome is unknown until ``end_create``."""
        if self.run is not None:
            self.run.unknown_outcomes += 1

    def end_create(self, outcome: AttemptOutcome) -> None:
        """Uncount the attempt unless its outcome is ``Unknown``."""
        if self.run is not None and not isinstance(outcome, Unknown):
            self.run.unknown_outcomes -= 1

    def end(self) -> None:
        """End the run and remove its marker where allowed."""
        if self.run is not None:
            self.run.end(committed=self.committed is not None)

    def _commits_since_read(self, newest: Snapshot | None) -> tuple[int | None, int]:
        identity = self.identity
        return committed_since(self.store, identity.user, identity.identifier, identity.kind, self.last_searched, newest=newest)
