"""Which blocks of a manifest can hold a file that a filter wants, by the ranges in the manifest's header."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fileindex.base.arrays import Mask
from fileindex.base.thresholds import thresholds
from fileindex.predicate.tree import TRUE, ColumnRef, Predicate
from lsm.scan.bucket_pruner import BucketPruner
from lsm.scan.predicates import only_columns
from manifest.entry.block_ranges import BlockRanges
from manifest.entry.bounds import BoundsColumn, may_match_each
from manifest.store import FileStore


@dataclass(frozen=True)
class BlockPruner:
    """Prunes blocks by what all versions of a key agree on: partition, bucket and the first key column; and by level.

    ``residuals`` gives the filter inside each of some partitions, ``wants`` whether anything of one is wanted.
    """

    store: FileStore
    residuals: Callable[[Sequence[bytes]], list[Predicate]]
    wants: Callable[[bytes], bool]
    min_level: int = 0

    def __call__(self, ranges: BlockRanges) -> Mask:
        """Blocks that may hold a wanted entry."""
        conditions = self.residuals(ranges.partitions)
        wanted = [self.wants(partition) for partition in ranges.partitions]
        kept: Mask = ranges.in_partitions(wanted) & (ranges.column("max_level") >= self.min_level)
        inside = {condition for condition, hit in zip(conditions, wanted, strict=True) if hit}
        if TRUE in inside or not 0 < len(inside) <= thresholds().block_residuals:
            return kept
        found = np.zeros(len(ranges), np.bool_)
        buckets = BucketPruner(self.store, lambda partition: self.residuals([partition])[0])
        for residual in inside:
            found |= buckets.blocks(ranges, residual) & self._by_key(ranges, residual)
        return kept & found

    def _by_key(self, ranges: BlockRanges, residual: Predicate) -> Mask:
        """Blocks of which a file can hold a wanted key, by the first column of the primary key."""
        keys = self.store.range_policy.key
        everything: Mask = np.ones(len(ranges), np.bool_)
        if not keys:
            return everything
        name = self.store.schema.trimmed_primary_keys[0]
        predicate = only_columns(residual, {name})
        known = None if predicate is None else ranges.key_bounds(keys[0][0])
        if predicate is None or known is None:
            return everything

        def bounds(column: ColumnRef) -> BoundsColumn | None:
            return known if column.name == name and column.key is None else None

        return may_match_each(predicate, bounds, self.store.schema.column_types, len(ranges))


__all__ = ["BlockPruner"]
