"""Batch writes in Spark.

Tasks write files, and the commit hook on the driver commits them once.
If our client staged the rows, each bucket is in one task, which sorts and compacts it. In a plain ``df.write`` several tasks may
write the same bucket: they write level 0 only, each with its own range of sequence numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from lsm.bucket.dynamic import BucketWriters
from lsm.rows_in.check import validate_rows
from lsm.write.bucket_writer import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage
from manifest.io.errors import CommitConflict, UnsupportedTable
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument
from pyspark_paimon.jobs.task_operation import TaskOperation
from pyspark_paimon.local.open_engine import open_engine
from pyspark_paimon.request.inputs import split_kinds
from pyspark_paimon.request.operation import parse_request
from pyspark_paimon.request.partition_spec import replaced_partitions
from pyspark_paimon.request.tasks import Task, TaskWork
from pyspark_paimon.spark.driver.commit import commit_rows, commit_tasks
from pyspark_paimon.spark.driver.options import table_path
from pyspark_paimon.spark.driver.outcome import job_name, run_command
from pyspark_paimon.spark.read.threads import use_task_cpus
from pyspark_paimon.spark.wire import jobs as wire_jobs
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.arrow_stream import decode_blobs
from pyspark_paimon.spark.wire.errors import attach_error_notes
from pyspark_paimon.spark.wire.session_settings import OVERWRITE_MODE, overwrites_partitions, refuse_task_settings
from pyspark_paimon.spark.write.save import plain_write
from pyspark_paimon.spark.write.task import JobWriter, TaskMessage, commit_messages, open_store, store_for_commit, sum_counts

KIND_COUNTS = ("inserted", "", "updated", "deleted")
"""Names of counts by row kind. The row before an update is not counted."""
STRIDE = 1 << 32
"""Number of sequence numbers reserved for each task of a plain write."""


class RowsWriter(JobWriter):
    """Writer of rows to the table at ``path``.

    ``first_sequence`` is the first sequence number of a plain write's tasks.
    """

    def __init__(self, path: str, job: wire_jobs.RowsJob, first_sequence: int | None) -> None:
        self.path = path
        self.job = job.model_dump_json()
        self.identifier = job.request.identifier
        self.first_sequence = first_sequence

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write one task's rows to files. Delete them after an error."""
        with attach_error_notes():
            job = wire_jobs.RowsJob.model_validate_json(self.job)
            dynamic: bool | None = None
            if isinstance(job.route, wire_jobs.SparkPlanned):
                refuse_task_settings(self.path, job.request.options)
                dynamic = overwrites_partitions() if job.route.asks_mode else None
                job = _with_overwrite_mode(job, dynamic)
            decode = decode_blobs if isinstance(job.route, wire_jobs.Blobs) else _validate
            batches = (rows for batch in iterator for rows in decode(batch) if rows.num_rows)
            first = next(batches, None)
            if first is None:
                return TaskMessage(dynamic=dynamic)
            store = open_store(self.path, job.request)
            with self._table_write(store, job) as writer:
                rows, kinds = 0, Counter[str]()
                for batch in chain([first], batches):
                    rows += batch.num_rows
                    kinds += _put(writer, batch, kinds=job.request.row_kinds)
                messages = writer.prepare_commit()
            return TaskMessage([message.model_dump_json() for message in messages], rows, dict(kinds), dynamic)

    def publish(self, messages: Sequence[TaskMessage | None]) -> None:
        """Commit the files.

        If the commit id was committed before, delete them instead.
        """
        job = wire_jobs.RowsJob.model_validate_json(self.job)
        commits = commit_messages(messages)
        if isinstance(job.route, wire_jobs.SparkPlanned) and job.route.asks_mode:
            modes = {message.dynamic for message in messages if message is not None} - {None}
            if not modes:
                raise InvalidArgument(
                    f"{self.path}: no task reported the session's {OVERWRITE_MODE}: give .option('partitionOverwriteMode', ...)"
                )
            job = _with_overwrite_mode(job, modes == {True})
        if job.route.owned:
            _check_owned(commits)
        rows = sum(message.rows for message in messages if message is not None)
        kinds = sum_counts(messages)
        if not commit_rows(store_for_commit(self.path, job.request), job, commits, rows, kinds if job.read is not None else {}):
            self.discard(messages)

    def committer(self) -> FileStoreCommit:
        """Return the commit of the write."""
        request = wire_jobs.RowsJob.model_validate_json(self.job).request
        return FileStoreCommit(open_store(self.path, request), request.commit_id)

    def _table_write(self, store: FileStore, job: wire_jobs.RowsJob) -> TableWrite:
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        sequence = None if self.first_sequence is None else self.first_sequence + task * STRIDE
        route = job.route
        shares = route if isinstance(route, wire_jobs.ByHash | wire_jobs.ByKey) else None
        return TableWrite(
            store,
            WriteJob(
                commit_id=job.request.commit_id,
                write_only=None if route.owned else True,
                threads=use_task_cpus(),
                overwrites=job.request.mode == "overwrite",
                replaces=replaced_partitions(job.request, store.schema),
                policy=job.request.policy,
                finds_keys=route.finds_keys,
                first_sequence=sequence,
                bucket_writers=None if shares is None or shares.tasks == 1 else BucketWriters(task, shares.tasks, shares.writers),
                base_snapshot_id=None if shares is None else shares.base_snapshot_id,
            ),
        )


