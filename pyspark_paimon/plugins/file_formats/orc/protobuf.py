"""Protocol buffers for ORC's metadata.

A message is a dict of field values by number. No read goes beyond its bytes.
"""

from __future__ import annotations

from typing import TypeAlias

OrcMessage: TypeAlias = dict[int, list[int | bytes]]
"""All values of each field: integers (still zigzag encoded) or bytes."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_BITS = 63


def message(data: bytes) -> OrcMessage:
    r"""Decode the fields of a message.

    Raises:
        ValueError: The bytes are not a message.

    >>> message(b"\x08\x96\x01\x12\x02ok")
    {1: [150], 2: [b'ok']}
    """
    fields: OrcMessage = {}
    offset = 0
    while offset < len(data):
        tag, offset = _varint(data, offset)
        number, wire = tag >> 3, tag & 7
        value: int | bytes
        if wire == _VARINT:
            value, offset = _varint(data, offset)
        elif wire == _BYTES:
            length, offset = _varint(data, offset)
            value, offset = _take(data, offset, length)
        elif wire in {_FIXED64, _FIXED32}:
            value, offset = _take(data, offset, 8 if wire == _FIXED64 else 4)
        else:
            raise ValueError(f"a field has unknown wire type {wire}")
        fields.setdefault(number, []).append(value)
    return fields


def integer(fields: OrcMessage, number: int, default: int = 0) -> int:
    """Return the last value of an integer field.

    Raises:
        ValueError: The field is not an integer.
    """
    value = fields.get(number, (default,))[-1]
    if not isinstance(value, int):
        raise ValueError(f"field {number} is not an integer")  # noqa: TRY004  # the bytes are wrong, not the program
    return value


def text(fields: OrcMessage, number: int, default: bytes = b"") -> bytes:
    """Return the last value of a bytes field.

    Raises:
        ValueError: The field is not bytes.
    """
    return _bytes(fields.get(number, (default,))[-1], number)


def messages(fields: OrcMessage, number: int) -> list[OrcMessage]:
    """Return the messages of a repeated field."""
    return [message(_bytes(value, number)) for value in fields.get(number, ())]


def texts(fields: OrcMessage, number: int) -> list[bytes]:
    """Return the values of a repeated bytes field."""
    return [_bytes(value, number) for value in fields.get(number, ())]


def integers(fields: OrcMessage, number: int) -> list[int]:
    """Return the values of a repeated integer field.

    Packed fields are supported.
    """
    numbers: list[int] = []
    for value in fields.get(number, ()):
        if isinstance(value, int):
            numbers.append(value)
            continue
        offset = 0
        while offset < len(value):
            each, offset = _varint(value, offset)
            numbers.append(each)
    return numbers


def decode_zigzag(value: int) -> int:
    """Decode a zigzag integer.

    >>> [decode_zigzag(value) for value in (0, 1, 2, 3)]
    [0, -1, 1, -2]
    """
    return (value >> 1) ^ -(value & 1)


def _bytes(value: int | bytes, number: int) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError(f"field {number} is not bytes")  # noqa: TRY004
    return value


def _take(data: bytes, offset: int, length: int) -> tuple[bytes, int]:
    if length > len(data) - offset:
        raise ValueError(f"a field of {length} bytes exceeds a message of {len(data)} bytes")
    return data[offset : offset + length], offset + length


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if offset >= len(data) or shift > _MOST_BITS:
            raise ValueError("a number does not end")
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, offset
        shift += 7
