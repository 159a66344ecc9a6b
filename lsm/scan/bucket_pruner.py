"""Bucket pruning by equality filters on the bucket key.

Such a filter matches only in the buckets of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int64s, Mask
from fileindex.base.plain_value import literal_array
from fileindex.predicate.tree import Predicate
from lsm.bucket.hash import bucket_ids
from lsm.scan.predicates import bucket_keys
from lsm.schema.evolution import SchemaMapping
from manifest.entry.block_ranges import BlockRanges
from manifest.entry.columns import EntryColumns
from manifest.store import FileStore

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

    def wanted(self, entries: EntryColumns) -> Mask:
        """Return a mask of entries whose bucket can match."""
        keep = np.ones(len(entries), np.bool_)
        schema = self.store.schema
        if schema.core.bucket < 1 or not schema.bucket_keys or schema.core.bucket_function_type not in _FUNCTIONS:
            self.note = "no fixed buckets"
            return keep
        codes, partitions = entries.partition_codes
        schema_ids, totals, buckets = entries.schema_id, entries.total_buckets, entries.bucket
        same_type = _among(schema_ids, list(filter(self._same, np.unique(schema_ids).tolist())))
        alike: dict[Predicate, list[int]] = {}
        for code, partition in enumerate(partitions):
            alike.setdefault(self.residual(partition), []).append(code)
        tried = 0
        for predicate, members in alike.items():
            keys = self._keys(predicate)
            if keys is None:
                continue
            inside = same_type & (totals > 0)
            if len(alike) > 1:
                inside &= np.isin(codes, members)
            for total in np.unique(totals[inside]).tolist():
                rows = inside & (totals == total)
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
        if schema.core.bucket < 1 or not schema.bucket_keys or schema.core.bucket_function_type not in _FUNCTIONS:
            return keep
        keys = self._keys(predicate)
        if keys is None:
            return keep
        totals, schema_ids = ranges.column("min_total_buckets"), ranges.column("min_schema_id")
        alike = (totals > 0) & (totals == ranges.column("max_total_buckets")) & (schema_ids == ranges.column("max_schema_id"))
        alike &= _among(schema_ids, [schema_id for schema_id in np.unique(schema_ids[alike]).tolist() if self._same(schema_id)])
        for total in np.unique(totals[alike]).tolist():
            rows = alike & (totals == total)
            keep[rows] = ranges.in_buckets(np.unique(bucket_ids(keys, schema, total)).tolist())[rows]
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


def _among(values: Int64s, wanted: Sequence[int]) -> Mask:
    """Return a mask of ``values`` that are in ``wanted``."""
    # Fast path: usually one value is wanted.
    found: Mask = values == wanted[0] if len(wanted) == 1 else np.isin(values, wanted)
    return found


__all__ = ["BucketPruner"]
