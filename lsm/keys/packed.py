"""Keys of several tables packed to one number each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fileindex.base.arrays import UInt64s
from lsm.keys.encoding import fixed_words, is_variable

_BITS = 64


def packed_keys(tables: Sequence[Sequence[Any]]) -> list[UInt64s] | None:
    """Pack the keys of several tables to comparable numbers.

    Each table is given by the arrays of its key columns. Numbers of all tables compare like the keys. None: a column has nulls or
    variable width, or the values do not fit 64 bits.

    >>> import pyarrow as pa
    >>> [codes.tolist() for codes in packed_keys([[pa.array([7, 9]), pa.array([2, 1])], [pa.array([8]), pa.array([1])]])]
    [[1, 4], [2]]
    """
    if any(is_variable(array.type) or array.null_count or not len(array) for arrays in tables for array in arrays):
        return None
    found = [np.zeros(len(arrays[0]), np.uint64) for arrays in tables]
    bits = 0
    for columns in zip(*tables, strict=True):
        for words in zip(*map(fixed_words, columns), strict=True):
            low, high = min([int(word.min()) for word in words]), max([int(word.max()) for word in words])
            width = (high - low).bit_length()
            bits += width
            if bits > _BITS:
                return None
            for code, word in zip(found, words, strict=True):
                _append(code, word, low, width)
    return found


def _append(code: UInt64s, word: UInt64s, low: int, width: int) -> None:
    """Shift the codes in place, and append ``word - low``."""
    if not width:
        return
    if width < _BITS:
        np.left_shift(code, np.uint64(width), out=code)
    np.bitwise_or(code, word - np.uint64(low), out=code)


__all__ = ["packed_keys"]
