"""Consistency checks of Parquet footers.

A decoder that trusts a damaged footer may crash the process, so it is checked first. Redundant parts are compared: leaf columns and
the paths of their chunks; rows of the file, of its row groups and of their chunks; older and newer minima and maxima; extents of chunks and indexes.
The head of a footer, version and schema, is equal in all files written alike. It is decoded and checked once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from lsm.parquet.fields import (
    ChunkStatistics,
    ColumnChunk,
    ColumnMetaData,
    CompressionCodec,
    ConvertedType,
    Encoding,
    FieldRepetitionType,
    FileMetaData,
    LogicalType,
    PhysicalType,
    RowGroupMetaData,
    SchemaElement,
    SizeStatistics,
    byte_width,
    decode_plain,
    list_of,
    value,
    value_or,
)
from lsm.parquet.thrift import BINARY, FALSE_FIELD, I16, I32, I64, LIST, STRUCT, TRUE_FIELD, Struct, decode_struct, encode_struct
from manifest.io.file_cache import SHARED
from manifest.schema.table_schema import TableSchema
from paimon_base.lazy import cached_property

MAGIC_BYTES = 4
Extent: TypeAlias = tuple[int, int]
_LOGICAL_TYPES = range(1, LogicalType.LAST + 1)
_CONVERTED_TYPES = range(ConvertedType.INTERVAL + 1)
_REPETITIONS = frozenset({FieldRepetitionType.REQUIRED, FieldRepetitionType.OPTIONAL, FieldRepetitionType.REPEATED})
_OLDER_AND_NEWER = (
    (ChunkStatistics.MAX, ChunkStatistics.MAX_VALUE),
    (ChunkStatistics.MIN, ChunkStatistics.MIN_VALUE),
)
_UNSIGNED = range(ConvertedType.UINT_8, ConvertedType.UINT_64 + 1)
_JAVA = b"parquet-mr"
_MAX_DEPTH = 64
_FIRST = 12
"""Length of the cache key prefix of heads. Every head is longer. The prefix includes the number of columns."""
_HEADS = 16
"""Number of cached heads with the same prefix."""
_FIELDS = (FileMetaData.VERSION, FileMetaData.SCHEMA)
BYTES_IN_MEMORY = 60
"""Approximate bytes in memory per byte of a footer, page indexes included."""
_SCHEMAS = 8
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


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """A leaf of the file's schema.

    Args:
        path: Names from the top-level column to the leaf.
        element: Schema element of the leaf (Thrift's ``SchemaElement``).
        chain: Schema elements from the top-level column to the leaf.
        definition: Maximum definition level.
        repetition: Maximum repetition level.
    """

    path: tuple[bytes, ...]
    element: Struct
    chain: tuple[Struct, ...]
    definition: int
    repetition: int


@dataclass(frozen=True)
class FooterHead:
    """First fields of a footer and their leaf columns."""

    encoded: bytes
    fields: Struct
    leaves: tuple[LeafColumn, ...]
    _written_with: deque[tuple[TableSchema, object]] = field(default_factory=lambda: deque(maxlen=_SCHEMAS), repr=False)

    @cached_property
    def columns(self) -> dict[str, list[tuple[int, LeafColumn]]]:
        """Leaves of each top-level column, with their positions."""
        leaves_by_column: dict[str, list[tuple[int, LeafColumn]]] = {}
        for position, leaf in enumerate(self.leaves):
            leaves_by_column.setdefault(leaf.path[0].decode(), []).append((position, leaf))
        return leaves_by_column

    def matches(self, schema: TableSchema, details: object) -> bool:
        """Return whether the columns are known to match ``schema``."""
        return any(matched_schema is schema and matched_details == details for matched_schema, matched_details in tuple(self._written_with))

    def record_match(self, schema: TableSchema, details: object) -> None:
        """Record that the columns match ``schema``."""
        self._written_with.append((schema, details))


def decode_footer(encoded: bytes) -> tuple[Struct, FooterHead]:
    """Decode a footer (Thrift's ``FileMetaData``), and its head.

    Do not change the result: parts are cached.

    Raises:
        ValueError: The footer is damaged. A missing part raises ``LookupError`` or ``TypeError``.
    """
    key = ("footer heads", encoded[:_FIRST])
    heads: tuple[FooterHead, ...] = SHARED.get(key) or ()
    head = next((cached_head for cached_head in heads if encoded.startswith(cached_head.encoded)), None)
    footer, used = decode_struct(encoded) if head is None else decode_struct(encoded, len(head.encoded), head.fields)
    if used != len(encoded):
        raise ValueError(f"the footer has {len(encoded)} bytes, but only {used} are used")
    if head is None:
        fields = {number: footer[number] for number in _FIELDS}
        head = FooterHead(encode_struct(fields)[:-1], fields, _leaf_columns(footer))
        if encoded.startswith(head.encoded):  # true for nearly all writers
            heads = (head, *heads[: _HEADS - 1])
            SHARED.put(key, heads, BYTES_IN_MEMORY * sum(len(cached_head.encoded) for cached_head in heads))
    return footer, head


def check_footer(footer: Struct, leaves: Sequence[LeafColumn], footer_start: int) -> None:
    """Check a footer (Thrift's ``FileMetaData``) for consistency.

    ``footer_start`` is its position in the file.

    Raises:
        ValueError: The footer is damaged. A missing part raises ``LookupError`` or ``TypeError``.
    """
    check_fields(footer, "file")
    version = value(footer, FileMetaData.VERSION)
    if version not in {1, 2}:
        raise ValueError(f"the footer has unknown version {version}")
    groups = _structs(footer, FileMetaData.ROW_GROUPS)
    rows = 0
    places: list[Extent] = []
    from_java = value_or(footer, FileMetaData.CREATED_BY, b"").startswith(_JAVA)
    for group in groups:
        check_fields(group, "group")
        count = value(group, RowGroupMetaData.NUM_ROWS)
        chunks = _structs(group, RowGroupMetaData.COLUMNS)
        if count < 0 or len(chunks) != len(leaves):
            raise ValueError(f"a row group has {count} rows and {len(chunks)} of {len(leaves)} columns")
        rows += count
        for chunk, leaf in zip(chunks, leaves, strict=True):
            extent = _check_chunk(chunk, leaf, count, from_java)
            if count:  # Arrow gives the chunks of an empty row group no true position
                places += [extent, *_indexes(chunk)]
    if rows != value(footer, FileMetaData.NUM_ROWS):
        raise ValueError(f"the footer has {value(footer, FileMetaData.NUM_ROWS)} rows, but its row groups have {rows}")
    _check_extents(places, footer_start)


def _leaf_columns(footer: Struct) -> tuple[LeafColumn, ...]:
    """Return the leaf columns of a footer.

    Raises the errors of ``check_footer`` for the schema.
    """
    leaves = tuple(_leaves(_structs(footer, FileMetaData.SCHEMA)))
    if len({leaf.path for leaf in leaves}) != len(leaves):
        raise ValueError("the schema has a column twice")
    return leaves


def chunk_extent(meta: Struct) -> Extent:
    """Return start and end of a column chunk.

    ``meta`` is its ``ColumnMetaData``.
    """
    first = value(meta, ColumnMetaData.DATA_PAGE_OFFSET)
    dictionary = value_or(meta, ColumnMetaData.DICTIONARY_PAGE_OFFSET, first)
    start = dictionary if 0 < dictionary < first else first
    return start, start + value(meta, ColumnMetaData.TOTAL_COMPRESSED_SIZE)


def raw_bounds(statistics: Struct) -> tuple[bytes | None, bytes | None]:
    """Return the stored minimum and maximum of ``Statistics``.

    Uses the newer form, or the older one if the newer is missing.
    """
    low = statistics.get(ChunkStatistics.MIN_VALUE) or statistics.get(ChunkStatistics.MIN)
    high = statistics.get(ChunkStatistics.MAX_VALUE) or statistics.get(ChunkStatistics.MAX)
    return (None, None) if low is None or high is None else (low[1], high[1])


def _structs(fields: Struct, number: int) -> Sequence[Struct]:
    kind, values = value(fields, number)
    if values and kind != STRUCT:
        raise ValueError("the footer has a list with elements of the wrong type")
    structs: Sequence[Struct] = values
    return structs


def _leaves(elements: Sequence[Struct]) -> Iterator[LeafColumn]:
    """Yield the leaves of a schema.

    Each element must be used once.
    """
    for element in elements:
        check_fields(element, "element")
    _check_element(elements[0], root=True)
    count, position = value(elements[0], SchemaElement.NUM_CHILDREN), 1
    for _ in range(count):
        position = yield from _subtree(elements, position, (), 0, 0)
    if position != len(elements):
        raise ValueError("the schema has elements without a parent")


def _subtree(
    elements: Sequence[Struct], position: int, above: tuple[Struct, ...], definition: int, repetition: int
) -> Generator[LeafColumn, None, int]:
    element = elements[position]
    _check_element(element, root=False)
    chain = (*above, element)
    if len(chain) > _MAX_DEPTH:
        raise ValueError("the schema nests too deeply")
    definition += value(element, SchemaElement.REPETITION_TYPE) != FieldRepetitionType.REQUIRED
    repetition += value(element, SchemaElement.REPETITION_TYPE) == FieldRepetitionType.REPEATED
    position += 1
    if SchemaElement.NUM_CHILDREN not in element:
        yield LeafColumn(tuple(value(ancestor, SchemaElement.NAME) for ancestor in chain), element, chain, definition, repetition)
        return position
    for _ in range(value(element, SchemaElement.NUM_CHILDREN)):
        position = yield from _subtree(elements, position, chain, definition, repetition)
    return position


def _check_element(element: Struct, *, root: bool) -> None:
    value(element, SchemaElement.NAME).decode()
    children = value_or(element, SchemaElement.NUM_CHILDREN, None)
    physical = value_or(element, SchemaElement.TYPE, None)
    if (children is None) == (physical is None) or (children is not None and not 0 <= children <= 1 << 16) or (children is None and root):
        raise ValueError("the schema has an element that is neither a column nor a group")
    if not root and value(element, SchemaElement.REPETITION_TYPE) not in _REPETITIONS:
        raise ValueError("the schema has an element with an unknown repetition")
    if physical is not None and not PhysicalType.BOOLEAN <= physical <= PhysicalType.FIXED_LEN_BYTE_ARRAY:
        raise ValueError("the schema has a column of an unknown type")
    if physical == PhysicalType.FIXED_LEN_BYTE_ARRAY and value(element, SchemaElement.TYPE_LENGTH) <= 0:
        raise ValueError("the schema has a column of no width")
    converted = value_or(element, SchemaElement.CONVERTED_TYPE, None)
    logical = value_or(element, SchemaElement.LOGICAL_TYPE, None)
    if (converted is not None and converted not in _CONVERTED_TYPES) or (
        logical is not None and (len(logical) != 1 or next(iter(logical)) not in _LOGICAL_TYPES)
    ):
        raise ValueError("the schema has a column of an unknown logical type")


def _check_chunk(chunk: Struct, leaf: LeafColumn, rows: int, from_java: bool) -> Extent:
    check_fields(chunk, "chunk")
    meta = value(chunk, ColumnChunk.META_DATA)
    check_fields(meta, "meta")
    path = list_of(meta, ColumnMetaData.PATH_IN_SCHEMA)
    if value(meta, ColumnMetaData.TYPE) != value(leaf.element, SchemaElement.TYPE) or tuple(path) != leaf.path:
        raise ValueError(f"a column chunk of '{b'.'.join(path).decode(errors='replace')}' is where the schema has another column")
    kind, encodings = value(meta, ColumnMetaData.ENCODINGS)
    codec = value(meta, ColumnMetaData.CODEC)
    if kind != I32 or not Encoding.KNOWN.issuperset(encodings) or codec not in CompressionCodec.KNOWN:
        raise ValueError("a column chunk has an unknown encoding or codec")
    if from_java and encodings and (Encoding.RLE in encodings) != (leaf.definition > 0):
        raise ValueError("the encodings of a column chunk do not fit the nullability of its column")
    values = value(meta, ColumnMetaData.NUM_VALUES)
    plain, size = value(meta, ColumnMetaData.TOTAL_UNCOMPRESSED_SIZE), value(meta, ColumnMetaData.TOTAL_COMPRESSED_SIZE)
    alike = codec != CompressionCodec.UNCOMPRESSED or plain == size
    if values < rows or (leaf.repetition == 0 and values != rows) or plain < 0 or size < 0 or not alike:
        raise ValueError(f"a column chunk has {values} values and {size} bytes in {rows} rows")
    if ColumnMetaData.STATISTICS in meta:
        _check_statistics(value(meta, ColumnMetaData.STATISTICS), leaf, values)
    if ColumnMetaData.SIZE_STATISTICS in meta:
        _check_levels(value(meta, ColumnMetaData.SIZE_STATISTICS), leaf, values)
    return chunk_extent(meta)


def _check_levels(levels: Struct, leaf: LeafColumn, values: int) -> None:
    check_fields(levels, "levels")
    for number, greatest in (
        (SizeStatistics.REPETITION_LEVEL_HISTOGRAM, leaf.repetition),
        (SizeStatistics.DEFINITION_LEVEL_HISTOGRAM, leaf.definition),
    ):
        histogram = list_of(levels, number) if number in levels else ()
        if histogram and (len(histogram) != greatest + 1 or sum(histogram) != values):
            raise ValueError("the levels of a column chunk do not fit its schema")


def _check_statistics(statistics: Struct, leaf: LeafColumn, values: int) -> None:
    check_fields(statistics, "statistics")
    nulls = value_or(statistics, ChunkStatistics.NULL_COUNT, 0)
    if not 0 <= nulls <= (values if leaf.definition else 0):
        raise ValueError(f"a column chunk of {values} values has {nulls} nulls")
    kind = value(leaf.element, SchemaElement.TYPE)
    of_number = byte_width(kind)
    width = value(leaf.element, SchemaElement.TYPE_LENGTH) if kind == PhysicalType.FIXED_LEN_BYTE_ARRAY else of_number
    for older, newer in _OLDER_AND_NEWER:
        for number in (older, newer):
            if number in statistics and width is not None and len(value(statistics, number)) != width:
                raise ValueError("a column chunk has a minimum or maximum of the wrong width")
        if of_number is not None and older in statistics and newer in statistics and statistics[older] != statistics[newer]:
            raise ValueError("a column chunk has two different minima or maxima")
    low, high = raw_bounds(statistics)
    if low is not None and high is not None and not _ascends(low, high, kind, leaf.element):
        raise ValueError("a column chunk has a minimum above its maximum")


def _ascends(low: bytes, high: bytes, kind: int, element: Struct) -> bool:
    if byte_width(kind) is not None:
        least, greatest = decode_plain(low, kind), decode_plain(high, kind)
        return not least > greatest or value_or(element, SchemaElement.CONVERTED_TYPE, None) in _UNSIGNED  # False for NaN
    is_annotated = SchemaElement.LOGICAL_TYPE in element or SchemaElement.CONVERTED_TYPE in element
    is_decimal = SchemaElement.SCALE in element or SchemaElement.PRECISION in element
    if kind == PhysicalType.BYTE_ARRAY and is_annotated and not is_decimal:
        return low <= high
    return True


def _indexes(chunk: Struct) -> Iterator[Extent]:
    """Yield the extents of a chunk's indexes and bloom filter."""
    for fields, offset, length in (
        (chunk, ColumnChunk.OFFSET_INDEX_OFFSET, ColumnChunk.OFFSET_INDEX_LENGTH),
        (chunk, ColumnChunk.COLUMN_INDEX_OFFSET, ColumnChunk.COLUMN_INDEX_LENGTH),
        (value(chunk, ColumnChunk.META_DATA), ColumnMetaData.BLOOM_FILTER_OFFSET, ColumnMetaData.BLOOM_FILTER_LENGTH),
    ):
        if offset in fields:
            start = value(fields, offset)
            yield start, start + value_or(fields, length, 0)  # older writers omit the length of a Bloom filter


def _check_extents(places: list[Extent], footer_start: int) -> None:
    """Check that chunks and indexes do not overlap.

    They must be between the magic bytes and the footer.
    """
    # Gaps and any order are valid: Arrow before 18 and polars leave bytes between chunks, parquet-rs puts Bloom filters there.
    end = MAGIC_BYTES
    for start, stop in sorted(places):
        if start < end or stop < start or stop > footer_start:
            raise ValueError(f"the bytes {start} to {stop} of a column chunk or index overlap others, or are outside of the file")
        end = stop


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
    type_of_field = _TYPES[kind]
    for number, type_ in signature:
        if number <= max(type_of_field) and type_of_field.get(number) != (TRUE_FIELD if type_ == FALSE_FIELD else type_):
            raise ValueError(f"the footer has a field {number} of type {type_} in a {kind}")
    missing = _NEEDED.get(kind, set()) - {number for number, _ in signature}
    if missing:
        raise ValueError(f"the footer has a {kind} without field {min(missing)}")
