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


def cast_kernel(given: ColumnType, wanted: ColumnType) -> _Cast:
    """Return the kernel that casts arrays of ``given`` to ``wanted``.

    Raises ``InvalidFilter`` for an unsupported pair.

    >>> cast_kernel(ColumnType(Kind.INT), ColumnType(Kind.VARCHAR, length=2**31 - 1))(pa.array([7]), ColumnType(Kind.VARCHAR)).to_pylist()
    ['7']
    """
    found = _kernel(given, wanted)
    if found is None:
        raise InvalidFilter(f"a CAST of {given.kind} to {wanted.kind} is not supported in filters; compare in the column's type")
    return found


def _kernel(given: ColumnType, wanted: ColumnType) -> _Cast | None:
    if given.kind is wanted.kind and given.arrow == wanted.arrow and wanted.kind not in STRINGS | BINARIES:
        return _identity
    if wanted.kind in INTEGERS:
        return _to_integer(given)
    if wanted.kind in FLOATS:
        if given.kind is Kind.DECIMAL:
            return rounding.decimal_to_float
        return _arrow_cast if given.kind in INTEGERS | FLOATS or given.kind is Kind.BOOLEAN else None
    if wanted.kind in STRINGS:
        return _to_text(given) if wanted.length >= 2**31 - 1 else None
    if wanted.kind in BINARIES:
        return _identity if given.kind in BINARIES else None
    if wanted.kind is Kind.DECIMAL:
        return _to_decimal(given, wanted)
    if wanted.kind is Kind.DATE:
        return _to_date if given.kind in TIMESTAMPS else None
    if wanted.kind in TIMESTAMPS:
        return _to_timestamp if given.kind in TIMESTAMPS or given.kind is Kind.DATE else None
    return None


def _to_integer(given: ColumnType) -> _Cast | None:
    if given.kind in INTEGERS or given.kind is Kind.BOOLEAN:
        return _arrow_cast
    if given.kind in STRINGS:
        return _parse_integer
    if given.kind is Kind.DECIMAL:
        return rounding.decimal_to_integer
    return _truncate_float if given.kind in FLOATS else None


def _to_decimal(given: ColumnType, wanted: ColumnType) -> _Cast | None:
    if given.kind in FLOATS:
        return rounding.float_as_decimal
    if given.kind is Kind.DECIMAL and given.scale > wanted.scale:
        return rounding.decimal_to_decimal
    return _arrow_cast if given.kind in INTEGERS or given.kind is Kind.DECIMAL else None


def _to_text(given: ColumnType) -> _Cast | None:
    if given.kind in STRINGS:
        return _identity
    if given.kind in INTEGERS or given.kind is Kind.BOOLEAN:
        return _arrow_cast
    return _date_text if given.kind is Kind.DATE else None


def _identity(array: Any, wanted: ColumnType) -> Any:  # noqa: ARG001  # a kernel's signature
    return array


def _arrow_cast(array: Any, wanted: ColumnType) -> Any:
    """Cast by Arrow.

    Raises for numbers out of range. Integers that a float cannot hold are rounded, as in Java.
    """
    if wanted.kind in STRINGS:
        return array.cast(pa.large_string())
    if wanted.kind in FLOATS and not pa.types.is_boolean(array.type):
        return pc.cast(array, wanted.arrow, safe=False)
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8()).cast(wanted.arrow)
    if wanted.kind is Kind.DECIMAL and pa.types.is_integer(array.type):
        whole = array.cast(pa.decimal128(as_decimal(ColumnType(Kind.BIGINT)).precision, 0))
        return whole.cast(wanted.arrow)
    return array.cast(wanted.arrow)


def _parse_integer(array: Any, wanted: ColumnType) -> Any:
    """Parse digits with an optional sign and surrounding white space.

    Anything else is an error in ANSI mode.
    """
    texts = pc.utf8_trim(array, characters=_SPACES)
    wrong = pc.invert(pc.match_substring_regex(texts, _NUMBER)).fill_null(False)
    if pc.any(wrong, min_count=0).as_py():
        raise FilterFailed(f"the text {texts.filter(wrong)[0].as_py()!r} is not of type {wanted.kind}")
    return pc.utf8_ltrim(texts, characters="+").cast(wanted.arrow)


def _truncate_float(array: Any, wanted: ColumnType) -> Any:
    """Return floats without their fractions."""
    numbers = np.asarray(array.cast(pa.float64()).fill_null(0.0))
    bits = (pa.types.is_int64(wanted.arrow) and 63) or {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31}[wanted.arrow]
    whole = np.trunc(numbers)
    if not bool(((whole >= -(2.0**bits)) & (whole < 2.0**bits)).all()):
        raise FilterFailed(f"a number is out of range of {wanted.kind}")
    return pa.array(whole.astype(np.int64), mask=np.asarray(array.is_null())).cast(wanted.arrow)


def _to_date(array: Any, wanted: ColumnType) -> Any:
    return pc.floor_temporal(without_zone(array), unit="day").cast(wanted.arrow)


def _to_timestamp(array: Any, wanted: ColumnType) -> Any:
    found = without_zone(array)
    if pa.types.is_timestamp(found.type) and found.type.unit != wanted.unit:
        found = found.cast(pa.timestamp(wanted.unit))  # raises where digits would be lost
    elif not pa.types.is_timestamp(found.type):
        found = found.cast(pa.timestamp("s")).cast(pa.timestamp(wanted.unit))
    return found.view(wanted.arrow)


def _date_text(array: Any, wanted: ColumnType) -> Any:  # noqa: ARG001  # a kernel's signature
    ends = pc.min_max(array.view(pa.int32()))
    if ends["min"].is_valid and not _FIRST_FOUR_DIGIT_DAY <= ends["min"].as_py() <= ends["max"].as_py() <= _LAST_FOUR_DIGIT_DAY:
        raise FilterFailed("a date is outside the years 0 to 9999, which a CAST to STRING supports")
    return array.cast(pa.large_string())
