"""Footers of data files, sealed, and as Paimon's reader needs them where the encoder's say something else.

* Paimon stores timestamps finer than microseconds as INT96 and all others as INT64, the encoder all of a file alike. So it is given
  the coarser ones as plain integers, and the footer then says what they are: Paimon pushes filters on them down as integers, and
  fails on a file that has another physical type.
* The encoder leaves NaN out of minima and maxima. To Paimon NaN is the greatest value: it would pass over row groups and pages that
  hold it. Like its own writer's, a row group's column with NaN has neither bounds nor a column index.
* Paimon up to 0.8 marks the keys of maps as optional. Arrow refuses such maps, so its decoder gets them as lists of entries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.thresholds import thresholds
from lsm.parquet.fields import (
    ChunkStatistics,
    ColumnChunk,
    ColumnMetaData,
    ConvertedType,
    FieldRepetitionType,
    FileMetaData,
    LogicalType,
    RowGroupMetaData,
    SchemaElement,
    TimestampType,
    TimeUnit,
    list_of,
    value,
    value_or,
)
from lsm.parquet.footer_seal import footer_seal
from lsm.parquet.thrift import I32, STRUCT, TRUE_FIELD, Struct, decode_struct, encode_struct

_MAGIC = b"PAR1"
_TAIL = 8
_BOUNDS = (
    ChunkStatistics.MAX,
    ChunkStatistics.MIN,
    ChunkStatistics.MAX_VALUE,
    ChunkStatistics.MIN_VALUE,
    ChunkStatistics.IS_MAX_VALUE_EXACT,
    ChunkStatistics.IS_MIN_VALUE_EXACT,
)
_COLUMN_INDEX = (ColumnChunk.COLUMN_INDEX_OFFSET, ColumnChunk.COLUMN_INDEX_LENGTH)
_CONVERTED_TYPES = {"ms": ConvertedType.TIMESTAMP_MILLIS, "us": ConvertedType.TIMESTAMP_MICROS}
_TO_KEY = 2
"""Elements from a map to its key: the repeated group lies between."""
_UNITS = {"ms": TimeUnit.MILLIS, "us": TimeUnit.MICROS}


class FooterSink:
    """A sink that hands everything on, but keeps what comes after ``hold`` until ``finish`` has the footer changed and sealed.

    ``silent`` takes the row groups, each with its columns that have no bounds; ``int96``: the integers of the schema's coarse timestamps
    are to be named.
    """

    def __init__(self, sink: Any, schema: pa.Schema, *, int96: bool) -> None:
        self._sink, self._schema, self._int96 = sink, schema, int96
        self._held: bytearray | None = None
        self._waiting = bytearray()
        self._write_bytes = thresholds().file_write_bytes
        self.silent: dict[int, list[str]] = {}
        self.closed = False

    def hold(self) -> None:
        """Keep from now on what is written: the file's end, page indexes and footer."""
        self._held = bytearray()

    def write(self, data: Any) -> int:
        """Write bytes, or keep them; the headers of pages, a few bytes each, go on with what follows them."""
        if self._held is not None:
            self._held += data
        elif len(data) >= self._write_bytes:
            self.flush()
            self._sink.write(data)
        else:
            self._waiting += data
            if len(self._waiting) >= self._write_bytes:
                self.flush()
        return len(data)

    def tell(self) -> int:
        """Bytes so far."""
        return int(self._sink.tell()) + len(self._waiting) + (len(self._held) if self._held is not None else 0)

    def flush(self) -> None:
        """Write what waits for more."""
        if self._waiting:
            waiting, self._waiting = bytes(self._waiting), bytearray()
            self._sink.write(waiting)

    def close(self) -> None:
        """Close what is below."""
        self.closed = True
        self._sink.close()

    def finish(self) -> None:
        """Write what was kept, with a seal in front of the footer."""
        assert self._held is not None
        self.flush()
        held, self._held = bytes(self._held), None
        length = int.from_bytes(held[-_TAIL : -len(_MAGIC)], "little")
        indexes, footer = held[: -_TAIL - length], held[-_TAIL - length : -_TAIL]
        if self._int96 or self.silent:
            footer = self._changed(footer)
        self._sink.write(b"".join([indexes, footer_seal(indexes, footer), footer, len(footer).to_bytes(4, "little"), _MAGIC]))

    def _changed(self, footer: bytes) -> bytes:
        fields, _ = decode_struct(footer)
        if self._int96:
            name_timestamps(fields, self._schema)
        for group, columns in self.silent.items():
            take_bounds(fields, group, columns)
        return encode_struct(fields)


