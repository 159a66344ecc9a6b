"""Compaction after a commit of rows.

The commit makes the rows visible, and our reads merge level 0. But engines that skip level 0, and readers of a changelog written by compactions,
wait for a compaction. Tasks that share buckets write level 0 only, because none knows the files of the others. So the committer compacts after them.
A writer that owns its buckets compacts before the commit. What it skipped, or lost to another commit, is compacted here if readers wait for it.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TypeAlias

from lsm.write.compaction_job import compact_together
from manifest.commit.attempt import remember
from manifest.commit.conflicts import BucketId
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult, compaction_counts
from manifest.commit.transaction import EVALUATIONS, Round, Transaction
from manifest.entry.columns import EntryColumns
from manifest.io.errors import SnapshotNotFound
from manifest.io.threads import map_in_threads
from manifest.schema.table_schema import BucketMode
from manifest.snapshot.commit_info import commit_properties
from manifest.store import FileStore
from paimon_base.errors import describe_error
from paimon_base.log import logger_of
from paimon_base.thresholds import thresholds

_LOG = logger_of(__name__)
Errors: TypeAlias = dict[BucketId, str]
"""Texts of errors by bucket."""
_SOME: tuple[BucketId, ...] = ((b"", -1),)
"""Placeholder if the pending buckets could not be determined."""


def compact_after_commit(
    store: FileStore, user: str, result: CommitResult, messages: Iterable[CommitMessage], *, owned: bool = False, threads: int = 1
) -> CommitResult:
    """Compact buckets after the commit of ``messages``.

    Returns ``result`` with the newest compaction snapshot. Buckets with new files are compacted by the table's strategy, or until level 0 is
    empty if readers wait for that. ``owned``: the writers owned their buckets and have compacted them, unless the table needs lookups. Append tables
    without buckets are left to ``Table.compact``. With ``write-only``, of the table or the call, nothing is compacted.
    ``threads`` buckets are compacted in parallel. Merges hold one batch per run, so memory does not grow with the table, but a
    bucket may be rewritten completely.

    A failure does not fail the commit: it is logged, and the buckets are listed in ``lost_compactions``. The next write or compaction compacts them.
    """
    touched = [message for message in messages if message.bucket >= 0]
    errors = {message.bucket_id: message.compaction_error for message in touched if message.compaction_error is not None}
    if errors:
        result = _with_lost(result, {*result.lost_compactions, *errors}, errors)
    if result.snapshot_id is None or store.options.write_only or not _has_buckets(store):
        return result
    has_readers = store.schema.kind.has_lookup_readers
    if (owned and not (has_readers and store.options.needs_lookup)) or (result.replayed and not has_readers):
        return result
    compacted = {message.bucket_id for message in touched if message.has_compaction} - set(result.lost_compactions)
    left = {message.bucket_id for message in touched if message.new_files} - compacted
    beaten = set(result.lost_compactions) - left
    if has_readers and left:
        with _log_failed_compaction(store, user, {}, ()):  # on failure each bucket is checked separately
            left &= _waiting_buckets(store, store.live_entries(store.snapshots.latest()))
    compaction, later = _compact(store, user, sorted(left), threads, evaluations=EVALUATIONS if has_readers else 1)
    if compaction.lost_compactions:
        with suppress(SnapshotNotFound, OSError):  # the log names this commit, so a repetition must be recognised
            remember(store, store.snapshots.get(result.snapshot_id))
    result = replace(result, compact_snapshot_id=compaction.compact_snapshot_id or result.compact_snapshot_id)
    return _with_lost(result, {*beaten, *compaction.lost_compactions}, {**errors, **later})


def finish_compaction(store: FileStore, user: str, result: CommitResult, *, threads: int = 1) -> CommitResult:
    """Run the compaction that an interrupted commit call left.

    Only if readers wait for it. Returns ``result`` with the outcome.
    """
    if result.snapshot_id is None or store.options.write_only or not (_has_buckets(store) and store.schema.kind.has_lookup_readers):
        return result
    lost: tuple[BucketId, ...] = _SOME
    compacted: int | None = None
    errors: Errors = {}
    with _log_failed_compaction(store, user, errors, _SOME):
        left = _waiting_buckets(store, store.live_entries(store.snapshots.latest()))
        with suppress(SnapshotNotFound):  # expired: all pending files may belong to this commit
            added = store.delta_entries(store.snapshots.get(result.snapshot_id))
            left &= set(zip(added.partition, added.bucket.tolist(), strict=True))
        compaction, errors = _compact(store, user, sorted(left), threads, evaluations=EVALUATIONS)
        compacted, lost = compaction.compact_snapshot_id, compaction.lost_compactions
    return _with_lost(replace(result, compact_snapshot_id=compacted or result.compact_snapshot_id), lost, errors)


def compact_buckets(store: FileStore, user: str, buckets: Collection[BucketId], *, threads: int = 1) -> None:
    """Compact ``buckets`` once, like after a commit.

    Ignores ``write-only``. Errors are logged.
    """
    _compact(store, user, sorted(buckets), threads, evaluations=1)


def _with_lost(result: CommitResult, lost: Iterable[BucketId], errors: Mapping[BucketId, str]) -> CommitResult:
    buckets = tuple(sorted(set(lost)))
    return replace(
        result, lost_compactions=buckets, compaction_error=next((errors[bucket] for bucket in buckets if bucket in errors), None)
    )


@contextmanager
def _log_failed_compaction(store: FileStore, user: str, errors: Errors, buckets: Iterable[BucketId]) -> Iterator[None]:
    """Log an error of the block instead of raising it.

    Adds its text for ``buckets`` to ``errors``.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 -- the rows are committed, and the caller must learn that
        errors.update(dict.fromkeys(buckets, describe_error(error)))
        _LOG.warning("%s: committed the rows of commit '%s', but the compaction after it failed", store.root, user, exc_info=True)


