"""Field numbers and enum values of Parquet's metadata.

A decoded struct is ``{field number: (type, value)}`` (``lsm.parquet.thrift``). Structs, fields and enums have the names of the format's
``parquet.thrift``. Only ``RowGroup``, ``Statistics`` and ``Type`` have other names here.
"""

from __future__ import annotations

import struct
from typing import Any

from lsm.parquet.thrift import Struct


def value(fields: Struct, number: int) -> Any:
    """Return the value of a field.

    Raises:
        KeyError: The field is missing.

    >>> value({2: (5, 7)}, PageHeader.UNCOMPRESSED_PAGE_SIZE)
    7
    """
    return fields[number][1]


def values_of(fields: Struct) -> dict[int, Any]:
    """Return the values of all fields, by their numbers.

    >>> values_of({2: (5, 7)})
    {2: 7}
    """
    return {number: field[1] for number, field in fields.items()}


def value_or(fields: Struct, number: int, missing: Any) -> Any:
    """Return the value of a field, or ``missing``."""
    field = fields.get(number)
    return missing if field is None else field[1]


def list_of(fields: Struct, number: int) -> list[Any]:
    """Return the elements of a list field.

    Raises:
        KeyError: The field is missing.
        TypeError: The field is not a list.
    """
    elements: list[Any] = fields[number][1][1]
    return elements


class FileMetaData:
    """Fields of the footer."""

    VERSION, SCHEMA, NUM_ROWS, ROW_GROUPS, KEY_VALUE_METADATA, CREATED_BY, COLUMN_ORDERS = range(1, 8)


class KeyValue:
    """Fields of a key-value metadata entry."""

    KEY, VALUE = range(1, 3)


class SchemaElement:
    """Fields of a column or column group in the schema."""

    TYPE, TYPE_LENGTH, REPETITION_TYPE, NAME, NUM_CHILDREN, CONVERTED_TYPE, SCALE, PRECISION, FIELD_ID, LOGICAL_TYPE = range(1, 11)


class RowGroupMetaData:
    """Fields of ``RowGroup``."""

    COLUMNS, TOTAL_BYTE_SIZE, NUM_ROWS, SORTING_COLUMNS, FILE_OFFSET, TOTAL_COMPRESSED_SIZE, ORDINAL = range(1, 8)


class ColumnChunk:
    """Fields of a column chunk.

    ``FILE_PATH`` (1) would be a chunk in another file.
    """

    FILE_OFFSET, META_DATA, OFFSET_INDEX_OFFSET, OFFSET_INDEX_LENGTH, COLUMN_INDEX_OFFSET, COLUMN_INDEX_LENGTH = range(2, 8)


class ColumnMetaData:
    """Fields of the metadata of a column chunk."""

    TYPE, ENCODINGS, PATH_IN_SCHEMA, CODEC, NUM_VALUES, TOTAL_UNCOMPRESSED_SIZE, TOTAL_COMPRESSED_SIZE = range(1, 8)
    KEY_VALUE_METADATA, DATA_PAGE_OFFSET, INDEX_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET, STATISTICS, ENCODING_STATS = range(8, 14)
    BLOOM_FILTER_OFFSET, BLOOM_FILTER_LENGTH, SIZE_STATISTICS, GEOSPATIAL_STATISTICS = range(14, 18)


class ChunkStatistics:
    """Fields of ``Statistics``; ``MAX`` and ``MIN`` are the older form."""

    MAX, MIN, NULL_COUNT, DISTINCT_COUNT, MAX_VALUE, MIN_VALUE, IS_MAX_VALUE_EXACT, IS_MIN_VALUE_EXACT = range(1, 9)


class SizeStatistics:
    """Fields of a chunk's level histograms."""

    UNENCODED_BYTE_ARRAY_DATA_BYTES, REPETITION_LEVEL_HISTOGRAM, DEFINITION_LEVEL_HISTOGRAM = range(1, 4)


class OffsetIndex:
    """Fields of a chunk's offset index."""

    PAGE_LOCATIONS = 1


class PageLocation:
    """Fields of a page in an offset index."""

    OFFSET, COMPRESSED_PAGE_SIZE, FIRST_ROW_INDEX = range(1, 4)


class ColumnIndex:
    """Fields of a chunk's column index."""

    NULL_PAGES, MIN_VALUES, MAX_VALUES, BOUNDARY_ORDER, NULL_COUNTS = range(1, 6)


class PageHeader:
    """Fields of a page header."""

    TYPE, UNCOMPRESSED_PAGE_SIZE, COMPRESSED_PAGE_SIZE, CRC, DATA_PAGE_HEADER, INDEX_PAGE_HEADER = range(1, 7)
    DICTIONARY_PAGE_HEADER, DATA_PAGE_HEADER_V2 = range(7, 9)


class DictionaryPageHeader:
    """Fields of a dictionary page header."""

    NUM_VALUES, ENCODING, IS_SORTED = range(1, 4)


class PageEncodingStats:
    """Fields of the number of pages with one encoding."""

    PAGE_TYPE, ENCODING, COUNT = range(1, 4)