def _validate(batch: pa.RecordBatch) -> tuple[pa.RecordBatch]:
    # Strings of a DataFrame may be invalid UTF-8, for example from a user's function. The client has validated blobs.
    validate_rows(batch)
    return (batch,)


class TasksWriter(JobWriter):
    """Writer that runs one round of a task operation.

    The rows of its DataFrame are tasks.
    """

    def __init__(self, path: str, job: wire_jobs.TasksJob) -> None:
        self.path = path
        self.job = job.model_dump_json()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Run the tasks in the rows. Delete their files after an error."""
        with attach_error_notes():
            job, operation = self._parse_job()
            commit = self.committer()
            columns = rpc.TASK_COLUMNS
            tasks = [
                Task(*values) for batch in iterator for values in zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
            ]
            work = TaskWork()
            if tasks:
                run = operation.prepare(commit.store, job.base, tasks, use_task_cpus())
                try:
                    for groups in operation.group_tasks(tasks, 1):
                        for group in groups:
                            work.add(run(commit.store, group))
                except BaseException:
                    commit.abort(work.messages)
                    raise
            return TaskMessage([message.model_dump_json() for message in work.messages], counts=dict(work.counts))

    def publish(self, messages: Sequence[TaskMessage | None]) -> None:
        """Commit.

        Raises ``CommitConflict`` if another commit changed a file; the client then runs another round.
        """
        job, operation = self._parse_job()
        work = TaskWork(commit_messages(messages), sum_counts(messages))
        commit_tasks(self.committer().store, job, operation, work)

    def committer(self) -> FileStoreCommit:
        """Return the commit of the operation."""
        _, operation = self._parse_job()
        return FileStoreCommit(open_engine(self.path).store(operation.options), operation.commit_id)

    def _parse_job(self) -> tuple[wire_jobs.TasksJob, TaskOperation[Any]]:
        job = wire_jobs.TasksJob.model_validate_json(self.job)
        return job, parse_request(job.operation, TaskOperation, rpc.WRITE)  # type: ignore[type-abstract]  # only a base


class CommandWriter(JobWriter):
    """Writer that runs a command in its commit hook: once, on the driver. It ignores rows."""

    def __init__(self, path: str, command: str) -> None:
        self.path = path
        self.command = command

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Read and ignore the rows."""
        for _ in iterator:
            pass
        return TaskMessage()

    def publish(self, messages: Sequence[TaskMessage | None]) -> None:  # noqa: ARG002  # Spark's signature
        """Run the command."""
        run_command(self.path, *rpc.parse_command(self.command))

    def committer(self) -> None:
        """Return None: a command writes no files in tasks."""


def writer_for(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> ds.DataSourceWriter:
    """Return the writer that the options ask for.

    Raises errors of the options and columns.
    """
    with attach_error_notes():
        path = table_path(options)
        if rpc.COMMAND in options:
            command_id, _ = rpc.parse_command(options[rpc.COMMAND])
            return CommandWriter(path, options[rpc.COMMAND]).mark(command_id)
        if rpc.WRITE in options:
            job = rpc.parse_job(options[rpc.WRITE])
            store = open_store(path, job.request) if isinstance(job, wire_jobs.RowsJob) else open_engine(path).store()
        else:
            job, store = plain_write(path, options, schema, overwrite=overwrite)
        return _writer(path, job, store).mark(job_name(store, job.identity))


def _writer(path: str, job: wire_jobs.Job, store: FileStore) -> JobWriter:
    if isinstance(job, wire_jobs.TasksJob):
        return TasksWriter(path, job)
    store.check_writable()
    return RowsWriter(path, job, None if job.route.owned else first_sequence(store))


def first_sequence(store: FileStore) -> int | None:
    """Return the next free sequence number of a primary-key table.

    None: an append table.
    """
    if not store.schema.kind.has_row_kinds:
        return None
    entries = store.live_entries(store.snapshots.latest())
    first = int(entries.max_sequence_number.max()) + 1 if len(entries) else 0
    if first > (1 << 63) - (1 << 20) * STRIDE:
        raise UnsupportedTable(
            f"{store.root}: a plain df.write has no sequence numbers left ({first} is next): use Table.write, which needs fewer"
        )
    return first


def _put(writer: TableWrite, batch: pa.RecordBatch, *, kinds: bool) -> Counter[str]:
    """Write the rows and return their number by row kind.

    Empty if they have no kinds.
    """
    rows, codes = split_kinds(batch) if kinds else (batch, None)
    writer.write(rows, kinds=codes)
    counts = np.bincount(codes, minlength=len(KIND_COUNTS)) if codes is not None else np.zeros(len(KIND_COUNTS), np.int64)
    return Counter({name: int(count) for name, count in zip(KIND_COUNTS, counts, strict=True) if name and count})


def _with_overwrite_mode(job: wire_jobs.RowsJob, dynamic: bool | None) -> wire_jobs.RowsJob:
    """Return the job with an overwrite mode. None: unchanged."""
    return job if dynamic is None else job.model_copy(update={"request": job.request.model_copy(update={"dynamic": dynamic})})


def _check_owned(messages: Sequence[CommitMessage]) -> None:
    """Raise ``CommitConflict`` if two tasks wrote the same bucket."""
    # Both tasks would compact the bucket, and the order of their rows would be random.
    owned = [message.bucket_id for message in messages if message.bucket >= 0 and message.total_buckets > 0]
    if len(set(owned)) != len(owned):
        raise CommitConflict("two tasks wrote the same bucket although the rows were staged by bucket; nothing was committed")
