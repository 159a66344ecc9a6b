"""Key ranges of many files as ranks, and their sections.

A section is a set of files whose key ranges overlap.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fileindex.base.arrays import Int64s
from fileindex.base.column_type import FLOATS
from fileindex.base.errors import CorruptFile
from fileindex.base.float_order import total_order
from manifest.entry.columns import EntryColumns
from manifest.row.columns import RowColumns
from manifest.types.data_type import DataType


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


__all__ = ["key_ranks", "section_starts", "sections"]
