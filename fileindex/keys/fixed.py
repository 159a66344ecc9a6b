"""Index keys of fixed-width columns.

Keys are signed 64-bit numbers that sort as the index formats sort. They are stored as big-endian bytes.
Booleans, integers, dates and times are their own keys. Timestamps are milliseconds up to precision 3, else microseconds. Floats are
their bits, converted so that they sort in Java's total order (-Inf ... -0.0 < 0.0 ... Inf < NaN, one NaN).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sparkexpr.values.arrays import Int64s, numpy_array
from sparkexpr.values.column_type import FLOATS, STRINGS, TIMESTAMPS, ColumnType, Kind, Plain
from sparkexpr.values.float_order import sortable_bits
from sparkexpr.values.plain_value import literal_array

_WIDTHS: dict[Kind, int] = {
    Kind.BOOLEAN: 1,
    Kind.TINYINT: 1,
    Kind.SMALLINT: 2,
    Kind.INT: 4,
    Kind.DATE: 4,
    Kind.TIME: 4,
    Kind.FLOAT: 4,
    Kind.BIGINT: 8,
    Kind.DOUBLE: 8,
    Kind.DECIMAL: 8,
    **dict.fromkeys(TIMESTAMPS, 8),
}


def key_width(column_type: ColumnType) -> int:
    """Return the bytes of a key of a fixed-width type.

    >>> key_width(ColumnType(Kind.DATE))
    4
    """
    return _WIDTHS[column_type.kind]


def key_dtype(column_type: ColumnType) -> np.dtype[Any]:
    """Return the big-endian integer type of a key's bytes."""
    return np.dtype(f">i{_WIDTHS[column_type.kind]}")


def is_lossy(column_type: ColumnType) -> bool:
    """Return whether different values share a key.

    This is so for timestamps finer than a microsecond.

    >>> is_lossy(ColumnType(Kind.TIMESTAMP, precision=9))
    True
    """
    return column_type.kind in TIMESTAMPS and column_type.unit == "ns"


def to_keys(values: Any, column_type: ColumnType) -> Int64s:
    """Return the keys of an array's non-null values.

    ``values`` are in physical form (``plain_array``).

    Raises:
        OverflowError: A DECIMAL of more than 18 digits contains a number beyond 64 bits.

    >>> to_keys(pa.array([-0.0, 0.0, None]), ColumnType(Kind.DOUBLE)).tolist()
    [-1, 0]
    """
    dense = values.drop_null() if values.null_count else values
    if column_type.kind is Kind.DECIMAL and dense.type != pa.int64():
        try:
            dense = dense.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise OverflowError("a decimal's digits exceed 64 bits") from error
    numbers = numpy_array(dense)
    if column_type.kind in FLOATS:
        floats = numbers.astype(np.float32 if column_type.kind is Kind.FLOAT else np.float64, copy=True)
        floats[np.isnan(floats)] = np.nan
        return convert_keys(floats.view(np.int32 if column_type.kind is Kind.FLOAT else np.int64), column_type)
    if is_lossy(column_type):
        return np.asarray(np.floor_divide(numbers, 1000))
    return np.asarray(numbers.astype(np.int64))


def stored_keys(bits: Any, column_type: ColumnType) -> Int64s:
    """Return the sortable keys of stored key numbers.

    All NaN bit patterns become one key.

    >>> stored_keys(np.array([-1], dtype=np.int32), ColumnType(Kind.FLOAT)) == convert_keys(np.array([0x7FC00000]), ColumnType(Kind.FLOAT))
    array([ True])
    """
    if column_type.kind in FLOATS:
        native = bits.astype(np.int32 if column_type.kind is Kind.FLOAT else np.int64)
        floats = native.view(np.float32 if column_type.kind is Kind.FLOAT else np.float64)
        bits = np.where(np.isnan(floats), 0x7FC00000 if column_type.kind is Kind.FLOAT else 0x7FF8000000000000, native)
    return convert_keys(bits, column_type)


def convert_keys(bits: Any, column_type: ColumnType) -> Int64s:
    """Convert stored key numbers to sortable keys, or back.

    Only float bits change. The function is its own inverse.
    """
    if column_type.kind not in FLOATS:
        return np.asarray(bits.astype(np.int64))
    size = 32 if column_type.kind is Kind.FLOAT else 64
    return sortable_bits(bits, size)


def key_values(keys: Sequence[int | bytes], column_type: ColumnType) -> Any:
    """Return the values of keys, and a null behind them, as an array of the column's type.

    The type must not be lossy. Texts are checked to be UTF-8.

    >>> key_values([-1, 0, 1], ColumnType(Kind.INT)).to_pylist(), key_values([b"a"], ColumnType(Kind.VARCHAR)).to_pylist()
    ([-1, 0, 1, None], ['a', None])
    """
    if column_type.kind in STRINGS:
        return pa.array([*keys, None], pa.large_binary()).cast(pa.large_string())
    numbers = np.array(keys, np.int64)
    if column_type.kind in FLOATS:
        narrow = column_type.kind is Kind.FLOAT
        bits = convert_keys(numbers, column_type).astype(np.int32 if narrow else np.int64)
        numbers = bits.view(np.float32 if narrow else np.float64)
    if column_type.kind is Kind.BOOLEAN:
        return pa.array([*(number != 0 for number in numbers.tolist()), None], pa.bool_())
    return literal_array([*numbers.tolist(), None], column_type)


def literal_keys(value: Plain, column_type: ColumnType) -> tuple[int | bytes, ...] | None:
    """Return the keys of rows that equal a literal.

    ``value`` is a plain value that fits the column. A zero has the keys of both zeros, a text its UTF-8 bytes.
    None if the literal has no key: a float that a FLOAT column cannot hold.

    >>> literal_keys(0.0, ColumnType(Kind.FLOAT)), literal_keys(0.1, ColumnType(Kind.FLOAT)), literal_keys("a", ColumnType(Kind.CHAR))
    ((-1, 0), None, (b'a',))
    """
    if isinstance(value, str) and column_type.kind in STRINGS:
        return (value.encode(),)
    if isinstance(value, bytes):
        return (value,)
    if isinstance(value, float):
        if value == 0:
            return (-1, 0)
        bits = float_bits(value, column_type)
        return None if bits is None else (int(convert_keys(np.array([bits]), column_type)[0]),)
    if isinstance(value, int):
        return (value // 1000,) if is_lossy(column_type) else (int(value),)
    return None


def float_bits(value: float, column_type: ColumnType) -> int | None:
    """Return the signed bit pattern of a float.

    In the column's width. NaN has one pattern. None if the float does not fit exactly.
    """
    if column_type.kind is Kind.DOUBLE:
        return int(struct.unpack(">q", struct.pack(">d", math.nan if math.isnan(value) else value))[0])
    if math.isnan(value):
        return 0x7FC00000
    try:
        data = struct.pack(">f", value)
    except OverflowError:
        return None
    return int(struct.unpack(">i", data)[0]) if struct.unpack(">f", data)[0] == value else None
