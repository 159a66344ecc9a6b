"""Rounding as Spark does it: half away from zero, on the decimal text of a float.

``round(2.675, 2)`` is 2.68, although the DOUBLE 2.675 is a little less.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.errors import FilterFailed
from sparkexpr.expression.arithmetic import Arrays
from sparkexpr.values.column_type import FLOATS, INTEGERS, ColumnType, Kind

MOST_PLACES = 18
"""Decimal places to which a float is rounded at most."""
_HALF_UP = "half_towards_infinity"
_WIDEST = 76
_DIGITS = 17
"""Digits of a float's text at most."""
_WHOLE = 2.0**53
"""Floats from here on have no fraction."""


def round_to(value: Any, places: int, result: ColumnType) -> Any:
    """``round(a, places)``."""
    if result.kind in FLOATS:
        numbers = value.cast(pa.float64())
        small = np.abs(_floats(numbers)) < _WHOLE
        with_fraction = pc.if_else(pa.array(small), numbers, pa.scalar(None, pa.float64()))
        return pc.if_else(pa.array(small), decimal_to_float(float_to_decimal(with_fraction, places), result), value)
    if result.kind in INTEGERS:
        return pc.round(value.cast(pa.decimal256(_WIDEST, 0)), places, _HALF_UP).cast(result.arrow)
    widest = value.cast(pa.decimal256(_WIDEST, value.type.scale))  # as wide as the places that ``round`` takes
    return decimal_to_decimal(pc.round(widest, places, _HALF_UP), result)


def floor(values: Arrays, result: ColumnType) -> Any:
    """``floor(a)``."""
    return _whole(values[0], result, pc.floor)


def ceil(values: Arrays, result: ColumnType) -> Any:
    """``ceil(a)``."""
    return _whole(values[0], result, pc.ceil)


def sign(values: Arrays, _: ColumnType) -> Any:
    """``sign(a)`` of a DOUBLE."""
    numbers = _floats(values[0])
    return pa.array(np.where(numbers == 0, numbers, np.sign(numbers)), mask=np.asarray(values[0].is_null()))


def square_root(values: Arrays, _: ColumnType) -> Any:
    """``sqrt(a)`` of a DOUBLE; NaN of a negative one."""
    return pc.sqrt(values[0])


def _whole(value: Any, result: ColumnType, kernel: Any) -> Any:
    if result.kind is Kind.DECIMAL:
        return kernel(_wide(value)).cast(result.arrow)
    if not pa.types.is_floating(value.type):
        return value.cast(result.arrow)
    numbers = np.nan_to_num(_floats(kernel(value)), nan=0.0, posinf=np.inf, neginf=-np.inf)  # as in Java, NaN is 0
    if not bool(((numbers >= -(2.0**63)) & (numbers < 2.0**63)).all()):
        raise FilterFailed("a number is out of range of BIGINT")
    return pa.array(numbers.astype(np.int64), mask=np.asarray(value.is_null()))


def float_to_decimal(value: Any, scale: int) -> Any:
    """Return floats as decimals of 256 bits with ``scale`` places, rounded half away from zero.

    Their whole parts have at most ``58 - scale`` digits.

    >>> float_to_decimal(pa.array([2.675, -0.125, 1e-300]), 2).to_pylist()
    [Decimal('2.68'), Decimal('-0.13'), Decimal('0.00')]
    """
    tiny = np.abs(_floats(value)) < 10.0 ** -(scale + 1)  # their texts may have 300 places
    texts = pc.if_else(pa.array(tiny), pa.scalar("0"), pc.cast(value, pa.string()))
    exact = pc.if_else(value.is_valid(), texts, pa.scalar(None, pa.string())).cast(pa.decimal256(_WIDEST, scale + 1 + _DIGITS))
    return pc.round(exact, scale, _HALF_UP).cast(pa.decimal256(_WIDEST, scale))


def float_as_decimal(value: Any, target: ColumnType) -> Any:
    """Cast floats to a DECIMAL; NaN and infinity become null.

    Raises ``FilterFailed`` for numbers that are too large.
    """
    numbers = pc.if_else(pc.is_finite(value), value.cast(pa.float64()), pa.scalar(None, pa.float64()))
    if not bool((np.abs(_floats(numbers)) < 10.0 ** (target.precision - target.scale)).all()):
        raise FilterFailed(f"a number is out of range of DECIMAL({target.precision}, {target.scale})")
    return float_to_decimal(numbers, target.scale).cast(target.arrow)


def decimal_to_decimal(value: Any, target: ColumnType) -> Any:
    """Cast decimals, rounding half away from zero."""
    return pc.round(_wide(value), target.scale, _HALF_UP).cast(target.arrow)


def decimal_to_integer(value: Any, target: ColumnType) -> Any:
    """Cast decimals to integers, without their fractions."""
    return pc.trunc(_wide(value)).cast(pa.decimal256(_WIDEST, 0)).cast(target.arrow)


def decimal_to_float(value: Any, target: ColumnType) -> Any:
    """Cast decimals to the nearest floats."""
    # Arrow's cast from decimals to floats does not always round to the nearest one. Its parser does.
    return value.cast(pa.string()).cast(target.arrow)


def _wide(value: Any) -> Any:
    """Return decimals with room for one more digit."""
    kind = value.type
    return value.cast(pa.decimal256(min(_WIDEST, kind.precision + 2), kind.scale))


def _floats(value: Any) -> Any:
    return np.asarray(value.cast(pa.float64()).fill_null(0.0))
