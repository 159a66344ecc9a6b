"""The optimistic commit (Paimon's ``FileStoreCommitImpl``): check, write metadata, create the snapshot if it is not there.

Safety rests on three things. The appearance of ``snapshot-N`` is the commit, and the store creates it only if absent. Every
attempt is checked against the newest state, so against every snapshot since the writer opened. And sequence order is commit
order: rows that lost the race to a newer commit get newer sequence numbers before they are committed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fileindex.base.errors import InvalidArgument, PaimonError
from fileindex.base.lazy import LazyModule
from fileindex.base.log import logger_of
from manifest.commit.attempt import CommitAttempt, CommitChange, CommitIdentity
from manifest.commit.changes import Compactions, analyze_change, append_change, overwrite_change, replace_change
from manifest.commit.history import CommitHistory, base_of, commit_history, committed_since, refuse_expired_replay
from manifest.commit.index_rewrite import IndexRewrites
from manifest.commit.made_in_vain import made_in_vain
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.outcome import AttemptOutcome, Committed, LostRace, NothingToCommit, Refused, Unknown
from manifest.commit.resequence import ResequenceFiles, Resequencer
from manifest.commit.run_notes import CommitRun
from manifest.commit.runs import begun
from manifest.commit.successor import is_included, remember, verify_successor
from manifest.expire.after_commit import after_commit
from manifest.io import failpoints
from manifest.io.errors import (
    CatalogRefused,
    CommitGaveUp,
    FileReplaced,
    HistoryBusy,
    OutOfDisk,
    SnapshotExpired,
    SnapshotNotFound,
    StorageError,
    UnsafeFileIO,
)
from manifest.io.paths import MAIN_BRANCH
from manifest.lost_snapshots import refuse_lost_snapshots
from manifest.snapshot.snapshot import BATCH_IDENTIFIER, EMPTY_TABLE, CommitKind, ReadState, Snapshot, SnapshotKey
from manifest.stats.table_stats import EXACT, Statistics
from manifest.store import FileStore

if TYPE_CHECKING:
    from manifest.expire import history_change, snapshots
else:
    history_change = LazyModule("manifest.expire.history_change")
    snapshots = LazyModule("manifest.expire.snapshots")

_LOG = logger_of(__name__)

Plan = Callable[[FileStore, Snapshot | None], CommitChange | None]
"""The change to commit on top of a snapshot, its files written through the store given; None if nothing is left to do. Raises ``CommitConflict``."""


class FileStoreCommit:
    """Commits of one ``user`` (a UUID made for the write, or the stable name of a streaming job).

    ``resequence`` rewrites new level-0 files with other sequence numbers; a primary-key table needs it where writers race.
    ``fresh``: the name was made for this object and nobody else knows it, so that no other run of its commits can be under way.
    """

    def __init__(self, store: FileStore, user: str, *, resequence: ResequenceFiles | None = None, fresh: bool = False) -> None:
        self.store = store
        self.user = user
        self._resequence = resequence
        self._fresh = fresh
        self.retries = 0
        """How often an attempt lost to another commit, or was not answered."""
        self._first_seen: int | None = None
        """The newest snapshot at the first attempt of a fresh name: none up to it is this user's."""
        self._look: snapshots.FirstLook | None = None
        self._untold: int | None = None

    def commit(
        self,
        messages: Sequence[CommitMessage],
        identifier: int = BATCH_IDENTIFIER,
        *,
        properties: Mapping[str, str] | None = None,
        read: ReadState | None = None,
    ) -> CommitResult:
        """Make new files visible (APPEND), then their compaction (COMPACT); all or nothing per snapshot.

        Rows that deletion vectors mark make the first an OVERWRITE: whoever follows a table's appends must not miss them.
        A repeated call answers what the first one did. With ``read`` the rows were computed from that snapshot, so
        any later change of their buckets but a compaction is a conflict. Raises ``CommitConflict`` (redo the operation),
        ``CommitGaveUp`` (too many races lost), ``CommitReplayed``, ``OutOfDisk``, ``UnsafeFileIO``; nothing is visible then. Once the
        rows are committed the call says so: an error of their compaction is logged, and its buckets are told as lost.
        """
        failpoints.point("after-data-files")
        filled = [message for message in messages if not message.is_empty]
        history = self._begun(filled, identifier, rows=any(message.has_rows for message in filled))
        resequencer = Resequencer(self.store, filled, self._resequence)
        rows = history.rows
        if rows is None and not history.found and any(message.has_rows for message in filled):
            kind = CommitKind.OVERWRITE if any(message.marks_rows for message in filled) else CommitKind.APPEND
            identity = CommitIdentity(self.user, identifier, kind, properties)
            with resequencer.or_undone(partial(self.abort, identifier=identifier)):
                rows = self._run(identity, lambda store, latest: append_change(store, latest, resequencer, read), history)
            resequencer.delete_replaced()
            failpoints.point("between-append-and-compact")
        compacted = history.found.get(CommitKind.COMPACT)
        lost: tuple[tuple[bytes, int], ...] = resequencer.lost
        if compacted is None:
            identity = CommitIdentity(self.user, identifier, CommitKind.COMPACT, properties)
            compacted, also_lost = self._compact(resequencer.messages, identity, rows=rows)
            lost += also_lost
        self._maintain(compacted or rows)
        return CommitResult(rows, compacted, bool(history.found), lost)

    def overwrite(
        self,
        messages: Sequence[CommitMessage],
        identifier: int = BATCH_IDENTIFIER,
        *,
        partitions: Collection[bytes] | None = None,
        dynamic: bool = False,
        properties: Mapping[str, str] | None = None,
        copied: Snapshot | None = None,
    ) -> CommitResult:
        """Replace what is in ``partitions`` (None: the whole table; ``dynamic``: the partitions of the new files).

        If the rows are those of an older snapshot, ``copied``, it is a conflict that no snapshot and no tag has it any more. Raises as
        ``commit`` does, and ``InvalidArgument`` for a new file outside ``partitions``.
        """
        failpoints.point("after-data-files")
        filled = [message for message in messages if not message.is_empty]
        target = {message.partition for message in filled if message.new_files} if dynamic else partitions
        outside = [m for m in filled if target is not None and m.partition not in target]
        if outside:
            values = self.store.partition.decode(outside[0].partition)
            raise InvalidArgument(f"a row of partition {values} is outside the partitions to overwrite")
        history = self._begun(filled, identifier, rows=True)
        rows = history.rows
        if not history.found:
            identity = CommitIdentity(self.user, identifier, CommitKind.OVERWRITE, properties)
            rows = self._run(identity, lambda store, latest: overwrite_change(store, latest, filled, target, copied), history)
            failpoints.point("between-append-and-compact")
        compacted = history.found.get(CommitKind.COMPACT)
        lost: tuple[tuple[bytes, int], ...] = ()
        if compacted is None:
            identity = CommitIdentity(self.user, identifier, CommitKind.COMPACT, properties)
            compacted, lost = self._compact(filled, identity, rows=rows)
        self._maintain(compacted or rows)
        return CommitResult(rows, compacted, bool(history.found), lost)

    def truncate(self, identifier: int = BATCH_IDENTIFIER, *, partitions: Collection[bytes] | None = None) -> CommitResult:
        """Remove all rows, of ``partitions`` or of the whole table."""
        return self.overwrite((), identifier, partitions=partitions)

    def replace(
        self,
        messages: Sequence[CommitMessage],
        identifier: int = BATCH_IDENTIFIER,
        *,
        properties: Mapping[str, str] | None = None,
        read: ReadState | None = None,
        kind: CommitKind = CommitKind.OVERWRITE,
    ) -> CommitResult:
        """Put ``compact_after`` and ``new_files`` in the place of ``compact_before``: rows changed inside files.

        Raises ``CommitConflict`` if such a file is gone, or a bucket changed after the snapshot ``read``.
        """
        failpoints.point("after-data-files")
        filled = [message for message in messages if not message.is_empty]
        history = self._begun(filled, identifier, rows=bool(filled))
        rows = history.rows
        if rows is None:
            identity = CommitIdentity(self.user, identifier, kind, properties)
            rows = self._run(identity, lambda store, latest: replace_change(store, latest, filled, read), history)
            self._maintain(rows)
        return CommitResult(rows, None, bool(history.found))

    def analyze(self, statistics: Statistics, counted: Snapshot, identifier: int = BATCH_IDENTIFIER) -> int:
        """Attach statistics, counted row by row at ``counted``, to the table: an ANALYZE snapshot, whose id is returned.

        Raises ``CommitConflict`` if the columns are not those of the newest schema any more, or a rollback has removed ``counted``;
        ``CommitGaveUp``.
        """
        identity = CommitIdentity(self.user, identifier, CommitKind.ANALYZE, properties={EXACT: "exact"})
        committed = self._run(identity, lambda store, latest: analyze_change(store, latest, statistics, counted))
        self._maintain(committed)
        return committed or 0

    def rewrite_indexes(
        self, messages: Sequence[CommitMessage], identifier: int = BATCH_IDENTIFIER, *, properties: Mapping[str, str] | None = None
    ) -> CommitResult:
        """Describe data files anew (COMPACT): ``compact_after`` has the entries of ``compact_before`` with other indexes, in order.

        Files that another commit removed or described anew drop out; ``lost_compactions`` has the bucket of each.
        """
        failpoints.point("after-data-files")
        filled = [message for message in messages if not message.is_empty]
        history = commit_history(self.store, self.user, identifier, base_of(filled))
        committed = history.found.get(CommitKind.COMPACT)
        rewrites = IndexRewrites(self.store, filled)
        if committed is None and filled:
            identity = CommitIdentity(self.user, identifier, CommitKind.COMPACT, properties=properties)
            committed = self._run(identity, rewrites.change)
            if history.complete:  # else it may have happened in a snapshot that has expired
                rewrites.delete_lost_files()
            self._maintain(committed)
        return CommitResult(None, committed, bool(history.found), rewrites.lost)

    def abort(self, messages: Sequence[CommitMessage], identifier: int | None = None) -> list[str]:
        """Delete the files of a commit that surely did not happen; returns the deleted paths.

        Nothing is deleted if a snapshot since the writers opened is this user's (with ``identifier``, that commit's), or if
        not all of those snapshots are there to tell; files that the newest state or a tag uses stay in any case. An error is logged, and
        what is left an orphan: the one that led here is to be told.
        """
        try:
            doomed = made_in_vain(self.store, self.user, messages, identifier)
        except (PaimonError, OSError):
            _LOG.warning("%s: files of a commit that failed could not be deleted", self.store.root, exc_info=True)
            return []
        return [path for path in doomed if _deleted(self.store, path)]

    def _compact(
        self, messages: Sequence[CommitMessage], identity: CommitIdentity, *, rows: int | None
    ) -> tuple[int | None, tuple[tuple[bytes, int], ...]]:
        """Commit compactions; those that lost a race are dropped with the files they made.

        If their rows were committed before, by snapshot ``rows``, an error drops all of them, for the call must tell of the rows.
        """
        compactions = Compactions(self.store, [message for message in messages if message.has_compaction])
        committed: int | None = None
        try:
            committed = self._run(identity, compactions.change) if compactions.messages else None
        except Exception as error:
            if rows is None:
                raise
            surely_not = False
            with suppress(PaimonError, OSError):  # the error may have come after the commit
                committed, _ = committed_since(self.store, self.user, identity.identifier, identity.kind, SnapshotKey(rows, ""))
                surely_not = committed is None and not isinstance(error, CommitGaveUp)
            if committed is None:
                _LOG.warning("%s: committed as snapshot %d by '%s', not yet compacted", self.store.root, rows, self.user, exc_info=True)
                with suppress(PaimonError, OSError):  # a repetition of what has been named is known from now on
                    remember(self.store, self.store.snapshots.get(rows))
                compactions.drop_all(keep_files=not surely_not)
        compactions.delete_lost_files()
        return committed, compactions.lost

    def _begun(self, messages: Sequence[CommitMessage], identifier: int, *, rows: bool) -> CommitHistory:
        """What the snapshots tell of the commit, before the first attempt; ``rows``: it changes some. Raises ``CommitReplayed``."""
        base = base_of(messages)
        if self._fresh and self._first_seen is None:  # nor is anything looked for before the first attempt
            return CommitHistory(newest=None)
        base = self._first_seen if self._fresh else base
        if self._fresh or not rows:  # a compaction cannot be made twice: its files are gone
            history = commit_history(self.store, self.user, identifier, base)
        else:
            history = begun(self.store, self.user, identifier, base)
        refuse_expired_replay(self.store, self.user, messages, history)
        return history

    def _run(self, identity: CommitIdentity, plan: Plan, history: CommitHistory | None = None) -> int | None:
        """Attempt until the snapshot exists; return its id.

        None: there was nothing to commit. ``history`` was searched for the commit up to its newest snapshot: another run of the same write may
        be a step ahead.
        """
        pending = _PendingCommit(self.store, identity, plan, *((None, None) if history is None else (history.newest, history.run)))
        options = self.store.options
        deadline = None if options.commit_timeout is None else time.monotonic() + options.commit_timeout / 1000
        try:
            for retry in range(options.commit_max_retries + 1):
                with self.store.file_io.turn(self.store.paths.snapshots):
                    outcome = self._attempt(pending, first=retry == 0)
                match outcome:
                    case Committed(snapshot_id):
                        pending.committed = snapshot_id
                        return snapshot_id
                    case NothingToCommit():
                        return None
                    case Refused(error):
                        raise error
                    case LostRace() | Unknown():
                        self.retries += 1
                base = pending.seen and pending.seen.id
                _LOG.info(
                    "%s: the %s of '%s' did not follow snapshot %s, attempt %d", self.store.root, identity.kind, self.user, base, retry + 1
                )
                if deadline is not None and time.monotonic() > deadline:
                    break
                if retry < options.commit_max_retries:
                    time.sleep(_wait_seconds(options.commit_min_retry_wait, options.commit_max_retry_wait, retry))
            pending.committed = pending.search()
            if pending.committed is not None:
                return pending.committed
            raise CommitGaveUp(
                f"{self.store.root}: {retry + 1} attempts failed, other commits were faster or the storage did not answer; "
                "try again, or raise 'commit.max-retries' or 'commit.timeout'"
            )
        finally:
            pending.end()

    def _attempt(self, pending: _PendingCommit, *, first: bool) -> AttemptOutcome:
        """Commit on top of the newest snapshot: search, prepare, create, verify."""
        try:
            latest = self._latest(first=first)
        except HistoryBusy:
            return LostRace()
        found = pending.search_to(latest)
        if self._first_seen is None:
            self._first_seen = 0 if latest is None else latest.id
        if found is not None:
            return Committed(found)
        attempt = CommitAttempt(self.store)
        try:
            with attempt.or_nothing():
                change = pending.plan(attempt.store, latest)
                if change is None:
                    return NothingToCommit()
                snapshot = attempt.prepare(latest, change, pending.identity, merging=first)
        except SnapshotExpired:  # a whole retention has passed meanwhile
            return LostRace()
        pending.begin_create()
        outcome = self._create(snapshot, attempt, latest, change)
        if isinstance(outcome, Committed):
            self._verify(snapshot, latest, change)
        pending.end_create(outcome)
        if isinstance(outcome, LostRace | Refused):  # else every file stays until somebody can tell
            attempt.discard()
        elif isinstance(outcome, Committed):
            said = (self.store.root, snapshot.id, snapshot.commit_kind, self.user, snapshot.delta_record_count, len(change.entries))
            _LOG.info("%s: committed snapshot %d, %s of '%s': %+d rows, %d files named", *said)
        return outcome

    def _latest(self, *, first: bool) -> Snapshot | None:
        """Return the newest snapshot after finishing a rollback or fast-forward that was cut off. Raises ``HistoryBusy``."""
        store, manager = self.store, self.store.snapshots
        self._tell()
        # On an object store only older versions leave a note; an attempt that failed is the sign of one.
        if store.commits is None and (store.file_io.cancels_creates or not first) and manager.pending_history() is not None:
            with history_change.history_locked(store, "the commit"):
                history_change.finish_pending(store)
        latest = manager.latest()
        if latest is None:
            refuse_lost_snapshots(store)
        elif latest.first_replaced is not None:
            history_change.finish_replacing(store, latest)
        return latest

    def _create(self, snapshot: Snapshot, attempt: CommitAttempt, latest: Snapshot | None, change: CommitChange) -> AttemptOutcome:
        """Create the snapshot if its id is free and ``latest`` still ends the history."""
        store, manager = self.store, self.store.snapshots

        def follows() -> bool:
            return store.schemas.holds(store.schema) and manager.is_successor(snapshot.id, latest)

        try:
            return Committed(snapshot.id) if manager.try_create(snapshot, attempt.changed, follows) else LostRace()
        except (UnsafeFileIO, CatalogRefused) as error:
            return Refused(error)
        except FileReplaced:  # others may have committed on top of it before
            return Committed(snapshot.id) if is_included(store, change) else Unknown()
        except OSError as error:
            try:
                created = manager.get(snapshot.id).delta_manifest_list == snapshot.delta_manifest_list
            except SnapshotNotFound:
                if isinstance(error, OutOfDisk):
                    return Refused(error)
            except (StorageError, CatalogRefused):  # nor does it answer
                pass
            else:
                return Committed(snapshot.id) if created else LostRace()
            _LOG.warning("%s: creating snapshot %s failed", self.store.root, snapshot.id, exc_info=True)
            return Unknown()

    def _verify(self, snapshot: Snapshot, latest: Snapshot | None, change: CommitChange) -> None:
        """Raise ``StorageError`` unless the new snapshot is in the history; remember the hint to write."""
        _, self._look = self.store.file_io.together(partial(verify_successor, self.store, snapshot, latest, change), self._look_ahead)
        self._untold = snapshot.id  # not told before it was verified: the hint to a late snapshot would hide newer ones

    def _look_ahead(self) -> snapshots.FirstLook | None:
        """Of expiry, where that is asked for and questions take time, else None."""
        if not self._maintains or self.store.file_io.lanes <= 1:
            return None
        with suppress(PaimonError, OSError):
            return snapshots.first_look(self.store)
        return None

    @property
    def _maintains(self) -> bool:
        return not self.store.options.write_only and self.store.paths.branch == MAIN_BRANCH

    def _maintain(self, newest: int | None) -> None:
        """Do what is due after a commit, ``newest`` being this one; a failure is no failure of the commit."""
        look, self._look = self._look, None
        if self._maintains:
            self.store.file_io.together(self._tell, partial(after_commit, self.store, newest, look))
        else:
            self._tell()

    def _tell(self) -> None:
        """Write the hint to the snapshot that this call has committed."""
        untold, self._untold = self._untold, None
        if untold is not None:
            self.store.snapshots.tell_created(untold)