class BloomFilterHeader:
    """Fields of the header of a Bloom filter."""

    NUM_BYTES, ALGORITHM, HASH, COMPRESSION = range(1, 5)


class DataPageHeader:
    """Fields of a data page header.

    Version 2 shares only the number of values.
    """

    NUM_VALUES, ENCODING, DEFINITION_LEVEL_ENCODING, REPETITION_LEVEL_ENCODING = range(1, 5)


class PhysicalType:
    """Values of ``Type``."""

    BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY = range(8)


class FieldRepetitionType:
    """Repetition of a column in its parent."""

    REQUIRED, OPTIONAL, REPEATED = range(3)


class ConvertedType:
    """Older annotations of physical types."""

    UTF8, MAP, MAP_KEY_VALUE, LIST, ENUM, DECIMAL, DATE, TIME_MILLIS, TIME_MICROS, TIMESTAMP_MILLIS, TIMESTAMP_MICROS = range(11)
    UINT_8, UINT_16, UINT_32, UINT_64, INT_8, INT_16, INT_32, INT_64, JSON, BSON, INTERVAL = range(11, 22)


class LogicalType:
    """Fields of the union of logical types."""

    STRING, MAP, LIST, ENUM, DECIMAL, DATE, TIME, TIMESTAMP = range(1, 9)
    INTEGER, UNKNOWN, JSON = range(10, 13)
    LAST = 18


class DecimalType:
    """Parameters of the logical type."""

    SCALE, PRECISION = range(1, 3)


class TimestampType:
    """Parameters of the logical type."""

    IS_ADJUSTED_TO_UTC, UNIT = range(1, 3)


class IntType:
    """Parameters of the logical type."""

    BIT_WIDTH, IS_SIGNED = range(1, 3)


class TimeUnit:
    """Units of times and timestamps, fields of a union."""

    MILLIS, MICROS, NANOS = range(1, 4)


class Encoding:
    """Encodings of values. 1 was never used."""

    PLAIN, RLE, DELTA_BINARY_PACKED = 0, 3, 5
    KNOWN = frozenset({0, 2, 3, 4, 5, 6, 7, 8, 9})
    OF_DICTIONARY = frozenset({2, 8})
    OF_DICTIONARY_PAGE = frozenset({0, 2})


class CompressionCodec:
    """Compression codecs of pages."""

    UNCOMPRESSED, SNAPPY, GZIP, LZO, BROTLI, LZ4, ZSTD, LZ4_RAW = KNOWN = range(8)


class PageType:
    """Kinds of pages."""

    DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = range(4)


_NUMBERS = {
    PhysicalType.BOOLEAN: struct.Struct("<?"),
    PhysicalType.INT32: struct.Struct("<i"),
    PhysicalType.INT64: struct.Struct("<q"),
    PhysicalType.FLOAT: struct.Struct("<f"),
    PhysicalType.DOUBLE: struct.Struct("<d"),
}


def byte_width(physical_type: int) -> int | None:
    """Return the bytes of a numeric physical type, otherwise None.

    >>> byte_width(PhysicalType.INT64), byte_width(PhysicalType.BYTE_ARRAY)
    (8, None)
    """
    layout = _NUMBERS.get(physical_type)
    return None if layout is None else layout.size


def decode_plain(raw: bytes, physical_type: int) -> Any:
    """Decode a value in plain encoding.

    Numbers are decoded. Other types are returned as bytes.

    Raises:
        struct.error: The length is wrong.

    >>> decode_plain(b"*" + bytes(3), PhysicalType.INT32), decode_plain(b"text", PhysicalType.BYTE_ARRAY)
    (42, b'text')
    """
    layout = _NUMBERS.get(physical_type)
    return raw if layout is None else layout.unpack(raw)[0]


def encode_plain(literal: Any, physical_type: int, length: int = 0) -> bytes | None:
    r"""Return the only plain encoding of a plain value, or None.

    Bytes have no length before them. ``length`` is that of FIXED_LEN_BYTE_ARRAY.

    >>> encode_plain(42, PhysicalType.INT32), encode_plain("text", PhysicalType.BYTE_ARRAY), encode_plain(0.1, PhysicalType.FLOAT)
    (b'*\x00\x00\x00', b'text', None)
    """
    layout = _NUMBERS.get(physical_type)
    try:
        if layout is not None:
            raw = layout.pack(literal)
            return raw if layout.unpack(raw)[0] == literal else None  # None for NaN, and if digits are lost
        if isinstance(literal, int) and physical_type == PhysicalType.FIXED_LEN_BYTE_ARRAY:
            return literal.to_bytes(length, "big", signed=True)
        raw = literal.encode() if isinstance(literal, str) else literal
    except (struct.error, OverflowError, UnicodeEncodeError):
        return None
    is_whole = physical_type == PhysicalType.BYTE_ARRAY or (physical_type == PhysicalType.FIXED_LEN_BYTE_ARRAY and len(raw) == length)
    return raw if isinstance(raw, bytes) and is_whole else None
