"""Rows as Arrow IPC streams in a binary column.

They move rows between a client and Spark's tasks.
A frame of blobs has the columns ``task``, ``ordinal`` and ``blob``. Sorted by ordinal within a task, rows keep their order.
Spark would convert local rows one by one, in both directions. Compressed streams are ten times as fast and keep types that
Spark lacks.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lsm.arrow.row_kind import ROW_KIND
from lsm.bucket.router import BucketRows, route
from lsm.rows_in.conform import conform
from lsm.rows_in.policy import DEFAULT_POLICY, RowPolicy
from manifest.schema.table_schema import BucketMode, TableSchema
from paimon_base.thresholds import thresholds
from pyspark_paimon.request.inputs import split_kinds
from pyspark_paimon.scheduling.task_packing import assign_by_size, task_count
from sparkexpr.values.arrays import Int32s
from sparkexpr.values.column_type import Plain

TASK, ORDINAL, BLOB = "task", "ordinal", "blob"
FRAME = pa.schema([(TASK, pa.int32()), (ORDINAL, pa.int32()), (BLOB, pa.binary())])


def blob_frame(
    reader: pa.RecordBatchReader, schema: TableSchema, cores: int, *, kinds: bool, policy: RowPolicy = DEFAULT_POLICY
) -> pa.Table:
    """Return the rows of ``reader`` as a frame of blobs.

    All rows of a bucket are in one task. Memory holds one uncompressed chunk of rows, and all rows compressed.

    Args:
        reader: Rows as the user gave them.
        schema: Schema of the table.
        cores: Cores of Spark. Together with the size of the rows, they decide the number of tasks.
        kinds: Whether the rows have a column of row kinds.
        policy: As for ``conform``.

    Raises:
        SchemaMismatch, NullInKey: The rows do not fit ``schema``.
    """
    # The size is known only at the end. Until then, rows are divided into the largest possible number of shares.
    max_tasks = task_count(sys.maxsize, cores)
    shares: list[int] = []
    blobs: list[bytes] = []
    sizes = [0] * max_tasks
    for number, chunk in enumerate(_chunks(reader)):
        rows, codes = _conform_chunk(chunk, schema, policy, kinds=kinds)
        for share, positions in _shares(rows, schema, max_tasks, number):
            part = codes if positions is None else codes.take(positions)
            sizes[share] += part.nbytes
            step = max(1, min(thresholds.wire_blob_rows, thresholds.wire_blob_bytes * part.num_rows // max(1, part.nbytes)))
            for start in range(0, part.num_rows, step):
                shares.append(share)
                blobs.append(encode_rows(part.slice(start, step)))
    used = sorted(set(shares))
    tasks = min(max(1, len(used)), task_count(sum(sizes), cores))
    task_of_share = dict(zip(used, assign_by_size([sizes[share] for share in used], tasks), strict=True))
    tasks_of_blobs = pa.array([task_of_share[share] for share in shares], pa.int32())
    return pa.table([tasks_of_blobs, pa.array(range(len(blobs)), pa.int32()), pa.array(blobs, pa.binary())], schema=FRAME)


def encode_rows(rows: pa.Table) -> bytes:
    """Return a compressed IPC stream of ``rows``.

    >>> [batch.to_pydict() for batch in decode_batches(encode_rows(pa.table({"id": [1, 2]})))]
    [{'id': [1, 2]}]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def decode_batches(blob: bytes | pa.Buffer) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an IPC stream."""
    with pa.ipc.open_stream(blob) as stream:
        yield from stream


def decode_blobs(frame: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a frame's blobs."""
    for blob in frame.column(BLOB):
        yield from decode_batches(blob.as_buffer())


def _share_of_bucket(rows: BucketRows, count: int) -> int:
    """Return the share, below ``count``, that a bucket's rows belong to."""
    # Neighbouring buckets of a partition go to different shares.
    first = zlib.crc32(repr(rows.partition).encode()) if rows.partition else 0
    return (first + rows.bucket) % count


def _chunks(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Yield tables of about ``wire_chunk_rows`` rows or ``wire_chunk_bytes`` bytes.

    Large batches are cut.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in reader:
        step = max(1, min(thresholds.wire_chunk_rows, thresholds.wire_chunk_bytes * batch.num_rows // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, step):
            waiting.append(batch.slice(start, step))
            rows, size = rows + waiting[-1].num_rows, size + waiting[-1].nbytes
            if rows >= thresholds.wire_chunk_rows or size >= thresholds.wire_chunk_bytes:
                yield pa.Table.from_batches(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _conform_chunk(chunk: pa.Table, schema: TableSchema, policy: RowPolicy, *, kinds: bool) -> tuple[pa.Table, pa.Table]:
    """Return rows in the table's types, without and with row kinds."""
    if not kinds:
        rows = conform(chunk, schema, policy=policy).combine_chunks()
        return rows, rows
    batch = chunk.combine_chunks().to_batches()
    parts = [split_kinds(part) for part in batch]
    numbers = pa.chunked_array([codes for _, codes in parts], pa.int8())
    rows = conform(pa.Table.from_batches([part for part, _ in parts]), schema, numbers, policy).combine_chunks()
    return rows, rows.append_column(ROW_KIND, chunk.column(ROW_KIND))


def _one_bucket(partition: tuple[Plain, ...], hashes: Int32s) -> Int32s:  # noqa: ARG001  # as ``route`` calls it
    return np.zeros(len(hashes), np.int32)


def _shares(rows: pa.Table, schema: TableSchema, count: int, number: int) -> Iterator[tuple[int, np.ndarray | None]]:
    """Yield each share, below ``count``, with the ascending positions of its rows.

    None: all rows.

    ``number`` is the number of the chunk.
    """
    # The client does not know dynamic and postponed buckets: all rows of a partition go to one task,
    # and all rows of the table if keys move between partitions.
    if schema.bucket_mode is BucketMode.KEY_DYNAMIC:
        yield 0, None
        return
    if schema.bucket_mode is BucketMode.BUCKET_UNAWARE:
        yield number % count, None
        return
    small: dict[int, list[np.ndarray]] = {}
    for bucket_rows in route(rows, schema, _one_bucket if schema.core.bucket < 1 else None):
        share = _share_of_bucket(bucket_rows, count)
        if bucket_rows.rows is None or len(bucket_rows.rows) >= thresholds.own_blob_rows:
            yield share, bucket_rows.rows
        else:
            small.setdefault(share, []).append(bucket_rows.rows)
    for share, positions in small.items():
        yield share, np.concatenate(positions)
