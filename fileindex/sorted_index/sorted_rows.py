"""Rows of a column in the order of an index: by value, then by ordinal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fileindex.keys.group_by import ColumnRows
from fileindex.sorted_index.key_codec import codec_of
from sparkexpr.values.arrays import Int64s, UInt32s
from sparkexpr.values.column_type import ColumnType


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Distinct ascending values with their ordinals.

    ``counts`` are the ordinals of each value. They ascend inside a value.
    """

    values: Any
    counts: Int64s
    ordinals: UInt32s
    null_ordinals: UInt32s


def sort_rows(chunks: Iterable[Any], column_type: ColumnType, first_ordinal: int = 0) -> SortedRows:
    """Sort the rows of a column in memory.

    Args:
        chunks: Arrow arrays of the column, in row order.
        column_type: Type of the column.
        first_ordinal: Ordinal of the first row.

    >>> import pyarrow as pa
    >>> rows = sort_rows([pa.array([7, None, 7, -2], pa.int32())], ColumnType("INT"))
    >>> rows.values.to_pylist(), rows.counts.tolist(), rows.ordinals.tolist(), rows.null_ordinals.tolist()
    ([-2, 7], [1, 2], [3, 0, 2], [1])
    """
    codec = codec_of(column_type)
    rows = ColumnRows(codec.key_type)
    for chunk in chunks:
        rows.append(codec.physical(chunk))
    grouped = rows.group()
    shift = np.uint32(first_ordinal)
    return SortedRows(codec.values(grouped.keys), np.diff(grouped.starts), grouped.rows + shift, grouped.null_rows + shift)
