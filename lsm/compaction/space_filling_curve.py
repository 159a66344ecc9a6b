"""Keys along space-filling curves: rows that are near each other in several columns get keys that are near each other.

A column's values become ranks, by quantiles of a sample, so that each column has an equal say whatever its type and range. The
ranks of a row are cells of a grid; its key is the cell's place on a Z-order or a Hilbert curve.
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
    """How many bits of a 64-bit key each of so many columns gets.

    >>> bits_per_column(2), bits_per_column(8)
    (16, 8)
    """
    return min(_MOST_BITS, _KEY_BITS // columns)


@dataclass(frozen=True)
class Quantiles:
    """Boundaries that cut a column into about ``2 ** bits`` parts with equally many rows; nulls first, any ordered type."""

    bounds: Any
    bits: int

    @classmethod
    def of(cls, sample: Any, bits: int) -> Quantiles:
        """Quantiles of a sample (Array or ChunkedArray).

        >>> Quantiles.of(pa.array([10, 20, 30, 40]), 1).ranks(pa.array([5, 10, 29, 31, None])).tolist()
        [0, 0, 0, 1, 0]
        """
        values = one_array(sample)
        parts = 1 << bits
        ordered = values.take(pa.array(sort_rows([WordColumn.of(values)], length=len(values)).order))
        places = np.unique(np.arange(1, parts) * len(ordered) // parts)
        return cls(ordered.take(pa.array(places)) if len(ordered) else ordered, bits)

    def ranks(self, column: Any) -> UInt64s:
        """Of each value the number of boundaries below it; equal values have equal ranks."""
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
    """The bits of all ranks interleaved, those of the first one leading.

    >>> z_order([np.array([0b11], np.uint64), np.array([0b00], np.uint64)], 2).tolist() == [0b1010]
    True
    """
    key = np.zeros(len(ranks[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            key = (key << np.uint64(1)) | ((rank >> np.uint64(bit)) & np.uint64(1))
    return key


def hilbert(ranks: Sequence[UInt64s], bits: int) -> UInt64s:
    """The place of each cell on the Hilbert curve, on which consecutive places are neighbouring cells.

    John Skilling, "Programming the Hilbert curve" (2004): undo the turns of the curve from the coarsest cells to the finest.

    >>> hilbert([np.array([0, 0, 1, 1], np.uint64), np.array([0, 1, 1, 0], np.uint64)], 1).tolist()
    [0, 1, 2, 3]
    """
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
    """Of ``count`` rows that follow ``seen`` others, the positions that a sample of every ``step``-th row takes.

    >>> sample_rows(3, 5, 4).tolist()
    [1]
    """
    return np.arange(-seen % step, count, step)


__all__ = ["Quantiles", "bits_per_column", "hilbert", "sample_rows", "z_order"]
