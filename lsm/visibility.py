"""Making new rows visible where level 0 is not: readers of deletion-vector and first-row tables look at compacted rows only."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from lsm.table_write import compact_bucket
from manifest.commit import FileStoreCommit
from manifest.commit_message import CommitMessage, CommitResult
from manifest.conflicts import BucketId
from manifest.store import FileStore

_ATTEMPTS = 20


def made_visible(store: FileStore, user: str, result: CommitResult, messages: Iterable[CommitMessage], *, threads: int = 1) -> CommitResult:
    """``result`` once the rows of ``messages``, which it committed, are visible: ``snapshot_id`` is the snapshot that shows them.

    Buckets whose compaction lost a race or was left out are compacted now, unless the table is ``write-only``: then somebody
    else does that. Where others are faster again and again, ``lost_compactions`` says what is left to them.
    """
    if not store.hides_level_0 or result.snapshot_id is None:
        return result
    compacted = {message.bucket_id for message in messages if message.has_compaction} - set(result.lost_compactions)
    left = {message.bucket_id for message in messages if message.new_files} - compacted
    shown, lost = result.compact_snapshot_id, frozenset(result.lost_compactions)
    if left and not store.options.write_only:
        shown, lost = _compacted(store, user, left, threads)
    return replace(result, snapshot_id=shown or result.snapshot_id, compact_snapshot_id=shown, lost_compactions=tuple(sorted(lost)))


def shown_again(store: FileStore, user: str, result: CommitResult, *, threads: int = 1) -> CommitResult:
    """``result`` of a commit whose first call ended before its rows were shown: all level-0 files are compacted now."""
    if not store.hides_level_0 or result.snapshot_id is None or store.options.write_only:
        return result
    shown = result.compact_snapshot_id
    if shown is None:
        entries = store.live_entries(store.snapshots.latest())
        hidden = entries.select(entries.level == 0)
        shown, _ = _compacted(store, user, set(zip(hidden.partition, hidden.bucket.tolist(), strict=True)), threads)
    return replace(result, snapshot_id=shown, compact_snapshot_id=shown)


def _compacted(store: FileStore, user: str, buckets: Collection[BucketId], threads: int) -> tuple[int | None, frozenset[BucketId]]:
    """Compact the level-0 files of ``buckets``: the newest snapshot then, and the buckets that others were too fast for."""
    left = frozenset(buckets)
    for attempt in range(1, _ATTEMPTS + 1):
        result = compacted_once(store, user, sorted(left), identifier=attempt, threads=threads)
        left = frozenset(result.lost_compactions)
        if not left:
            break
    return store.snapshots.latest_id(), left


def compacted_once(store: FileStore, user: str, buckets: Collection[BucketId], *, identifier: int, threads: int) -> CommitResult:
    """Compact ``buckets`` as a commit of the table does, and commit that; what loses a race is dropped and told."""
    full = store.options.compacts_fully_at_commit
    commit = FileStoreCommit(store, user, fresh=True)
    messages: list[CommitMessage] = []

    def one(bucket: BucketId) -> None:
        message = compact_bucket(store, *bucket, full=full, commit_id=user)
        if message is not None:
            messages.append(message)

    try:
        with ThreadPoolExecutor(max(1, threads)) as pool:
            list(pool.map(one, buckets))
        return commit.commit(messages, identifier=identifier)
    except BaseException:
        commit.abort(messages, identifier)
        raise


__all__ = ["compacted_once", "made_visible", "shown_again"]
