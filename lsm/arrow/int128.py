"""Arrays of 128-bit integers, for sums of wide decimals.

Each value has two words. Overflow of the type's range can be detected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int64s, Mask, UInt64s

_LOW = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Int128:
    """128-bit integers with ``high`` (int64) and ``low`` (uint64) words.

    >>> values = Int128.of(pa.array(["1.5", "-0.5"], pa.string()).cast(pa.decimal128(38, 1)))
    >>> values.plus(values.negated()).to_arrow(pa.decimal128(38, 1)).to_pylist()
    [Decimal('0.0'), Decimal('0.0')]
    """

    high: Int64s
    low: UInt64s

    @classmethod
    def of(cls, array: Any) -> Int128:
        """Return the unscaled values of a decimal128 array.

        The values of nulls are arbitrary.
        """
        words = np.frombuffer(array.buffers()[1], "<i8")[array.offset * 2 :][: len(array) * 2]
        return cls(words[1::2].astype(np.int64), words[0::2].copy().view(np.uint64))

    @classmethod
    def zeros(cls, count: int) -> Int128:
        """Return ``count`` zeros."""
        return cls(np.zeros(count, np.int64), np.zeros(count, np.uint64))

    def __getitem__(self, at: Any) -> Int128:
        return Int128(self.high[at], self.low[at])

    def __setitem__(self, at: Any, values: Int128) -> None:
        self.high[at], self.low[at] = values.high, values.low

    def plus(self, other: Int128) -> Int128:
        """Return the sums, modulo 2^128."""
        low = self.low + other.low
        return Int128(self.high + other.high + (low < self.low).astype(np.int64), low)

    def negated(self) -> Int128:
        """Return the negated values."""
        low = ~self.low + np.uint64(1)
        return Int128(~self.high + (low == 0).astype(np.int64), low)

    def negated_where(self, mask: Mask) -> Int128:
        """Return the values, negated where ``mask`` is True."""
        other = self.negated()
        return Int128(np.where(mask, other.high, self.high), np.where(mask, other.low, self.low))

    def beyond(self, precision: int) -> Mask:
        """Return which values have more than ``precision`` digits."""
        size = self.negated_where(self.high < 0)
        limit = 10**precision
        high, low = np.int64(limit >> 64), np.uint64(limit & _LOW)
        found: Mask = (size.high < 0) | (size.high > high) | ((size.high == high) & (size.low >= low))
        return found

    def to_arrow(self, kind: Any) -> Any:
        """Return a decimal128 array."""
        words = np.empty(2 * len(self.high), np.int64)
        words[1::2], words[0::2] = self.high, self.low.view(np.int64)
        return pa.Array.from_buffers(kind, len(self.high), [None, pa.py_buffer(words)])


__all__ = ["Int128"]
