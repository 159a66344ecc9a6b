"""Write and compact in process: rows to a ``TableWrite``, its messages to a ``FileStoreCommit``, the answer for people."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.errors import InvalidArgument
from lsm.commit.post_commit import compact_after_commit, finish_compaction
from lsm.commit.postponed import settle_postponed
from lsm.commit.rebucket import commit_with_rebucket
from lsm.commit.resequence import resequence
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.runs import committed_before
from manifest.options.support import check_writable
from manifest.store import FileStore
from pyspark_paimon.jobs.compaction import bucket_sizes, compact_one, compaction_counts, wanted_buckets, wanted_entries, write_counters
from pyspark_paimon.jobs.progress_steps import FlushMeter, PieceMeter, Steps
from pyspark_paimon.jobs.publish import publish_rows
from pyspark_paimon.request.backend import ArrowRows, CompactRequest, Progress, WriteRequest
from pyspark_paimon.request.counters import Laps, WriteCounters
from pyspark_paimon.request.inputs import split_kinds
from pyspark_paimon.request.results import CompactResult, ProgressEvent, WriteResult, compact_counters
from pyspark_paimon.scheduling.thread_pool import each

_EVALUATIONS = 20


def write_rows(store: FileStore, request: WriteRequest, rows: ArrowRows, *, threads: int, progress: Progress | None) -> WriteResult:
    """Write and commit; raises typed errors, and leaves the table as it was then."""
    start, laps = time.perf_counter(), Laps()
    check_writable(store.options, has_primary_key=store.schema.is_primary_key_table, table=store.root)
    done = None if request.first_run else committed_before(store, request.commit_id, request.identifier)  # looks through all snapshots
    if done is not None:
        return written(finish_compaction(store, request.compactor, done, threads=threads), 0, 0, start)
    overwriting = request.mode == "overwrite"
    flush = FlushMeter(progress)
    with TableWrite(
        store.metered(flush),
        commit_user=request.commit_id,
        commit_id=request.commit_id,
        threads=threads,
        ignore_existing=overwriting,
        keeps_others=request.keeps_others,
    ) as write:
        taken = size = 0
        for batch, kinds in _batches(rows, request):
            write.write(batch, kinds=kinds)
            taken, size = taken + batch.num_rows, size + batch.get_total_buffer_size()
            if progress is not None:
                progress(ProgressEvent(stage="write", done=taken, bytes_done=size))
        laps("write")
        if progress is not None:
            progress(ProgressEvent(stage="write", done=taken, total=taken, bytes_done=size, total_bytes=size))
        with flush.begin(taken):
            messages = write.prepare_commit()
        laps("flush")
    commit = FileStoreCommit(store, request.commit_id, resequence=resequence(store, request.commit_id), fresh=request.first_run)
    result, published = commit_with_rebucket(
        commit,
        messages,
        partial(publish_rows, commit, request),
        threads=threads,
        overwrite=overwriting,
        keeps_others=request.keeps_others,
    )
    laps("commit")
    result = compact_after_commit(store, request.compactor, result, published, owned=True, threads=threads)
    laps("compact")
    counters = write_counters(published, rows=taken, retries=commit.retries, millis=laps.millis, bytes_in=size)
    return written(result, taken, sum(len(message.new_files) for message in published), start, counters)


def written(result: CommitResult, rows: int, files: int, start: float, counters: WriteCounters | None = None) -> WriteResult:
    """The answer for people to a commit of so many rows and files, begun at ``start`` (``time.perf_counter``)."""
    return WriteResult(
        rows=rows,
        files=files,
        snapshot_id=result.snapshot_id,
        compact_snapshot_id=result.compact_snapshot_id,
        compact_lost=result.compact_lost,
        replayed=result.replayed,
        counters=counters,
        seconds=time.perf_counter() - start,
    )


def _batches(rows: ArrowRows, request: WriteRequest) -> Iterator[tuple[pa.RecordBatch, pa.Array | None]]:
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
    """Compact the buckets of the newest snapshot, a thread each; the buckets that lose a race are compacted again."""
    start = time.perf_counter()
    check_writable(store.options, has_primary_key=store.schema.is_primary_key_table, table=store.root)
    laps, lost_commits = Laps(), 0
    settled = settle_postponed(store, request.commit_id, wanted_entries(store, request), threads=threads)
    total = CompactResult(files_before=0, files_after=0, bytes_read=0, bytes_written=0, snapshot_id=settled)
    only: frozenset[tuple[bytes, int]] | None = None
    for attempt in range(1, _EVALUATIONS + 1):
        buckets = wanted_buckets(store, request)
        wanted = [bucket for bucket in buckets if only is None or bucket in only]
        sizes = Counter[tuple[bytes, int]]() if progress is None else bucket_sizes(store)
        steps = Steps(progress, "compact", len(wanted), total_bytes=sum(sizes[bucket] for bucket in wanted))
        job = partial(_compact_one, store, request, steps, sizes)
        messages = [message for message in each(job, wanted, threads) if message is not None]
        laps("merge")
        commit = FileStoreCommit(store, request.commit_id, fresh=True)
        try:
            result = commit.commit(messages, identifier=attempt)
        except BaseException:
            commit.abort(messages, attempt)
            raise
        laps("commit")
        lost_commits += commit.retries
        lost = frozenset(result.lost_compactions)
        total = _added(total, [message for message in messages if message.bucket_id not in lost], result, attempt)
        if not lost:
            break
        only = lost
    counters = compact_counters(total, retries=total.attempts - 1 + lost_commits, millis=laps.millis)
    return total.model_copy(update={"counters": counters, "seconds": time.perf_counter() - start})


def _compact_one(
    store: FileStore, request: CompactRequest, steps: Steps, sizes: Mapping[tuple[bytes, int], int], bucket: tuple[bytes, int]
) -> CommitMessage | None:
    piece = PieceMeter(steps, sizes.get(bucket, 0))
    message = compact_one(store.metered(piece), request, bucket)
    piece.finish()
    return message


def _added(total: CompactResult, messages: Sequence[CommitMessage], result: CommitResult, attempt: int) -> CompactResult:
    counts = {name: getattr(total, name) + count for name, count in compaction_counts(messages).items()}
    snapshot_id = total.snapshot_id if result.compact_snapshot_id is None else result.compact_snapshot_id
    return total.model_copy(update={**counts, "snapshot_id": snapshot_id, "attempts": attempt})


__all__ = ["compact_table", "write_rows", "written"]
