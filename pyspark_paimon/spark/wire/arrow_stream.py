"""Rows as Arrow IPC streams in a binary column: how they travel between a client's process and Spark's tasks.

Spark would turn local rows into its own, one by one, and back; as zstd-compressed streams they travel an order of magnitude
faster, and keep types that Spark lacks. A frame of blobs has the columns ``task``, ``ordinal`` and ``blob``: sorted by
ordinal within a task, rows keep their order.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int32s
from fileindex.base.column_type import Plain
from fileindex.base.thresholds import thresholds
from lsm.arrow.row_kind import ROW_KIND
from lsm.bucket.router import Share, route
from lsm.schema.conform_input import conform
from manifest.schema.table_schema import BucketMode, TableSchema
from pyspark_paimon.request.inputs import split_kinds
from pyspark_paimon.scheduling.task_packing import balanced, task_count

TASK, ORDINAL, BLOB = "task", "ordinal", "blob"
FRAME = pa.schema([(TASK, pa.int32()), (ORDINAL, pa.int32()), (BLOB, pa.binary())])


def blob_frame(reader: pa.RecordBatchReader, schema: TableSchema, cores: int, *, kinds: bool) -> pa.Table:
    """The rows of ``reader``, checked against ``schema``, as a frame of blobs; a bucket's rows all go to one task.

    Tasks are numbered from 0, as many as the rows are worth to a Spark of ``cores``. How many that is shows in the end, so rows are shared
    out among as many as there could be, which are put together then. A chunk of the rows at a time is in memory as it came, all of them
    compressed. Raises ``SchemaMismatch`` and ``NullInKey`` as a local write does.
    """
    most = task_count(sys.maxsize, cores)
    shares: list[int] = []
    blobs: list[bytes] = []
    sizes = [0] * most
    for number, chunk in enumerate(_chunks(reader)):
        rows, codes = _checked(chunk, schema, kinds=kinds)
        for share, positions in _shares(rows, schema, most, number):
            part = codes if positions is None else codes.take(positions)
            sizes[share] += part.nbytes
            step = max(1, min(thresholds.wire_blob_rows, thresholds.wire_blob_bytes * part.num_rows // max(1, part.nbytes)))
            for start in range(0, part.num_rows, step):
                shares.append(share)
                blobs.append(encoded(part.slice(start, step)))
    used = sorted(set(shares))
    tasks = min(max(1, len(used)), task_count(sum(sizes), cores))
    task_of_share = dict(zip(used, balanced([sizes[share] for share in used], tasks), strict=True))
    tasks_of_blobs = pa.array([task_of_share[share] for share in shares], pa.int32())
    return pa.table([tasks_of_blobs, pa.array(range(len(blobs)), pa.int32()), pa.array(blobs, pa.binary())], schema=FRAME)


def encoded(rows: pa.Table) -> bytes:
    """A compressed IPC stream of ``rows``.

    >>> [batch.to_pydict() for batch in batches_of(encoded(pa.table({"id": [1, 2]})))]
    [{'id': [1, 2]}]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def batches_of(blob: bytes | pa.Buffer) -> Iterator[pa.RecordBatch]:
    """The batches of a stream."""
    with pa.ipc.open_stream(blob) as stream:
        yield from stream


def rows_of_blobs(frame: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in the blobs of a frame's batch, in its order."""
    for blob in frame.column(BLOB):
        yield from batches_of(blob.as_buffer())


def _home(share: Share, count: int) -> int:
    """Which of ``count`` gets a bucket; neighbouring buckets of a partition go to different ones."""
    where = zlib.crc32(repr(share.partition).encode()) if share.partition else 0
    return (where + share.bucket) % count


def _chunks(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Tables of about ``wire_chunk_rows`` or ``wire_chunk_bytes``; a large batch, as of one Arrow table, is cut."""
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


def _checked(chunk: pa.Table, schema: TableSchema, *, kinds: bool) -> tuple[pa.Table, pa.Table]:
    """The rows as the table's own, and the same with their kinds, which travel along."""
    if not kinds:
        rows = conform(chunk, schema).combine_chunks()
        return rows, rows
    batch = chunk.combine_chunks().to_batches()
    parts = [split_kinds(part) for part in batch]
    numbers = pa.chunked_array([codes for _, codes in parts], pa.int8())
    rows = conform(pa.Table.from_batches([part for part, _ in parts]), schema, numbers).combine_chunks()
    return rows, rows.append_column(ROW_KIND, chunk.column(ROW_KIND))


def _one_bucket(partition: tuple[Plain, ...], hashes: Int32s) -> Int32s:  # noqa: ARG001  # as ``route`` calls it
    return np.zeros(len(hashes), np.int32)


def _shares(rows: pa.Table, schema: TableSchema, count: int, number: int) -> Iterator[tuple[int, np.ndarray | None]]:
    """(number below ``count``, positions of its rows in their order); None for all rows. Without buckets any will do.

    Which dynamic or postponed bucket a key has is not known here: all buckets of a partition go to one task, and all rows where keys cross partitions.
    """
    if schema.bucket_mode is BucketMode.KEY_DYNAMIC:
        yield 0, None
        return
    if schema.bucket_mode is BucketMode.BUCKET_UNAWARE:
        yield number % count, None
        return
    small: dict[int, list[np.ndarray]] = {}
    for share in route(rows, schema, _one_bucket if schema.core.bucket < 1 else None):
        home = _home(share, count)
        if share.rows is None or len(share.rows) >= thresholds.own_blob_rows:
            yield home, share.rows
        else:
            small.setdefault(home, []).append(share.rows)
    for home, positions in small.items():
        yield home, np.concatenate(positions)


__all__ = ["BLOB", "FRAME", "ORDINAL", "TASK", "batches_of", "blob_frame", "encoded", "rows_of_blobs"]
