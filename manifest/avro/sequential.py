"""Sequential decoding of few Avro records.

Like ``columnar``, without numpy arrays for each step. A record begins where the previous one ends. The last one must end where the
payload ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from manifest.avro.schemas import AvroSchema
from manifest.avro.wire import BytesCursor

_LONG: Final = "long"
_BYTES: Final = "bytes"
_KINDS = {"int": _LONG, "long": _LONG, "bytes": _BYTES, "string": _BYTES}
_NULL, _PRESENT = 0, 2
"""Union branches in their encoding."""
_MOST_ITEMS = 1 << 12
_MOST_BITS = 63

_Item: TypeAlias = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a record or of a nested record."""

    path: str
    optional: bool
    kind: str | None
    """None: an array of ``item``."""
    item: _Item | None = None


@dataclass(frozen=True, slots=True)
class FewRecords:
    """Fields by path, with one value per record.

    Args:
        bounds: Start of each record, and end of the last one.
        numbers: Value and presence. A null is 0.
        spans: Start, end and presence of bytes, strings and arrays. A null is empty.
    """

    bounds: list[int]
    numbers: dict[str, list[tuple[int, bool]]]
    spans: dict[str, list[tuple[int, int, bool]]]


def decode_few(shape: AvroSchema, payload: bytes, count: int) -> FewRecords | None:
    """Return the fields of ``count`` records that fill ``payload``.

    None if they do not, or have another layout.

    >>> decode_few((("a", "long"), ("b", ("union", "null", "string"))), bytes([4, 2, 2, 97, 6, 0]), 2)
    FewRecords(bounds=[0, 4, 6], numbers={'a': [(2, True), (3, True)]}, spans={'b': [(3, 4, True), (0, 0, False)]})
    """
    fields = _flat(shape)
    if fields is None:
        return None
    numbers: dict[str, list[tuple[int, bool]]] = {field.path: [] for field in fields if field.kind == _LONG}
    spans: dict[str, list[tuple[int, int, bool]]] = {field.path: [] for field in fields if field.kind != _LONG}
    bounds = [0]
    try:
        for _ in range(count):
            bounds.append(_record(fields, payload, bounds[-1], numbers, spans))
    except (IndexError, ValueError):
        return None
    return FewRecords(bounds, numbers, spans) if bounds[-1] == len(payload) else None


def decode_dicts(shape: AvroSchema, payload: bytes, count: int) -> list[dict[str, Any]] | None:
    """Return ``count`` records that fill ``payload``, as dictionaries.

    None if they do not, or have other types than metadata.

    >>> decode_dicts((("a", "long"), ("b", ("union", "null", "string"))), bytes([4, 2, 2, 97, 6, 0]), 2)
    [{'a': 2, 'b': 'a'}, {'a': 3, 'b': None}]
    """
    cursor = BytesCursor(payload)
    try:
        records = [_value(shape, cursor) for _ in range(count)]
    except (LookupError, ValueError, RecursionError):
        return None
    return records if cursor.at_end else None


def _value(shape: AvroSchema, cursor: BytesCursor) -> Any:
    match shape:
        case "int" | "long":
            return cursor.long()
        case "bytes":
            return cursor.prefixed_bytes()
        case "string":
            return cursor.prefixed_bytes().decode()
        case "null":
            return None
        case ("union", *branches):
            branch = cursor.long()
            if branch < 0:
                raise ValueError("a union has no negative branch")
            return _value(branches[branch], cursor)
        case ("array", items):
            return cursor.items(lambda: _value(items, cursor))
        case tuple():
            return {name: _value(kind, cursor) for name, kind in shape}
    raise ValueError("metadata does not use this type")


@lru_cache(maxsize=64)
def _flat(shape: AvroSchema) -> tuple[_Field, ...] | None:
    """Return the fields of a layout in order.

    None if it has types that metadata does not use.
    """
    flat_fields: list[_Field] = []
    pending: list[tuple[str, Any]] = [("", shape)]
    while pending:
        path, kind = pending.pop()
        optional = isinstance(kind, tuple) and kind[:2] == ("union", "null") and len(kind) == 3
        if optional:
            kind = kind[2]
        match kind:
            case str() if kind in _KINDS:
                flat_fields.append(_Field(path, optional, _KINDS[kind]))
            case ("array", str() as item) if item in _KINDS:
                flat_fields.append(_Field(path, optional, None, (_KINDS[item], False)))
            case ("array", ("union", "null", str() as item)) if item in _KINDS:
                flat_fields.append(_Field(path, optional, None, (_KINDS[item], True)))
            case ((_, _), *_) if not optional:
                pending.extend((f"{path}.{name}" if path else name, inner) for name, inner in reversed(kind))
            case _:
                return None
    return tuple(flat_fields)


def _record(
    fields: tuple[_Field, ...],
    payload: bytes,
    position: int,
    numbers: dict[str, list[tuple[int, bool]]],
    spans: dict[str, list[tuple[int, int, bool]]],
) -> int:
    """Append a record's fields and return its end.

    Raises ``IndexError`` or ``ValueError``.
    """
    # Integers are decoded inline: most fields of metadata are integers.
    for field in fields:
        if field.optional:
            branch = payload[position]
            position += 1
            if branch != _PRESENT:
                if branch != _NULL:
                    raise ValueError("a union has an unknown branch")
                if field.kind == _LONG:
                    numbers[field.path].append((0, False))
                else:
                    spans[field.path].append((0, 0, False))
                continue
        if field.item is not None:
            # Most arrays of metadata are empty: one byte, 0.
            start, position = position, _after_array(field.item, payload, position) if payload[position] else position + 1
            spans[field.path].append((start, position, True))
            continue
        raw = payload[position]
        position += 1
        if raw > 0x7F:
            byte = payload[position]
            if byte < 0x80:
                raw += (byte << 7) - 0x80
                position += 1
            else:
                raw, position = _varint(payload, position - 1)
        value = raw >> 1 ^ -(raw & 1)
        if field.kind == _LONG:
            numbers[field.path].append((value, True))
            continue
        if not 0 <= value <= len(payload) - position:
            raise ValueError(f"{value} bytes exceed the data")
        spans[field.path].append((position, position + value, True))
        position += value
    return position


def _after_array(item: _Item, payload: bytes, position: int) -> int:
    """Return the end of an array.

    The array must have one block without size. Raises as ``_record``.
    """
    kind, optional = item
    raw, position = _varint(payload, position)
    count = raw >> 1 ^ -(raw & 1)
    if not 0 <= count <= min(len(payload) - position, _MOST_ITEMS):
        raise ValueError(f"an array of {count} items")
    for _ in range(count):
        if optional:
            branch = payload[position]
            position += 1
            if branch == _NULL:
                continue
            if branch != _PRESENT:
                raise ValueError("a union has an unknown branch")
        raw = payload[position]
        position += 1
        if raw > 0x7F:
            raw, position = _varint(payload, position - 1)
        if kind == _BYTES:
            length = raw >> 1 ^ -(raw & 1)
            if not 0 <= length <= len(payload) - position:
                raise ValueError(f"{length} bytes exceed the data")
            position += length
    if count and payload[position] != 0:
        raise ValueError("an array of several blocks")
    return position + 1 if count else position


def _varint(payload: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = payload[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> _MOST_BITS + 1:
                raise ValueError("a number of more than 64 bits")
            return value, position
        shift += 7
        if shift > _MOST_BITS:
            raise ValueError("a number of more than 64 bits")
