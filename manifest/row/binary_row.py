"""BinaryRow, Paimon's compact row format.

Manifests store partitions, keys and statistics in it, and bucket hashes are computed over it.
Layout (``org.apache.paimon.data.BinaryRow``): a header of null bits, one 8-byte slot per field, then variable-length data,
all little endian. The serialised form has the arity in front, big endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from manifest.types.data_type import DataType
from paimon_base.errors import UnsupportedType
from sparkexpr.values.column_type import BINARIES, STRINGS, TIMESTAMPS, Kind, Plain

EMPTY_ROW = bytes(12)
_ARITY = struct.Struct(">i")
_SLOT = struct.Struct("<ii")
_LONG = struct.Struct("<q")
_INLINE = 7
_INLINE_MARK = 0x80
_MAX_SHORT_DECIMAL = 18
_LONG_DECIMAL_BYTES = 16
_PACK = {
    Kind.BOOLEAN: struct.Struct("<?7x"),
    Kind.TINYINT: struct.Struct("<b7x"),
    Kind.SMALLINT: struct.Struct("<h6x"),
    Kind.INT: struct.Struct("<i4x"),
    Kind.DATE: struct.Struct("<i4x"),
    Kind.TIME: struct.Struct("<i4x"),
    Kind.BIGINT: _LONG,
    Kind.FLOAT: struct.Struct("<f4x"),
    Kind.DOUBLE: struct.Struct("<d"),
}
_NANOS_PER_MILLI = 1_000_000


@lru_cache(maxsize=256)
def header_size(arity: int) -> int:
    """Return the bytes of the null bits, in 8-byte words.

    8 up to 56 fields, 16 up to 120.
    """
    return (arity + 63 + 8) // 64 * 8


def encode_row(values: Sequence[Plain], types: Sequence[DataType]) -> bytes:
    """Serialise plain values of atomic types.

    The arity is in front.

    >>> from sparkexpr.values.column_type import Kind
    >>> encode_row((42,), (DataType(Kind.INT),)).hex()
    '0000000100000000000000002a00000000000000'
    """
    width = header_size(len(types))
    row = bytearray(width + 8 * len(types))
    for i, (value, data_type) in enumerate(zip(values, types, strict=True)):
        slot = width + 8 * i
        if value is None:
            # The null bits follow eight bits for the row kind.
            row[(i + 8) >> 3] |= 1 << ((i + 8) & 7)
            # Paimon reserves the bytes of a null too. Hashes of keys need the same bytes.
            if reserved := reserved_bytes(data_type):
                _SLOT.pack_into(row, slot, 0, len(row))
                row += bytes(reserved)
        elif (packing := _PACK.get(data_type.kind)) is not None:
            packing.pack_into(row, slot, value)
        else:
            _encode_variable(row, slot, value, data_type)
    return _ARITY.pack(len(types)) + bytes(row)


def reserved_bytes(data_type: DataType) -> int:
    """Return the variable bytes of a value, null or not.

    16 for long decimals, 8 for timestamps finer than milliseconds, else 0.
    """
    if data_type.kind is Kind.DECIMAL and data_type.precision > _MAX_SHORT_DECIMAL:
        return _LONG_DECIMAL_BYTES
    return 8 if data_type.kind in TIMESTAMPS and data_type.precision > 3 else 0


def _per_milli(fine: DataType) -> int:
    """Return units per millisecond: of micros or nanos.

    ``fine`` is a timestamp type finer than milliseconds.
    """
    return 1_000 if fine.precision <= 6 else _NANOS_PER_MILLI


def _encode_variable(row: bytearray, slot: int, value: Plain, data_type: DataType) -> None:
    kind = data_type.kind
    if kind in STRINGS or kind in BINARIES:
        data = value.encode() if isinstance(value, str) else value
        assert isinstance(data, bytes)
        if len(data) <= _INLINE:
            row[slot : slot + 8] = data.ljust(_INLINE, b"\0") + bytes([_INLINE_MARK | len(data)])
        else:
            _SLOT.pack_into(row, slot, len(data), len(row))
            row += data + bytes(-len(data) % 8)
    elif kind is Kind.DECIMAL or kind in TIMESTAMPS:
        assert isinstance(value, int)
        _encode_wide(row, slot, value, data_type)
    else:
        raise UnsupportedType(f"{data_type} cannot be used in a key, a partition or a statistic")


def _encode_wide(row: bytearray, slot: int, value: int, data_type: DataType) -> None:
    if not reserved_bytes(data_type):
        _LONG.pack_into(row, slot, value)
    elif data_type.kind is Kind.DECIMAL:
        data = value.to_bytes(max(1, (value if value >= 0 else ~value).bit_length() // 8 + 1), "big", signed=True)
        _SLOT.pack_into(row, slot, len(data), len(row))
        row += data.ljust(_LONG_DECIMAL_BYTES, b"\0")
    else:
        per_milli = _per_milli(data_type)
        millis, rest = divmod(value, per_milli)
        # The slot has nanoseconds where others have a length: milliseconds always take eight bytes.
        _SLOT.pack_into(row, slot, rest * (_NANOS_PER_MILLI // per_milli), len(row))
        row += _LONG.pack(millis)


def decode_row(data: bytes, types: Sequence[DataType]) -> tuple[Plain, ...]:
    """Return the plain values of a serialised row.

    Raises ``ValueError`` if its length or arity does not fit ``types``.

    >>> decode_row(encode_row(("hello world", None), two := (DataType(Kind.VARCHAR), DataType(Kind.BIGINT))), two)
    ('hello world', None)
    """
    return decode_fields(data, len(types), enumerate(types))


def decode_fields(data: bytes, arity: int, fields: Iterable[tuple[int, DataType]]) -> tuple[Plain, ...]:
    """Return plain values of some fields of a serialised row.

    ``fields`` are positions and types, ``arity`` the number of fields. Raises ``ValueError`` as ``decode_row`` does.

    >>> from sparkexpr.values.column_type import Kind
    >>> decode_fields(encode_row((1, 2, 3), (DataType(Kind.INT),) * 3), 3, [(2, DataType(Kind.INT))])
    (3,)
    """
    width = header_size(arity)
    if len(data) < 4 + width + 8 * arity or _ARITY.unpack_from(data)[0] != arity:
        raise ValueError(f"a row of {len(data)} bytes does not have {arity} fields")
    row = memoryview(data)[4:]
    values: list[Plain] = []
    for i, data_type in fields:
        fixed = _PACK.get(data_type.kind)
        if row[(i + 8) >> 3] >> ((i + 8) & 7) & 1:
            values.append(None)
        elif fixed is not None:
            values.append(fixed.unpack_from(row, width + 8 * i)[0])
        else:
            values.append(_DECODERS[data_type.kind](row, width + 8 * i, data_type))
    return tuple(values)


def _slice(row: memoryview, offset: int, length: int) -> bytes:
    if offset < 0 or length < 0 or offset + length > len(row):
        raise ValueError(f"a field of {length} bytes at {offset} is outside of its row of {len(row)} bytes")
    return bytes(row[offset : offset + length])


def _decode_bytes(row: memoryview, slot: int, data_type: DataType) -> Plain:
    mark = row[slot + 7]
    if mark & _INLINE_MARK:
        data = bytes(row[slot : slot + min(mark & ~_INLINE_MARK, _INLINE)])
    else:
        length, offset = _SLOT.unpack_from(row, slot)
        data = _slice(row, offset, length)
    return data.decode() if data_type.kind in STRINGS else data


def _decode_wide(row: memoryview, slot: int, data_type: DataType) -> Plain:
    if not reserved_bytes(data_type):
        value: int = _LONG.unpack_from(row, slot)[0]
        return value
    first, offset = _SLOT.unpack_from(row, slot)
    if data_type.kind is Kind.DECIMAL:
        return int.from_bytes(_slice(row, offset, first), "big", signed=True)
    per_milli = _per_milli(data_type)
    millis: int = _LONG.unpack(_slice(row, offset, 8))[0]
    nanos: int = first
    return millis * per_milli + nanos // (_NANOS_PER_MILLI // per_milli)


def _refuse(_row: memoryview, _slot: int, data_type: DataType) -> Plain:
    raise UnsupportedType(f"{data_type} cannot be used in a key, a partition or a statistic")


_DECODERS: dict[Kind, Callable[[memoryview, int, DataType], Plain]] = {
    **dict.fromkeys(Kind, _refuse),
    **dict.fromkeys([*STRINGS, *BINARIES], _decode_bytes),
    **dict.fromkeys([Kind.DECIMAL, *TIMESTAMPS], _decode_wide),
}
