"""Java's and Spark's order of floats.

In both, NaN is the greatest value and equal to itself. Java's total order, which keys have, puts -0.0 before 0.0.
In Spark's order, which filters use, both zeros are equal.

``extremes`` ignores nulls.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow.compute as pc

from sparkexpr.values.arrays import AnyArray, Int64s
from sparkexpr.values.column_type import FLOATS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import plain_array


def sortable_bits(bits: AnyArray, width: int = 64) -> Int64s:
    """Map float bits to integers in Java's order, or back.

    The patterns are signed. The function is its own inverse.
    """
    wide = bits.astype(np.int64, copy=False)
    mapped: Int64s = wide ^ ((wide >> (width - 1)) & (2 ** (width - 1) - 1))
    return mapped


def total_order(floats: AnyArray) -> Int64s:
    """Return 64-bit floats as integers in Java's total order.

    >>> total_order(np.array([0.0, np.nan, -0.0, -1.0])).argsort().tolist()
    [3, 2, 0, 1]
    """
    return sortable_bits(np.where(np.isnan(floats), np.nan, floats).view(np.int64))


def spark_order(floats: Any) -> Any:
    """Return floats, or one float, as integers in Spark's order.

    >>> spark_order(np.array([-1.0, -0.0, 0.0, float("inf"), float("nan")])).argsort(kind="stable").tolist(), spark_order(-0.0)
    ([0, 1, 2, 3, 4], 0)
    """
    ordered = total_order(np.asarray(floats, np.float64) + 0.0)  # turns -0.0 into 0.0
    return ordered if ordered.ndim else int(ordered)


def total_order_key(value: Any) -> tuple[Any, ...]:
    """Return a sort key of a plain value.

    Nulls come first. Floats sort in Java's total order.

    >>> sorted([math.nan, 0.0, -0.0, None], key=total_order_key)
    [None, -0.0, 0.0, nan]
    """
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if math.isnan(value) else (1, value, math.copysign(1.0, value))
    return 1, value


def spark_order_key(value: Any) -> tuple[bool, Any]:
    """Return a sort key of a plain value.

    Floats sort in Spark's order.

    >>> max([math.inf, math.nan, 1.0], key=spark_order_key), spark_order_key(-0.0) == spark_order_key(0.0)
    (nan, True)
    """
    return (True, 0.0) if isinstance(value, float) and math.isnan(value) else (False, value)


def extremes(array: Any, column_type: ColumnType) -> tuple[Plain, Plain]:
    """Return the smallest and greatest plain value of an array.

    (None, None) if all values are null.

    >>> import pyarrow as pa
    >>> extremes(pa.array([1.5, None, float("nan"), -2.0]), ColumnType(Kind.DOUBLE))
    (-2.0, nan)
    """
    physical = plain_array(array, column_type)
    bounds = pc.min_max(physical)
    least, greatest = bounds["min"].as_py(), bounds["max"].as_py()
    if column_type.kind in FLOATS:  # Arrow ignores NaN
        nans = pc.sum(pc.is_nan(physical)).as_py() or 0
        if nans:
            return (math.nan if nans == len(physical) - physical.null_count else least), math.nan
    if column_type.kind is Kind.DECIMAL and least is not None:
        return int(least), int(greatest)
    return least, greatest
