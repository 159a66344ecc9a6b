"""Whether a Parquet footer holds together, before a decoder that trusts it sees it: a decoder may end the process over one flipped bit.

Everything that a footer says twice is compared: leaf columns and the paths of their chunks, rows of the file, of its row groups and of
their chunks, the older and the newer form of minima and maxima, where chunks and indexes lie and where others end.

Its beginning, version and schema, is the same bytes in all files that were written alike: it is decoded once, and looked through once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fileindex.base.lazy import cached_property
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
from lsm.parquet.footer_fields import check_fields
from lsm.parquet.thrift import I32, STRUCT, Struct, decode_struct, encode_struct
from manifest.io.file_cache import SHARED
from manifest.schema.table_schema import TableSchema

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
"""Bytes by which heads are looked for, fewer than any has; they tell the number of columns."""
_HEADS = 16
"""So many that begin alike are held, the last ones."""
_FIELDS = (FileMetaData.VERSION, FileMetaData.SCHEMA)
BYTES_IN_MEMORY = 60
"""For a byte of a footer, page indexes included."""
_SCHEMAS = 8


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """A leaf of the file's schema.

    Args:
        path: names from the top-level column to the leaf.
        element: the leaf's own element (Thrift's ``SchemaElement``).
        chain: the elements from the top-level column to the leaf.
        definition: greatest definition level.
        repetition: greatest repetition level.
    """

    path: tuple[bytes, ...]
    element: Struct
    chain: tuple[Struct, ...]
    definition: int
    repetition: int


@dataclass(frozen=True)
class FooterHead:
    """Fields that are the first of a footer, the bytes that spell them, and the leaf columns of their schema."""

    encoded: bytes
    fields: Struct
    leaves: tuple[LeafColumn, ...]
    _written_with: deque[tuple[TableSchema, object]] = field(default_factory=lambda: deque(maxlen=_SCHEMAS), repr=False)

    @cached_property
    def columns(self) -> dict[str, list[tuple[int, LeafColumn]]]:
        """The leaves of every top-level column, each with its position among all."""
        found: dict[str, list[tuple[int, LeafColumn]]] = {}
        for position, leaf in enumerate(self.leaves):
            found.setdefault(leaf.path[0].decode(), []).append((position, leaf))
        return found

    def is_of(self, schema: TableSchema, details: object) -> bool:
        """Whether the columns have been found to be those of this very schema, with the same ``details``."""
        return any(known is schema and found == details for known, found in tuple(self._written_with))

    def found_of(self, schema: TableSchema, details: object) -> None:
        """They are."""
        self._written_with.append((schema, details))


def decode_footer(encoded: bytes) -> tuple[Struct, FooterHead]:
    """All fields of a footer (Thrift's ``FileMetaData``), which those who use them must not change, and its head.

    Raises ``ValueError``, or what a missing part raises (``LookupError``, ``TypeError``).
    """
    key = ("footer heads", encoded[:_FIRST])
    heads: tuple[FooterHead, ...] = SHARED.get(key) or ()
    head = next((one for one in heads if encoded.startswith(one.encoded)), None)
    footer, used = decode_struct(encoded) if head is None else decode_struct(encoded, len(head.encoded), head.fields)
    if used != len(encoded):
        raise ValueError(f"its footer has {len(encoded)} bytes of which {used} are used")
    if head is None:
        fields = {number: footer[number] for number in _FIELDS}
        head = FooterHead(encode_struct(fields)[:-1], fields, _leaf_columns(footer))
        if encoded.startswith(head.encoded):  # as nearly all writers spell it
            heads = (head, *heads[: _HEADS - 1])
            SHARED.put(key, heads, BYTES_IN_MEMORY * sum(len(one.encoded) for one in heads))
    return footer, head


def check_footer(footer: Struct, leaves: Sequence[LeafColumn], footer_start: int) -> None:
    """Whether a footer (Thrift's ``FileMetaData``) of these leaf columns holds together; its bytes begin at ``footer_start`` of the file.

    Raises ``ValueError``, or what a missing part raises (``LookupError``, ``TypeError``).
    """
    check_fields(footer, "file")
    version = value(footer, FileMetaData.VERSION)
    if version not in {1, 2}:
        raise ValueError(f"its footer has version {version}")
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
            places.append(_check_chunk(chunk, leaf, count, from_java))
            places += _indexes(chunk)
    if rows != value(footer, FileMetaData.NUM_ROWS):
        raise ValueError(f"its footer has {value(footer, FileMetaData.NUM_ROWS)} rows where its row groups have {rows}")
    _check_places(places, footer_start)


def _leaf_columns(footer: Struct) -> tuple[LeafColumn, ...]:
    """The leaf columns of a footer. Raises as ``check_footer``, for the schema alone."""
    leaves = tuple(_leaves(_structs(footer, FileMetaData.SCHEMA)))
    if len({leaf.path for leaf in leaves}) != len(leaves):
        raise ValueError("its schema has a column twice")
    return leaves


def chunk_extent(meta: Struct) -> Extent:
    """Where a column chunk's bytes start and end, by its ``ColumnMetaData``."""
    first = value(meta, ColumnMetaData.DATA_PAGE_OFFSET)
    dictionary = value_or(meta, ColumnMetaData.DICTIONARY_PAGE_OFFSET, first)
    start = dictionary if 0 < dictionary < first else first
    return start, start + value(meta, ColumnMetaData.TOTAL_COMPRESSED_SIZE)


def raw_bounds(statistics: Struct) -> tuple[bytes | None, bytes | None]:
    """Minimum and maximum of ``Statistics``, as stored: of the newer form, or of the older where that is missing."""
    low = statistics.get(ChunkStatistics.MIN_VALUE) or statistics.get(ChunkStatistics.MIN)
    high = statistics.get(ChunkStatistics.MAX_VALUE) or statistics.get(ChunkStatistics.MAX)
    return (None, None) if low is None or high is None else (low[1], high[1])


def _structs(fields: Struct, number: int) -> Sequence[Struct]:
    kind, values = value(fields, number)
    if values and kind != STRUCT:
        raise ValueError("its footer has a list of other things")
    found: Sequence[Struct] = values
    return found


def _leaves(elements: Sequence[Struct]) -> Iterator[LeafColumn]:
    """The leaves of a schema, each element of which is used just once."""
    for element in elements:
        check_fields(element, "element")
    _check_element(elements[0], root=True)
    count, at = value(elements[0], SchemaElement.NUM_CHILDREN), 1
    for _ in range(count):
        at = yield from _subtree(elements, at, (), 0, 0)
    if at != len(elements):
        raise ValueError("its schema has elements that belong nowhere")


def _subtree(
    elements: Sequence[Struct], at: int, above: tuple[Struct, ...], definition: int, repetition: int
) -> Generator[LeafColumn, None, int]:
    element = elements[at]
    _check_element(element, root=False)
    chain = (*above, element)
    if len(chain) > _MAX_DEPTH:
        raise ValueError("its schema nests too deeply")
    definition += value(element, SchemaElement.REPETITION_TYPE) != FieldRepetitionType.REQUIRED
    repetition += value(element, SchemaElement.REPETITION_TYPE) == FieldRepetitionType.REPEATED
    at += 1
    if SchemaElement.NUM_CHILDREN not in element:
        yield LeafColumn(tuple(value(one, SchemaElement.NAME) for one in chain), element, chain, definition, repetition)
        return at
    for _ in range(value(element, SchemaElement.NUM_CHILDREN)):
        at = yield from _subtree(elements, at, chain, definition, repetition)
    return at


def _check_element(element: Struct, *, root: bool) -> None:
    value(element, SchemaElement.NAME).decode()
    children = value_or(element, SchemaElement.NUM_CHILDREN, None)
    physical = value_or(element, SchemaElement.TYPE, None)
    if (children is None) == (physical is None) or (children is not None and not 0 <= children <= 1 << 16) or (children is None and root):
        raise ValueError("its schema has an element that is neither a column nor a group")
    if not root and value(element, SchemaElement.REPETITION_TYPE) not in _REPETITIONS:
        raise ValueError("its schema has an element that is repeated in an unknown way")
    if physical is not None and not PhysicalType.BOOLEAN <= physical <= PhysicalType.FIXED_LEN_BYTE_ARRAY:
        raise ValueError("its schema has a column of an unknown type")
    if physical == PhysicalType.FIXED_LEN_BYTE_ARRAY and value(element, SchemaElement.TYPE_LENGTH) <= 0:
        raise ValueError("its schema has a column of no width")
    converted = value_or(element, SchemaElement.CONVERTED_TYPE, None)
    logical = value_or(element, SchemaElement.LOGICAL_TYPE, None)
    if (converted is not None and converted not in _CONVERTED_TYPES) or (
        logical is not None and (len(logical) != 1 or next(iter(logical)) not in _LOGICAL_TYPES)
    ):
        raise ValueError("its schema has a column of an unknown logical type")


def _check_chunk(chunk: Struct, leaf: LeafColumn, rows: int, from_java: bool) -> Extent:
    check_fields(chunk, "chunk")
    meta = value(chunk, ColumnChunk.META_DATA)
    check_fields(meta, "meta")
    path = list_of(meta, ColumnMetaData.PATH_IN_SCHEMA)
    if value(meta, ColumnMetaData.TYPE) != value(leaf.element, SchemaElement.TYPE) or tuple(path) != leaf.path:
        raise ValueError(f"a column chunk of '{b'.'.join(path).decode(errors='replace')}' lies where its schema has another column")
    kind, encodings = value(meta, ColumnMetaData.ENCODINGS)
    codec = value(meta, ColumnMetaData.CODEC)
    if kind != I32 or not Encoding.KNOWN.issuperset(encodings) or codec not in CompressionCodec.KNOWN:
        raise ValueError("a column chunk has an unknown encoding or codec")
    if from_java and encodings and (Encoding.RLE in encodings) != (leaf.definition > 0):
        raise ValueError("a column chunk is encoded as if its schema had other nulls")
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
            raise ValueError("a column chunk has other levels than its schema")


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
                raise ValueError("a column chunk has a minimum or maximum of another width")
        if of_number is not None and older in statistics and newer in statistics and statistics[older] != statistics[newer]:
            raise ValueError("a column chunk has two minima or maxima")
    low, high = raw_bounds(statistics)
    if low is not None and high is not None and not _ascends(low, high, kind, leaf.element):
        raise ValueError("a column chunk has a minimum above its maximum")


def _ascends(low: bytes, high: bytes, kind: int, element: Struct) -> bool:
    if byte_width(kind) is not None:
        least, most = decode_plain(low, kind), decode_plain(high, kind)
        return not least > most or value_or(element, SchemaElement.CONVERTED_TYPE, None) in _UNSIGNED  # not a NaN
    is_annotated = SchemaElement.LOGICAL_TYPE in element or SchemaElement.CONVERTED_TYPE in element
    is_decimal = SchemaElement.SCALE in element or SchemaElement.PRECISION in element
    if kind == PhysicalType.BYTE_ARRAY and is_annotated and not is_decimal:
        return low <= high
    return True


def _indexes(chunk: Struct) -> Iterator[Extent]:
    """Where the page indexes and the bloom filter of a chunk lie."""
    for fields, offset, length in (
        (chunk, ColumnChunk.OFFSET_INDEX_OFFSET, ColumnChunk.OFFSET_INDEX_LENGTH),
        (chunk, ColumnChunk.COLUMN_INDEX_OFFSET, ColumnChunk.COLUMN_INDEX_LENGTH),
        (value(chunk, ColumnChunk.META_DATA), ColumnMetaData.BLOOM_FILTER_OFFSET, ColumnMetaData.BLOOM_FILTER_LENGTH),
    ):
        if offset in fields:
            start = value(fields, offset)
            yield start, start + value_or(fields, length, 0)  # older writers give no length of a Bloom filter


def _check_places(places: list[Extent], footer_start: int) -> None:
    """Check that chunks and indexes lie between the magic bytes and the footer and share no byte.

    Gaps and the order are the writer's: Arrow before 18 and polars leave bytes between chunks, parquet-rs puts Bloom filters there.
    """
    end = MAGIC_BYTES
    for start, stop in sorted(places):
        if start < end or stop < start or stop > footer_start:
            raise ValueError(f"the bytes {start} to {stop} of a column chunk or index are another's, or outside of the file")
        end = stop


__all__ = ["BYTES_IN_MEMORY", "FooterHead", "LeafColumn", "check_footer", "chunk_extent", "decode_footer", "raw_bounds"]