@dataclass(slots=True)
class _PendingCommit:
    """One snapshot to make, and what its attempts have seen.

    Args:
        store: The table.
        identity: What the snapshot says of its maker.
        plan: The change.
        seen: The newest snapshot at the last look. None: there was none yet.
        run: The run that makes it, if another one might.
        committed: The snapshot, once it exists.
    """

    store: FileStore
    identity: CommitIdentity
    plan: Plan
    seen: SnapshotKey | None
    run: CommitRun | None
    committed: int | None = None

    def search(self) -> int | None:
        """Look for the commit in the snapshots since the last look."""
        return self._since_last_look(None)[0]

    def search_to(self, latest: Snapshot | None) -> int | None:
        """Search up to ``latest``. Raises ``CommitReplayed`` if it may be in a snapshot that has expired."""
        found, reached = self._since_last_look(latest)
        self.seen = latest.key if latest else EMPTY_TABLE
        if found is None and self.run is not None:
            self.run.check(self.seen.id, reached)
        return found

    def begin_create(self) -> None:
        """Until ``end_create`` nobody can tell whether the snapshot exists."""
        if self.run is not None:
            self.run.unknown_outcomes += 1

    def end_create(self, outcome: AttemptOutcome) -> None:
        """Note that an attempt's outcome is known, unless it is not."""
        if self.run is not None and not isinstance(outcome, Unknown):
            self.run.unknown_outcomes -= 1

    def end(self) -> None:
        """End the run."""
        if self.run is not None:
            self.run.end(committed=self.committed is not None)

    def _since_last_look(self, newest: Snapshot | None) -> tuple[int | None, int]:
        identity = self.identity
        return committed_since(self.store, identity.user, identity.identifier, identity.kind, self.seen, newest=newest)


def _deleted(store: FileStore, path: str) -> bool:
    try:
        return store.file_io.delete(path)
    except OSError:  # an orphan at worst
        return False


def _wait_seconds(shortest_ms: int, longest_ms: int, retry: int) -> float:
    """Exponential back-off with jitter, so that racing writers drift apart."""
    wait: float = min(shortest_ms * 2.0**retry, longest_ms)
    return wait * random.uniform(0.5, 1.2) / 1000  # noqa: S311 -- not a secret


__all__ = ["FileStoreCommit"]
