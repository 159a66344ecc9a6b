"""Types and required fields of the structs in a footer."""

from __future__ import annotations

from functools import lru_cache

from lsm.parquet.fields import (
    ChunkStatistics,
    ColumnChunk,
    ColumnMetaData,
    FileMetaData,
    RowGroupMetaData,
    SchemaElement,
    SizeStatistics,
)
from lsm.parquet.thrift import BINARY, FALSE_FIELD, I16, I32, I64, LIST, STRUCT, TRUE_FIELD, Struct

_FILE = {
    FileMetaData.VERSION: I32,
    FileMetaData.SCHEMA: LIST,
    FileMetaData.NUM_ROWS: I64,
    FileMetaData.ROW_GROUPS: LIST,
    FileMetaData.KEY_VALUE_METADATA: LIST,
    FileMetaData.CREATED_BY: BINARY,
    FileMetaData.COLUMN_ORDERS: LIST,
}
_ELEMENT = {
    SchemaElement.TYPE: I32,
    SchemaElement.TYPE_LENGTH: I32,
    SchemaElement.REPETITION_TYPE: I32,
    SchemaElement.NAME: BINARY,
    SchemaElement.NUM_CHILDREN: I32,
    SchemaElement.CONVERTED_TYPE: I32,
    SchemaElement.SCALE: I32,
    SchemaElement.PRECISION: I32,
    SchemaElement.FIELD_ID: I32,
    SchemaElement.LOGICAL_TYPE: STRUCT,
}
_GROUP = {
    RowGroupMetaData.COLUMNS: LIST,
    RowGroupMetaData.TOTAL_BYTE_SIZE: I64,
    RowGroupMetaData.NUM_ROWS: I64,
    RowGroupMetaData.SORTING_COLUMNS: LIST,
    RowGroupMetaData.FILE_OFFSET: I64,
    RowGroupMetaData.TOTAL_COMPRESSED_SIZE: I64,
    RowGroupMetaData.ORDINAL: I16,
}
_CHUNK = {
    ColumnChunk.FILE_OFFSET: I64,
    ColumnChunk.META_DATA: STRUCT,
    ColumnChunk.OFFSET_INDEX_OFFSET: I64,
    ColumnChunk.OFFSET_INDEX_LENGTH: I32,
    ColumnChunk.COLUMN_INDEX_OFFSET: I64,
    ColumnChunk.COLUMN_INDEX_LENGTH: I32,
}
_META = {
    ColumnMetaData.TYPE: I32,
    ColumnMetaData.ENCODINGS: LIST,
    ColumnMetaData.PATH_IN_SCHEMA: LIST,
    ColumnMetaData.CODEC: I32,
    ColumnMetaData.NUM_VALUES: I64,
    ColumnMetaData.TOTAL_UNCOMPRESSED_SIZE: I64,
    ColumnMetaData.TOTAL_COMPRESSED_SIZE: I64,
    ColumnMetaData.KEY_VALUE_METADATA: LIST,
    ColumnMetaData.DATA_PAGE_OFFSET: I64,
    ColumnMetaData.INDEX_PAGE_OFFSET: I64,
    ColumnMetaData.DICTIONARY_PAGE_OFFSET: I64,
    ColumnMetaData.STATISTICS: STRUCT,
    ColumnMetaData.ENCODING_STATS: LIST,
    ColumnMetaData.BLOOM_FILTER_OFFSET: I64,
    ColumnMetaData.BLOOM_FILTER_LENGTH: I32,
    ColumnMetaData.SIZE_STATISTICS: STRUCT,
    ColumnMetaData.GEOSPATIAL_STATISTICS: STRUCT,
}
_STATISTICS = {
    ChunkStatistics.MAX: BINARY,
    ChunkStatistics.MIN: BINARY,
    ChunkStatistics.NULL_COUNT: I64,
    ChunkStatistics.DISTINCT_COUNT: I64,
    ChunkStatistics.MAX_VALUE: BINARY,
    ChunkStatistics.MIN_VALUE: BINARY,
    ChunkStatistics.IS_MAX_VALUE_EXACT: TRUE_FIELD,
    ChunkStatistics.IS_MIN_VALUE_EXACT: TRUE_FIELD,
}
_LEVELS = {
    SizeStatistics.UNENCODED_BYTE_ARRAY_DATA_BYTES: I64,
    SizeStatistics.REPETITION_LEVEL_HISTOGRAM: LIST,
    SizeStatistics.DEFINITION_LEVEL_HISTOGRAM: LIST,
}
_TYPES = {
    "file": _FILE, "element": _ELEMENT, "group": _GROUP, "chunk": _CHUNK, "meta": _META, "statistics": _STATISTICS, "levels": _LEVELS
}  # fmt: skip
_NEEDED = {
    "file": {FileMetaData.VERSION, FileMetaData.SCHEMA, FileMetaData.NUM_ROWS, FileMetaData.ROW_GROUPS},
    "element": {SchemaElement.NAME},
    "group": {RowGroupMetaData.COLUMNS, RowGroupMetaData.TOTAL_BYTE_SIZE, RowGroupMetaData.NUM_ROWS},
    "chunk": {ColumnChunk.FILE_OFFSET, ColumnChunk.META_DATA},
    "meta": {
        ColumnMetaData.TYPE,
        ColumnMetaData.ENCODINGS,
        ColumnMetaData.PATH_IN_SCHEMA,
        ColumnMetaData.CODEC,
        ColumnMetaData.NUM_VALUES,
        ColumnMetaData.TOTAL_UNCOMPRESSED_SIZE,
        ColumnMetaData.TOTAL_COMPRESSED_SIZE,
        ColumnMetaData.DATA_PAGE_OFFSET,
    },
}


def check_fields(struct: Struct, kind: str) -> None:
    """Raise ``ValueError`` for a mistyped or missing field.

    Fields after the last known one belong to a newer format version, which only appends fields.

    >>> check_fields({2: (I64, 4)}, "chunk")
    Traceback (most recent call last):
    ValueError: the footer has a chunk without field 3
    """
    _check_signature(tuple([(number, field[0]) for number, field in struct.items()]), kind)


@lru_cache(maxsize=4096)
def _check_signature(signature: tuple[tuple[int, int], ...], kind: str) -> None:
    known = _TYPES[kind]
    for number, type_ in signature:
        if number <= max(known) and known.get(number) != (TRUE_FIELD if type_ == FALSE_FIELD else type_):
            raise ValueError(f"the footer has a field {number} of type {type_} in a {kind}")
    missing = _NEEDED.get(kind, set()) - {number for number, _ in signature}
    if missing:
        raise ValueError(f"the footer has a {kind} without field {min(missing)}")


__all__ = ["check_fields"]
