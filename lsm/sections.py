"""Cutting key ranges into sections that no key crosses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def section_numbers(low: Sequence[Any], high: Sequence[Any]) -> list[int]:
    """The section of each key range, numbered in key order: ranges that overlap, even through others, share one.

    >>> section_numbers([0, 20, 5, 30], [9, 25, 15, 40])
    [0, 1, 0, 2]
    """
    numbers = [0] * len(low)
    number, reach = -1, None
    for at in sorted(range(len(low)), key=lambda at: (low[at], high[at])):
        if reach is None or low[at] > reach:
            number, reach = number + 1, high[at]
        elif high[at] > reach:
            reach = high[at]
        numbers[at] = number
    return numbers


__all__ = ["section_numbers"]
