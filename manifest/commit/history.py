"""Search of snapshots for a commit, by (user, identifier, kind)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from manifest.commit.commit_markers import CommitMarker
from manifest.commit.index_update import row_paths
from manifest.commit.message import CommitMessage, CommitResult
from manifest.entry.live import EntryFilter
from manifest.io.errors import CommitReplayed
from manifest.snapshot.snapshot import BATCH_IDENTIFIER, EMPTY_TABLE, CommitKind, Snapshot, SnapshotKey
from manifest.store import FileStore


@dataclass(frozen=True, slots=True)
class CommitHistory:
    """Search result for one (user, identifier) in snapshots after ``since``."""

    snapshot_by_kind: dict[CommitKind, int] = field(default_factory=dict)
    complete: bool = True
    """Whether every snapshot that could be the commit still exists."""
    later: bool = False
    """Whether the user has committed a greater identifier."""
    newest: SnapshotKey | None = EMPTY_TABLE
    """Newest snapshot searched. An attempt searches newer ones. None: no search before the first attempt."""
    reached: int = 0
    """Id after which all snapshots were searched. Snapshots up to it have expired or were not requested."""
    run: CommitMarker | None = None
    """Marker of this run. None: no other run of the commit can exist."""

    @property
    def rows(self) -> int | None:
        """Snapshot that committed the rows."""
        return self.snapshot_by_kind.get(CommitKind.APPEND, self.snapshot_by_kind.get(CommitKind.OVERWRITE))

    @property
    def result(self) -> CommitResult:
        """Result of a replayed commit."""
        return CommitResult(self.rows, self.snapshot_by_kind.get(CommitKind.COMPACT), replayed=True)


def commit_history(store: FileStore, user: str, identifier: int, since: int | None) -> CommitHistory:
    """Search the snapshots after ``since`` for (``user``, ``identifier``).

    Without ``since``, search all snapshots.
    """
    snapshot_by_kind: dict[CommitKind, int] = {}
    later = False
    newest = EMPTY_TABLE
    oldest: Snapshot | None = None
    for snapshot in store.snapshots.backwards():
        newest = max(newest, snapshot.key)
        if snapshot.id <= (since or 0):
            return CommitHistory(snapshot_by_kind, True, later, newest, since or 0)
        oldest = snapshot
        if snapshot.commit_user == user:
            if snapshot.commit_identifier == identifier:
                snapshot_by_kind.setdefault(snapshot.commit_kind, snapshot.id)
            later = later or identifier < snapshot.commit_identifier < BATCH_IDENTIFIER
    reached = (since or 0) if oldest is None else oldest.id - 1
    return CommitHistory(snapshot_by_kind, reached <= (since or 0), later, newest, reached)


def committed_since(
    store: FileStore, user: str, identifier: int, kind: CommitKind, last_searched: SnapshotKey | None, *, newest: Snapshot | None = None
) -> tuple[int | None, int]:
    """Return the snapshot after ``last_searched`` that is this commit.

    The second value is the id after which all snapshots were searched.

    Args:
        store: The table.
        user: Commit user.
        identifier: Commit identifier.
        kind: Kind of the snapshot.
        last_searched: Newest snapshot already searched. All snapshots are searched if it was rolled back. None: do not search.
        newest: The newest snapshot, if it has just been read.
    """
    if last_searched is None:
        return None, 0
    reached = last_searched.id
    for snapshot in store.snapshots.backwards(newest):
        if snapshot.key == last_searched:
            return None, last_searched.id
        reached = snapshot.id - 1
        if (snapshot.commit_user, snapshot.commit_identifier, snapshot.commit_kind) == (user, identifier, kind):
            return snapshot.id, reached
    return None, reached


def base_of(messages: Iterable[CommitMessage]) -> int | None:
    """Return the oldest base snapshot of the messages.

    None if a message has no base.
    """
    bases = [message.base_snapshot_id for message in messages]
    base_ids = [base for base in bases if base is not None]
    return min(base_ids) if base_ids and len(base_ids) == len(bases) else None


def refuse_expired_replay(store: FileStore, user: str, messages: Sequence[CommitMessage], history: CommitHistory) -> None:
    """Raise ``CommitReplayed`` if an expired snapshot may be this commit."""
    if history.complete or history.snapshot_by_kind:
        return
    reason = f"{store.root}: commit of '{user}' may have been committed by a snapshot that has expired; it is not repeated"
    # The commit happened if the user went on to greater identifiers, if its files are live in the oldest
    # retained state or in a tag, or if they are gone (committed, then compacted and expired).
    if history.later:
        raise CommitReplayed(f"{reason} (the user has committed greater identifiers)")
    names = {(message.partition, file.file_name) for message in messages for file in message.new_files}
    indexes = {file.file_name for message in messages for _, change in message.index_changes_of(compaction=False) for file in change.new}
    for message in messages:
        for path in row_paths(store, message):
            if not store.file_io.exists(path):
                raise CommitReplayed(f"{reason} (its file {path} is gone)")
    partitions = {partition for partition, _ in names}
    for state in _oldest_states(store):
        entries = store.live_entries(state, EntryFilter(partitions=partitions))
        for entry in zip(entries.partition, entries.file_name, strict=True):
            if entry in names:
                raise CommitReplayed(f"{reason} (its file {entry[1]} is in the table)")
        for index in store.index_entries(state) if indexes else ():
            if index.file_name in indexes:
                raise CommitReplayed(f"{reason} (its index file {index.file_name} is in the table)")


def _oldest_states(store: FileStore) -> list[Snapshot]:
    earliest = store.snapshots.earliest_id()
    states: list[Snapshot] = [*store.snapshots.tags().values()]
    return states if earliest is None else [store.snapshots.get(earliest), *states]
