"""Kernels of CAST, for pairs of types that are cast here exactly as Spark does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.errors import FilterFailed, InvalidFilter
from sparkexpr.expression import rounding
from sparkexpr.expression.calendar import without_zone
from sparkexpr.expression.types import as_decimal
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, ColumnType, Kind

_Cast = Callable[[Any, ColumnType], Any]
_NUMBER = r"\A[+-]?[0-9]+\z"
_SPACES = (
    " \t\n\r\f\v" + "".join(map(chr, range(9))) + "".join(map(chr, [*range(14, 32), 127]))
)  # Spark trims these before it parses a number
_LAST_FOUR_DIGIT_DAY = 2_932_896
_FIRST_FOUR_DIGIT_DAY = -719_528


def cast_kernel(source: ColumnType, target: ColumnType) -> _Cast:
    """Return the kernel that casts arrays of ``source`` to ``target``.

    Raises ``InvalidFilter`` for an unsupported pair.

    >>> cast_kernel(ColumnType(Kind.INT), ColumnType(Kind.VARCHAR, length=2**31 - 1))(pa.array([7]), ColumnType(Kind.VARCHAR)).to_pylist()
    ['7']
    """
    kernel = _kernel(source, target)
    if kernel is None:
        raise InvalidFilter(f"a CAST of {source.kind} to {target.kind} is not supported in filters; compare in the column's type")
    return kernel


def _kernel(source: ColumnType, target: ColumnType) -> _Cast | None:
    if source.kind is target.kind and source.arrow == target.arrow and target.kind not in STRINGS | BINARIES:
        return _identity
    if target.kind in INTEGERS:
        return _to_integer(source)
    if target.kind in FLOATS:
        if source.kind is Kind.DECIMAL:
            return rounding.decimal_to_float
        return _arrow_cast if source.kind in INTEGERS | FLOATS or source.kind is Kind.BOOLEAN else None
    if target.kind in STRINGS:
        return _to_text(source) if target.length >= 2**31 - 1 else None
    if target.kind in BINARIES:
        return _identity if source.kind in BINARIES else None
    if target.kind is Kind.DECIMAL:
        return _to_decimal(source, target)
    if target.kind is Kind.DATE:
        return _to_date if source.kind in TIMESTAMPS else None
    if target.kind in TIMESTAMPS:
        return _to_timestamp if source.kind in TIMESTAMPS or source.kind is Kind.DATE else None
    return None


def _to_integer(source: ColumnType) -> _Cast | None:
    if source.kind in INTEGERS or source.kind is Kind.BOOLEAN:
        return _arrow_cast
    if source.kind in STRINGS:
        return _parse_integer
    if source.kind is Kind.DECIMAL:
        return rounding.decimal_to_integer
    return _truncate_float if source.kind in FLOATS else None


def _to_decimal(source: ColumnType, target: ColumnType) -> _Cast | None:
    if source.kind in FLOATS:
        return rounding.float_as_decimal
    if source.kind is Kind.DECIMAL and source.scale > target.scale:
        return rounding.decimal_to_decimal
    return _arrow_cast if source.kind in INTEGERS or source.kind is Kind.DECIMAL else None


def _to_text(source: ColumnType) -> _Cast | None:
    if source.kind in STRINGS:
        return _identity
    if source.kind in INTEGERS or source.kind is Kind.BOOLEAN:
        return _arrow_cast
    return _date_text if source.kind is Kind.DATE else None


def _identity(array: Any, target: ColumnType) -> Any:  # noqa: ARG001  # a kernel's signature
    return array


def _arrow_cast(array: Any, target: ColumnType) -> Any:
    """Cast by Arrow.

    Raises for numbers out of range. Integers that a float cannot hold are rounded, as in Java.
    """
    if target.kind in STRINGS:
        return array.cast(pa.large_string())
    if target.kind in FLOATS and not pa.types.is_boolean(array.type):
        return pc.cast(array, target.arrow, safe=False)
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8()).cast(target.arrow)
    if target.kind is Kind.DECIMAL and pa.types.is_integer(array.type):
        # Arrow checks integers by their type, and decimals by their values.
        integers = array.cast(pa.decimal128(as_decimal(ColumnType(Kind.BIGINT)).precision, 0))
        return integers.cast(target.arrow)
    return array.cast(target.arrow)


def _parse_integer(array: Any, target: ColumnType) -> Any:
    """Parse digits with an optional sign and surrounding white space.

    Anything else is an error in ANSI mode.
    """
    texts = pc.utf8_trim(array, characters=_SPACES)
    wrong = pc.invert(pc.match_substring_regex(texts, _NUMBER)).fill_null(False)
    if pc.any(wrong, min_count=0).as_py():
        raise FilterFailed(f"the text {texts.filter(wrong)[0].as_py()!r} is not of type {target.kind}")
    return pc.utf8_ltrim(texts, characters="+").cast(target.arrow)


def _truncate_float(array: Any, target: ColumnType) -> Any:
    """Return floats without their fractions."""
    numbers = np.asarray(array.cast(pa.float64()).fill_null(0.0))
    bits = (pa.types.is_int64(target.arrow) and 63) or {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31}[target.arrow]
    truncated = np.trunc(numbers)
    # The greatest integers are not exact as floats, but the power of two above them is.
    if not bool(((truncated >= -(2.0**bits)) & (truncated < 2.0**bits)).all()):
        raise FilterFailed(f"a number is out of range of {target.kind}")
    return pa.array(truncated.astype(np.int64), mask=np.asarray(array.is_null())).cast(target.arrow)


def _to_date(array: Any, target: ColumnType) -> Any:
    return pc.floor_temporal(without_zone(array), unit="day").cast(target.arrow)


def _to_timestamp(array: Any, target: ColumnType) -> Any:
    timestamps = without_zone(array)
    if pa.types.is_timestamp(timestamps.type) and timestamps.type.unit != target.unit:
        timestamps = timestamps.cast(pa.timestamp(target.unit))  # raises where digits would be lost
    elif not pa.types.is_timestamp(timestamps.type):
        timestamps = timestamps.cast(pa.timestamp("s")).cast(pa.timestamp(target.unit))
    return timestamps.view(target.arrow)


def _date_text(array: Any, target: ColumnType) -> Any:  # noqa: ARG001  # a kernel's signature
    ends = pc.min_max(array.view(pa.int32()))
    if ends["min"].is_valid and not _FIRST_FOUR_DIGIT_DAY <= ends["min"].as_py() <= ends["max"].as_py() <= _LAST_FOUR_DIGIT_DAY:
        raise FilterFailed("a date is outside the years 0 to 9999, which a CAST to STRING supports")
    return array.cast(pa.large_string())
