"""Changes that are split into tasks, one for each bucket or file."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field

from manifest.commit.transaction import EVALUATIONS, Round, Transaction
from manifest.io.errors import CommitGaveUp
from manifest.io.threads import map_in_threads
from manifest.snapshot.commit_info import commit_properties
from manifest.snapshot.snapshot import EMPTY_TABLE
from paimon_base.lazy import LazyModule
from pyspark_paimon.jobs.progress import PieceProgress, Steps
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.request.tasks import Task, TaskPlan, TaskRun, TaskWork, Worker
from pyspark_paimon.results.counters import Stopwatch
from pyspark_paimon.results.message import CommitId, CommitProperties
from pyspark_paimon.results.results import Outcome

if TYPE_CHECKING:
    from manifest.commit import file_store_commit
    from manifest.commit import message as commit_message
    from manifest.commit.conflicts import BucketId
    from manifest.commit.file_store_commit import FileStoreCommit
    from manifest.commit.message import CommitMessage, CommitResult
    from manifest.snapshot.snapshot import SnapshotKey
    from manifest.store import FileStore
else:  # the client of a server sends operations and needs no storage engine
    commit_message = LazyModule("manifest.commit.message")
    file_store_commit = LazyModule("manifest.commit.file_store_commit")

A = TypeVar("A")


class TaskOperation(Operation[A], Generic[A]):
    """A change whose work is split into buckets or files.

    An engine calls ``plan`` where the metadata is. Threads or Spark tasks run the tasks.
    The engine commits their messages. It starts again if another commit was first.
    """

    stage: ClassVar[str]
    """Name of the progress."""
    unit: ClassVar[str] = "buckets"
    """Unit of work of one task, for progress."""
    commits_parts: ClassVar[bool] = False
    """Whether a commit may leave out tasks that lost a race. False: all or nothing."""

    commit_id: CommitId
    options: dict[str, str] = Field(default_factory=dict)
    properties: CommitProperties = Field(default_factory=dict)
    """The user's properties of the snapshot."""

    @property
    def identity(self) -> str | None:
        """Id of its commit."""
        return self.commit_id

    def run(self, table: OpenTable) -> A:
        """Run all tasks in threads of this process, and commit them.

        Tasks that lose a race run again on the newest snapshot. Raises ``CommitGaveUp``.
        """
        start, attempt = time.perf_counter(), _Attempt(self, table)
        transaction = Transaction(attempt.undo)
        last = transaction.run(
            attempt.evaluate, attempt.publish, redo=(lambda result: result.lost_compactions) if self.commits_parts else None
        )
        if last.compact_lost:
            raise CommitGaveUp(
                f"{attempt.store.root}: {EVALUATIONS} times in a row other commits changed what '{self.stage}' had done; try again later"
            )
        seconds = time.perf_counter() - start
        return self.result(TaskRun(attempt.outcomes, attempt.tasks, transaction.rounds, seconds, attempt.stopwatch.millis))

    def is_small(self, table: OpenTable, most_bytes: int) -> bool:
        """Return whether all tasks together are small."""
        return sum(task.size for task in self.plan(table.store(self.options)).tasks) <= most_bytes

    def round(self, number: int) -> Self:
        """Return the operation of a round, counted from 1.

        Rounds that commit parts have their own commit ids.
        """
        return self if number == 1 or not self.commits_parts else self.model_copy(update={"commit_id": f"{self.commit_id}-{number}"})

    @abstractmethod
    def plan(self, store: FileStore) -> TaskPlan:
        """List the tasks at the newest snapshot."""

    @abstractmethod
    def prepare(self, store: FileStore, base: SnapshotKey, tasks: Sequence[Task], threads: int) -> Worker:
        """Return the worker of ``tasks``.

        Its messages are relative to ``base``. Each call of the worker may use ``threads`` threads.
        """

    def group_tasks(self, tasks: Sequence[Task], small_at_once: int) -> tuple[list[list[Task]], list[list[Task]]]:
        """Group the tasks by call of the worker.

        Returns large tasks, then small ones. ``small_at_once`` calls with small tasks run in parallel.
        """
        del small_at_once
        return [[task] for task in tasks], []

    @property
    def verb(self) -> str:
        """Name of the operation in the table's history."""
        return self.stage

    def noted(self, work: TaskWork) -> dict[str, str]:
        """Return the properties of the snapshot."""
        return commit_properties(self.verb, self.counts(work), self.properties)

    def counts(self, work: TaskWork, lost: Sequence[BucketId] = ()) -> dict[str, int]:
        """Return the counts of committed work.

        Buckets in ``lost`` lost a race and do not count.
        """
        del lost
        return dict(work.counts)

    @abstractmethod
    def commit(
        self,
        commit: FileStoreCommit,
        base: SnapshotKey,
        messages: Sequence[CommitMessage],
        properties: dict[str, str],
    ) -> CommitResult:
        """Commit the messages of all tasks. Raises ``CommitConflict``."""

    @abstractmethod
    def result(self, run: TaskRun) -> A:
        """Return the answer for users."""


