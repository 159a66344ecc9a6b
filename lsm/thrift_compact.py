"""Thrift's compact protocol without generated code: structs as ``{field id: (type, value)}``, enough for Parquet's metadata.

Every length is checked against the bytes that are left before anything is allocated.
"""

from __future__ import annotations

from typing import Any, TypeAlias

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

Struct: TypeAlias = dict[int, tuple[int, Any]]
_MAX_DEPTH = 32
_INTEGERS = frozenset({I16, I32, I64})


def decode_struct(data: bytes) -> tuple[Struct, int]:
    """The struct at byte 0 and the number of its bytes. Lists are ``(element type, values)``. Raises ``ValueError``.

    >>> decode_struct(bytes.fromhex("1506180361626300"))
    ({1: (5, 3), 2: (8, b'abc')}, 8)
    """
    reader = _Reader(data)
    try:
        return reader.struct(0), reader.at
    except IndexError as error:
        raise ValueError("ends early") from error


def encode_struct(fields: Struct) -> bytes:
    """The bytes of a struct.

    >>> encode_struct({1: (I32, 3), 2: (BINARY, b"abc")}).hex()
    '1506180361626300'
    """
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int) -> Struct:
        if depth > _MAX_DEPTH:
            raise ValueError("nests too deeply")
        fields: Struct = {}
        number = 0
        while True:
            header = self._byte()
            if header == 0:
                return fields
            delta, kind = header >> 4, header & 15
            number = number + delta if delta else _unzigzag(self._varint())
            fields[number] = kind, (kind == TRUE) if kind in {TRUE, FALSE} else self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return _unzigzag(self._varint())
        if kind == BINARY:
            return self._take(self._varint())
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in {LIST, SET}:
            return self._list(depth)
        if kind in {TRUE, FALSE, BYTE}:
            return self._byte()
        if kind == DOUBLE:
            return self._take(8)
        raise ValueError(f"type {kind} is not expected")

    def _list(self, depth: int) -> tuple[int, list[Any]]:
        header = self._byte()
        count, kind = header >> 4, header & 15
        if count == 15:
            count = self._varint()
        if count > len(self._data) - self.at:
            raise ValueError(f"a list of {count} elements exceeds the data")
        return kind, [self._value(kind, depth + 1) for _ in range(count)]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _take(self, length: int) -> bytes:
        if length > len(self._data) - self.at:
            raise ValueError(f"{length} bytes exceed the data")
        found = self._data[self.at : self.at + length]
        self.at += length
        return found


def _write_struct(out: bytearray, fields: Struct) -> None:
    previous = 0
    for number, (kind, value) in sorted(fields.items()):
        code = (TRUE if value else FALSE) if kind in {TRUE, FALSE} else kind
        if 0 < number - previous < 16:
            out.append((number - previous) << 4 | code)
        else:
            out.append(code)
            _write_varint(out, _zigzag(number))
        if kind not in {TRUE, FALSE}:
            _write_value(out, kind, value)
        previous = number
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _write_varint(out, _zigzag(value))
    elif kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in {LIST, SET}:
        element, values = value
        out.append(min(len(values), 15) << 4 | element)
        if len(values) >= 15:
            _write_varint(out, len(values))
        for item in values:
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


def _unzigzag(value: int) -> int:
    return value >> 1 ^ -(value & 1)


__all__ = ["BINARY", "I32", "I64", "LIST", "STRUCT", "TRUE", "Struct", "decode_struct", "encode_struct"]
