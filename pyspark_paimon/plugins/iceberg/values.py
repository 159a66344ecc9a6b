"""Iceberg's single-value bytes of plain values, for bounds."""

from __future__ import annotations

import math
import struct

from manifest.types.data_type import DataType
from sparkexpr.values.column_type import BINARIES, STRINGS, TIMESTAMPS, Kind, Plain

_PACK = {
    Kind.BOOLEAN: struct.Struct("<?"),
    **dict.fromkeys([Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.DATE], struct.Struct("<i")),
    Kind.BIGINT: struct.Struct("<q"),
    Kind.FLOAT: struct.Struct("<f"),
    Kind.DOUBLE: struct.Struct("<d"),
}
_LONG = struct.Struct("<q")
_MICROS_PER_MILLI = 1000


def to_bytes(value: Plain, data_type: DataType) -> bytes | None:
    r"""Return the bytes of a bound, None if the value is no bound.

    >>> to_bytes(150, DataType(Kind.DECIMAL, precision=10, scale=2)), to_bytes(float("nan"), DataType(Kind.DOUBLE))
    (b'\x00\x96', None)
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    kind = data_type.kind
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if kind is Kind.DECIMAL:
        number = int(value)
        return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
    return _LONG.pack(to_micros(int(value), data_type)) if kind in TIMESTAMPS else _PACK[kind].pack(value)


def to_micros(value: int, data_type: DataType) -> int:
    """Return a timestamp in microseconds.

    >>> to_micros(7, DataType(Kind.TIMESTAMP, precision=3))
    7000
    """
    return value * _MICROS_PER_MILLI if data_type.precision <= 3 else value


def partition_value(value: Plain, data_type: DataType) -> Plain:
    """Return the Avro value of a partition column."""
    if isinstance(value, int) and data_type.kind in TIMESTAMPS:
        return to_micros(value, data_type)
    return value


def partition_bound(value: Plain, data_type: DataType) -> bytes | None:
    """Return the bound of an Avro partition value."""
    if isinstance(value, int) and data_type.kind in TIMESTAMPS:
        return _LONG.pack(value)
    return value if isinstance(value, bytes) else to_bytes(value, data_type)


def from_partition_bound(data: bytes, data_type: DataType) -> Plain:
    """Return the Avro partition value of a bound. Raises ``struct.error``.

    >>> from_partition_bound(partition_bound("Oslo", DataType(Kind.VARCHAR)) or b"", DataType(Kind.VARCHAR))
    'Oslo'
    """
    kind = data_type.kind
    if kind in STRINGS:
        return data.decode()
    if kind in BINARIES:
        return data
    value: Plain = (_LONG if kind in TIMESTAMPS else _PACK[kind]).unpack(data)[0]
    return value
