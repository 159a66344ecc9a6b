"""Bucket pruning by equality filters on the bucket key.

A filter on the bucket key matches only in the buckets of its values. A section is a set of files of a bucket whose key ranges
overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fileindex.predicate.tree import Predicate
from lsm.bucket.hash import bucket_ids
from lsm.scan.predicates import bucket_keys
from lsm.schema.evolution import SchemaMapping
from manifest.entry.columns import EntryColumns
from manifest.entry.manifest_blocks import BlockRanges
from manifest.row.columns import RowColumns
from manifest.schema.table_schema import TableSchema
from manifest.store import FileStore
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from sparkexpr.values.arrays import Int64s, Mask
from sparkexpr.values.column_type import FLOATS
from sparkexpr.values.float_order import total_order
from sparkexpr.values.plain_value import literal_array

_FUNCTIONS = frozenset({"default", "mod"})


@dataclass
class BucketPruner:
    """Pruning of manifest entries by bucket.

    ``residual`` returns the filter inside a partition. ``note`` describes the last pruning.
    Each entry's own bucket count is used, so files from before a rescale are pruned correctly. Entries of a schema with
    another bucket-key type are kept.
    """

    store: FileStore
    residual: Callable[[bytes], Predicate]
    note: str = ""
    bucket: int | None = None
    """Only bucket that is wanted, of the buckets that the schema counts."""

    @staticmethod
    def applies(schema: TableSchema) -> bool:
        """Return whether a key tells its bucket."""
        return schema.core.bucket >= 1 and bool(schema.bucket_keys) and schema.core.bucket_function_type in _FUNCTIONS

    def may_match(self, entries: EntryColumns) -> Mask:
        """Return a mask of entries whose bucket can match."""
        keep = np.ones(len(entries), np.bool_)
        schema = self.store.schema
        if not self.applies(schema):
            self.note = "no fixed buckets"
            return keep
        codes, partitions = entries.partition_codes
        schema_ids, totals, buckets = entries.schema_id, entries.total_buckets, entries.bucket
        same_type = _among(schema_ids, list(filter(self._same, np.unique(schema_ids).tolist())))
        if self.bucket is not None:
            keep[same_type & (totals == schema.core.bucket) & (buckets != self.bucket)] = False
        alike: dict[Predicate, list[int]] = {}
        for code, partition in enumerate(partitions):
            alike.setdefault(self.residual(partition), []).append(code)
        tried = 0
        for predicate, members in alike.items():
            keys = self._keys(predicate)
            if keys is None:
                continue
            comparable = same_type & (totals > 0)
            if len(alike) > 1:
                comparable &= np.isin(codes, members)
            for total in np.unique(totals[comparable]).tolist():
                rows = comparable & (totals == total)
                keep[rows] = _among(buckets[rows], np.unique(bucket_ids(keys, schema, total)).tolist())
                tried = max(tried, keys.num_rows)
        self.note = f"{tried} values of the bucket key" if tried else "no equality on every bucket-key column"
        return keep

    def blocks(self, ranges: BlockRanges, predicate: Predicate) -> Mask:
        """Return a mask of blocks with entries that ``wanted`` keeps.

        ``predicate`` must be the filter inside all their partitions.
        """
        keep = np.ones(len(ranges), np.bool_)
        schema = self.store.schema
        if not self.applies(schema):
            return keep
        keys = self._keys(predicate)
        if keys is None and self.bucket is None:
            return keep
        totals, schema_ids = ranges.column("min_total_buckets"), ranges.column("min_schema_id")
        alike = (totals > 0) & (totals == ranges.column("max_total_buckets")) & (schema_ids == ranges.column("max_schema_id"))
        alike &= _among(schema_ids, [schema_id for schema_id in np.unique(schema_ids[alike]).tolist() if self._same(schema_id)])
        for total in np.unique(totals[alike]).tolist():
            rows = alike & (totals == total)
            if keys is not None:
                keep[rows] &= ranges.in_buckets(np.unique(bucket_ids(keys, schema, total)).tolist())[rows]
            if self.bucket is not None and total == schema.core.bucket:
                keep[rows] &= ranges.in_buckets([self.bucket])[rows]
        return keep

    def _same(self, schema_id: int) -> bool:
        """Return whether a schema's files hash the bucket key alike."""
        schema = self.store.schema
        if schema_id == schema.id:
            return True
        mapping = SchemaMapping.of([schema.field(name) for name in schema.bucket_keys], self.store.schemas.get(schema_id).fields, schema_id)
        return all(source is not None and source.type.arrow == mapping.read[name].type.arrow for name, source in mapping.sources.items())

    def _keys(self, predicate: Predicate) -> pa.RecordBatch | None:
        schema = self.store.schema
        keys = bucket_keys(predicate, schema.bucket_keys, schema.column_types)
        if keys is None:
            return None
        columns = [
            literal_array(values, schema.column_types[name])
            for name, values in zip(schema.bucket_keys, zip(*keys, strict=True), strict=True)
        ]
        return pa.record_batch(columns, names=list(schema.bucket_keys))


