"""Routing of table rows to partitions and buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lsm.bucket.hash import bucket_hashes, bucket_ids
from lsm.keys.encoding import one_array
from manifest.schema.table_schema import TableSchema
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import AnyArray, Int32s, Int64s
from sparkexpr.values.column_type import Plain
from sparkexpr.values.plain_value import from_scalar

UNAWARE_BUCKET = 0
Each: TypeAlias = Callable[[Callable[[Any], Int32s], Sequence[Any]], Iterable[Int32s]]
Assign: TypeAlias = Callable[[tuple[Plain, ...], Int32s], Int32s]
"""Returns the buckets of keys of one partition, given by their hashes."""


@dataclass(frozen=True, slots=True)
class BucketRows:
    """Rows of a table that go to one bucket.

    In order of arrival.

    ``rows`` None means all rows.
    """

    partition: tuple[Plain, ...]
    bucket: int
    rows: Int64s | None


def route(table: Any, schema: TableSchema, assign: Assign | None = None, each: Each = map) -> list[BucketRows]:
    """Split a conforming table by partition and bucket.

    Each column must be in one chunk. ``assign`` returns dynamic buckets. ``each`` is a ``map`` over the parts of a large table, possibly
    in threads, that keeps the order. Cost: a hash of the bucket key, a dictionary of each partition column, and one stable sort of small integers.

    >>> import pyarrow as pa
    >>> from manifest.schema.validation import build_schema
    >>> schema = build_schema("id INT, p STRING", partition_keys=["p"])
    >>> table = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "p": ["x", "y", "x"]})
    >>> [(one.partition, one.bucket, one.rows.tolist()) for one in route(table, schema)]
    [(('x',), 0, [0, 2]), (('y',), 0, [1])]
    """
    if not table.num_rows:
        return []
    codes, partitions = row_partitions(table, schema)
    if assign is not None:
        dynamic_buckets = _assign_dynamic(table, schema, codes, partitions, assign)
        return group_by_bucket(codes, dynamic_buckets, partitions, int(dynamic_buckets.max()) + 1)
    buckets = max(1, schema.core.bucket)
    if len(partitions) == buckets == 1:
        return [BucketRows(partitions[0], UNAWARE_BUCKET, None)]
    return group_by_bucket(codes, _bucket_ids(table, schema, buckets, each) if buckets > 1 else UNAWARE_BUCKET, partitions, buckets)


def group_by_bucket(codes: Int64s, buckets: Int32s | Int64s | int, partitions: Sequence[tuple[Plain, ...]], width: int) -> list[BucketRows]:
    """Group rows by their known partition and bucket.

    ``codes`` are indices into ``partitions``. Buckets are less than ``width``.
    """
    return [
        BucketRows(partitions[combined_code // width], combined_code % width, rows)
        for combined_code, rows in _groups(codes * width + buckets, len(partitions) * width)
    ]


def _bucket_ids(table: Any, schema: TableSchema, buckets: int, each: Each) -> Int32s:
    step = thresholds.route_part_rows
    parts = [table.slice(start, step) for start in range(0, table.num_rows, step)]
    return np.concatenate(list(each(lambda part: bucket_ids(part, schema, buckets), parts)))


def _groups(codes: Int64s, groups: int) -> Iterator[tuple[int, Int64s | None]]:
    """Yield each code and its rows in order of arrival.

    None as rows means all rows.
    """
    small = codes.astype(np.uint16 if groups <= 1 << 16 else np.uint64)
    kind = np.int32 if len(codes) <= np.iinfo(np.int32).max else np.int64  # small integers, because they are held until the write ends
    order: AnyArray = np.argsort(small, kind="stable").astype(kind)
    ends = np.cumsum(np.bincount(codes, minlength=groups))
    start = 0
    for code, end in enumerate(ends.tolist()):
        if end > start:
            yield code, None if end - start == len(codes) else order[start:end]
        start = end


def _assign_dynamic(table: Any, schema: TableSchema, codes: Int64s, partitions: Sequence[tuple[Plain, ...]], assign: Assign) -> Int64s:
    """Return the dynamic bucket of every row."""
    keys = schema.trimmed_primary_keys
    hashes = bucket_hashes([table.column(name) for name in keys], schema.types_of(keys))
    buckets = np.empty(table.num_rows, np.int64)
    for code, rows in _groups(codes, len(partitions)):
        partition_rows = slice(None) if rows is None else rows
        buckets[partition_rows] = assign(partitions[code], hashes[partition_rows])
    return buckets


def row_partitions(table: Any, schema: TableSchema) -> tuple[Int64s, list[tuple[Plain, ...]]]:
    """Return a partition number per row, and the partitions."""
    codes = np.zeros(table.num_rows, np.int64)
    partitions: list[tuple[Plain, ...]] = [()]
    for name in schema.partition_keys:
        encoded = one_array(table.column(name)).dictionary_encode(null_encoding="encode")
        values = [from_scalar(value, schema.column_types[name]) for value in encoded.dictionary]
        codes = codes * len(values) + encoded.indices.to_numpy()
        distinct_codes, codes = np.unique(codes, return_inverse=True)
        partitions = [(*partitions[code // len(values)], values[code % len(values)]) for code in distinct_codes.tolist()]
    return codes, partitions


def describe_bucket(partition: Sequence[Plain], keys: Sequence[str]) -> str:
    """Format a partition for messages: ``day=3/city='Oslo'``.

    Empty for an unpartitioned table.

    >>> describe_bucket((3, None), ("day", "hour"))
    'day=3/hour=None'
    """
    return "/".join(f"{key}={value!r}" for key, value in zip(keys, partition, strict=True))
