"""Footers adapted to Paimon's reader, with checksums.

* Paimon stores timestamps finer than microseconds as INT96 and others as INT64. The encoder uses one form for the whole file. So it
  receives the coarser ones as plain integers, and the footer then annotates them as timestamps. Paimon pushes filters on them down as
  integers, and fails on another physical type.
* The encoder omits NaN from minima and maxima. For Paimon NaN is the greatest value, so it would skip row groups and pages with NaN.
  Like in files of Paimon's writer, a column of a row group with NaN has neither bounds nor a column index.
* Paimon up to 0.8 marks the keys of maps as optional. Arrow refuses such maps, so its decoder receives lists of entries.

Also the end of an in-memory file of copied pages or chunks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
from lsm.parquet.footer_checksums import footer_checksums
from lsm.parquet.page_index import PageFooter
from lsm.parquet.thrift import BINARY, I32, I64, LIST, STRUCT, TRUE_FIELD, Struct, decode_struct, encode_struct

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
"""Number of schema elements from a map to its key, with the repeated group between them."""
_UNITS = {"ms": TimeUnit.MILLIS, "us": TimeUnit.MICROS}
PARQUET_MAGIC = b"PAR1"


class FooterSink:
    """A sink that changes the footer of a file.

    Bytes are passed on until ``hold``. Later bytes are kept until ``finish`` changes the footer and adds checksums. ``silent`` maps row
    groups to columns without bounds. With ``int96`` the integers of the schema's coarse timestamps are annotated.
    """

    def __init__(self, sink: Any, schema: pa.Schema, *, int96: bool) -> None:
        self._sink, self._schema, self._int96 = sink, schema, int96
        self._held: bytearray | None = None
        self.silent: dict[int, list[str]] = {}
        self.closed = False

    def hold(self) -> None:
        """Keep all further bytes: page indexes and footer."""
        self._held = bytearray()

    def write(self, data: Any) -> int:
        """Write or keep bytes."""
        if self._held is None:
            self._sink.write(data)
        else:
            self._held += data
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes so far."""
        return int(self._sink.tell()) + (0 if self._held is None else len(self._held))

    def flush(self) -> None:
        """Do nothing, because ``write`` keeps no bytes."""

    def close(self) -> None:
        """Refuse further bytes. The owner of the sink closes it."""
        self.closed = True

    def finish(self) -> None:
        """Write the kept bytes, with checksums before the footer."""
        assert self._held is not None
        tail_bytes, self._held = bytes(self._held), None
        length = int.from_bytes(tail_bytes[-_TAIL : -len(_MAGIC)], "little")
        indexes, footer = tail_bytes[: -_TAIL - length], tail_bytes[-_TAIL - length : -_TAIL]
        if self._int96 or self.silent:
            footer = self._change(footer)
        self._sink.write(b"".join([indexes, footer_checksums(indexes, footer), footer, len(footer).to_bytes(4, "little"), _MAGIC]))

    def _change(self, footer: bytes) -> bytes:
        fields, _ = decode_struct(footer)
        if self._int96:
            name_timestamps(fields, self._schema)
        for group, columns in self.silent.items():
            take_bounds(fields, group, columns)
        return encode_struct(fields)


def columns_with_nan(rows: Any) -> list[str]:
    """Return the columns of a table that contain NaN.

    Nested columns are ignored, because Paimon pushes no filter on them down.

    >>> columns_with_nan(pa.table({"a": [1.0, float("nan")], "b": [1.0, None], "c": ["NaN", ""]}))
    ['a']
    """
    floats = [field.name for field in rows.schema if pa.types.is_floating(field.type)]
    return [name for name in floats if pc.any(pc.is_nan(rows.column(name))).as_py()]


def as_integers(schema: pa.Schema) -> pa.Schema:
    """Replace timestamps stored as INT64 by 64-bit integers.

    >>> as_integers(pa.schema([("a", pa.timestamp("us")), ("b", pa.list_(pa.timestamp("ms"))), ("c", pa.timestamp("ns"))])).types
    [DataType(int64), ListType(list<item: int64>), TimestampType(timestamp[ns])]
    """
    return pa.schema([_field(field) for field in schema])


def _field(field: Any) -> Any:
    return field.with_type(_type(field.type))


