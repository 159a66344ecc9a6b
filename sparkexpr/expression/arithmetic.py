"""Arithmetic of Spark's ANSI mode.

Overflow and division by zero are errors. Every kernel takes arrays whose types ``functions`` has already matched.
It returns null where an argument is null.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.errors import FilterFailed
from sparkexpr.values.column_type import FLOATS, ColumnType

Arrays = list[Any]


def add(values: Arrays, result: ColumnType) -> Any:
    """``a + b``."""
    return _exact(pc.add_checked, values, result)


def subtract(values: Arrays, result: ColumnType) -> Any:
    """``a - b``."""
    return _exact(pc.subtract_checked, values, result)


def multiply(values: Arrays, result: ColumnType) -> Any:
    """``a * b``."""
    return _exact(pc.multiply_checked, values, result)


def _exact(kernel: Any, values: Arrays, result: ColumnType) -> Any:
    computed = kernel(*values)
    return computed if computed.type == result.arrow else computed.cast(result.arrow)


def divide(values: Arrays, _: ColumnType) -> Any:
    """``a / b`` of DOUBLEs."""
    left, right = values
    _check_divisors(left, right)
    return pc.divide(left, right)


def integer_divide(values: Arrays, _: ColumnType) -> Any:
    """``a DIV b`` of BIGINTs, rounded towards zero."""
    left, right = values
    _check_divisors(left, right)
    return pc.divide_checked(left, right)


def remainder(values: Arrays, result: ColumnType) -> Any:
    """``a % b``, with the sign of ``a``."""
    left, right = values
    _check_divisors(left, right)
    numbers, divisors = _numbers(left, 0), _numbers(right, 1)
    with np.errstate(all="ignore"):
        remainders = np.fmod(numbers, divisors)
    if result.kind not in FLOATS:
        remainders = np.where(divisors == -1, 0, remainders).astype(numbers.dtype)  # the smallest integer % -1 overflows on some CPUs
    missing = ~(np.asarray(left.is_valid()) & np.asarray(right.is_valid()))
    return pa.array(remainders, result.arrow, mask=missing)


def negative(values: Arrays, _: ColumnType) -> Any:
    """``-a``."""
    (value,) = values
    return pc.negate_checked(value)


def absolute(values: Arrays, _: ColumnType) -> Any:
    """``abs(a)``."""
    (value,) = values
    return pc.abs_checked(value)


def invert_bits(values: Arrays, _: ColumnType) -> Any:
    """``~a``."""
    (value,) = values
    return pc.bit_wise_not(value)


BITS = {"&": pc.bit_wise_and, "|": pc.bit_wise_or, "^": pc.bit_wise_xor}
"""Kernels of operators on the bits of two integers of one type."""


def combine_bits(name: str, values: Arrays, _: ColumnType) -> Any:
    """Combine bits by an operator of ``BITS``."""
    return BITS[name](*values)


def _check_divisors(left: Any, right: Any) -> None:
    if pc.any(pc.and_(pc.equal(right, pa.scalar(0, right.type)), left.is_valid())).as_py():
        raise FilterFailed("a divisor is zero; write nullif(divisor, 0) to get null for these rows")


def _numbers(array: Any, instead_of_null: int) -> Any:
    return np.asarray(array.fill_null(pa.scalar(instead_of_null, array.type)))
