"""Thrift's compact protocol for Parquet's metadata.

Structs are ``{field id: (type, value)}``. Every length is checked against the remaining bytes before allocation.
"""

from __future__ import annotations

from typing import Any, TypeAlias

TRUE_FIELD, FALSE_FIELD, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

Struct: TypeAlias = dict[int, tuple[int, Any]]
_MAX_DEPTH = 32
_NEXT_IS_A_LIST = 0x10 | LIST
_INTEGERS = frozenset({I16, I32, I64})
_BOOLEANS = frozenset({TRUE_FIELD, FALSE_FIELD})
_LISTS = frozenset({LIST, SET})
_BYTES = frozenset({TRUE_FIELD, FALSE_FIELD, BYTE})


def decode_struct(data: bytes, offset: int = 0, decoded_fields: Struct | None = None) -> tuple[Struct, int]:
    """Decode the struct at byte 0, and return its length.

    Lists are ``(element type, values)``. With ``decoded_fields``, the fields that end before byte ``offset``, decoding continues there.

    Raises:
        ValueError: The bytes are damaged.

    >>> decode_struct(bytes.fromhex("1506180361626300"))
    ({1: (5, 3), 2: (8, b'abc')}, 8)
    """
    try:
        return _struct(data, offset, decoded_fields)
    except IndexError as error:
        raise ValueError("ends early") from error


def encode_struct(fields: Struct) -> bytes:
    """Encode a struct. Nested structs may be encoded bytes.

    >>> encode_struct({1: (I32, 3), 2: (BINARY, b"abc")}).hex()
    '1506180361626300'
    >>> encode_struct({1: (STRUCT, encode_struct({}))}) == encode_struct({1: (STRUCT, {})})
    True
    """
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def with_fields(encoded: bytes, last: int, fields: Struct) -> bytes:
    """Append fields to an encoded struct.

    Their numbers must be greater than ``last``.

    >>> with_fields(encode_struct({1: (I32, 3)}), 1, {2: (BINARY, b"abc")}) == encode_struct({1: (I32, 3), 2: (BINARY, b"abc")})
    True
    """
    out = bytearray(encoded[:-1])
    _write_struct(out, fields, last)
    return bytes(out)


def list_head(data: bytes, offset: int, kind: int) -> tuple[int, int] | None:
    """Return length and start of the list at byte ``offset``.

    None: the next field is not a list of ``kind``. The next field has the number after that of the field before.

    >>> list_head(encode_struct({1: (LIST, (I64, [7, 8]))}), 0, I64), list_head(b"", 0, I64)
    ((2, 2), None)
    """
    if len(data) < offset + 2 or data[offset] != _NEXT_IS_A_LIST or data[offset + 1] & 15 != kind:
        return None
    count, offset = data[offset + 1] >> 4, offset + 2
    if count == 15:
        try:
            count, offset = varint(data, offset)
        except (IndexError, ValueError):
            return None
    return (count, offset) if count <= len(data) - offset else None


def _struct(data: bytes, offset: int, decoded_fields: Struct | None = None) -> tuple[Struct, int]:
    """Return the struct at byte ``offset`` and its end."""
    # Nested structs are decoded in the same loop, for speed: metadata consists of small structs.
    fields: Struct = {} if decoded_fields is None else dict(decoded_fields)
    number = 0 if decoded_fields is None else max(decoded_fields)
    outer: list[tuple[Struct, int, list[Struct] | None, int]] = []
    """Enclosing structs: fields, current field number, elements of the current list, number of elements left."""
    while True:
        header = data[offset]
        offset += 1
        if header == 0:
            if not outer:
                return fields, offset
            inner, (fields, number, elements, left) = fields, outer.pop()
            if elements is None:
                fields[number] = STRUCT, inner
                continue
            elements.append(inner)
            if left > 1:
                outer.append((fields, number, elements, left - 1))
                fields, number = {}, 0
            continue
        kind = header & 15
        if header > 15:
            number += header >> 4
        else:
            raw, offset = varint(data, offset)
            number = unzigzag(raw)
        if number in fields:
            raise ValueError(f"field {number} exists twice")
        if kind in _INTEGERS:
            raw = data[offset]
            offset += 1
            if raw > 0x7F:
                byte = data[offset]
                if byte < 0x80:
                    raw += (byte << 7) - 0x80
                    offset += 1
                else:
                    raw, offset = varint(data, offset - 1)
            fields[number] = kind, raw >> 1 ^ -(raw & 1)
        elif kind == BINARY:
            raw = data[offset]
            offset += 1
            if raw > 0x7F:
                raw, offset = varint(data, offset - 1)
            end = offset + raw
            if end > len(data):
                raise ValueError(f"{raw} bytes exceed the data")
            fields[number] = kind, data[offset:end]
            offset = end
        elif kind == STRUCT:
            outer.append((fields, number, None, 0))
            fields, number = {}, 0
        elif kind in _BOOLEANS:
            fields[number] = kind, kind == TRUE_FIELD
        elif kind in _LISTS:
            count, element = data[offset] >> 4, data[offset] & 15
            offset += 1
            if count == 15:
                count, offset = varint(data, offset)
            if count > len(data) - offset:
                raise ValueError(f"a list of {count} elements exceeds the data")
            if element == STRUCT:
                structs: list[Struct] = []
                fields[number] = kind, (element, structs)
                if count:
                    outer.append((fields, number, structs, count))
                    fields, number = {}, 0
            else:
                values, offset = _elements(data, offset, element, count)
                fields[number] = kind, (element, values)
        else:
            value, offset = _value(data, offset, kind)
            fields[number] = kind, value
        if len(outer) > _MAX_DEPTH:
            raise ValueError("nests too deeply")


