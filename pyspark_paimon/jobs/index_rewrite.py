"""Rewriting file indexes: which files to look at, a thread or a task for each, one commit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lsm.file_index.rewrite import FileIndexRewriter, RewrittenIndex
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.transaction import EVALUATIONS, Round, Transaction
from manifest.entry.live import EntryFilter
from manifest.entry.manifest_entry import ManifestEntry
from manifest.io.errors import CommitGaveUp
from manifest.io.paths import POSTPONE_BUCKET
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from pyspark_paimon.jobs.progress_steps import PieceMeter, Steps
from pyspark_paimon.request.backend import Progress
from pyspark_paimon.request.partition_spec import Spec, predicate_of
from pyspark_paimon.request.results import IndexRewriteResult
from pyspark_paimon.scheduling.thread_pool import each


def rewrite_indexes(
    store: FileStore, commit_id: str, partitions: Sequence[Spec] | None, *, threads: int, progress: Progress | None
) -> IndexRewriteResult:
    """Rewrite in this process; what others removed or rewrote meanwhile is looked at again in the newest snapshot."""
    start = time.perf_counter()
    commit = FileStoreCommit(store, commit_id)
    transaction = Transaction(commit.abort)
    rewritten: list[RewrittenIndex] = []
    files = committed = 0
    snapshot_id: int | None = None

    def evaluate(current: Round[CommitMessage]) -> None:
        nonlocal files
        snapshot = store.snapshots.latest()
        listed = indexable_files(store, snapshot, partitions)
        entries = [entry for entry in listed if current.buckets is None or (entry.partition, entry.bucket) in current.buckets]
        files = len(entries) if current.buckets is None else files
        rewriter = FileIndexRewriter(store, commit_id, 0 if snapshot is None else snapshot.id)
        steps = Steps(progress, "rewrite-file-index", len(entries), "files", sum(entry.file.file_size for entry in entries))
        each(partial(_rewrite_one, rewriter, rewritten, current.work, steps), entries, threads)

    def publish(messages: Sequence[CommitMessage]) -> CommitResult:
        nonlocal committed, snapshot_id
        result = commit.rewrite_indexes(messages, transaction.rounds)
        committed += len(messages) - len(result.lost_compactions)
        snapshot_id = snapshot_id if result.compact_snapshot_id is None else result.compact_snapshot_id
        return result

    if transaction.run(evaluate, publish, redo=lambda result: result.lost_compactions).compact_lost:
        raise CommitGaveUp(
            f"{store.root}: {EVALUATIONS} times in a row other commits changed files while their indexes were rewritten; try again later"
        )
    return IndexRewriteResult(
        files=files,
        rewritten=committed,
        bytes_read=sum(one.bytes_read for one in rewritten),
        bytes_written=sum(one.bytes_written for one in rewritten),
        snapshot_id=snapshot_id,
        seconds=time.perf_counter() - start,
    )


def _rewrite_one(
    rewriter: FileIndexRewriter, rewritten: list[RewrittenIndex], messages: list[CommitMessage], steps: Steps, entry: ManifestEntry
) -> None:
    piece = PieceMeter(steps, entry.file.file_size)
    one = replace(rewriter, store=rewriter.store.metered(piece)).rewrite(entry)
    if one.message is not None:
        messages.append(one.message)
    rewritten.append(one)
    piece.finish()


def indexable_files(store: FileStore, snapshot: Snapshot | None, partitions: Sequence[Spec] | None) -> list[ManifestEntry]:
    """The live files whose indexes a rewrite looks at, the largest first, limited to the partitions named."""
    wanted = None if partitions is None else predicate_of(partitions, store.schema)
    entries = store.live_entries(snapshot, EntryFilter(predicate=wanted))
    found = entries.select(entries.bucket != POSTPONE_BUCKET).entries()
    return sorted(found, key=lambda entry: (-entry.file.file_size, entry.file.file_name))


__all__ = ["indexable_files", "rewrite_indexes"]