def _among(values: Int64s, allowed: Sequence[int]) -> Mask:
    """Return a mask of ``values`` that are in ``allowed``."""
    # Fast path: usually one value is wanted.
    mask: Mask = values == allowed[0] if len(allowed) == 1 else np.isin(values, allowed)
    return mask


def key_ranks(entries: EntryColumns, types: Sequence[DataType]) -> tuple[Int64s, Int64s]:
    """Return the ranks of each entry's smallest and greatest key.

    Ranks are over the keys of all entries. Equal keys have equal ranks. Uses Paimon's key order: column by column, null first,
    -0.0 before 0.0, NaN last.

    Raises:
        CorruptFile: A key cannot be decoded.
    """
    sides = []
    try:
        for name in ("_FILE._MIN_KEY", "_FILE._MAX_KEY"):
            spans = entries.columns.spans[name]
            rows = RowColumns.of(entries.payload, spans.start, spans.end, len(types))
            sides.append([rows.field(position, data_type) for position, data_type in enumerate(types)])
    except ValueError as error:
        raise CorruptFile(entries.path_of(0), f"a key cannot be decoded ({error})") from error
    ranks = np.zeros(2 * len(entries), np.int64)
    for data_type, (low, has_low), (high, has_high) in zip(types, *sides, strict=True):
        values = np.concatenate([low, high])
        present = np.concatenate([has_low, has_high])
        _, codes = np.unique(total_order(values) if data_type.kind in FLOATS else values, return_inverse=True)
        codes = np.where(present, codes + 1, 0)
        _, ranks = np.unique(ranks * (codes.max(initial=0) + 1) + codes, return_inverse=True)
    return ranks[: len(entries)], ranks[len(entries) :]


def sections(bucket: Int64s, low: Int64s, high: Int64s) -> Int64s:
    """Return the section number of each key range.

    Numbers follow the key order within ascending buckets. Ranges that overlap, directly or through others, share a section.

    >>> sections(np.zeros(4, np.int64), np.array([0, 20, 5, 30]), np.array([9, 25, 15, 40])).tolist()
    [0, 1, 0, 2]
    """
    order = np.lexsort((high, low, bucket))
    numbers = np.zeros(order.size, np.int64)
    numbers[order] = np.cumsum(section_starts(bucket[order], low[order], high[order])) - 1
    return numbers


def section_starts(bucket: Int64s, low: Int64s, high: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return where sections begin in sorted ranges.

    Ranges must be sorted by bucket, low and high. A section begins where no earlier range of the bucket overlaps.
    """
    starts = np.ones(bucket.size, np.bool_)
    if bucket.size:
        apart = bucket * (int(high.max()) + 1)  # offsets keep the ranges of different buckets apart
        reach = np.maximum.accumulate(high + apart)
        starts[1:] = (bucket[1:] != bucket[:-1]) | (low[1:] + apart[1:] > reach[:-1])
    return starts
