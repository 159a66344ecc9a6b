"""``SparkEngine``: run a table's operations on a Spark server.

Works with classic Spark and with Spark Connect. The client sends options and DataFrames, never code.
The server needs this package. After an error the client asks whether its commit is visible.
A job can succeed although the connection to it was lost.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import pyarrow as pa

from lsm.rows_in.arrow import ArrowRows
from lsm.write.new_version import NewVersion
from manifest.commit.transaction import EVALUATIONS, Round, Transaction
from manifest.io.errors import CommitConflict, CommitGaveUp
from manifest.schema.table_schema import BucketMode, TableSchema
from manifest.snapshot.snapshot import EMPTY_TABLE
from paimon_base.errors import InvalidArgument, PaimonError
from paimon_base.thresholds import thresholds
from pyspark_paimon.jobs.task_operation import TaskOperation
from pyspark_paimon.operations.change_files import ChangeFiles
from pyspark_paimon.operations.change_rows import DeleteRows, MergeRows, UpdateRows, WriteRows
from pyspark_paimon.operations.tasks import CountDynamicBuckets, PlanTasks
from pyspark_paimon.request.assignments import Assignments, is_spark_column, refuse_delete
from pyspark_paimon.request.merge import check_merge
from pyspark_paimon.request.operation import SharedQuestion
from pyspark_paimon.request.requests import DeleteRequest, Rows, SparkRows, TravelRequest, WriteRequest
from pyspark_paimon.request.state import Pin, SchemaOf
from pyspark_paimon.request.tasks import TaskRun
from pyspark_paimon.results.results import MergeResult, Outcome, WriteResult
from pyspark_paimon.spark.client.estimate import fetch_if_small, row_bytes
from pyspark_paimon.spark.client.ownership import Target
from pyspark_paimon.spark.client.scan_engine import SparkScans
from pyspark_paimon.spark.client.staging import Staged, stage_changes, stage_rows, stage_tasks
from pyspark_paimon.spark.wire import jobs as wire_jobs
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.errors import SessionLost, raise_typed_errors
from pyspark_paimon.spark.wire.names import UNIQUE_NAME

if TYPE_CHECKING:
    from manifest.snapshot.snapshot import Snapshot
    from pyspark_paimon.request.operation import Operation, Question, Request

FORMAT_NAME = UNIQUE_NAME
"""Format name that receives every request; see ``names``."""
A = TypeVar("A")


class SparkEngine(SparkScans):
    """Engine whose files a Spark server reads and writes.

    Implements ``Engine``.
    """

    def run(self, operation: Operation[A]) -> A:
        """Run an operation on the driver or in Spark tasks.

        The driver runs small operations without a job. Task operations and row changes of many bytes use tasks.
        """
        any_operation: Operation[Any] = operation
        with _name_lost_commit(operation.identity):
            if isinstance(any_operation, MergeRows):  # its source may have to be fetched first
                return cast("A", self._merge(any_operation))
            small = self._run_if_small(any_operation)
            if small is not None:
                return operation.answer_of(small)
            match any_operation:
                case TaskOperation():
                    result: Any = self.run_tasks(any_operation)
                case DeleteRows():
                    result = self._change_rows(any_operation.request, None)
                case UpdateRows(values=Assignments() as values):
                    result = self._change_rows(any_operation.request, values)
                case _:
                    result = self._run_command(any_operation)
            return cast("A", result)

    def _run_if_small(self, operation: Operation[Any]) -> str | None:
        """Run an operation on the driver, without a job, and return its answer.

        None: the operation needs a job. After an error without a typed cause, the stored answer shows whether it ran.
        """
        max_bytes = thresholds.driver_bytes
        if not max_bytes or (isinstance(operation, UpdateRows) and _needs_spark(operation.values)):
            return None
        message = rpc.RunSmall(id=str(uuid.uuid4()), operation=operation.to_text(), most_bytes=max_bytes)
        try:
            return self._ask(message)
        except Exception as error:
            answer = self._after_error(error, rpc.AskAnswer(id=message.id), operation.identity)
            if answer is None:
                raise
            return answer

    def _run_command(self, operation: Operation[A]) -> A:
        """Run an operation once on the driver.

        After an error without a typed cause, the stored answer shows whether it ran.
        """
        command = rpc.Command(id=str(uuid.uuid4()), operation=operation.to_text())
        question = rpc.AskAnswer(id=command.id)
        options = {"path": self._path, rpc.COMMAND: command.model_dump_json()}
        job = self._spark.range(1)
        try:
            with raise_typed_errors(), nullcontext() if operation.stage is None else self._reporting(operation.stage):
                job.write.format(FORMAT_NAME).mode("append").options(**options).save()
        except Exception as error:
            answer = self._after_error(error, question, operation.identity)
            if answer is None:
                raise
        else:
            answer = self._ask(question)
        if answer is None:
            raise InvalidArgument(f"the server ran command {command.id}, but has no answer: all requests must reach the same driver")
        return operation.answer_of(answer)

    def write(self, request: WriteRequest, rows: Rows) -> WriteResult:
        """Write rows on the driver, or in Spark tasks with a commit on the driver.

        Returns the earlier result if ``request.identity`` is already committed.
        """
        started = time.perf_counter()
        with _name_lost_commit(request.identity):
            sent, rows = few_rows(rows) if isinstance(rows, ArrowRows) else (None, rows)
            small = None if sent is None else self._run_if_small(WriteRows(request=request, rows=sent))
            earlier = None if request.first_run or small is not None else self._outcome(request.identity)
            if earlier is not None:
                return WriteResult.of(earlier, _since(started), {}, replayed=True)
            if isinstance(rows, SparkRows) and thresholds.driver_bytes:
                with raise_typed_errors(), self._reporting("write"):
                    sent = _few_rows_of_frame(rows)
                if sent is not None:  # a job, too, writes the fetched rows: Spark computes the DataFrame once
                    rows, small = ArrowRows(sent.to_reader()), self._run_if_small(WriteRows(request=request, rows=sent))
            if small is not None:
                return WriteRows.answer_of(small)
            outcome = self._write(rows, self.ask(SchemaOf()) if request.pending is None else request.pending, request)
            return _result(outcome, started)

    def _write(self, rows: Rows, schema: TableSchema, request: WriteRequest) -> Outcome | None:
        """Stage the rows and run the write job.

        Repeats the job if another commit has assigned dynamic buckets since staging.
        """
        assigns = schema.bucket_mode.assigns_keys
        based = assigns or schema.bucket_mode is BucketMode.POSTPONE_MODE
        staged: list[Staged] = []

        def evaluate(current: Round[Staged]) -> None:
            if not staged or isinstance(rows, SparkRows):  # local rows are staged once: they depend on no snapshot
                base = self.ask(Pin(travel=TravelRequest())) if based else None
                with raise_typed_errors():
                    staged[:] = [stage_rows(self._spark, rows, self._target(schema, base), request)]
            current.work.extend(staged)

        return Transaction[Staged]().run(evaluate, partial(self._publish, request.identity), evaluations=EVALUATIONS if assigns else 1)

    def _publish(self, identity: str, jobs: Sequence[Staged]) -> Outcome | None:
        """Run the first job and return its outcome.

        After a conflict, returns the outcome of the commit if it is visible.
        """
        try:
            return self._run(jobs[0], identity) if jobs else None
        except CommitConflict:
            outcome = self._outcome(identity)  # committed by this run without a success report, or by another run
            if outcome is None:
                raise
            return outcome

    def _target(self, schema: TableSchema, base: Snapshot | None) -> Target:

        def dynamic_buckets() -> int:
            return 0 if base is None else self.ask(CountDynamicBuckets(snapshot_id=base.id))

        return Target(self._path, schema, EMPTY_TABLE if base is None else base.key, dynamic_buckets)

    def writer(self, commit_id: str) -> NoReturn:  # noqa: ARG002  # signature of the other engines
        """Raise ``InvalidArgument``: a writer buffers rows in the client."""
        raise InvalidArgument(f"{self._path}: a writer needs files that this process reaches; over Spark, use write() or a stream")

    def _merge(self, operation: MergeRows) -> MergeResult:
        """Merge on the driver for small sources, else with Spark.

        ``merge_source`` decides. Spark joins large sources with the table as DataFrames.
        """
        from pyspark_paimon.spark.client.merge import merge_result, merge_source, stage_merge  # noqa: PLC0415  # writes expressions

        request, merge_request = operation.request, operation.merge
        schema = self.ask(SchemaOf()) if merge_request.pending is None else merge_request.pending
        check_merge(merge_request.clauses, schema, self._path)
        with raise_typed_errors():
            merge_request = merge_request.model_copy(update={"source": merge_source(self._spark, merge_request, schema)})
        if not isinstance(merge_request.source, SparkRows):
            merge = MergeRows(request=request, merge=merge_request)
            small = self._run_if_small(merge)
            return self._run_command(merge) if small is None else merge.answer_of(small)

        def stage(base: Snapshot | None) -> Staged:
            target = self._target(schema, base)
            stored = schema if merge_request.pending is None else self.ask(SchemaOf())
            return stage_merge(self._spark, self.frame, target, request, merge_request, stored=stored)

        return merge_result(*self._until_committed(request, stage))

    def _change_rows(self, request: DeleteRequest, values: Assignments | None) -> WriteResult:
        schema = self.ask(SchemaOf())
        if schema.kind.changes_files:
            return self._change_files(request, values)

        def stage(base: Snapshot | None) -> Staged | None:
            return None if base is None else self._stage_change(request, values, self._target(schema, base))

        return self._until_committed(request, stage)[0]

    def _change_files(self, request: DeleteRequest, values: Assignments | None) -> WriteResult:
        started = time.perf_counter()
        earlier = self._outcome(request.commit_id)
        if earlier is not None:
            return WriteResult.of(earlier, _since(started), {}, replayed=True)
        sent = None if values is None else values.to_text()
        return self.run_tasks(
            ChangeFiles(
                commit_id=request.commit_id,
                predicate=request.predicate,
                values=sent,
                options=request.options,
                properties=request.properties,
            )
        )

    def _until_committed(
        self, request: DeleteRequest, stage: Callable[[Snapshot | None], Staged | None]
    ) -> tuple[WriteResult, Outcome | None]:
        """Stage a change on the newest snapshot and commit it.

        Repeats both steps after a conflict with another commit. Returns the earlier outcome if ``request.identity`` is already committed.
        """
        started = time.perf_counter()
        earlier = self._outcome(request.identity)
        if earlier is not None:
            return WriteResult.of(earlier, _since(started), {}, replayed=True), earlier

        def evaluate(current: Round[Staged]) -> None:
            base = self.ask(Pin(travel=TravelRequest()))
            with raise_typed_errors():
                job = stage(base)
            if job is not None:
                current.work.append(job)

        outcome = Transaction[Staged]().run(evaluate, partial(self._publish, request.identity))
        return _result(outcome, started), outcome

    def _stage_change(self, request: DeleteRequest, values: Assignments | None, target: Target) -> Staged:
        schema = target.schema
        if values is not None:
            values.refuse_expressions()
            NewVersion.of(schema, values.values, self._path)
        else:
            refuse_delete(schema, self._path)
        write = WriteRequest(
            commit_id=request.commit_id,
            mode="upsert",
            row_kinds=True,
            operation="delete" if values is None else "update",
            properties=request.properties,
            options=request.options,
        )
        return stage_changes(
            self._spark,
            self.frame(request.scan(schema, target.snapshot_id), None),
            target,
            write,
            None if values is None else values.values,
        )

    def run_tasks(self, operation: TaskOperation[A]) -> A:
        """Plan an operation, run its tasks and commit them.

        Tasks that lose to another commit run again on the newest snapshot. Raises ``CommitGaveUp`` after ``EVALUATIONS`` rounds.
        """
        started = time.perf_counter()
        outcomes, task_counts = list[Outcome](), list[int]()
        transaction = Transaction[Staged]()

        def evaluate(current: Round[Staged]) -> None:
            this = operation.round(current.number)
            text = this.to_text()
            plan = self.ask(PlanTasks(operation=text))
            task_counts.append(len(plan.tasks))
            job = wire_jobs.TasksJob(operation=text, identity=this.commit_id, base=plan.base)
            if plan.tasks:
                with raise_typed_errors():
                    current.work.append(stage_tasks(self._spark, plan.tasks, this, job))

        def publish(jobs: Sequence[Staged]) -> None:
            if not jobs:
                return
            identity = operation.round(transaction.rounds).commit_id
            conflict: CommitConflict | None = None
            try:
                outcome = self._run(jobs[0], identity)
            except CommitConflict as error:
                outcome, conflict = self._outcome(identity), error
            if outcome is not None:
                outcomes.append(outcome)
            if conflict is not None and (outcome is None or operation.commits_parts):  # other parts lost: run another round
                raise conflict

        try:
            transaction.run(evaluate, publish)
        except CommitConflict as lost:
            raise CommitGaveUp(f"{self._path}: {EVALUATIONS} jobs in a row lost to other commits; try again later") from lost
        seconds = _since(started)
        return operation.result(TaskRun(outcomes, task_counts[0], transaction.rounds, seconds, {"job": seconds * 1000}))

    def ask(self, question: Question[A]) -> A:
        """Return the answer to a question.

        Spark tasks answer a shared question. The driver answers all others.
        """
        any_question: Question[Any] = question
        return cast(
            "A",
            any_question.combine(self._parts(any_question), self.ask)
            if isinstance(any_question, SharedQuestion)
            else self._ask(any_question),
        )

    def _parts(self, question: SharedQuestion[Any]) -> Iterator[str]:
        """Run the job of a shared question, and yield what its tasks answer. The question measures the time."""
        options = {"path": self._path, rpc.SHARED: question.to_text()}
        with raise_typed_errors(), self._reporting(question.stage):
            rows = self._spark.read.format(FORMAT_NAME).options(**options).load().collect()
        for row in rows:
            yield row[rpc.ANSWER]

    def _after_error(self, error: Exception, question: Request[A | None], identity: str | None = None) -> A | None:
        """Return the answer to a question after an error.

        None: the server has no answer, or the question fails too. The caller then raises the first error, which says how to repeat
        the commit ``identity`` if its fate is unknown.
        """
        if isinstance(error, SessionLost):  # the session's other requests would wait and fail, too
            return None
        with suppress(Exception):
            answer = self._ask(question)
            if answer is not None:
                return answer
        if identity is not None and not isinstance(error, PaimonError):
            error.add_note(_how_to_repeat(identity, "is not visible, but its job may still run"))
        return None

    def _run(self, job: Staged, commit_id: str) -> Outcome | None:
        """Run a write job and return its outcome.

        None: there was nothing to commit. Ignores an error other than ``CommitConflict`` if the commit is visible.
        """
        options = {"path": self._path, rpc.WRITE: job.job.model_dump_json()}
        try:
            with raise_typed_errors(), self._reporting(job.stage, job.share):
                job.frame.write.format(FORMAT_NAME).mode("append").options(**options).save()
        except CommitConflict:
            raise
        except Exception as error:
            outcome = self._after_error(error, rpc.AskOutcome(commit_id=commit_id), commit_id)
            if outcome is None:
                raise
            return outcome
        return self._outcome(commit_id)

    def _outcome(self, commit_id: str) -> Outcome | None:
        return self._ask(rpc.AskOutcome(commit_id=commit_id))


def few_rows(rows: ArrowRows) -> tuple[pa.Table | None, ArrowRows]:
    """Return the rows as a table, and as a stream again.

    None: they have more than ``thresholds.sent_bytes``.
    """
    batches, size = list[pa.RecordBatch](), 0
    for batch in rows.reader:
        batches.append(batch)
        size += batch.nbytes
        if size > thresholds.sent_bytes:
            return None, replace(rows, reader=pa.RecordBatchReader.from_batches(rows.schema, chain(batches, rows.reader)))
    table = pa.Table.from_batches(batches, rows.schema)
    return table, replace(rows, reader=table.to_reader())


def _few_rows_of_frame(rows: SparkRows) -> pa.Table | None:
    """Return the rows of a small DataFrame. A job that writes them costs more than one that fetches them.

    None: they may have more than ``thresholds.sent_bytes``, or nested values, of which PySpark's client refuses some.
    """
    if not rows.schema.names or any(pa.types.is_nested(field.type) for field in rows.schema):
        return None
    fetched = fetch_if_small(rows, max_rows=thresholds.sent_bytes // row_bytes(rows.schema), max_bytes=thresholds.sent_bytes)
    return fetched if fetched is not None and fetched.nbytes <= thresholds.sent_bytes else None


def _needs_spark(values: Assignments | str) -> bool:
    """Return whether Spark must compute new values.

    Raises ``InvalidArgument`` for values that it cannot compute either.
    """
    if not isinstance(values, Assignments):
        return False
    values.refuse_expressions()
    return any(map(is_spark_column, values.values.values()))


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 6)


def _result(outcome: Outcome | None, started: float) -> WriteResult:
    seconds = _since(started)
    return WriteResult.of(outcome, seconds, {"job": seconds * 1000})


@contextmanager
def _name_lost_commit(identity: str | None) -> Iterator[None]:
    """Add the way to repeat the commit ``identity`` to a ``SessionLost``. None: the operation has no commit."""
    try:
        yield
    except SessionLost as error:
        if identity is not None:
            error.add_note(_how_to_repeat(identity, "may be visible"))
        raise


def _how_to_repeat(identity: str, state: str) -> str:
    user, _, batch = identity.partition("#")
    named = f"commit_id={user!r}" + (f", batch_id={batch}" if batch else "")
    return f"commit {identity} {state}: repeat the call with {named}, which is safe"
