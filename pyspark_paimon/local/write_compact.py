"""Write and compact in process: rows to a ``TableWrite``, its messages to a ``FileStoreCommit``, the answer for people."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.errors import InvalidArgument
from fileindex.base.lazy import LazyModule
from manifest.commit.conflicts import BucketId
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.transaction import Round, Transaction
from manifest.store import FileStore
from pyspark_paimon.jobs.compaction import compact_some, compaction_counts, in_jobs, wanted_buckets, wanted_entries
from pyspark_paimon.jobs.progress_steps import PieceMeter, Steps
from pyspark_paimon.local.open_write import Batch, OpenWrite
from pyspark_paimon.request.backend import ArrowRows, CompactRequest, Progress, WriteRequest
from pyspark_paimon.request.counters import Laps
from pyspark_paimon.request.inputs import split_kinds
from pyspark_paimon.request.results import CompactResult, WriteResult, compact_counters
from pyspark_paimon.scheduling.thread_pool import each

if TYPE_CHECKING:
    from lsm.commit import postponed
else:
    postponed = LazyModule("lsm.commit.postponed")


def write_rows(store: FileStore, request: WriteRequest, rows: ArrowRows, *, threads: int, progress: Progress | None) -> WriteResult:
    """Write and commit; raises typed errors, and leaves the table as it was then."""
    store.check_writable()
    with OpenWrite(store, request, threads=threads, progress=progress) as write:
        return write.commit(batches=_batches(rows, request))


def _batches(rows: ArrowRows, request: WriteRequest) -> Iterator[Batch]:
    source: Iterator[pa.RecordBatch] = iter(rows.reader)
    if request.order_by is not None:
        source = iter(_ordered(rows.reader.read_all(), request.order_by).to_batches())
    for batch in source:
        yield split_kinds(batch) if request.row_kinds else (batch, None)


def _ordered(table: pa.Table, column: str) -> pa.Table:
    """Rows by ``column``, equal ones as they came, null before all: the last of a key is the one to keep."""
    if column not in table.column_names:
        raise InvalidArgument(f"order_by: the rows have no column '{column}'")
    values = table[column]
    keys = pa.table({"known": values.is_valid(), "value": values})  # null is least, as in Spark; NaN is greatest
    return table.take(pc.sort_indices(keys, sort_keys=[("known", "ascending"), ("value", "ascending")]))


def compact_table(store: FileStore, request: CompactRequest, *, threads: int, progress: Progress | None) -> CompactResult:
    """Compact the buckets of the newest snapshot, a thread each, small ones together; those that lose a race are compacted again."""
    start = time.perf_counter()
    store.check_writable()
    laps = Laps()
    settled = postponed.settle_postponed(store, request.commit_id, wanted_entries(store, request), threads=threads)
    total = CompactResult(files_before=0, files_after=0, bytes_read=0, bytes_written=0, snapshot_id=settled)
    commit = FileStoreCommit(store, request.commit_id, fresh=True)
    transaction = Transaction(commit.abort)

    def evaluate(current: Round[CommitMessage]) -> None:
        buckets = wanted_buckets(store, request)
        sizes = {bucket: size for bucket, size in buckets.items() if current.buckets is None or bucket in current.buckets}
        steps = Steps(progress, "compact", len(sizes), total_bytes=sum(sizes.values()))
        job = partial(_compact_some, store, request, steps=steps, sizes=sizes, messages=current.work)
        small_at_once = threads if store.file_io.lanes > 1 else 1  # storage that is far is waited for, not computed for
        large, small = in_jobs(sizes, small_at_once)
        each(job, large, threads)
        each(job, small, small_at_once)
        laps("merge")

    def publish(messages: Sequence[CommitMessage]) -> CommitResult:
        nonlocal total
        result = commit.commit(messages, identifier=transaction.rounds)
        laps("commit")
        lost = frozenset(result.lost_compactions)
        total = _added(total, [message for message in messages if message.bucket_id not in lost], result, transaction.rounds)
        return result

    transaction.run(evaluate, publish, redo=lambda result: result.lost_compactions)
    counters = compact_counters(total, retries=total.attempts - 1 + commit.retries, millis=laps.millis)
    return total.model_copy(update={"counters": counters, "seconds": time.perf_counter() - start})


def _compact_some(
    store: FileStore,
    request: CompactRequest,
    buckets: Sequence[BucketId],
    *,
    steps: Steps,
    sizes: Mapping[BucketId, int],
    messages: list[CommitMessage],
) -> None:
    piece = PieceMeter(steps, sum(sizes[bucket] for bucket in buckets))
    messages += compact_some(store.metered(piece), request, buckets)
    piece.finish(len(buckets))


def _added(total: CompactResult, messages: Sequence[CommitMessage], result: CommitResult, attempt: int) -> CompactResult:
    counts = {name: getattr(total, name) + count for name, count in compaction_counts(messages).items()}
    snapshot_id = total.snapshot_id if result.compact_snapshot_id is None else result.compact_snapshot_id
    return total.model_copy(update={**counts, "snapshot_id": snapshot_id, "attempts": attempt})


__all__ = ["compact_table", "write_rows"]
