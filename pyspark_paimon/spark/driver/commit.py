"""Commits of rows and task operations on the driver.

Counts are stored in the ``properties`` of the snapshot, because a commit hook returns nothing.
A client that lost the connection finds them there, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lsm.commit.rebucket import rebucket
from lsm.commit.row_transaction import RowTransaction, resequence
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.transaction import EVALUATIONS
from manifest.io.errors import CommitConflict
from manifest.schema.table_schema import BucketMode
from manifest.store import FileStore
from pyspark_paimon.jobs.counting import publish_rows
from pyspark_paimon.jobs.task_operation import TaskOperation
from pyspark_paimon.request.partition_spec import replaced_partitions
from pyspark_paimon.request.tasks import TaskWork
from pyspark_paimon.spark.driver.job_files import answer_once
from pyspark_paimon.spark.driver.outcome import compaction_threads, job_name, outcome_of
from pyspark_paimon.spark.wire.jobs import RowsJob, TasksJob


def commit_rows(
    store: FileStore,
    job: RowsJob,
    messages: Sequence[CommitMessage],
    rows: int,
    kinds: Mapping[str, int] | None = None,
    *,
    asked_for: bool = True,
) -> bool:
    """Commit rows in the mode of the request.

    Returns False if an earlier run committed the batch.

    Args:
        store: Store of the table.
        job: Job of the tasks.
        messages: Commit messages of the tasks.
        rows: Number of rows that the tasks received.
        kinds: Additional counts to store in the snapshot.
        asked_for: Whether a client will ask for the outcome.
    """
    request = job.request
    commit = FileStoreCommit(store, request.commit_id, resequence=resequence(store, request.commit_id))

    def publish(round_messages: Sequence[CommitMessage]) -> CommitResult:
        return publish_rows(commit, request, round_messages, rows, kinds, read=job.read)

    crosses = store.schema.bucket_mode is BucketMode.KEY_DYNAMIC
    assigns = crosses or (store.schema.bucket_mode is BucketMode.HASH_DYNAMIC and not job.route.owned)
    unassigned = assigns and not job.route.finds_keys  # tasks without ownership do not know the location of a key
    rework = partial(
        rebucket,
        store,
        commit_id=request.commit_id,
        overwrite=request.mode == "overwrite",
        replaces=replaced_partitions(request, store.schema),
    )
    committed = RowTransaction(
        commit,
        request.compactor,
        request.identifier,
        is_new=request.batch_id is None,  # the client has already checked, and the commit checks again
        owned=job.route.owned,
        threads=compaction_threads(),
    ).run(
        lambda current: current.work.extend(messages),
        publish,
        rework=rework,
        lost=messages if unassigned else None,
        evaluations=EVALUATIONS if assigns and job.read is None else 1,  # with ``read``, a conflict requires another read
    )
    if committed.rounds and asked_for:
        _keep(store, request.identity, committed.result, commit.retries)
    return committed.rounds > 0


def commit_tasks(store: FileStore, job: TasksJob, operation: TaskOperation[Any], work: TaskWork) -> None:
    """Commit one round of a task operation.

    Raises ``CommitConflict`` if a part lost to another commit. The client then runs another round.
    """
    commit = FileStoreCommit(store, operation.commit_id, resequence=resequence(store, operation.commit_id))
    result = operation.commit(commit, job.base, work.messages, operation.noted(work))
    _keep(store, job.identity, result, commit.retries, operation.counts(work, result.lost_compactions))
    if result.compact_lost:
        raise CommitConflict(
            f"{store.root}: other commits changed {len(result.lost_compactions)} {operation.unit} of this operation: repeat it"
        )


def _keep(store: FileStore, identity: str, result: CommitResult, retries: int, counts: Mapping[str, int] | None = None) -> None:
    """Store the outcome for the client's question."""
    # The snapshots may expire before the client asks.
    if result.snapshot_id is not None or result.compact_snapshot_id is not None:

        def answer() -> str:
            outcome = outcome_of(store, result)
            return outcome.model_copy(update={"counts": {**outcome.counts, **(counts or {}), "retries": retries}}).model_dump_json()

        answer_once(job_name(store, identity), answer)
