"""Keys along space-filling curves.

Rows near each other in several columns get keys near each other. Values become ranks by quantiles of a sample, so that each column has
equal weight, whatever its type and range. The ranks of a row are a grid cell. Its key is the position of the cell on a Z-order or Hilbert curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int64s, UInt64s
from lsm.keys.encoding import WordColumn, one_array
from lsm.keys.sort import sort_rows

_KEY_BITS = 64
_MOST_BITS = 16


def bits_per_column(columns: int) -> int:
    """Return the bits of a 64-bit key for each column.

    >>> bits_per_column(2), bits_per_column(8)
    (16, 8)
    """
    return min(_MOST_BITS, _KEY_BITS // columns)


@dataclass(frozen=True)
class Quantiles:
    """Quantile boundaries of a column.

    They cut the column into about ``2 ** bits`` parts of equal row count. Nulls come first. Any ordered type is allowed.
    """

    bounds: Any
    bits: int

    @classmethod
    def of(cls, sample: Any, bits: int) -> Quantiles:
        """Return the quantiles of a sample (Array or ChunkedArray).

        >>> Quantiles.of(pa.array([10, 20, 30, 40]), 1).ranks(pa.array([5, 10, 29, 31, None])).tolist()
        [0, 0, 0, 1, 0]
        """
        values = one_array(sample)
        parts = 1 << bits
        ordered = values.take(pa.array(sort_rows([WordColumn.of(values)], length=len(values)).order))
        places = np.unique(np.arange(1, parts) * len(ordered) // parts)
        return cls(ordered.take(pa.array(places)) if len(ordered) else ordered, bits)

    def ranks(self, column: Any) -> UInt64s:
        """Return the number of boundaries below each value.

        Equal values have equal ranks.
        """
        values = one_array(column)
        both = pa.concat_arrays([values, self.bounds.cast(values.type)])
        done = sort_rows([WordColumn.of(both)], length=len(both))
        is_bound = done.order >= len(values)
        before: Int64s = np.cumsum(is_bound) - is_bound
        ranks = np.zeros(len(both), np.uint64)
        sizes = np.diff(done.starts, append=len(both))
        ranks[done.order] = np.repeat(before[done.starts], sizes)
        found: UInt64s = ranks[: len(values)]
        return found


def z_order(ranks: Sequence[UInt64s], bits: int) -> UInt64s:
    """Interleave the bits of all ranks, first rank leading.

    >>> z_order([np.array([0b11], np.uint64), np.array([0b00], np.uint64)], 2).tolist() == [0b1010]
    True
    """
    key = np.zeros(len(ranks[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            key = (key << np.uint64(1)) | ((rank >> np.uint64(bit)) & np.uint64(1))
    return key


def hilbert(ranks: Sequence[UInt64s], bits: int) -> UInt64s:
    """Return the position of each cell on the Hilbert curve.

    Consecutive positions are adjacent cells. John Skilling, "Programming the Hilbert curve" (2004).

    >>> hilbert([np.array([0, 0, 1, 1], np.uint64), np.array([0, 1, 1, 0], np.uint64)], 1).tolist()
    [0, 1, 2, 3]
    """
    # Undo the rotations of the curve, from the coarsest cells to the finest.
    axes = [rank.astype(np.uint64, copy=True) for rank in ranks]
    for bit in range(bits - 1, 0, -1):
        lower = np.uint64((1 << bit) - 1)
        for axis in range(len(axes)):
            is_set = _bit(axes[axis], bit)
            exchanged = np.where(is_set, np.uint64(0), (axes[0] ^ axes[axis]) & lower)
            axes[0] ^= np.where(is_set, lower, exchanged)
            axes[axis] ^= exchanged
    for axis in range(1, len(axes)):
        axes[axis] ^= axes[axis - 1]
    turned = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        turned ^= np.where(_bit(axes[-1], bit), np.uint64((1 << bit) - 1), np.uint64(0))
    return z_order([axis ^ turned for axis in axes], bits)


def _bit(words: UInt64s, bit: int) -> Any:
    return (words >> np.uint64(bit)) & np.uint64(1) == 1


def sample_rows(seen: int, count: int, step: int) -> Int64s:
    """Return the sampled positions of the next ``count`` rows.

    Every ``step``-th row is sampled. ``seen`` is the number of rows before these.

    >>> sample_rows(3, 5, 4).tolist()
    [1]
    """
    return np.arange(-seen % step, count, step)


__all__ = ["Quantiles", "bits_per_column", "hilbert", "sample_rows", "z_order"]
