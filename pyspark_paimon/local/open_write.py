"""An uncommitted write of this process.

Combines a ``TableWrite`` with the commit of its messages.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from lsm.commit.rebucket import rebucket
from lsm.commit.row_transaction import RowTransaction, resequence
from lsm.write.bucket_writer import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit.conflicts import BucketId
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.repeated_commits import committed_before
from manifest.commit.transaction import EVALUATIONS
from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule
from pyspark_paimon.jobs.counting import publish_rows, write_counters, write_result
from pyspark_paimon.jobs.progress import FlushProgress
from pyspark_paimon.request.inputs import split_kinds
from pyspark_paimon.request.partition_spec import replaced_partitions
from pyspark_paimon.request.requests import Rows, WriteRequest
from pyspark_paimon.results.counters import Stopwatch
from pyspark_paimon.results.results import ProgressEvent, WriteResult

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema
    from pyspark_paimon.operations import alter
    from pyspark_paimon.request.operation import OpenTable
else:
    alter = LazyModule("pyspark_paimon.operations.alter")

Batch = tuple[pa.RecordBatch, pa.Array | None]
"""Rows, and the codes of their row kinds."""


class OpenWrite:
    """Rows that become visible at ``commit``.

    Leaving the block without a commit deletes their files.
    ``waits``: the write runs the due compaction before it ends. If False, ``pending_compaction`` reports the buckets, unless readers
    need the compaction.
    """

    def __init__(self, table: OpenTable, request: WriteRequest, *, waits: bool = True) -> None:
        self._start, self._stopwatch = time.perf_counter(), Stopwatch()
        self._table = table
        self.store = store = alter.store_for(table, request)
        self.compacts = waits or store.schema.kind.has_lookup_readers
        self._request, self._threads, self._progress = request, table.threads, table.progress
        self._flush = FlushProgress(self._progress)
        self._replaces = replaced_partitions(request, store.schema)
        self._write = TableWrite(
            store.with_listener(self._flush),
            WriteJob(
                commit_id=request.commit_id,
                threads=self._threads,
                overwrites=request.mode == "overwrite",
                replaces=self._replaces,
                policy=request.policy,
                write_only=None if self.compacts else True,
            ),
        )
        self._size = 0
        self.rows = 0
        """Number of added rows."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._write.__exit__(kind, error, trace)

    @property
    def pending_compaction(self) -> dict[BucketId, bool]:
        """Buckets with a due compaction; True: writers wait for it.

        Covers committed rows. See ``TableWrite``.
        """
        return self._write.pending_compaction

    def take(self, batch: pa.RecordBatch, kinds: pa.Array | None) -> None:
        """Add rows, with the codes of their row kinds."""
        self._write.write(batch, kinds=kinds)
        self.rows, self._size = self.rows + batch.num_rows, self._size + batch.get_total_buffer_size()
        if self._progress is not None:
            self._progress(ProgressEvent(stage="write", done=self.rows, bytes_done=self._size))

    def discard(self) -> None:
        """Delete the written files."""
        self._write.abort()
        self._write.close()

    def commit(self, request: WriteRequest | None = None, batches: Iterable[Batch] = ()) -> WriteResult:
        """Add ``batches``, flush and commit.

        Args:
            request: Identity of the commit. None: the request of the constructor.
            batches: Rows that are added only if no earlier run has committed.
        """
        request = request or self._request
        ready: list[CommitMessage] | None = None
        if request.pending is not None:
            if request.first_run or committed_before(self.store, request.commit_id, request.identifier) is None:
                ready = self._ready(request, request.pending, batches)
            self.store = self._table.store(request.options)
        store, threads, stopwatch = self.store, self._threads, self._stopwatch
        overwrite, reassigns = request.mode == "overwrite", store.schema.bucket_mode.assigns_keys
        commit = FileStoreCommit(store, request.commit_id, resequence=resequence(store, request.commit_id), fresh=request.first_run)

        def publish(messages: list[CommitMessage]) -> CommitResult:
            result = publish_rows(commit, request, messages, self.rows)
            stopwatch("commit")
            return result

        committed = RowTransaction(
            commit, request.compactor, request.identifier, is_new=request.first_run, compacts=self.compacts, threads=threads
        ).run(
            lambda current: self._flush_into(current.work, batches) if ready is None else current.work.extend(ready),
            publish,
            rework=partial(
                rebucket,
                store,
                commit_id=request.commit_id,
                threads=threads,
                overwrite=overwrite,
                replaces=self._replaces,
            ),
            evaluations=EVALUATIONS if reassigns else 1,
        )
        if not committed.rounds:
            self.discard()
            return write_result(committed.result, 0, 0, self._start)
        stopwatch("compact")
        counters = write_counters(committed.messages, rows=self.rows, retries=commit.retries, millis=stopwatch.millis, bytes_in=self._size)
        return write_result(
            committed.result, self.rows, sum(len(message.new_files) for message in committed.messages), self._start, counters
        )

    def _ready(self, request: WriteRequest, pending: TableSchema, batches: Iterable[Batch]) -> list[CommitMessage]:
        """Flush all rows, and then store the schema of their files."""
        messages: list[CommitMessage] = []
        self._flush_into(messages, batches)
        try:
            alter.store_pending(self._table, pending)
        except BaseException:
            FileStoreCommit(self.store, request.commit_id).abort(messages, identifier=request.identifier)
            raise
        return messages

    def _flush_into(self, messages: list[CommitMessage], batches: Iterable[Batch]) -> None:
        for batch, kinds in batches:
            self.take(batch, kinds)
        self._stopwatch("write")
        if self._progress is not None:
            size = self._size
            self._progress(ProgressEvent(stage="write", done=self.rows, total=self.rows, bytes_done=size, total_bytes=size))
        with self._flush.begin(self.rows):
            messages += self._write.prepare_commit()
        self._write.close()
        self._stopwatch("flush")


def write_rows(table: OpenTable, request: WriteRequest, rows: Rows) -> WriteResult:
    """Write and commit rows.

    Raises typed errors, and leaves the table unchanged then.
    """
    with OpenWrite(table, request) as write:
        return write.commit(batches=_batches(rows, request))


def _batches(rows: Rows, request: WriteRequest) -> Iterator[Batch]:
    source: Iterator[pa.RecordBatch] = iter(rows.reader)
    if request.order_by is not None:
        source = iter(_order(rows.reader.read_all(), request.order_by).to_batches())
    for batch in source:
        yield split_kinds(batch) if request.row_kinds else (batch, None)


def _order(table: pa.Table, column: str) -> pa.Table:
    """Sort rows by ``column``, stable, nulls first.

    The last row of a key wins.
    """
    if column not in table.column_names:
        raise InvalidArgument(f"order_by: the rows have no column '{column}'")
    values = table[column]
    keys = pa.table({"known": values.is_valid(), "value": values})  # null is least, as in Spark; NaN is greatest
    return table.take(pc.sort_indices(keys, sort_keys=[("known", "ascending"), ("value", "ascending")]))
