"""Plans of lookups: the splits that can hold some primary keys.

The files of a bucket are planned once and held, with the ranges of their keys. A lookup then finds the files of its keys by the
ranges, without the manifests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fileindex.predicate.tree import ColumnRef, Compare, Op, Predicate, all_of
from lsm.bucket.hash import bucket_ids
from lsm.keys.encoding import one_array
from lsm.keys.key_set import KeySet
from lsm.keys.sorted_keys import Layout, SortedKeys, key_codes
from lsm.scan.bucket_pruner import BucketPruner
from lsm.scan.plan import ScanPlan, Stage
from lsm.scan.splits import DataSplit
from manifest.schema.table_schema import TableSchema
from manifest.store import FileStore
from sparkexpr.values.arrays import AnyArray, Int64s, arrow_array
from sparkexpr.values.column_type import Plain
from sparkexpr.values.plain_value import literal_array, plain_array, plain_values


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """Part of a table whose files are held together.

    ``partition`` has the values of the partition columns in the key. ``bucket`` None: the key does not tell the bucket.
    """

    partition: tuple[Plain, ...]
    bucket: int | None

    @classmethod
    def of(cls, store: FileStore, split: DataSplit) -> BucketPlace:
        """Return the partition and bucket of a split."""
        schema = store.schema
        values = dict(zip(store.partition.names, store.partition.decode(split.partition), strict=True))
        has_bucket = BucketPruner.applies(schema) and split.total_buckets == schema.core.bucket
        return cls(tuple(values[name] for name in _partition_names(schema)), split.bucket if has_bucket else None)

    def predicate(self, schema: TableSchema) -> Predicate:
        """Return the filter of the partition."""
        names = _partition_names(schema)
        return all_of(*(Compare(ColumnRef(name), Op.EQ, value) for name, value in zip(names, self.partition, strict=True)))


@dataclass(frozen=True, slots=True)
class BucketKeys:
    """Keys that belong to one place."""

    place: BucketPlace
    keys: SortedKeys


def keys_by_bucket(keys: KeySet, schema: TableSchema) -> list[BucketKeys]:
    """Return the keys of each bucket.

    >>> import pyarrow as pa
    >>> from manifest.schema.validation import build_schema
    >>> schema = build_schema("id INT", primary_keys=["id"], options={"bucket": "4"})
    >>> parts = keys_by_bucket(KeySet(pa.table({"id": pa.array([2, 0, 1], pa.int32())})), schema)
    >>> [(part.place.bucket, part.keys.columns[0].to_pylist()) for part in parts]
    [(0, [2]), (2, [1]), (3, [0])]
    """
    rows, named = keys.rows, _partition_names(schema)
    columns = [one_array(rows.column(name)) for name in schema.trimmed_primary_keys]
    partitions = [one_array(rows.column(name)) for name in named]
    total = schema.core.bucket
    buckets = keys.derive(("buckets", total), lambda rows: bucket_ids(rows, schema, total)) if BucketPruner.applies(schema) else None
    codes = [array for array in (key_codes(partitions)[0] if named else None, buckets) if array is not None]
    if len(columns[0]) == 1 or not codes:
        groups: Sequence[Any] = [None]
    else:
        numbers = np.zeros(len(columns[0]), np.int64)
        for code in codes:
            _, code_numbers = np.unique(code, return_inverse=True)
            _, numbers = np.unique(numbers * (int(code_numbers.max()) + 1) + code_numbers, return_inverse=True)
        groups = [np.flatnonzero(numbers == number) for number in range(int(numbers.max()) + 1)]
    bucket_keys = []
    for group in groups:
        first_row = 0 if group is None else int(group[0])
        values = tuple(_plain(column.slice(first_row, 1), schema, name) for column, name in zip(partitions, named, strict=True))
        own_columns = columns if group is None else [column.take(arrow_array(group)) for column in columns]
        bucket_keys.append(
            BucketKeys(BucketPlace(values, None if buckets is None else int(buckets[first_row])), SortedKeys.of(own_columns))
        )
    return bucket_keys


@dataclass(frozen=True, eq=False, slots=True)
class HeldBucket:
    """Splits of a bucket, with the key ranges of their files.

    ``other_files`` is the number of the table's files that are not in ``splits``.
    """

    splits: tuple[DataSplit, ...]
    other_files: int
    low: AnyArray
    high: AnyArray
    layout: Layout

    @classmethod
    def of(cls, store: FileStore, plan: ScanPlan) -> HeldBucket:
        """Decode the key ranges of the files of a plan."""
        splits = tuple(plan.splits)
        files = [file for split in splits for file in split.files]
        total = max([stage.kept + stage.dropped for stage in plan.report if stage.name == "partition"], default=0)
        types = [data_type.column_type for data_type in store.schema.key_types]
        bounds = [store.key.decode(row) for file in files for row in (file.min_key, file.max_key)] if store.key is not None else []
        columns = [literal_array([row[position] for row in bounds], column_type) for position, column_type in enumerate(types)]
        codes, layout = key_codes(columns)
        return cls(splits, total - len(files), codes[0::2], codes[1::2], layout)

    def holding(self, keys: SortedKeys) -> list[DataSplit]:
        """Return the files that may have one of the keys, as splits."""
        codes = keys.codes(self.layout)
        hits = np.searchsorted(codes, self.low, "left") < np.searchsorted(codes, self.high, "right")
        splits, start = [], 0
        for split in self.splits:
            end = start + len(split.files)
            file_positions = np.flatnonzero(hits[start:end])
            start = end
            if len(file_positions) == len(split.files):
                splits.append(split)
            elif len(file_positions):
                splits.append(_narrow(split, file_positions))
        return splits


def plan_of_keys(snapshot_id: int, cached_buckets: Sequence[tuple[HeldBucket, SortedKeys]]) -> ScanPlan:
    """Return the plan of keys in some buckets."""
    splits = [split for bucket, keys in cached_buckets for split in bucket.holding(keys)]
    bucket_files = sum(len(bucket.low) for bucket, _ in cached_buckets)
    selected_files = sum(len(split.files) for split in splits)
    total = bucket_files if not cached_buckets else cached_buckets[0][0].other_files + len(cached_buckets[0][0].low)
    size = sum(split.file_size for split in splits)
    report = (
        Stage("bucket", bucket_files, max(0, total - bucket_files), note=f"{len(cached_buckets)} held buckets"),
        Stage("key range", selected_files, bucket_files - selected_files, size),
        Stage("splits", len(splits), 0, size),
    )
    return ScanPlan(snapshot_id, tuple(splits), report)


def _narrow(split: DataSplit, rows: Int64s) -> DataSplit:
    positions = rows.tolist()
    files = tuple([split.files[row] for row in positions])
    vectors = None if split.deletion_files is None else tuple([split.deletion_files[row] for row in positions])
    return split.model_copy(update={"files": files, "deletion_files": vectors})


def _partition_names(schema: TableSchema) -> list[str]:
    return [name for name in schema.partition_keys if name in schema.primary_keys]


def _plain(column: Any, schema: TableSchema, name: str) -> Plain:
    data_type = schema.column_types[name]
    return plain_values(plain_array(column, data_type), data_type)[0]
