"""In-process executor of task operations.

Uses threads, and one commit for each round.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.transaction import EVALUATIONS, Round, Transaction
from manifest.io.errors import CommitGaveUp
from manifest.io.threads import map_in_threads
from manifest.snapshot.snapshot import EMPTY_TABLE
from manifest.store import FileStore
from pyspark_paimon.jobs.progress import PieceProgress, Steps
from pyspark_paimon.request.backend import Progress
from pyspark_paimon.request.counters import Stopwatch
from pyspark_paimon.request.operation import TaskOperation
from pyspark_paimon.request.results import Outcome
from pyspark_paimon.request.tasks import Task, TaskRun, TaskWork

A = TypeVar("A")


def run_tasks(operation: TaskOperation[A], store: FileStore, *, threads: int, progress: Progress | None) -> A:
    """Run an operation in threads.

    Tasks that lose a race run again on the newest snapshot. Raises ``CommitGaveUp``.
    """
    start, stopwatch = time.perf_counter(), Stopwatch()
    outcomes: list[Outcome] = []
    this, commit = operation, FileStoreCommit(store, operation.commit_id, fresh=True)
    base, tasks, counted = EMPTY_TABLE, 0, list[Counter[str]]()

    def evaluate(current: Round[CommitMessage]) -> None:
        nonlocal this, commit, base, tasks, counted
        if current.number > 1:
            this = operation.round(current.number)
            commit = FileStoreCommit(store, this.commit_id, fresh=True)
        plan = this.plan(store)
        todo = [task for task in plan.tasks if current.buckets is None or task.bucket_id in current.buckets]
        base, counted = plan.base, []
        tasks = len(todo) if current.number == 1 else tasks
        steps = Steps(progress, operation.stage, len(todo), operation.unit, sum(task.size for task in todo))
        small_at_once = threads if store.file_io.max_concurrency > 1 else 1  # on remote storage, small files cost latency, not CPU
        if not todo:
            return
        work = this.prepare(store, base, todo, max(1, threads // len(todo)))

        def one(group: Sequence[Task]) -> None:
            piece = PieceProgress(steps, sum(task.size for task in group))
            done = work(store.with_listener(piece), group)
            current.work.extend(done.messages)
            counted.append(done.counts)
            piece.finish(len(group))

        large, small = this.group_tasks(todo, small_at_once)
        map_in_threads(one, large, threads)
        map_in_threads(one, small, small_at_once)
        stopwatch("merge")

    def publish(messages: Sequence[CommitMessage]) -> CommitResult:
        work = TaskWork(list(messages), sum(counted, Counter()))
        result = this.commit(commit, base, messages, this.noted(work)) if messages else CommitResult()
        stopwatch("commit")
        totals = {**this.counts(work, result.lost_compactions), "retries": commit.retries}
        outcomes.append(Outcome(snapshot_id=result.snapshot_id, compact_snapshot_id=result.compact_snapshot_id, counts=totals))
        return result

    def undo(messages: Sequence[CommitMessage]) -> None:
        commit.abort(messages)

    transaction = Transaction(undo)
    parts = operation.commits_parts
    done = transaction.run(evaluate, publish, redo=(lambda result: result.lost_compactions) if parts else None)
    if done.compact_lost:
        raise CommitGaveUp(
            f"{store.root}: {EVALUATIONS} times in a row other commits changed what '{operation.stage}' had done; try again later"
        )
    seconds = time.perf_counter() - start
    return operation.result(TaskRun(outcomes, tasks, transaction.rounds, seconds, stopwatch.millis))