class _Attempt:
    """The current round of an operation, from its base snapshot to the commit."""

    def __init__(self, operation: TaskOperation[Any], table: OpenTable) -> None:
        self.store = table.store(operation.options)
        self.stopwatch = Stopwatch()
        self.outcomes: list[Outcome] = []
        self.tasks = 0
        """Number of tasks in the first round."""
        self._requested = self._operation = operation
        self._threads, self._progress = table.threads, table.progress
        self._commit = file_store_commit.FileStoreCommit(self.store, operation.commit_id, fresh=True)
        self._base = EMPTY_TABLE
        self._counts: list[Counter[str]] = []

    def evaluate(self, current: Round[CommitMessage]) -> None:
        """Plan the tasks on the newest snapshot and do them."""
        if current.number > 1:
            # A part may be committed already: another round needs a commit id of its own.
            self._operation = self._requested.round(current.number)
            self._commit = file_store_commit.FileStoreCommit(self.store, self._operation.commit_id, fresh=True)
        plan = self._operation.plan(self.store)
        todo = [task for task in plan.tasks if current.buckets is None or task.bucket_id in current.buckets]
        self._base, self._counts = plan.base, []
        if current.number == 1:
            self.tasks = len(todo)
        steps = Steps(self._progress, self._operation.stage, len(todo), self._operation.unit, sum(task.size for task in todo))
        if not todo:
            return
        work = self._operation.prepare(self.store, plan.base, todo, max(1, self._threads // len(todo)))

        def run_group(group: Sequence[Task]) -> None:
            piece = PieceProgress(steps, sum(task.size for task in group))
            group_work = work(self.store.with_listener(piece), group)
            # Several threads get here: extending and appending to a list is atomic in CPython.
            current.work.extend(group_work.messages)
            self._counts.append(group_work.counts)
            piece.finish(len(group))

        small_at_once = (
            self._threads if self.store.file_io.max_concurrency > 1 else 1
        )  # on remote storage, small files cost latency, not CPU
        large, small = self._operation.group_tasks(todo, small_at_once)
        map_in_threads(run_group, large, self._threads)
        map_in_threads(run_group, small, small_at_once)
        self.stopwatch("merge")

    def publish(self, messages: Sequence[CommitMessage]) -> CommitResult:
        """Commit the messages of the round."""
        work = TaskWork(list(messages), sum(self._counts, Counter()))
        noted = self._operation.noted(work)
        result = self._operation.commit(self._commit, self._base, messages, noted) if messages else commit_message.CommitResult()
        self.stopwatch("commit")
        counts = {**self._operation.counts(work, result.lost_compactions), "retries": self._commit.retries}
        self.outcomes.append(Outcome(snapshot_id=result.snapshot_id, compact_snapshot_id=result.compact_snapshot_id, counts=counts))
        return result

    def undo(self, messages: Sequence[CommitMessage]) -> None:
        """Delete the files of a round that is not committed."""
        self._commit.abort(messages)