def columns_with_nan(rows: Any) -> list[str]:
    """The columns of a table that hold NaN; nested ones are not looked into, as Paimon pushes no filter on them down.

    >>> columns_with_nan(pa.table({"a": [1.0, float("nan")], "b": [1.0, None], "c": ["NaN", ""]}))
    ['a']
    """
    floats = [field.name for field in rows.schema if pa.types.is_floating(field.type)]
    return [name for name in floats if pc.any(pc.is_nan(rows.column(name))).as_py()]


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


def name_timestamps(footer: Struct, schema: pa.Schema) -> None:
    """Call the integers of a footer (Thrift's ``FileMetaData``) timestamps where ``schema`` has them."""
    leaves = [element for element in list_of(footer, FileMetaData.SCHEMA) if SchemaElement.NUM_CHILDREN not in element]
    types = [leaf for field in schema for leaf in _leaves(field.type)]
    assert len(leaves) == len(types)
    for element, leaf in zip(leaves, types, strict=True):
        if _is_coarse(leaf) and SchemaElement.LOGICAL_TYPE not in element:
            element.update(_annotation(leaf))


def take_bounds(footer: Struct, group: int, columns: Collection[str]) -> None:
    """Take minima, maxima and column indexes from columns of a row group."""
    paths = {(name.encode(),) for name in columns}
    for chunk in list_of(list_of(footer, FileMetaData.ROW_GROUPS)[group], RowGroupMetaData.COLUMNS):
        meta = value(chunk, ColumnChunk.META_DATA)
        if tuple(list_of(meta, ColumnMetaData.PATH_IN_SCHEMA)) in paths:
            for number in _COLUMN_INDEX:
                chunk.pop(number, None)
            for number in _BOUNDS:
                value(meta, ColumnMetaData.STATISTICS).pop(number, None)


def _annotation(kind: Any) -> Struct:
    """The fields of a schema element that make INT64 a timestamp; only instants have the older ``converted_type`` too."""
    instant = kind.tz is not None
    unit: Struct = {_UNITS[kind.unit]: (STRUCT, {})}
    timestamp: Struct = {TimestampType.IS_ADJUSTED_TO_UTC: (TRUE_FIELD, instant), TimestampType.UNIT: (STRUCT, unit)}
    found: Struct = {SchemaElement.LOGICAL_TYPE: (STRUCT, {LogicalType.TIMESTAMP: (STRUCT, timestamp)})}
    return {**found, SchemaElement.CONVERTED_TYPE: (I32, _CONVERTED_TYPES[kind.unit])} if instant else found


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


def maps_as_lists(footer: Struct) -> Struct | None:
    """Return a footer whose maps with optional keys are lists of (key, value). None if it has no such map."""
    kind, elements = footer[FileMetaData.SCHEMA][1]
    groups = [at for at, element in enumerate(elements) if SchemaElement.NUM_CHILDREN in element]
    optional = {at for at in groups if _has_optional_key(elements, at)}
    if not optional:
        return None
    changed = [_as_list(element) if at in optional else element for at, element in enumerate(elements)]
    return {**footer, FileMetaData.SCHEMA: (footer[FileMetaData.SCHEMA][0], (kind, changed))}


def _has_optional_key(elements: Any, at: int) -> bool:
    element: Struct = elements[at]
    is_map = (
        LogicalType.MAP in value_or(element, SchemaElement.LOGICAL_TYPE, {})
        or value_or(element, SchemaElement.CONVERTED_TYPE, None) == ConvertedType.MAP
    )
    if not is_map or at + _TO_KEY >= len(elements) or value_or(elements[at + 1], SchemaElement.NUM_CHILDREN, 0) != 2:
        return False
    return bool(value(elements[at + _TO_KEY], SchemaElement.REPETITION_TYPE) == FieldRepetitionType.OPTIONAL)


def _as_list(element: Struct) -> Struct:
    annotation: Struct = {SchemaElement.CONVERTED_TYPE: (I32, ConvertedType.LIST)}
    if SchemaElement.LOGICAL_TYPE in element:
        annotation[SchemaElement.LOGICAL_TYPE] = (STRUCT, {LogicalType.LIST: (STRUCT, {})})
    return dict(sorted({**element, **annotation}.items()))


__all__ = ["FooterSink", "as_integers", "columns_with_nan", "maps_as_lists", "name_timestamps", "take_bounds"]
