"""Bit-sliced numbers of rows, compared by O'Neil's algorithm.

Slice ``i`` is the set of rows whose number has bit ``i``.
"""

from __future__ import annotations

from collections.abc import Callable

from pyroaring import BitMap


class BitSlices:
    """Rows with a number each.

    Args:
        existence: The rows that have a number.
        count: Number of slices. No number has more bits.
        read: Function that returns slice ``i``. It is called at most once for each slice that a comparison needs.

    >>> slices = BitSlices(BitMap([0, 1, 5]), 2, [BitMap([1, 5]), BitMap([5])].__getitem__)  # 0, 1, 3
    >>> slices.equal(1), slices.below(3)
    (BitMap([1]), BitMap([0, 1]))
    """

    def __init__(self, existence: BitMap, count: int, read: Callable[[int], BitMap]) -> None:
        self.existence = existence
        self._count = count
        self._read = read
        self._slices: dict[int, BitMap] = {}

    def equal(self, number: int) -> BitMap:
        """Return the rows whose number equals ``number``."""
        if number < 0 or number.bit_length() > self._count:
            return BitMap()
        equal = self.existence
        for bit in reversed(range(self._count)):
            if not equal:
                break
            equal = equal & self._slice(bit) if number >> bit & 1 else equal - self._slice(bit)
        return equal

    def below(self, number: int) -> BitMap:
        """Return the rows whose number is less than ``number``."""
        if number <= 0:
            return BitMap()
        if number.bit_length() > self._count:
            return self.existence
        less, equal = BitMap(), self.existence
        lowest = (number & -number).bit_length() - 1  # lower slices do not matter
        for bit in reversed(range(lowest, self._count)):
            if not equal:
                break
            rows = self._slice(bit)
            if number >> bit & 1:
                less |= equal - rows
                equal = equal & rows
            else:
                equal = equal - rows
        return less

    def top_k(self, k: int, among: BitMap, *, greatest: bool) -> tuple[BitMap, BitMap]:
        """Return rows certainly among the ``k`` greatest, and tied rows.

        With ``greatest=False``, the ``k`` smallest. The first set has at most ``k`` rows. If it has fewer, the second contains rows of
        equal numbers, at least as many as are missing.
        """
        sure, tied = BitMap(), among & self.existence
        if len(tied) <= k:
            return tied, BitMap()
        for bit in reversed(range(self._count)):
            ahead = tied & self._slice(bit) if greatest else tied - self._slice(bit)
            count = len(sure) + len(ahead)
            if count > k:
                tied = ahead
            else:
                sure, tied = sure | ahead, tied - ahead
            if count == k:
                return sure, BitMap()
        return sure, tied

    def total(self, among: BitMap) -> int:
        """Return the sum of the numbers of the rows ``among``.

        >>> BitSlices(BitMap([0, 1, 5]), 2, [BitMap([1, 5]), BitMap([5])].__getitem__).total(BitMap([0, 5, 9]))
        3
        """
        return sum(self._slice(bit).intersection_cardinality(among) << bit for bit in range(self._count))

    def extreme(self, among: BitMap, *, greatest: bool) -> int | None:
        """Return the greatest or smallest number of the rows ``among``.

        None if no row has a number.

        >>> BitSlices(BitMap([0, 1, 5]), 2, [BitMap([1, 5]), BitMap([5])].__getitem__).extreme(BitMap([1, 5]), greatest=False)
        1
        """
        tied, number = among & self.existence, 0
        if not tied:
            return None
        for bit in reversed(range(self._count)):
            ahead = tied & self._slice(bit) if greatest else tied - self._slice(bit)
            number |= (bool(ahead) == greatest) << bit
            tied = ahead or tied
        return number

    def _slice(self, bit: int) -> BitMap:
        if bit not in self._slices:
            self._slices[bit] = self._read(bit)
        return self._slices[bit]
