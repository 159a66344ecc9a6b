"""Splits from the files of all buckets.

Paimon's ``MergeTreeSplitGenerator`` and ``AppendOnlySplitGenerator``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lsm.scan.bucket_pruner import section_starts
from lsm.scan.splits import pack
from manifest.entry.columns import EntryColumns
from sparkexpr.values.arrays import Indices, Int64s, Mask

Ranges: TypeAlias = Callable[[EntryColumns], tuple[Int64s, Int64s]]
"""Returns the smallest and greatest value of every entry, as numbers."""


@dataclass(frozen=True, slots=True)
class WeightedFiles:
    """Entries of one bucket for one reader.

    ``raw_convertible`` is True if they need no merge.
    """

    rows: Indices
    raw_convertible: bool


def file_groups(
    entries: EntryColumns, ranges: Ranges | None, target: int, open_cost: int, *, one_version: bool = False
) -> list[WeightedFiles]:
    """Group files of each bucket into about ``target`` bytes.

    Groups consist of single files if no key has two versions, otherwise of whole sections.

    Args:
        entries: Visible files.
        ranges: Returns key or row id ranges of entries. Files with overlapping ranges stay together. None: files are independent.
        target: Size of a group in bytes.
        open_cost: Minimum bytes counted for a file or section.
        one_version: Files above level 0 never hold two visible versions of a key (deletion vectors, first-row).
    """
    if not len(entries):
        return []
    buckets = entries.bucket_numbers
    clean = entries.delete_row_count <= 0
    alone = _are_independent(entries, buckets, clean, one_version=one_version)[buckets] if ranges else np.ones(len(entries), np.bool_)
    low = high = np.zeros(len(entries), np.int64)
    if ranges and not alone.all():
        low, high = np.zeros(len(entries), np.int64), np.zeros(len(entries), np.int64)
        merging = ~alone
        low[merging], high[merging] = ranges(entries.select(merging))
    order = np.lexsort((high, low, buckets))  # stable: independent files keep their order
    begins = alone[order] | section_starts(buckets[order], low[order], high[order])
    return list(
        _pack(order, buckets[order], begins, entries.file_size[order], alone=alone[order], clean=clean[order], sizes=(target, open_cost))
    )


def _are_independent(entries: EntryColumns, buckets: Int64s, clean: Mask, *, one_version: bool) -> Mask:
    """Return for each bucket whether its files are independent."""
    count = int(buckets.max()) + 1
    levels = entries.level
    deepest, shallowest = np.zeros(count, np.int64), np.full(count, np.iinfo(np.int64).max)
    np.maximum.at(deepest, buckets, levels)
    np.minimum.at(shallowest, buckets, levels)
    merging = np.bincount(buckets, ~clean | (levels == 0), count) > 0
    independent: Mask = ~merging & (one_version | (deepest == shallowest))
    return independent


def _pack(
    order: Indices, buckets: Int64s, begins: Mask, file_sizes: Int64s, *, alone: Mask, clean: Mask, sizes: tuple[int, int]
) -> Iterator[WeightedFiles]:
    """Fill groups with units, one bucket after the other.

    Units are files or sections. They begin where ``begins`` is True.
    """
    target, open_cost = sizes
    units = np.flatnonzero(begins)
    weights = np.maximum(np.add.reduceat(file_sizes, units), open_cost)
    firsts = np.flatnonzero(np.diff(buckets[units], prepend=-1))
    totals = np.add.reduceat(weights, firsts)
    unit_starts, unit_weights = [*units.tolist(), order.size], weights.tolist()
    bounds = zip(firsts.tolist(), [*firsts[1:].tolist(), units.size], totals.tolist(), strict=True)
    for first, last, total in bounds:
        single_bin = [range(first, last)]
        bins: Sequence[Sequence[int]] = single_bin if total <= target else pack(range(first, last), unit_weights.__getitem__, target)
        for members in bins:
            group_slice = slice(unit_starts[members[0]], unit_starts[members[-1] + 1])
            rows = order[group_slice]
            yield WeightedFiles(rows, bool(alone[group_slice].all() or (rows.size == 1 and clean[group_slice][0])))
