"""Comparisons and three-valued logic.

Null is unknown. NaN equals itself and is the greatest value. -0.0 equals 0.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.expression.arithmetic import Arrays
from sparkexpr.expression.types import BOOLEAN_TYPE
from sparkexpr.values.column_type import FLOATS, ColumnType
from sparkexpr.values.float_order import spark_order

COMPARISONS = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}


def compare(name: str, values: Arrays, operands: ColumnType) -> Any:
    """``a op b`` for an operator of ``COMPARISONS``."""
    left, right = (_sortable(value) if operands.kind in FLOATS else value for value in values)
    return COMPARISONS[name](left, right)


def among(value: Any, listed: Any, operands: ColumnType) -> Any:
    """``value IN (listed)``.

    Unknown for null, and for a value that is not listed if a null is.
    """
    if operands.kind in FLOATS:
        value, listed = _sortable(value), _sortable(listed)
    is_listed = pc.is_in(value, value_set=listed.drop_null())
    unknown = value.is_null() if not listed.null_count else pc.invert(is_listed)
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), is_listed)


def extreme(name: str, values: Arrays, operands: ColumnType) -> Any:
    """``greatest(a, b, ...)`` or ``least(a, b, ...)`` of the values that are not null."""
    extremes, *candidates = values
    for candidate in candidates:
        wins = compare(">" if name == "greatest" else "<", [candidate, extremes], operands)
        extremes = pc.if_else(wins.fill_null(False), candidate, pc.coalesce(extremes, candidate))
    return extremes


def same_or_both_null(values: Arrays, operands: ColumnType) -> Any:
    """``a <=> b``, which is never null."""
    left, right = values
    both_null = pc.and_(left.is_null(), right.is_null())
    return pc.or_(compare("=", values, operands).fill_null(False), both_null)


def is_null(values: Arrays, _: ColumnType = BOOLEAN_TYPE) -> Any:
    """``isnull(a)``."""
    return values[0].is_null()


def is_nan(values: Arrays, _: ColumnType = BOOLEAN_TYPE) -> Any:
    """``isnan(a)``.

    False for null, as in Spark.
    """
    return pc.is_nan(values[0]).fill_null(False)


def invert(values: Arrays, _: ColumnType = BOOLEAN_TYPE) -> Any:
    """``NOT a``."""
    return pc.invert(values[0])


def _sortable(array: Any) -> Any:
    """Return floats as integers in Spark's order."""
    floats = np.asarray(array.cast(pa.float64()).fill_null(0.0))
    return pa.array(spark_order(floats), mask=np.asarray(array.is_null()))
