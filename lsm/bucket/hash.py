"""Bucket function: hash of the bucket key (Paimon's ``DefaultBucketFunction``).

Murmur3 over the BinaryRow of the key, vectorised over columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from manifest.row.words import RowImages, row_images
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataType
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int32s, UInt32s
from sparkexpr.values.plain_value import plain_array

_SEED = 42
_WORD = 0xFFFFFFFF
_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)


def bucket_hashes(columns: Sequence[Any], types: Sequence[DataType]) -> Int32s:
    """Return the hash of every row as Paimon's int32.

    ``columns`` are the key columns, Arrow arrays of one length.

    Raises:
        UnsupportedType: A column is nested.

    >>> from sparkexpr.values.column_type import Kind
    >>> bucket_hashes([pa.array([0, 1, 42], pa.int32())], [DataType(Kind.INT)]).tolist()
    [-300363099, 1465514398, 907821237]
    """
    count = len(columns[0])
    hashes = np.empty(count, dtype=np.uint32)
    step = thresholds.hash_rows
    for start in range(0, count, step):
        part = [_contiguous(column.slice(start, step)) for column in columns]
        hashes[start : start + step] = _hash_batch(part, types)
    return hashes.view(np.int32)


def _contiguous(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _hash_batch(columns: Sequence[pa.Array], types: Sequence[DataType]) -> UInt32s:
    images = row_images(columns, types)
    if len(columns[0]) == 1:  # numbers of Python take a fifth of the time of arrays of one
        return np.array([_hash_row(images)], np.uint32)
    state = np.full(len(columns[0]), _SEED, dtype=np.uint32)
    for step in images.steps:
        if step.rows is None:
            state = _mix(state, step.words)
        else:
            state[step.rows] = _mix(state[step.rows], step.words)
    return _finish(state, images.sizes.astype(np.uint32))


def _hash_row(images: RowImages) -> int:
    """Return the hash of the only row."""
    state, first, second = _SEED, int(_C1), int(_C2)
    for step in images.steps:
        word = int(step.words[0]) * first & _WORD
        state ^= (word << 15 | word >> 17) * second & _WORD
        state = ((state << 13 | state >> 19) & _WORD) * 5 + 0xE6546B64 & _WORD
    state ^= int(images.sizes[0])
    state = (state ^ state >> 16) * 0x85EBCA6B & _WORD
    state = (state ^ state >> 13) * 0xC2B2AE35 & _WORD
    return state ^ state >> 16


def _rotate(words: UInt32s, bits: int) -> UInt32s:
    return words << np.uint32(bits) | words >> np.uint32(32 - bits)


def _mix(state: UInt32s, words: UInt32s) -> UInt32s:
    return _rotate(state ^ _rotate(words * _C1, 15) * _C2, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _finish(state: UInt32s, sizes: UInt32s) -> UInt32s:
    state = state ^ sizes
    state = (state ^ state >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    state = (state ^ state >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return state ^ state >> np.uint32(16)


def bucket_ids(rows: pa.RecordBatch | pa.Table, schema: TableSchema, buckets: int) -> Int32s:
    """Return the bucket of every row.

    Buckets are 0 to ``buckets`` - 1.

    Uses the table's bucket function. ``rows`` must have the table's Arrow schema.

    >>> from manifest.schema.validation import build_schema
    >>> schema = build_schema("id INT", primary_keys=["id"], options={"bucket": "4"})
    >>> bucket_ids(pa.table({"id": pa.array([0, 1, 2], pa.int32())}), schema, 4).tolist()
    [3, 2, 0]
    """
    columns = [rows.column(name) for name in schema.bucket_keys]
    return _buckets(columns, schema, buckets)


def _buckets(columns: Sequence[Any], schema: TableSchema, buckets: int) -> Int32s:
    types = schema.types_of(schema.bucket_keys)
    if buckets == 1:
        return np.zeros(len(columns[0]), dtype=np.int32)
    if schema.core.bucket_function_type == "mod":
        # Java's floorMod: never negative.
        bucket_of_row: Int32s = np.mod(_integers(columns[0], types[0]), buckets).astype(np.int32)
        return bucket_of_row
    return buckets_of_hashes(bucket_hashes(columns, types), buckets)


def buckets_of_hashes(hashes: Int32s, buckets: int) -> Int32s:
    """Return the bucket of every hash.

    Buckets are 0 to ``buckets`` - 1.

    >>> buckets_of_hashes(np.array([-7, 8], np.int32), 3).tolist()
    [1, 2]
    """
    # Java's remainder has the sign of the hash, like fmod. NumPy's % has not, and would give other buckets.
    bucket_of_hash: Int32s = np.abs(np.fmod(hashes, np.int32(buckets)))
    return bucket_of_hash


def _integers(column: Any, data_type: DataType) -> Any:
    """Return the values of an integer column, null as 0."""
    # A null has zero in its slot of the BinaryRow.
    return np.asarray(pc.fill_null(plain_array(column, data_type.column_type), 0)).astype(np.int64)
