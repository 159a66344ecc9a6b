"""What follows a commit of rows: the compaction that is due.

The commit is what makes the rows visible; our reads merge what waits on level 0 with the rest. But engines that hide level 0, and
those who follow a changelog that compaction makes, wait for it. Tasks that share buckets write level 0 only, for none of them can
tell what the others add, so the one who commits compacts after them; a writer that owns its buckets does so before, and what it left
out, or lost to another commit, is compacted here where somebody waits for it.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice

from fileindex.base.log import logger_of
from fileindex.base.thresholds import thresholds
from lsm.write.table_write import compact_together
from manifest.commit.conflicts import BucketId
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.successor import remember
from manifest.commit.transaction import EVALUATIONS, Round, Transaction
from manifest.entry.columns import EntryColumns
from manifest.io.errors import SnapshotNotFound
from manifest.io.threads import WorkerPool
from manifest.schema.bucket_mode import BucketMode
from manifest.store import FileStore

_LOG = logger_of(__name__)
_SOME: tuple[BucketId, ...] = ((b"", -1),)
"""Stands for buckets of which nobody could find out whether they wait."""


def compact_after_commit(
    store: FileStore, user: str, result: CommitResult, messages: Iterable[CommitMessage], *, owned: bool = False, threads: int = 1
) -> CommitResult:
    """``result`` of the commit of ``messages`` after the compaction that is due, with the newest snapshot of one.

    Buckets with new files are compacted as the table's strategy says, until level 0 is empty where somebody waits for it; ``owned``:
    whose writers had them to themselves and did that where nobody looks older versions up. An append table without buckets is left to ``Table.compact``.
    The work is done here, ``threads`` buckets at a time: a merge streams and holds a batch for each of its runs, so memory does not grow
    with the table, but the time may be that of rewriting a bucket. ``write-only``, as the table's option or the call's, leaves it to others.

    Nothing of it can fail the commit: what lost its races or met an error, which is logged, is told by ``lost_compactions``, and the
    next write or compaction finds the same work to do.
    """
    touched = [message for message in messages if message.bucket >= 0]
    failed = {message.bucket_id for message in touched if message.compaction_failed}
    if failed:
        result = replace(result, lost_compactions=tuple(sorted({*result.lost_compactions, *failed})))
    if result.snapshot_id is None or store.options.write_only or not _has_buckets(store):
        return result
    awaited = is_awaited(store)
    if (owned and not (awaited and store.options.needs_lookup)) or (result.replayed and not awaited):
        return result
    compacted = {message.bucket_id for message in touched if message.has_compaction} - set(result.lost_compactions)
    left = {message.bucket_id for message in touched if message.new_files} - compacted
    beaten = set(result.lost_compactions) - left
    if awaited and left:
        with _told_as_committed(store, user):  # else each is looked at by itself
            left &= _waiting_buckets(store, store.live_entries(store.snapshots.latest()))
    done = _compacted(store, user, sorted(left), threads, evaluations=EVALUATIONS if awaited else 1)
    if done.lost_compactions:
        with suppress(SnapshotNotFound, OSError):  # the log names it, so a repetition must be known for what it is
            remember(store, store.snapshots.get(result.snapshot_id))
    return replace(
        result,
        compact_snapshot_id=done.compact_snapshot_id or result.compact_snapshot_id,
        lost_compactions=tuple(sorted({*beaten, *done.lost_compactions})),
    )


def finish_compaction(store: FileStore, user: str, result: CommitResult, *, threads: int = 1) -> CommitResult:
    """Do the compaction that somebody waits for, if the call that made a commit ended before it; ``result`` with what came of it."""
    if result.snapshot_id is None or store.options.write_only or not (_has_buckets(store) and is_awaited(store)):
        return result
    lost: tuple[BucketId, ...] = _SOME
    compacted: int | None = None
    with _told_as_committed(store, user):
        left = _waiting_buckets(store, store.live_entries(store.snapshots.latest()))
        with suppress(SnapshotNotFound):  # expired: whatever waits may be of this commit
            added = store.delta_entries(store.snapshots.get(result.snapshot_id))
            left &= set(zip(added.partition, added.bucket.tolist(), strict=True))
        done = _compacted(store, user, sorted(left), threads, evaluations=EVALUATIONS)
        compacted, lost = done.compact_snapshot_id, done.lost_compactions
    return replace(result, compact_snapshot_id=compacted or result.compact_snapshot_id, lost_compactions=lost)


def compact_buckets(store: FileStore, user: str, buckets: Collection[BucketId], *, threads: int = 1) -> None:
    """Compact ``buckets`` once, as a commit that has added to them would, whether or not it was for others to do; errors are logged."""
    _compacted(store, user, sorted(buckets), threads, evaluations=1)


@contextmanager
def _told_as_committed(store: FileStore, user: str) -> Iterator[None]:
    """An error of the block is logged: whatever it is, the rows are committed, and the caller must learn that."""
    try:
        yield
    except Exception:  # noqa: BLE001 -- as above
        _LOG.warning("%s: the rows of commit '%s' are committed, but the compaction after them failed", store.root, user, exc_info=True)


def _has_buckets(store: FileStore) -> bool:
    return store.schema.bucket_mode is not BucketMode.BUCKET_UNAWARE


def is_awaited(store: FileStore) -> bool:
    """Whether other engines, or the table's changelog, show rows only once a compaction has merged them."""
    options = store.options
    return store.schema.is_primary_key_table and (options.needs_lookup or options.compacts_fully_at_commit)


