"""The driver's commits: of rows and of compactions, with the counts that a client asks for later.

Counts are noted in the snapshot's ``properties``: a commit hook can return nothing, and a client that lost the connection
finds them there all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from lsm.commit.rebucket import rebucket
from lsm.commit.resequence import resequence
from lsm.commit.row_transaction import RowTransaction
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.transaction import EVALUATIONS
from manifest.io.errors import CommitConflict
from manifest.schema.bucket_mode import BucketMode
from manifest.snapshot.snapshot import CommitKind, ReadState
from manifest.store import FileStore
from pyspark_paimon.jobs.compaction import compaction_counts, write_counters
from pyspark_paimon.jobs.publish import publish_rows
from pyspark_paimon.request.backend import CompactRequest
from pyspark_paimon.spark.driver.answers import answered
from pyspark_paimon.spark.driver.outcome import PREFIX, compaction_threads, job_name, told_of
from pyspark_paimon.spark.wire.jobs import ChangeJob, RowsJob, SettleJob


def commit_rows(
    store: FileStore,
    job: RowsJob,
    messages: Sequence[CommitMessage],
    rows: int,
    kinds: Mapping[str, int] | None = None,
    *,
    asked_for: bool = True,
) -> bool:
    """Append or overwrite, as the request says; return False if an earlier run of the batch had done so.

    Args:
        store: The table.
        job: What the tasks did.
        messages: What they made.
        rows: Number of rows they took.
        kinds: Counts to note in the snapshot.
        asked_for: Whether a client will ask how it ended.
    """
    request = job.request
    commit = FileStoreCommit(store, request.commit_id, resequence=resequence(store, request.commit_id))

    def publish(made: Sequence[CommitMessage]) -> CommitResult:
        properties = _noted(**_counted(made, rows), **(kinds or {}), files=sum(len(message.new_files) for message in made))
        return publish_rows(commit, request, made, properties=properties, read=job.read)

    crosses = store.schema.bucket_mode is BucketMode.KEY_DYNAMIC
    assigns = crosses or (store.schema.bucket_mode is BucketMode.HASH_DYNAMIC and not job.owned)
    unassigned = assigns and not (job.owned or job.keyed)  # tasks that own nothing cannot tell where a key lives
    rework = partial(rebucket, store, commit_id=request.commit_id, overwrite=request.mode == "overwrite", keeps_others=request.keeps_others)
    done = RowTransaction(
        commit,
        request.compactor,
        request.identifier,
        is_new=request.batch_id is None,  # its client has asked, and the commit looks again
        owned=job.owned,
        threads=compaction_threads(),
    ).run(
        lambda current: current.work.extend(messages),
        publish,
        rework=rework,
        lost=messages if unassigned else None,
        evaluations=EVALUATIONS if assigns and job.read is None else 1,  # with ``read`` a conflict means to read again
    )
    if done.rounds and asked_for:
        _keep(store, request.identity, done.result, commit.retries)
    return done.rounds > 0


def commit_change(store: FileStore, job: ChangeJob, messages: Sequence[CommitMessage], rows: int) -> None:
    """Publish what a delete or an update did to an append table. Raises ``CommitConflict`` if a bucket changed meanwhile."""
    commit = FileStoreCommit(store, job.request.commit_id)
    publish = commit.commit if store.options.deletion_vectors_enabled else commit.replace
    properties = _noted(**_counted(messages, rows), files=sum(len(message.new_files) + len(message.compact_after) for message in messages))
    result = publish(messages, properties=properties, read=ReadState(job.snapshot))
    _keep(store, job.request.commit_id, result, commit.retries)


def commit_settled(store: FileStore, job: SettleJob, messages: Sequence[CommitMessage]) -> None:
    """Put rows in their buckets in the place of files that waited for them. Raises ``CommitConflict`` if a bucket changed meanwhile."""
    commit = FileStoreCommit(store, job.request.commit_id)
    result = commit.replace(messages, read=ReadState(job.snapshot), kind=CommitKind.COMPACT)
    _keep(store, job.request.commit_id, result, commit.retries)


def commit_compaction(store: FileStore, request: CompactRequest, messages: Sequence[CommitMessage]) -> None:
    """Commit compactions of buckets. Raises ``CommitConflict`` if none of them could be, because others were faster."""
    properties = _noted(**compaction_counts(messages))
    result = FileStoreCommit(store, request.commit_id, resequence=resequence(store, request.commit_id)).commit(
        messages, properties=properties
    )
    _keep(store, request.commit_id, result)
    if result.compact_lost:
        buckets = ", ".join(str(bucket) for _, bucket in result.lost_compactions[:10])
        raise CommitConflict(f"{store.root}: the compaction of buckets {buckets} lost to a newer commit; compact again")


def commit_index_rewrite(
    store: FileStore, commit_id: str, messages: Sequence[CommitMessage], *, bytes_read: int, bytes_written: int
) -> None:
    """Commit rewritten file indexes. Raises ``CommitConflict`` if files were gone; the others are committed then."""
    properties = _noted(rewritten=len(messages), bytes_read=bytes_read, bytes_written=bytes_written)
    result = FileStoreCommit(store, commit_id).rewrite_indexes(messages, properties=properties)
    if result.compact_snapshot_id is not None:
        told = told_of(store, result)
        counts = {**told.counts, "rewritten": len(messages) - len(result.lost_compactions)}
        answered(job_name(store, commit_id), lambda: told.model_copy(update={"counts": counts}).model_dump_json())
    if result.compact_lost:
        raise CommitConflict(f"{store.root}: {len(result.lost_compactions)} files were removed while their indexes were rewritten")


def _keep(store: FileStore, commit_id: str, result: CommitResult, retries: int = 0) -> None:
    """Leave the outcome for the client's question: its snapshots may expire before that is asked."""
    if result.snapshot_id is not None or result.compact_snapshot_id is not None:

        def told() -> str:
            found = told_of(store, result)
            return found.model_copy(update={"counts": {**found.counts, "retries": retries}}).model_dump_json()

        answered(job_name(store, commit_id), told)


def _counted(messages: Sequence[CommitMessage], rows: int) -> dict[str, int]:
    """What the snapshot notes for the client's counters, besides its files."""
    names = {"rows", "bytes_written", "compacted_files", "compacted_bytes"}
    return write_counters(messages, rows=rows, retries=0, millis={}).model_dump(include=names)


def _noted(**counts: int) -> dict[str, str]:
    return {f"{PREFIX}{name}": str(count) for name, count in counts.items()}


__all__ = ["commit_change", "commit_compaction", "commit_index_rewrite", "commit_rows", "commit_settled"]