def _type(kind: Any) -> Any:
    if pa.types.is_struct(kind):
        return pa.struct([_field(kind.field(index)) for index in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_field(kind.key_field), _field(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_field(kind.value_field))
    return pa.int64() if _is_coarse(kind) else kind


def _is_coarse(kind: Any) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit in _UNITS)


def name_timestamps(footer: Struct, schema: pa.Schema) -> None:
    """Annotate integers of a footer as timestamps of ``schema``.

    ``footer`` is Thrift's ``FileMetaData``.
    """
    leaves = [element for element in list_of(footer, FileMetaData.SCHEMA) if SchemaElement.NUM_CHILDREN not in element]
    types = [leaf for field in schema for leaf in _leaves(field.type)]
    assert len(leaves) == len(types)
    for element, leaf in zip(leaves, types, strict=True):
        if _is_coarse(leaf) and SchemaElement.LOGICAL_TYPE not in element:
            element.update(_annotation(leaf))


def take_bounds(footer: Struct, group: int, columns: Collection[str]) -> None:
    """Remove minima, maxima and column indexes of some columns."""
    paths = {(name.encode(),) for name in columns}
    for chunk in list_of(list_of(footer, FileMetaData.ROW_GROUPS)[group], RowGroupMetaData.COLUMNS):
        meta = value(chunk, ColumnChunk.META_DATA)
        if tuple(list_of(meta, ColumnMetaData.PATH_IN_SCHEMA)) in paths:
            for number in _COLUMN_INDEX:
                chunk.pop(number, None)
            for number in _BOUNDS:
                value(meta, ColumnMetaData.STATISTICS).pop(number, None)


def _annotation(kind: Any) -> Struct:
    """Return the schema element fields that annotate a timestamp.

    Only instants also have the older ``converted_type``.
    """
    instant = kind.tz is not None
    unit: Struct = {_UNITS[kind.unit]: (STRUCT, {})}
    timestamp: Struct = {TimestampType.IS_ADJUSTED_TO_UTC: (TRUE_FIELD, instant), TimestampType.UNIT: (STRUCT, unit)}
    logical: Struct = {SchemaElement.LOGICAL_TYPE: (STRUCT, {LogicalType.TIMESTAMP: (STRUCT, timestamp)})}
    return {**logical, SchemaElement.CONVERTED_TYPE: (I32, _CONVERTED_TYPES[kind.unit])} if instant else logical


def _leaves(kind: Any) -> Iterator[Any]:
    """Yield the types of a column's leaves, in file order."""
    if pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            yield from _leaves(kind.field(index).type)
    elif pa.types.is_map(kind):
        yield from _leaves(kind.key_type)
        yield from _leaves(kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(kind.value_type)
    else:
        yield kind


def maps_as_lists(footer: Struct) -> Struct | None:
    """Replace maps with optional keys by lists of (key, value).

    None: the footer has no such map.
    """
    kind, elements = footer[FileMetaData.SCHEMA][1]
    groups = [index for index, element in enumerate(elements) if SchemaElement.NUM_CHILDREN in element]
    optional = {index for index in groups if _has_optional_key(elements, index)}
    if not optional:
        return None
    changed = [_as_list(element) if index in optional else element for index, element in enumerate(elements)]
    return {**footer, FileMetaData.SCHEMA: (footer[FileMetaData.SCHEMA][0], (kind, changed))}


def _has_optional_key(elements: Any, index: int) -> bool:
    element: Struct = elements[index]
    is_map = (
        LogicalType.MAP in value_or(element, SchemaElement.LOGICAL_TYPE, {})
        or value_or(element, SchemaElement.CONVERTED_TYPE, None) == ConvertedType.MAP
    )
    if not is_map or index + _TO_KEY >= len(elements) or value_or(elements[index + 1], SchemaElement.NUM_CHILDREN, 0) != 2:
        return False
    return bool(value(elements[index + _TO_KEY], SchemaElement.REPETITION_TYPE) == FieldRepetitionType.OPTIONAL)


def _as_list(element: Struct) -> Struct:
    annotation: Struct = {SchemaElement.CONVERTED_TYPE: (I32, ConvertedType.LIST)}
    if SchemaElement.LOGICAL_TYPE in element:
        annotation[SchemaElement.LOGICAL_TYPE] = (STRUCT, {LogicalType.LIST: (STRUCT, {})})
    return dict(sorted({**element, **annotation}.items()))


def file_end(source: PageFooter, columns: int, elements: Sequence[Any], groups: Sequence[Any], rows: int) -> bytes:
    """Return footer, footer length and magic bytes.

    Args:
        source: Footer of the data file.
        columns: Number of top-level columns.
        elements: Schema elements after the root, as structs or bytes.
        groups: Row groups.
        rows: Number of rows in all row groups.
    """
    root = {**source.schema[0], SchemaElement.NUM_CHILDREN: (I32, columns)}
    footer = encode_struct(
        {
            FileMetaData.VERSION: (I32, source.version),
            FileMetaData.SCHEMA: (LIST, (STRUCT, [root, *elements])),
            FileMetaData.NUM_ROWS: (I64, rows),
            FileMetaData.ROW_GROUPS: (LIST, (STRUCT, list(groups))),
            FileMetaData.CREATED_BY: (BINARY, b"pyspark-paimon"),
        }
    )
    return b"".join([footer, len(footer).to_bytes(4, "little"), PARQUET_MAGIC])


def extent(values: int, size: int) -> Struct:
    """Return the value count and size fields of ``ColumnMetaData``."""
    return {
        ColumnMetaData.NUM_VALUES: (I64, values),
        ColumnMetaData.TOTAL_UNCOMPRESSED_SIZE: (I64, size),
        ColumnMetaData.TOTAL_COMPRESSED_SIZE: (I64, size),
    }


def row_group(chunks: Sequence[bytes], end: int, rows: int) -> Struct:
    """Return a ``RowGroup`` of chunks.

    ``chunks`` are encoded ``ColumnMetaData``. ``end`` is the current size of the file.
    """
    columns = [{ColumnChunk.FILE_OFFSET: (I64, 0), ColumnChunk.META_DATA: (STRUCT, chunk)} for chunk in chunks]
    return {
        RowGroupMetaData.COLUMNS: (LIST, (STRUCT, columns)),
        RowGroupMetaData.TOTAL_BYTE_SIZE: (I64, end),
        RowGroupMetaData.NUM_ROWS: (I64, rows),
    }