def _waiting_buckets(store: FileStore, entries: EntryColumns) -> set[BucketId]:
    """Buckets with files that wait for a compaction, of live ``entries``."""
    visible = 1 if store.options.needs_lookup else store.options.max_level
    waiting = entries.select((entries.level < visible) & (entries.bucket >= 0))
    return set(zip(waiting.partition, waiting.bucket.tolist(), strict=True))


def _compacted(store: FileStore, user: str, buckets: Sequence[BucketId], threads: int, *, evaluations: int) -> CommitResult:
    """Compact ``buckets``: the newest snapshot of it, and the buckets that others were too fast for or an error left."""
    newest: int | None = None
    lost: list[BucketId] = []
    for some in _chunks(buckets):
        compaction = _Compaction(store, user, frozenset(some), threads)
        with _told_as_committed(store, user):
            compaction.run(evaluations)
        newest = compaction.snapshot_id or newest
        lost += compaction.left | compaction.failed
    return CommitResult(None, newest, False, tuple(sorted(lost)))


class _Compaction:
    """Compaction of ``left`` buckets as a commit of the table does it, under a name of its own.

    ``failed`` are those that met an error, which is logged.
    """

    def __init__(self, store: FileStore, user: str, left: frozenset[BucketId], threads: int) -> None:
        self.left = left
        self.failed: set[BucketId] = set()
        self.snapshot_id: int | None = None
        self._store = store
        self._user = user
        self._threads = threads
        self._commit = FileStoreCommit(store, f"{user}-{uuid.uuid4().hex[:8]}", fresh=True)
        self._transaction = Transaction(self._commit.abort)

    def run(self, evaluations: int) -> None:
        """Compact; what lost a race again, in at most ``evaluations`` rounds."""
        self._transaction.run(self._evaluate, self._publish, redo=lambda result: result.lost_compactions, evaluations=evaluations)

    def _evaluate(self, current: Round[CommitMessage]) -> None:
        with WorkerPool(max(1, self._threads)) as pool:
            list(pool.map(partial(self._compact_bucket, current.work), sorted(self.left)))

    def _compact_bucket(self, messages: list[CommitMessage], bucket: BucketId) -> None:
        full = self._store.options.compacts_fully_at_commit
        self.failed.add(bucket)
        with _told_as_committed(self._store, self._user):
            messages.extend(compact_together(self._store, [bucket], full=full, commit_id=self._user))
            self.failed.remove(bucket)

    def _publish(self, messages: list[CommitMessage]) -> CommitResult:
        result = self._commit.commit(messages, self._transaction.rounds)
        self.snapshot_id, self.left = result.compact_snapshot_id or self.snapshot_id, frozenset(result.lost_compactions)
        return result


def _chunks(buckets: Sequence[BucketId]) -> Iterator[list[BucketId]]:
    rest = iter(buckets)
    while chunk := list(islice(rest, thresholds().buckets_a_commit)):
        yield chunk


__all__ = ["compact_after_commit", "compact_buckets", "finish_compaction", "is_awaited"]
