"""Data files with timestamps finer than microseconds: Paimon stores those as INT96 and all others as INT64, the encoder all alike.

So the encoder is given the coarser ones as plain integers, and the footer then says what they are. Paimon pushes filters on
them down as integers, and fails on a file that has another physical type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lsm.thrift_compact import I32, STRUCT, TRUE, Struct, decode_struct, encode_struct

_MAGIC = b"PAR1"
_TAIL = 8
_SCHEMA, _CHILDREN, _CONVERTED, _LOGICAL, _TIMESTAMP = 2, 5, 6, 10, 8
_CONVERTED_TYPES = {"ms": 9, "us": 10}
_UNITS = {"ms": 1, "us": 2}


class FooterSink:
    """A sink that hands everything on, but keeps what comes after ``hold`` until ``finish`` has the footer changed."""

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        self._sink, self._schema = sink, schema
        self._held: bytearray | None = None
        self.closed = False

    def hold(self) -> None:
        """Keep from now on what is written: the file's end, page indexes and footer."""
        self._held = bytearray()

    def write(self, data: Any) -> int:
        """Write bytes, or keep them."""
        if self._held is None:
            self._sink.write(data)
        else:
            self._held += bytes(data)
        return len(data)

    def tell(self) -> int:
        """Bytes so far."""
        return int(self._sink.tell()) + (len(self._held) if self._held is not None else 0)

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """Close what is below."""
        self.closed = True
        self._sink.close()

    def finish(self) -> Any:
        """Write what was kept, with the footer of the schema; the footer as a reader finds it (``pq.FileMetaData``)."""
        assert self._held is not None
        held, self._held = bytes(self._held), None
        length = int.from_bytes(held[-_TAIL : -len(_MAGIC)], "little")
        footer = annotated(held[-_TAIL - length : -_TAIL], self._schema)
        end = footer + len(footer).to_bytes(4, "little") + _MAGIC
        self._sink.write(held[: -_TAIL - length] + end)
        return pq.read_metadata(pa.BufferReader(_MAGIC + end))


def as_integers(schema: pa.Schema) -> pa.Schema:
    """``schema`` with 64-bit integers for timestamps that Paimon stores as such.

    >>> as_integers(pa.schema([("a", pa.timestamp("us")), ("b", pa.list_(pa.timestamp("ms"))), ("c", pa.timestamp("ns"))])).types
    [DataType(int64), ListType(list<item: int64>), TimestampType(timestamp[ns])]
    """
    return pa.schema([_field(field) for field in schema])


def _field(field: Any) -> Any:
    return field.with_type(_type(field.type))


def _type(kind: Any) -> Any:
    if pa.types.is_struct(kind):
        return pa.struct([_field(kind.field(at)) for at in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_field(kind.key_field), _field(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_field(kind.value_field))
    return pa.int64() if _is_coarse(kind) else kind


def _is_coarse(kind: Any) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit in _UNITS)


def annotated(footer: bytes, schema: pa.Schema) -> bytes:
    """The bytes of a footer (Thrift's ``FileMetaData``) whose integers are called timestamps where ``schema`` has them."""
    fields, _ = decode_struct(footer)
    kind, elements = fields[_SCHEMA][1]
    leaves = [element for element in elements if _CHILDREN not in element]
    types = [leaf for field in schema for leaf in _leaves(field.type)]
    assert len(leaves) == len(types)
    for element, leaf in zip(leaves, types, strict=True):
        if _is_coarse(leaf):
            element.update(_annotation(leaf))
    fields[_SCHEMA] = fields[_SCHEMA][0], (kind, elements)
    return encode_struct(fields)


def _annotation(kind: Any) -> Struct:
    """The fields of a schema element that make INT64 a timestamp; only instants have the older ``converted_type`` too."""
    instant = kind.tz is not None
    unit: Struct = {_UNITS[kind.unit]: (STRUCT, {})}
    found: Struct = {_LOGICAL: (STRUCT, {_TIMESTAMP: (STRUCT, {1: (TRUE, instant), 2: (STRUCT, unit)})})}
    return {**found, _CONVERTED: (I32, _CONVERTED_TYPES[kind.unit])} if instant else found


def _leaves(kind: Any) -> Iterator[Any]:
    """The types of a column's leaves, in the order of the file."""
    if pa.types.is_struct(kind):
        for at in range(kind.num_fields):
            yield from _leaves(kind.field(at).type)
    elif pa.types.is_map(kind):
        yield from _leaves(kind.key_type)
        yield from _leaves(kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(kind.value_type)
    else:
        yield kind


__all__ = ["FooterSink", "annotated", "as_integers"]
