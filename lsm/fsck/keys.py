"""Checks of keys and sequence numbers of a primary-key file.

Rows must be sorted, with each key once. Sequence numbers and counts must match the metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Mask
from fileindex.base.plain_value import from_scalar
from lsm.arrow.row_kind import retracts
from lsm.keys.encoding import WordColumn, one_array
from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND
from manifest.row.binary_row import encode_row
from manifest.stats.partition_stats import PartitionType

_KINDS = 4


@dataclass
class KeyOrder:
    """Comparison of each row's key with the next one.

    Works across batches.

    Args:
        keys: Names of the key columns.
        key: Types of the key columns.
    """

    keys: Sequence[str]
    key: PartitionType
    first: bytes | None = None
    last: bytes | None = None
    nulls: int = 0
    unordered: int | None = None
    repeated: int | None = None
    _tail: Any = None
    _rows: int = 0

    def write(self, rows: Any) -> None:
        """Add the next rows, at least one.

        Records the first row that is out of order, and the first that repeats a key.
        """
        columns = [one_array(rows.column(name)) for name in self.keys]
        self.nulls += sum(column.null_count for column in columns)
        self.first = self._encode(columns, 0) if self.first is None else self.first
        self.last = self._encode(columns, rows.num_rows - 1)
        start = self._rows
        joined = columns
        if self._tail is not None:
            joined = [pa.concat_arrays([tail, column.cast(tail.type)]) for tail, column in zip(self._tail, columns, strict=True)]
            start -= 1
        less, equal = _steps([WordColumn.of(column) for column in joined])
        wrong = np.flatnonzero(~less & ~equal)
        same = np.flatnonzero(equal)
        if self.unordered is None and wrong.size:
            self.unordered = start + int(wrong[0]) + 1
        if self.repeated is None and same.size:
            self.repeated = start + int(same[0]) + 1
        self._tail = [column.slice(len(column) - 1) for column in columns]
        self._rows += rows.num_rows

    def _encode(self, columns: Sequence[Any], at: int) -> bytes:
        values = [from_scalar(column[at], kind.column_type) for column, kind in zip(columns, self.key.types, strict=True)]
        return encode_row(values, self.key.types)

    def is_range(self, min_key: bytes, max_key: bytes) -> bool:
        """Return whether these are the first and the last key.

        Raises:
            CorruptFile: A key cannot be decoded.
        """
        assert self.first is not None
        assert self.last is not None
        order = self.key.order
        return order(self.first) == order(min_key) and order(self.last) == order(max_key)


def _steps(columns: Sequence[WordColumn]) -> tuple[Mask, Mask]:
    """Return whether keys are less than or equal the next."""
    count = max(columns[0].length - 1, 0)
    less, equal = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    for column in columns:
        for word in column.words:
            if not equal.any():
                return less, equal
            values = word(None)
            less |= equal & (values[:-1] < values[1:])
            equal &= values[:-1] == values[1:]
    return less, equal


@dataclass
class RowNumbersSeen:
    """Sequence numbers and kinds of the checked rows."""

    low: int | None = None
    high: int | None = None
    retracts: int = 0
    unknown_kinds: int = 0

    def write(self, rows: Any) -> None:
        """Add the next rows, at least one."""
        numbers = one_array(rows.column(SEQUENCE_NUMBER)).to_numpy(zero_copy_only=False)
        low, high = int(numbers.min()), int(numbers.max())
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        kinds = one_array(rows.column(VALUE_KIND)).to_numpy(zero_copy_only=False)
        self.unknown_kinds += int(np.count_nonzero((kinds < 0) | (kinds >= _KINDS)))
        self.retracts += int(retracts(rows.column(VALUE_KIND)).sum())


__all__ = ["KeyOrder", "RowNumbersSeen"]
