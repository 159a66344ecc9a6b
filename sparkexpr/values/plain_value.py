"""Conversion between Arrow values and *plain* values.

Scalars serve literals and bounds; arrays serve hashing and encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.errors import InvalidFilter, UnsupportedType
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, ColumnType, Kind, Plain

_MAX_LONG_DIGITS = 18
_MOST_BYTES = 2**31 - 1
_PYTHON_TYPES: dict[Kind, type] = {
    Kind.BOOLEAN: bool,
    **dict.fromkeys(STRINGS, str),
    **dict.fromkeys(BINARIES, bytes),
    **dict.fromkeys(FLOATS, float),
    **dict.fromkeys([*INTEGERS, *TIMESTAMPS, Kind.DATE, Kind.TIME, Kind.DECIMAL], int),
}
_MILLIS_PER_DAY = 86_400_000
_RANGES: dict[Kind, tuple[int, int]] = {
    Kind.TINYINT: (-(2**7), 2**7 - 1),
    Kind.SMALLINT: (-(2**15), 2**15 - 1),
    Kind.INT: (-(2**31), 2**31 - 1),
    Kind.DATE: (-(2**31), 2**31 - 1),
    Kind.TIME: (0, _MILLIS_PER_DAY - 1),
    **dict.fromkeys([Kind.BIGINT, *TIMESTAMPS], (-(2**63), 2**63 - 1)),
}


def is_plain(value: Plain, column_type: ColumnType) -> bool:
    """Return whether ``value`` is a plain value of ``column_type``.

    None is. Other values need the Python type and range of the column type.

    >>> is_plain(127, ColumnType(Kind.TINYINT)), is_plain(128, ColumnType(Kind.TINYINT)), is_plain(True, ColumnType(Kind.INT))
    (True, False, False)
    """
    if value is None:
        return True
    expected = _PYTHON_TYPES.get(column_type.kind)
    if expected is None or type(value) is not expected:
        return False
    if isinstance(value, str):
        return value.isascii() or _encodes(value)
    if isinstance(value, int) and expected is int:
        low, high = _range(column_type)
        return low <= value <= high
    return True


def _range(column_type: ColumnType) -> tuple[int, int]:
    if column_type.kind is Kind.DECIMAL:
        greatest = int("9" * (column_type.precision or 38))
        return -greatest, greatest
    return _RANGES[column_type.kind]


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def to_scalar(value: Plain, column_type: ColumnType) -> Any:
    """Return ``value`` as an Arrow scalar of type ``column_type.arrow``.

    Raises:
        InvalidFilter: The value has another Python type, or is outside the type's range.

    >>> to_scalar(-300, ColumnType(Kind.DECIMAL, precision=10, scale=2))
    <pyarrow.Decimal128Scalar: Decimal('-3.00')>
    >>> to_scalar(1, ColumnType(Kind.TIMESTAMP, precision=6)).type
    TimestampType(timestamp[us])
    """
    return literal_array([value], column_type)[0]


def literal_array(values: Sequence[Plain], column_type: ColumnType) -> Any:
    """Return plain values as an array of type ``column_type.arrow``.

    None becomes null. Raises as ``to_scalar``.

    >>> literal_array([-300, None], ColumnType(Kind.DECIMAL, precision=10, scale=2)).to_pylist()
    [Decimal('-3.00'), None]
    """
    wrong = next((value for value in values if not is_plain(value, column_type)), None)
    if wrong is not None:
        raise InvalidFilter(f"{wrong!r} is not a value of type {column_type.kind}")
    return fixed_array(values, column_type.arrow)


def fixed_array(values: Sequence[Any], arrow_type: pa.DataType) -> Any:
    """Return plain values as an array of a flat Arrow type.

    None becomes null. The values fit the type; decimals are unscaled integers.

    Raises:
        OverflowError: A number is outside of the type's range.

    >>> fixed_array(["a", None, "bc"], pa.string()).to_pylist(), fixed_array([1, None], pa.date32())[0]
    (['a', None, 'bc'], <pyarrow.Date32Scalar: datetime.date(1970, 1, 2)>)
    """
    count = len(values)
    nulls = [value is None for value in values] if None in values else None
    valid = None if nulls is None else pa.py_buffer(np.packbits(~np.array(nulls), bitorder="little"))
    if pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type):
        parts = [b"" if value is None else value.encode() if isinstance(value, str) else value for value in values]
        ends = np.cumsum([0, *map(len, parts)])
        if ends[-1] > _MOST_BYTES:
            return pa.array(values, arrow_type)
        return pa.Array.from_buffers(arrow_type, count, [valid, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(parts))])
    if nulls is not None:
        values = [0 if value is None else value for value in values]
    if pa.types.is_decimal128(arrow_type):
        data: Any = b"".join([value.to_bytes(16, "little", signed=True) for value in values])
    elif pa.types.is_boolean(arrow_type):
        data = np.packbits(np.array(values, np.bool_), bitorder="little")
    elif pa.types.is_floating(arrow_type):
        with np.errstate(over="ignore"):
            data = np.array(values, f"<f{arrow_type.bit_width // 8}")
    else:
        data = np.array(values, f"<i{arrow_type.bit_width // 8}")
    return pa.Array.from_buffers(arrow_type, count, [valid, pa.py_buffer(data)])


def plain_values(array: Any, column_type: ColumnType) -> list[Plain]:
    """Return the plain values of an array in physical form.

    >>> plain_values(plain_array(pa.array([1, None], pa.timestamp("ms")), ColumnType(Kind.TIMESTAMP, precision=3)), ColumnType(Kind.TIMESTAMP))
    [1, None]
    """
    values: list[Any] = array.to_pylist()
    if column_type.kind is Kind.DECIMAL:
        return [None if value is None else int(value) for value in values]
    if column_type.kind is Kind.FLOAT:
        return [None if value is None else float(value) for value in values]
    return values


def from_scalar(scalar: Any, column_type: ColumnType) -> Plain:
    """Return the plain value of an Arrow scalar.

    A scalar of another Arrow type is cast first, without loss of digits.

    Raises:
        InvalidFilter: The scalar does not fit the type.

    >>> from_scalar(pa.scalar("2020-01-02").cast(pa.date32()), ColumnType(Kind.DATE))
    18263
    """
    arrow_type = column_type.arrow
    try:
        exact = scalar if scalar.type == arrow_type else scalar.cast(arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidFilter(f"{scalar!r} is not a value of type {column_type.kind}: {error}") from error
    if not exact.is_valid:
        return None
    if column_type.kind is Kind.DECIMAL:
        sign, digits, _ = exact.as_py().as_tuple()
        unscaled = int("".join(map(str, digits)))
        return -unscaled if sign else unscaled
    if column_type.kind in TIMESTAMPS or column_type.kind in {Kind.DATE, Kind.TIME}:
        return int(exact.value)
    value: Plain = exact.as_py()
    return value


def plain_array(array: Any, column_type: ColumnType) -> Any:
    """Return the column ``array`` in physical form.

    ``array`` is an Array or ChunkedArray. Nulls are kept. Nothing is copied where Arrow allows it.

    Returns:
        bool, int8/16/32/64 (also for DATE, TIME, TIMESTAMP in its unit, and DECIMAL up to 18 digits: unscaled), float32/64,
        string or large_string, binary or large_binary. Wider DECIMALs become ``decimal128(38, 0)`` of the unscaled numbers.
        Dictionaries and views are expanded.

    Raises:
        UnsupportedType: The array has a type that the column cannot have.

    >>> plain_array(pa.array([1, None], pa.timestamp("ms")), ColumnType(Kind.TIMESTAMP, precision=3)).type
    DataType(int64)
    """
    if isinstance(array, pa.ChunkedArray):
        chunks = [plain_array(chunk, column_type) for chunk in array.chunks]
        return pa.chunked_array(chunks) if chunks else pa.chunked_array([plain_array(pa.array([], array.type), column_type)])
    return _physical(canonical_array(array, column_type), column_type)


def canonical_array(array: Any, column_type: ColumnType) -> Any:
    """Return ``array`` as type ``column_type.arrow``.

    A large_string or large_binary keeps its type. Dictionaries and views are expanded.

    Raises:
        UnsupportedType: The array has a type that the column cannot have.
    """
    dense = _dense(array)
    if (column_type.kind in STRINGS and pa.types.is_large_string(dense.type)) or (
        column_type.kind in BINARIES and pa.types.is_large_binary(dense.type)
    ):
        return dense
    try:
        return dense if dense.type == column_type.arrow else dense.cast(column_type.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
        raise UnsupportedType(f"Arrow {array.type} cannot hold a column of type {column_type.kind}: {error}") from error


def _dense(array: Any) -> Any:
    if pa.types.is_dictionary(array.type):
        return _dense(array.dictionary_decode())
    if pa.types.is_run_end_encoded(array.type):
        return _dense(pc.run_end_decode(array))
    if array.type == pa.string_view():
        return array.cast(pa.large_string())
    if array.type == pa.binary_view():
        return array.cast(pa.large_binary())
    return array


def _physical(array: Any, column_type: ColumnType) -> Any:
    kind = column_type.kind
    if kind in TIMESTAMPS:
        return array.view(pa.int64())
    if kind in {Kind.DATE, Kind.TIME}:
        return array.view(pa.int32())
    if kind is Kind.DECIMAL:
        if column_type.precision <= _MAX_LONG_DIGITS:
            return array.view(pa.decimal128(column_type.precision, 0)).cast(pa.int64())
        return array.view(pa.decimal128(38, 0))
    return array
