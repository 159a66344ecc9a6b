"""Smallest and greatest value of an array, in Spark's order.

NaN is the greatest. Nulls are ignored.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow.compute as pc

from fileindex.base.column_type import FLOATS, ColumnType, Kind, Plain
from fileindex.base.plain_value import plain_array


def extremes(array: Any, column_type: ColumnType) -> tuple[Plain, Plain]:
    """Return the smallest and greatest plain value of an array.

    (None, None) if all values are null.

    >>> import pyarrow as pa
    >>> extremes(pa.array([1.5, None, float("nan"), -2.0]), ColumnType(Kind.DOUBLE))
    (-2.0, nan)
    """
    physical = plain_array(array, column_type)
    found = pc.min_max(physical)
    least, greatest = found["min"].as_py(), found["max"].as_py()
    if column_type.kind in FLOATS:  # Arrow ignores NaN
        nans = pc.sum(pc.is_nan(physical)).as_py() or 0
        if nans:
            return (math.nan if nans == len(physical) - physical.null_count else least), math.nan
    if column_type.kind is Kind.DECIMAL and least is not None:
        return int(least), int(greatest)
    return least, greatest


__all__ = ["extremes"]
