"""The order of entries in manifests that are rewritten: what plans and commits ask for together stands together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fileindex.base.arrays import Int64s
from fileindex.base.errors import PaimonError
from manifest.entry.bounds import key_bounds
from manifest.entry.columns import EntryColumns
from manifest.stats.partition_stats import PartitionType
from manifest.types.data_type import DataType


def clustered(entries: EntryColumns, partition: PartitionType, keys: Sequence[tuple[int, DataType]]) -> EntryColumns:
    """``entries`` by partition, bucket and first key (``keys``: ids and types; () for a table without a primary key).

    The partition comes first, for most filters and all commits name one; then the bucket, which an equality on the key gives, and
    within which every range of keys is narrow. Entries that agree stay in order.
    """
    codes, known = entries.partition_codes
    try:
        order = sorted(range(len(known)), key=lambda code: partition.order(known[code]))
        ranks = np.empty(len(known), np.int64)
        ranks[order] = np.arange(len(known))
        return entries.select(np.lexsort((*_first_keys(entries, keys), entries.bucket, ranks[codes])))
    except (PaimonError, ValueError):  # who reads the entries will name what cannot be decoded
        return entries


def _first_keys(entries: EntryColumns, keys: Sequence[tuple[int, DataType]]) -> list[Int64s]:
    """The least first key of every file, as numbers of the same order."""
    if not keys:
        return []
    names = [str(field_id) for field_id, _ in keys]
    low = key_bounds(entries, names, [data_type for _, data_type in keys], names[:1])[names[0]].low
    if low.dtype != object:
        return [low]
    _, ranks = np.unique(low, return_inverse=True)
    return [ranks]


__all__ = ["clustered"]