def _value(data: bytes, offset: int, kind: int) -> tuple[Any, int]:
    """Decode a value or list element of a rare type."""
    if kind in _BYTES:
        return data[offset], offset + 1
    if kind == DOUBLE:
        if len(data) < offset + 8:
            raise ValueError("a number exceeds the data")
        return data[offset : offset + 8], offset + 8
    raise ValueError(f"type {kind} was not expected")


def _elements(data: bytes, offset: int, kind: int, count: int) -> tuple[list[Any], int]:
    """Decode the elements of a list of scalars."""
    values: list[Any] = []
    if kind in _INTEGERS:
        for _ in range(count):
            raw = data[offset]
            offset += 1
            if raw > 0x7F:
                raw, offset = varint(data, offset - 1)
            values.append(raw >> 1 ^ -(raw & 1))
    elif kind == BINARY:
        for _ in range(count):
            raw = data[offset]
            offset += 1
            if raw > 0x7F:
                raw, offset = varint(data, offset - 1)
            end = offset + raw
            if end > len(data):
                raise ValueError(f"{raw} bytes exceed the data")
            values.append(data[offset:end])
            offset = end
    else:
        for _ in range(count):
            value, offset = _value(data, offset, kind)
            values.append(value)
    return values, offset


def varint(data: bytes, offset: int) -> tuple[int, int]:
    """Decode the number at byte ``offset``, and return its end.

    >>> varint(bytes([0x96, 0x01]), 0)
    (150, 2)
    """
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _write_struct(out: bytearray, fields: Struct, previous: int = 0) -> None:
    """Append a struct, or the fields after ``previous``."""
    for number, (kind, value) in sorted(fields.items()):
        code = (TRUE_FIELD if value else FALSE_FIELD) if kind in _BOOLEANS else kind
        if 0 < number - previous < 16:
            out.append((number - previous) << 4 | code)
        else:
            out.append(code)
            _write_varint(out, _zigzag(number))
        previous = number
        if kind in _INTEGERS:
            raw = value << 1 if value >= 0 else (-value << 1) - 1
            while raw > 0x7F:
                out.append(raw & 0x7F | 0x80)
                raw >>= 7
            out.append(raw)
        elif kind not in _BOOLEANS:
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _write_varint(out, _zigzag(value))
    elif kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == STRUCT and isinstance(value, bytes):
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in {LIST, SET}:
        element, values = value
        out.append(min(len(values), 15) << 4 | element)
        if len(values) >= 15:
            _write_varint(out, len(values))
        for item in values:
            if isinstance(item, bytes) and element == STRUCT:
                out += item
            else:
                _write_value(out, element, item)
    elif kind == DOUBLE:
        out += value
    else:
        out.append(value)


def _write_varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def unzigzag(value: Any) -> Any:
    """Decode zigzag numbers: the sign is the last bit.

    >>> [unzigzag(value) for value in range(4)]
    [0, -1, 1, -2]
    """
    return value >> 1 ^ -(value & 1)
