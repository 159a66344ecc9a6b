"""Thrift's binary protocol, for the few calls of a metastore that a catalog needs.

Values carry their types, as on the wire. So no interface definition is needed to read an answer, and fields that this package does not know go
back to the server as they came when a table is altered. The libraries with generated code lose such fields, and have a thousand classes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, BinaryIO, Final, TypeAlias

_VERSION: Final = 0x80010000
_CALL, _EXCEPTION = 1, 3
_LARGEST: Final = 1 << 28
_DEEPEST: Final = 64


class Wire(IntEnum):
    """Types of the protocol."""

    STOP = 0
    BOOL = 2
    BYTE = 3
    DOUBLE = 4
    I16 = 6
    I32 = 8
    I64 = 10
    STRING = 11
    STRUCT = 12
    MAP = 13
    SET = 14
    LIST = 15


@dataclass(frozen=True)
class Items:
    """A list or set, with the type of its elements."""

    element: Wire
    values: list[Any]


@dataclass(frozen=True)
class Pairs:
    """A map, with the types of its keys and values."""

    key: Wire
    value: Wire
    entries: dict[Any, Any]


Typed: TypeAlias = tuple[Wire, Any]
Struct: TypeAlias = dict[int, Typed]
"""Fields by their ids."""
_NUMBERS: Final = {Wire.BYTE: ">b", Wire.DOUBLE: ">d", Wire.I16: ">h", Wire.I32: ">i", Wire.I64: ">q"}


class BadMessage(ValueError):
    """The bytes are no message of the protocol."""


def text(value: str) -> Typed:
    """Return a string."""
    return Wire.STRING, value


def number(value: int) -> Typed:
    """Return a 32-bit integer."""
    return Wire.I32, value


def long(value: int) -> Typed:
    """Return a 64-bit integer."""
    return Wire.I64, value


def flag(*, value: bool) -> Typed:
    """Return a truth value."""
    return Wire.BOOL, value


def record(value: Struct) -> Typed:
    """Return a struct."""
    return Wire.STRUCT, value


def records(values: Iterable[Struct]) -> Typed:
    """Return a list of structs."""
    return Wire.LIST, Items(Wire.STRUCT, list(values))


def texts(values: Iterable[str]) -> Typed:
    """Return a list of strings."""
    return Wire.LIST, Items(Wire.STRING, list(values))


def properties(values: Mapping[str, str]) -> Typed:
    """Return a map of strings."""
    return Wire.MAP, Pairs(Wire.STRING, Wire.STRING, dict(values))


def value_of(struct_value: Struct, field_id: int, default: Any = None) -> Any:
    """Return the value of a field; lists and maps as Python's.

    >>> value_of({1: texts(["a"]), 2: properties({"k": "v"})}, 1), value_of({}, 7, "none")
    (['a'], 'none')
    """
    _, value = struct_value.get(field_id, (Wire.STOP, default))
    match value:
        case Items(values=values):
            return values
        case Pairs(entries=entries):
            return entries
        case _:
            return value


def encode_call(name: str, arguments: Struct, sequence: int = 1) -> bytes:
    """Return the message of a call.

    >>> import io
    >>> decode_answer(io.BytesIO(encode_call("f", {1: text("x")})))
    (1, 'f', {1: (<Wire.STRING: 11>, 'x')})
    """
    encoded = name.encode()
    head = struct.pack(">Ii", _VERSION | _CALL, len(encoded)) + encoded + struct.pack(">i", sequence)
    parts = [head]
    _encode(parts, Wire.STRUCT, arguments)
    return b"".join(parts)


def _encode(parts: list[bytes], kind: Wire, value: Any) -> None:
    match kind:
        case Wire.BOOL:
            parts.append(b"\1" if value else b"\0")
        case Wire.STRING:
            data = value.encode("utf-8", "surrogateescape")
            parts += [struct.pack(">i", len(data)), data]
        case Wire.STRUCT:
            for field_id, (field_kind, content) in sorted(value.items()):
                parts.append(struct.pack(">bh", field_kind, field_id))
                _encode(parts, field_kind, content)
            parts.append(b"\0")
        case Wire.MAP:
            parts.append(struct.pack(">bbi", value.key, value.value, len(value.entries)))
            for name, content in value.entries.items():
                _encode(parts, value.key, name)
                _encode(parts, value.value, content)
        case Wire.SET | Wire.LIST:
            parts.append(struct.pack(">bi", value.element, len(value.values)))
            for content in value.values:
                _encode(parts, value.element, content)
        case _:
            parts.append(struct.pack(_NUMBERS[kind], value))


def decode_answer(source: BinaryIO) -> tuple[int, str, Struct]:
    """Read a message: its kind, the call's name, its fields.

    Raises ``BadMessage``, ``OSError``.
    """
    (head,) = struct.unpack(">I", _read(source, 4))
    if head & 0xFFFF0000 != _VERSION:
        raise BadMessage("the answer is not of Thrift's binary protocol")
    name = _decode(source, Wire.STRING, 0)
    _read(source, 4)
    return head & 0xFF, name, _decode(source, Wire.STRUCT, 0)


def is_exception(kind: int) -> bool:
    """Return whether a message reports an error of the protocol, such as an unknown call."""
    return kind == _EXCEPTION


def _decode(source: BinaryIO, kind: Wire, depth: int) -> Any:
    if depth > _DEEPEST:
        raise BadMessage("the answer is nested too deeply")
    match kind:
        case Wire.BOOL:
            return _read(source, 1) != b"\0"
        case Wire.STRING:
            return _read(source, _count(source)).decode("utf-8", "surrogateescape")
        case Wire.STRUCT:
            fields: Struct = {}
            while (field_kind := _kind(source)) is not Wire.STOP:
                (field_id,) = struct.unpack(">h", _read(source, 2))
                fields[field_id] = (field_kind, _decode(source, field_kind, depth + 1))
            return fields
        case Wire.MAP:
            key, value = _kind(source), _kind(source)
            count = _count(source)
            return Pairs(key, value, {_decode(source, key, depth + 1): _decode(source, value, depth + 1) for _ in range(count)})
        case Wire.SET | Wire.LIST:
            element = _kind(source)
            return Items(element, [_decode(source, element, depth + 1) for _ in range(_count(source))])
        case _:
            layout = _NUMBERS.get(kind)
            if layout is None:
                raise BadMessage(f"the answer has a value of type {kind}")
            return struct.unpack(layout, _read(source, struct.calcsize(layout)))[0]


def _kind(source: BinaryIO) -> Wire:
    code = _read(source, 1)[0]
    try:
        return Wire(code)
    except ValueError:
        raise BadMessage(f"the answer has a value of type {code}") from None


def _count(source: BinaryIO) -> int:
    (count,) = struct.unpack(">i", _read(source, 4))
    if not 0 <= count <= _LARGEST:
        raise BadMessage(f"the answer has a length of {count}")
    return int(count)


def _read(source: BinaryIO, length: int) -> bytes:
    data = source.read(length)
    if len(data) != length:
        raise ConnectionResetError("the connection ended in the middle of an answer")
    return data