def _has_buckets(store: FileStore) -> bool:
    return store.schema.bucket_mode is not BucketMode.BUCKET_UNAWARE


def _waiting_buckets(store: FileStore, entries: EntryColumns) -> set[BucketId]:
    """Return buckets with files that wait for a compaction.

    ``entries`` must be live.
    """
    visible = 1 if store.options.needs_lookup else store.options.max_level
    waiting = entries.select((entries.level < visible) & (entries.bucket >= 0))
    return set(zip(waiting.partition, waiting.bucket.tolist(), strict=True))


def _compact(store: FileStore, user: str, buckets: Sequence[BucketId], threads: int, *, evaluations: int) -> tuple[CommitResult, Errors]:
    """Compact ``buckets``.

    The result has the newest snapshot, and the buckets lost to other commits or errors. The errors come second.
    """
    newest: int | None = None
    errors: Errors = {}
    lost: list[BucketId] = []
    for chunk in _chunks(buckets):
        compaction = _Compaction(store, user, frozenset(chunk), threads, errors)
        with _log_failed_compaction(store, user, errors, chunk):
            compaction.run(evaluations)
        newest = compaction.snapshot_id or newest
        lost += compaction.left | compaction.failed
    return CommitResult(None, newest, False, tuple(sorted(lost))), errors


class _Compaction:
    """Compaction of ``left`` buckets with a separate commit user.

    ``failed`` are buckets with a logged error, whose text is added to ``errors``.
    """

    def __init__(self, store: FileStore, user: str, left: frozenset[BucketId], threads: int, errors: Errors) -> None:
        self.left = left
        self._errors = errors
        self.failed: set[BucketId] = set()
        self.snapshot_id: int | None = None
        self._store = store
        self._user = user
        self._threads = threads
        self._commit = FileStoreCommit(store, f"{user}-{uuid.uuid4().hex[:8]}", fresh=True)
        self._transaction = Transaction(self._commit.abort)

    def run(self, evaluations: int) -> None:
        """Compact all buckets.

        Repeats lost races, in at most ``evaluations`` rounds.
        """
        self._transaction.run(self._evaluate, self._publish, redo=lambda result: result.lost_compactions, evaluations=evaluations)

    def _evaluate(self, current: Round[CommitMessage]) -> None:
        map_in_threads(partial(self._compact_bucket, current.work), sorted(self.left), self._threads)

    def _compact_bucket(self, messages: list[CommitMessage], bucket: BucketId) -> None:
        full = self._store.options.compacts_fully_at_commit
        self.failed.add(bucket)
        with _log_failed_compaction(self._store, self._user, self._errors, (bucket,)):
            messages.extend(compact_together(self._store, [bucket], full=full, commit_id=self._user))
            self.failed.remove(bucket)

    def _publish(self, messages: list[CommitMessage]) -> CommitResult:
        result = self._commit.commit(
            messages, self._transaction.rounds, properties=commit_properties("compact", compaction_counts(messages))
        )
        self.snapshot_id, self.left = result.compact_snapshot_id or self.snapshot_id, frozenset(result.lost_compactions)
        return result


def _chunks(buckets: Sequence[BucketId]) -> Iterator[list[BucketId]]:
    rest = iter(buckets)
    while chunk := list(islice(rest, thresholds.buckets_a_commit)):
        yield chunk
