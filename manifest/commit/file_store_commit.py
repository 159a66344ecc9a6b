"""The optimistic commit (Paimon's ``FileStoreCommitImpl``).

An attempt checks the change, writes metadata and creates the snapshot file.

- The appearance of ``snapshot-N`` is the commit. The store creates that file only if it is absent.
- Every attempt is checked against the newest state, hence against every snapshot since the writer opened.
- Sequence order is commit order: rows that lost a race get newer sequence numbers before they are committed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from manifest.commit.attempt import CommitAttempt, CommitChange, CommitIdentity, is_included, remember, verify_not_overwritten
from manifest.commit.changes import (
    Compactions,
    analyze_change,
    append_change,
    forget_change,
    manifests_change,
    overwrite_change,
    replace_change,
)
from manifest.commit.history import CommitHistory, base_of, commit_history, committed_since, refuse_expired_replay
from manifest.commit.index_rewrite import IndexRewrites
from manifest.commit.message import CommitMessage, CommitResult, compaction_counts
from manifest.commit.missing_files import MissingFiles
from manifest.commit.pending_commit import PendingCommit, Plan
from manifest.commit.repeated_commits import begin_commit
from manifest.commit.resequence import ResequenceFiles, Resequencer
from manifest.commit.transaction import AttemptOutcome, Committed, LostRace, NothingToCommit, Refused, Unknown
from manifest.commit.uncommitted_files import uncommitted_files
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
from manifest.snapshot.commit_info import commit_properties
from manifest.snapshot.snapshot import BATCH_IDENTIFIER, CommitKind, ReadState, Snapshot, SnapshotKey
from manifest.stats.table_stats import EXACT, Statistics
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument, PaimonError
from paimon_base.lazy import LazyModule
from paimon_base.log import logger_of
from paimon_base.plugins import plugin

if TYPE_CHECKING:
    from manifest.expire import history_change, snapshots
else:
    history_change = LazyModule("manifest.expire.history_change")
    snapshots = LazyModule("manifest.expire.snapshots")

_LOG = logger_of(__name__)


class FileStoreCommit:
    """Commits of one user.

    Args:
        store: The table.
        user: Commit user: a UUID made for the write, or the stable name of a streaming job.
        resequence: Rewrites new level-0 files with other sequence numbers. A primary-key table with concurrent writers needs it.
        fresh: Whether the name was made for this object, so that no other run of its commits can exist.
    """

    def __init__(self, store: FileStore, user: str, *, resequence: ResequenceFiles | None = None, fresh: bool = False) -> None:
        self.store = store
        self.user = user
        self._resequence = resequence
        self._fresh = fresh
        self.retries = 0
        """Attempts that lost to another commit or had an unknown outcome."""
        self._first_seen: int | None = None
        """Newest snapshot at the first attempt. With a fresh name, no snapshot up to it is this user's."""
        self._expiry_inputs: snapshots.ExpiryInputs | None = None
        self._hint_to_write: int | None = None

    def commit(
        self,
        messages: Sequence[CommitMessage],
        identifier: int = BATCH_IDENTIFIER,
        *,
        properties: Mapping[str, str] | None = None,
        read: ReadState | None = None,
    ) -> CommitResult:
        """Commit new files (APPEND), then their compaction (COMPACT).

        Each snapshot is all or nothing. New deletion vectors make the first one an OVERWRITE.
        A repeated call returns the result of the first one.

        After an error nothing is visible. Once the rows are committed, the call succeeds:
        an error of their compaction is logged, and the result lists its buckets as lost.

        Args:
            messages: Changes of the writers.
            identifier: Commit identifier.
            properties: Properties of the snapshots.
            read: Snapshot that the rows were computed from. Any later change of their buckets except a compaction is a conflict.

        Raises:
            CommitConflict: Redo the operation.
            CommitGaveUp: Too many races were lost.
            CommitReplayed: The commit may have happened in an expired snapshot.
            OutOfDisk: No space is left.
            UnsafeFileIO: The storage cannot create files atomically.
        """
        failpoints.point("after-data-files")
        filled = [message for message in messages if not message.is_empty]
        adds = any(message.has_rows for message in filled)
        history = self._find_earlier(filled, identifier, rows=adds)
        resequencer = Resequencer(self.store, filled, self._resequence)
        rows = history.rows
        if rows is None and not history.snapshot_by_kind and adds:
            # Streams follow APPEND snapshots by their new files only and would miss rows marked as deleted.
            kind = CommitKind.OVERWRITE if any(message.marks_rows for message in filled) else CommitKind.APPEND
            identity = CommitIdentity(self.user, identifier, kind, properties)
            with resequencer.abort_on_error(partial(self.abort, identifier=identifier)):
                rows = self._run(identity, lambda store, latest: append_change(store, latest, resequencer, read), history)
            resequencer.delete_replaced()
            failpoints.point("between-append-and-compact")
        compacted = history.snapshot_by_kind.get(CommitKind.COMPACT)
        lost: tuple[tuple[bytes, int], ...] = resequencer.lost
        if compacted is None:
            identity = CommitIdentity(
                self.user, identifier, CommitKind.COMPACT, _compaction_properties(properties, rows, resequencer.messages)
            )
            compacted, also_lost = self._compact(resequencer.messages, identity, rows=rows)
            lost += also_lost
        self._maintain(compacted or rows)
        return CommitResult(rows, compacted, bool(history.snapshot_by_kind), lost)

    def overwrite(
        self,
        messages: Sequence[CommitMessage],
        identifier: int = BATCH_IDENTIFIER,
        *,
        partitions: Collection[bytes] | None = None,
        dynamic: bool = False,
        properties: Mapping[str, str] | None = None,
        copied: Snapshot | None = None,
        read: ReadState | None = None,
    ) -> CommitResult:
        """Replace the files of ``partitions``.

        Raises as ``commit`` does, and ``InvalidArgument`` for a new file outside ``partitions``.

        Args:
            messages: The new files.
            identifier: Commit identifier.
            partitions: Partitions to replace. None: the whole table.
            dynamic: Whether to replace the partitions of the new files instead.
            properties: Properties of the snapshots.
            copied: Older snapshot whose rows the new files copy. It is a conflict if it is no longer in any snapshot or tag.
            read: Snapshot whose rows the new files have. Any later change of the partitions except a compaction is a conflict.
        """
        failpoints.point("after-data-files")
        filled = [message for message in messages if not message.is_empty]
        target = {message.partition for message in filled if message.new_files} if dynamic else partitions
        outside = [m for m in filled if target is not None and m.partition not in target]
        if outside:
            values = self.store.partition.decode(outside[0].partition)
            raise InvalidArgument(f"a row of partition {values} is outside the partitions to overwrite")
        history = self._find_earlier(filled, identifier, rows=True)
        rows = history.rows
        if not history.snapshot_by_kind:
            identity = CommitIdentity(self.user, identifier, CommitKind.OVERWRITE, properties)
            rows = self._run(
                identity, lambda store, latest: overwrite_change(store, latest, filled, target, copied=copied, read=read), history
            )
            failpoints.point("between-append-and-compact")
        compacted = history.snapshot_by_kind.get(CommitKind.COMPACT)
        lost: tuple[tuple[bytes, int], ...] = ()
        if compacted is None:
            identity = CommitIdentity(self.user, identifier, CommitKind.COMPACT, _compaction_properties(properties, rows, filled))
            compacted, lost = self._compact(filled, identity, rows=rows)
        self._maintain(compacted or rows)
        return CommitResult(rows, compacted, bool(history.snapshot_by_kind), lost)

    def truncate(
        self,
        identifier: int = BATCH_IDENTIFIER,
        *,
        partitions: Collection[bytes] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Delete all rows of ``partitions`` or of the whole table."""
        return self.overwrite((), identifier, partitions=partitions, properties=properties)

    def replace(
        self,
        messages: Sequence[CommitMessage],
        identifier: int = BATCH_IDENTIFIER,
        *,
        properties: Mapping[str, str] | None = None,
        read: ReadState | None = None,
        kind: CommitKind = CommitKind.OVERWRITE,
    ) -> CommitResult:
        """Replace ``compact_before`` by ``compact_after`` and ``new_files``, for changed rows.

        Raises ``CommitConflict`` if such a file is gone, or a bucket changed after the snapshot ``read``.
        """
        failpoints.point("after-data-files")
        filled = [message for message in messages if not message.is_empty]
        history = self._find_earlier(filled, identifier, rows=bool(filled))
        rows = history.rows
        if rows is None:
            identity = CommitIdentity(self.user, identifier, kind, properties)
            rows = self._run(identity, lambda store, latest: replace_change(store, latest, filled, read), history)
            self._maintain(rows)
        return CommitResult(rows, None, bool(history.snapshot_by_kind))

    def analyze(self, statistics: Statistics, counted: Snapshot, identifier: int = BATCH_IDENTIFIER) -> int:
        """Commit statistics as an ANALYZE snapshot and return its id.

        Raises ``CommitConflict`` if the newest schema has other columns, or a rollback removed ``counted``. Raises ``CommitGaveUp``.

        Args:
            statistics: Exact statistics.
            counted: Snapshot whose rows were counted.
            identifier: Commit identifier.
        """
        identity = CommitIdentity(self.user, identifier, CommitKind.ANALYZE, properties={EXACT: "exact", **commit_properties("analyze")})
        committed = self._run(identity, lambda store, latest: analyze_change(store, latest, statistics, counted))
        self._maintain(committed)
        return committed or 0

    def compact_manifests(self, identifier: int = BATCH_IDENTIFIER) -> int | None:
        """Commit a COMPACT snapshot with merged manifests and return its id.

        None: no merge is due. Raises ``CommitGaveUp``.
        """
        identity = CommitIdentity(self.user, identifier, CommitKind.COMPACT, properties=commit_properties("compact-manifests"))
        committed = self._run(identity, manifests_change)
        self._maintain(committed)
        return committed

    def forget_deleted(self, identifier: int = BATCH_IDENTIFIER, *, properties: Mapping[str, str] | None = None) -> int | None:
        """Commit a snapshot of the same files that refers to nothing else.

        Its manifests have no entry of a deleted file, whose statistics hold values, and it has no statistics of the table. Returns its id.
        None: the table is empty.
        """
        identity = CommitIdentity(self.user, identifier, CommitKind.COMPACT, properties=properties)
        committed = self._run(identity, forget_change)
        self._write_iceberg(committed, anew=True)
        self._write_latest_hint()
        return committed

    def remove_missing(
        self, missing: MissingFiles, identifier: int = BATCH_IDENTIFIER, *, properties: Mapping[str, str] | None = None
    ) -> int | None:
        """Commit the removal of data files that do not exist (OVERWRITE).

        Returns the snapshot id, and None if no file is missing. Raises ``CommitGaveUp``.
        """
        identity = CommitIdentity(self.user, identifier, CommitKind.OVERWRITE, properties=properties)
        committed = self._run(identity, missing.change)
        self._maintain(committed)
        return committed

    def rewrite_indexes(
        self, messages: Sequence[CommitMessage], identifier: int = BATCH_IDENTIFIER, *, properties: Mapping[str, str] | None = None
    ) -> CommitResult:
        """Commit new file indexes of existing data files (COMPACT).

        ``compact_after`` has the entries of ``compact_before`` with other indexes, in the same order. Files that another commit removed
        or rewrote are dropped. ``lost_compactions`` has the bucket of each dropped file.
        """
        failpoints.point("after-data-files")
        filled = [message for message in messages if not message.is_empty]
        history = commit_history(self.store, self.user, identifier, base_of(filled))
        committed = history.snapshot_by_kind.get(CommitKind.COMPACT)
        rewrites = IndexRewrites(self.store, filled)
        if committed is None and filled:
            identity = CommitIdentity(self.user, identifier, CommitKind.COMPACT, properties=properties)
            committed = self._run(identity, rewrites.change)
            if history.complete:  # otherwise the commit may be in an expired snapshot
                rewrites.delete_lost_files()
            self._maintain(committed)
        return CommitResult(None, committed, bool(history.snapshot_by_kind), rewrites.lost)

    def finish_earlier(self, result: CommitResult) -> CommitResult:
        """Write Iceberg metadata that an earlier run left out.

        Returns ``result``, that of the run.
        """
        self._write_iceberg(result.compact_snapshot_id or result.snapshot_id)
        return result

    def abort(self, messages: Sequence[CommitMessage], identifier: int | None = None) -> list[str]:
        """Delete files of a failed commit and return their paths.

        Deletes nothing if a snapshot since the writers opened is this user's, or if some of those snapshots are missing.
        With ``identifier``, only snapshots of that commit count. Files that the newest state or a tag uses always stay.
        Errors are logged, not raised, and the remaining files are orphans.
        """
        try:
            doomed = uncommitted_files(self.store, self.user, messages, identifier)
        except (PaimonError, OSError):
            _LOG.warning("%s: files of a commit that failed could not be deleted", self.store.root, exc_info=True)
            return []
        return [path for path in doomed if _try_delete(self.store, path)]

    def _compact(
        self, messages: Sequence[CommitMessage], identity: CommitIdentity, *, rows: int | None
    ) -> tuple[int | None, tuple[tuple[bytes, int], ...]]:
        """Commit compactions. Drop lost ones with their files.

        Args:
            messages: Changes of the writers.
            identity: Identity of the commit.
            rows: Snapshot that committed the rows. None: there were none. With one, an error drops all compactions and is not raised.
        """
        compactions = Compactions(self.store, [message for message in messages if message.has_compaction])
        committed: int | None = None
        try:
            committed = self._run(identity, compactions.change) if compactions.messages else None
        except Exception as error:
            if rows is None:
                raise
            surely_not = False
            with suppress(PaimonError, OSError):  # the commit may have succeeded before the error
                committed, _ = committed_since(self.store, self.user, identity.identifier, identity.kind, SnapshotKey(rows, ""))
                surely_not = committed is None and not isinstance(error, CommitGaveUp)
            if committed is None:
                _LOG.warning("%s: committed as snapshot %d by '%s', not yet compacted", self.store.root, rows, self.user, exc_info=True)
                with suppress(PaimonError, OSError):  # the log names the commit: a repetition must be recognised
                    remember(self.store, self.store.snapshots.get(rows))
                compactions.drop_all(keep_files=not surely_not)
        compactions.delete_lost_files()
        return committed, compactions.lost

    def _find_earlier(self, messages: Sequence[CommitMessage], identifier: int, *, rows: bool) -> CommitHistory:
        """Return earlier snapshots of the commit, before the first attempt.

        Raises ``CommitReplayed``.

        Args:
            messages: Changes to commit.
            identifier: Commit identifier.
            rows: Whether the commit changes rows.
        """
        base = base_of(messages)
        if self._fresh and self._first_seen is None:  # a fresh name has no snapshots before the first attempt
            return CommitHistory(newest=None)
        base = self._first_seen if self._fresh else base
        if self._fresh or not rows:  # a repeated compaction finds its input files gone: it needs no marker
            history = commit_history(self.store, self.user, identifier, base)
        else:
            history = begin_commit(self.store, self.user, identifier, base)
        refuse_expired_replay(self.store, self.user, messages, history)
        return history

    def _run(self, identity: CommitIdentity, plan: Plan, history: CommitHistory | None = None) -> int | None:
        """Attempt until the snapshot exists and return its id.

        Returns None if there was nothing to commit.

        Args:
            identity: Identity of the commit.
            plan: Computes the change.
            history: Snapshots searched for the commit before. Attempts search only newer ones. None: no search.
        """
        pending = PendingCommit(self.store, identity, plan, *((None, None) if history is None else (history.newest, history.run)))
        options = self.store.options
        deadline = None if options.commit_timeout is None else time.monotonic() + options.commit_timeout / 1000
        try:
            for retry in range(options.commit_max_retries + 1):
                with self.store.file_io.fair_lock(self.store.paths.snapshots):
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
                base = pending.last_searched and pending.last_searched.id
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

    def _attempt(self, pending: PendingCommit, *, first: bool) -> AttemptOutcome:
        """Commit on the newest snapshot: search, prepare, create, verify."""
        try:
            latest = self._latest(first=first)
        except HistoryBusy:
            return LostRace()
        snapshot_id = pending.search_to(latest)
        if self._first_seen is None:
            self._first_seen = 0 if latest is None else latest.id
        if snapshot_id is not None:
            return Committed(snapshot_id)
        attempt = CommitAttempt(self.store)
        try:
            with attempt.discard_on_error():
                change = pending.plan(attempt.store, latest)
                if change is None:
                    return NothingToCommit()
                snapshot = attempt.prepare(latest, change, pending.identity, merging=first)
        except SnapshotExpired:  # the base expired during the attempt
            return LostRace()
        pending.begin_create()
        outcome = self._create(snapshot, attempt, latest, change)
        if isinstance(outcome, Committed):
            self._verify(snapshot, latest, change)
        pending.end_create(outcome)
        if isinstance(outcome, LostRace | Refused):  # an unknown outcome keeps its files: a snapshot may refer to them
            attempt.discard()
        elif isinstance(outcome, Committed):
            details = (self.store.root, snapshot.id, snapshot.commit_kind, self.user, snapshot.delta_record_count, len(change.entries))
            _LOG.info("%s: committed snapshot %d, %s of '%s': %+d rows, %d entries", *details)
        return outcome

    def _latest(self, *, first: bool) -> Snapshot | None:
        """Return the newest snapshot, after finishing an interrupted history change.

        Raises ``HistoryBusy``.
        """
        store, manager = self.store, self.store.snapshots
        self._write_latest_hint()
        # On an object store only older versions of this package leave a pending file: look for it after a failed attempt.
        checks = store.commits is None and (store.file_io.cancels_creates or not first)
        if checks and manager.pending_history() is not None:
            with history_change.lock_history(store, "the commit"):
                history_change.finish_pending(store)
        # A change of history that begins now is seen before the snapshot is created.
        latest = manager.newest_stored() if checks else manager.latest()
        if latest is None:
            refuse_lost_snapshots(store)
        elif latest.first_replaced is not None:
            history_change.finish_replacing(store, latest)
        return latest

    def _create(self, snapshot: Snapshot, attempt: CommitAttempt, latest: Snapshot | None, change: CommitChange) -> AttemptOutcome:
        """Create the snapshot if its id is free.

        ``latest`` must still be the newest snapshot.
        """
        store, manager = self.store, self.store.snapshots

        def follows() -> bool:
            return store.schemas.holds(store.schema) and manager.is_successor(snapshot.id, latest)

        try:
            return Committed(snapshot.id) if manager.try_create(snapshot, attempt.changed, follows) else LostRace()
        except (UnsafeFileIO, CatalogRefused) as error:
            return Refused(error)
        except FileReplaced:  # the file was replaced, perhaps after others committed on top of it
            return Committed(snapshot.id) if is_included(store, change) else Unknown()
        except OSError as error:
            try:
                created = manager.get(snapshot.id).delta_manifest_list == snapshot.delta_manifest_list
            except SnapshotNotFound:
                if isinstance(error, OutOfDisk):
                    return Refused(error)
            except (StorageError, CatalogRefused):  # the outcome stays unknown
                pass
            else:
                return Committed(snapshot.id) if created else LostRace()
            _LOG.warning("%s: creating snapshot %s failed", self.store.root, snapshot.id, exc_info=True)
            return Unknown()

    def _verify(self, snapshot: Snapshot, latest: Snapshot | None, change: CommitChange) -> None:
        """Raise ``StorageError`` unless the new snapshot is in the history."""
        _, self._expiry_inputs = self.store.file_io.run_parallel(
            partial(verify_not_overwritten, self.store, snapshot, latest, change), self._read_expiry_inputs
        )
        self._hint_to_write = snapshot.id  # only after verification: a hint to a late snapshot would hide newer ones

    def _read_expiry_inputs(self) -> snapshots.ExpiryInputs | None:
        """Return inputs of the coming expiry, or None.

        None if expiry is off, or if one request at a time is as fast.
        """
        # The look-up runs in parallel with the verification and saves a round trip on object stores.
        if not self._maintains or self.store.file_io.max_concurrency <= 1:
            return None
        with suppress(PaimonError, OSError):
            return snapshots.read_expiry_inputs(self.store)
        return None

    @property
    def _maintains(self) -> bool:
        return not self.store.options.write_only and self.store.paths.branch == MAIN_BRANCH

    def _maintain(self, newest: int | None) -> None:
        """Write Iceberg metadata, create tags and expire snapshots.

        Failures are logged. ``newest`` is the id of the new snapshot.
        """
        inputs, self._expiry_inputs = self._expiry_inputs, None
        self._write_iceberg(newest)
        if self._maintains:
            self.store.file_io.run_parallel(self._write_latest_hint, partial(after_commit, self.store, newest, inputs))
        else:
            self._write_latest_hint()

    def _write_iceberg(self, newest: int | None, *, anew: bool = False) -> None:
        """Write the Iceberg metadata of a table that has some.

        ``anew``: it refers to no older snapshot.
        """
        if newest is not None and self.store.writes_iceberg:
            self._write_latest_hint()  # the publication looks for the newest snapshot
            plugin("after-commit", "iceberg")(self.store, anew=anew)

    def _write_latest_hint(self) -> None:
        """Write the LATEST hint for the snapshot of this call."""
        untold, self._hint_to_write = self._hint_to_write, None
        if untold is not None:
            self.store.snapshots.tell_created(untold)


def _compaction_properties(
    properties: Mapping[str, str] | None, rows: int | None, messages: Sequence[CommitMessage]
) -> Mapping[str, str] | None:
    """Return the properties of a COMPACT snapshot.

    ``rows``: snapshot that committed rows before it. The operation and the user's properties are there.
    """
    compacted = [message for message in messages if message.has_compaction]
    return properties if rows is None else commit_properties("compact", compaction_counts(compacted))


def _try_delete(store: FileStore, path: str) -> bool:
    try:
        return store.file_io.delete(path)
    except OSError:  # an orphan at worst
        return False


def _wait_seconds(shortest_ms: int, longest_ms: int, retry: int) -> float:
    """Return an exponential back-off with jitter, in seconds."""
    wait: float = min(shortest_ms * 2.0**retry, longest_ms)
    return wait * random.uniform(0.5, 1.2) / 1000  # noqa: S311 -- not a secret
