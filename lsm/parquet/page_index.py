"""Page indexes of a Parquet file.

Indexes have the location, rows, minima and maxima of pages. Leaves of columns with an offset index can be read by
pages; ``page_reader`` decodes them.

Offset indexes have their own decoder. In Thrift's compact protocol every byte below 128 ends a token, a number or a field header. The entry of a page has
seven tokens with constant headers, so all pages of a row group are split and checked at once. An index with another
encoding is decoded by the general Thrift decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lsm.parquet.fields import (
    ChunkStatistics,
    ColumnChunk,
    ColumnMetaData,
    ConvertedType,
    Encoding,
    FieldRepetitionType,
    FileMetaData,
    OffsetIndex,
    PageLocation,
    PhysicalType,
    RowGroupMetaData,
    SchemaElement,
    decode_plain,
    list_of,
    value,
    value_or,
)
from lsm.parquet.footer_checksums import FooterChecksums
from lsm.parquet.footer_structure import chunk_extent, raw_bounds
from lsm.parquet.statistics import check_pages, column_bounds, decode_column_index
from lsm.parquet.thrift import I32, STRUCT, Struct, decode_struct, encode_struct, list_head, unzigzag
from manifest.entry.bounds import BoundsColumn
from manifest.io.file_cache import FileParts
from manifest.types.data_type import DataType
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, Mask, UInt8s

ReadRange = Callable[[int, int], bytes]
ReadInto = Callable[[int, memoryview], None]
_OFFSET_INDEX = frozenset({ColumnChunk.META_DATA, ColumnChunk.OFFSET_INDEX_OFFSET, ColumnChunk.OFFSET_INDEX_LENGTH})
_COLUMN_INDEX = frozenset({ColumnChunk.COLUMN_INDEX_OFFSET, ColumnChunk.COLUMN_INDEX_LENGTH})
_OF_CHUNK = _OFFSET_INDEX | _COLUMN_INDEX
_INDEX_LENGTHS = (ColumnChunk.OFFSET_INDEX_LENGTH, ColumnChunk.COLUMN_INDEX_LENGTH)
_OF_META = frozenset(
    {
        ColumnMetaData.TYPE,
        ColumnMetaData.ENCODINGS,
        ColumnMetaData.PATH_IN_SCHEMA,
        ColumnMetaData.CODEC,
        ColumnMetaData.TOTAL_UNCOMPRESSED_SIZE,
        ColumnMetaData.TOTAL_COMPRESSED_SIZE,
        ColumnMetaData.DATA_PAGE_OFFSET,
        ColumnMetaData.DICTIONARY_PAGE_OFFSET,
        ColumnMetaData.STATISTICS,
    }
)
LAST_OF_META_HEAD = ColumnMetaData.CODEC
"""Last field of ``ColumnMetaData`` that is independent of page locations."""
_IN_MEMORY, _INDEX_IN_MEMORY = 24, 16
"""Bytes in memory for a byte of a footer, and of page indexes."""
_NO_PAGE = 0, 0
_TOKENS = 7
_HEADERS = ((0, 0x16), (2, 0x15), (4, 0x16), (6, 0x00))
"""Position and value of the header tokens of a page: before a long, an int, a long, and at the end of the struct."""
_END = b"\x00"
"""Appended to the last index, so that its last token always has an end."""
_MAX_NUMBER = 9
"""Maximum bytes of a number below 2^62. Valid offsets and sizes are smaller."""


@dataclass(frozen=True)
class PageFooter:
    """Page index information of a footer, and decoded page indexes.

    Holds no open file.

    Args:
        version: Format version.
        schema: Schema elements, root first.
        groups: Chunks of each row group, with the fields that page reads need, and the number of rows.
    """

    version: int
    schema: tuple[Struct, ...]
    groups: tuple[tuple[tuple[Struct, ...], int], ...]
    weight: int
    """Approximate bytes in memory after all indexes have been read."""
    checksums: FooterChecksums | None = None
    locations: dict[int, dict[int, Int64s | None]] = field(default_factory=dict, repr=False)
    layouts: dict[int, dict[int, tuple[Int64s, Int64s]]] = field(default_factory=dict, repr=False)
    bounds: dict[tuple[int, int, DataType], BoundsColumn | None] = field(default_factory=dict, repr=False)
    encoded: dict[int, tuple[Struct, tuple[bytes, ...], bytes]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, fields: Struct, length: int, checksums: FooterChecksums | None = None) -> PageFooter | None:
        """Return the page index information of a footer.

        ``fields`` are Thrift's ``FileMetaData``, of ``length`` bytes. None: the footer is too large, or has no page indexes.

        Raises:
            ValueError: The footer is damaged. Other errors of damaged bytes are possible.
        """
        encoded = list_of(fields, FileMetaData.ROW_GROUPS)
        first = list_of(encoded[0], RowGroupMetaData.COLUMNS) if encoded else ()
        if length > thresholds.footer_index_bytes or not [chunk for chunk in first if ColumnChunk.OFFSET_INDEX_OFFSET in chunk]:
            return None
        groups: list[tuple[tuple[Struct, ...], int]] = []
        indexes = 0
        for group in encoded:
            chunks = list_of(group, RowGroupMetaData.COLUMNS)
            groups.append((tuple(map(_chunk, chunks)), value(group, RowGroupMetaData.NUM_ROWS)))
            indexes += sum([chunk[number][1] for chunk in chunks for number in _INDEX_LENGTHS if number in chunk])
        weight = _IN_MEMORY * length + _INDEX_IN_MEMORY * indexes
        return cls(value(fields, FileMetaData.VERSION), tuple(list_of(fields, FileMetaData.SCHEMA)), tuple(groups), weight, checksums)

    @cached_property
    def columns(self) -> dict[str, list[tuple[int, tuple[Struct, ...]]]]:
        """Leaves of each top-level column that supports page reads.

        A leaf is its number and the elements that lead to it.
        """
        leaves_by_column: dict[str, list[tuple[int, tuple[Struct, ...]]]] = {}
        leaf, position = 0, 1
        while position < len(self.schema):
            end = _end_of(self.schema, position)
            count = sum(SchemaElement.NUM_CHILDREN not in inner for inner in self.schema[position:end])
            repetition = value_or(self.schema[position], SchemaElement.REPETITION_TYPE, FieldRepetitionType.REQUIRED)
            chains = _chains(self.schema, position) if repetition != FieldRepetitionType.REPEATED else None
            if chains is not None:
                leaves_by_column[value(self.schema[position], SchemaElement.NAME).decode()] = list(
                    zip(range(leaf, leaf + count), chains, strict=True)
                )
            leaf, position = leaf + count, end
        return leaves_by_column


@dataclass(frozen=True)
class ColumnPages:
    """Data pages of a leaf in one row group.

    ``elements`` lead from its top-level column to the leaf, without other members.
    """

    indexes: PageIndexes
    group: int
    leaf: int
    elements: tuple[Struct, ...]

    @property
    def name(self) -> str:
        """Name of the top-level column in the file."""
        name: bytes = value(self.elements[0], SchemaElement.NAME)
        return name.decode()

    @property
    def compressed_size(self) -> int:
        """Bytes of the column chunk."""
        size: int = value(self.meta, ColumnMetaData.TOTAL_COMPRESSED_SIZE)
        return size

    @property
    def has_dictionary(self) -> bool:
        """Whether the chunk begins with a dictionary page."""
        first: int = value(self.meta, ColumnMetaData.DATA_PAGE_OFFSET)
        dictionary: int = value_or(self.meta, ColumnMetaData.DICTIONARY_PAGE_OFFSET, 0)
        return 0 < dictionary < first

    @property
    def holds_differences(self) -> bool:
        """Whether pages are encoded as DELTA_BINARY_PACKED."""
        return Encoding.DELTA_BINARY_PACKED in list_of(self.meta, ColumnMetaData.ENCODINGS)

    @cached_property
    def chunk(self) -> Struct:
        """Column chunk (Thrift's ``ColumnChunk``)."""
        return self.indexes.footer.groups[self.group][0][self.leaf]

    @cached_property
    def meta(self) -> Struct:
        """``ColumnMetaData`` of the chunk."""
        meta: Struct = value(self.chunk, ColumnChunk.META_DATA)
        return meta

    @property
    def locations(self) -> Int64s:
        """Offset, size and first row of every page.

        Raises:
            ValueError: They do not fit the chunk.
        """
        return self._layout[0]

    @property
    def starts(self) -> Int64s:
        """First row of every page, and the number of rows.

        Leaves with equal page boundaries share one object.
        """
        return self._layout[1]

    @cached_property
    def _layout(self) -> tuple[Int64s, Int64s]:
        layout = self.indexes.layouts(self.group).get(self.leaf)
        if layout is None:
            raise ValueError("an offset index cannot be read, or does not fit its column chunk")
        return layout

    @property
    def encoded(self) -> tuple[tuple[bytes, ...], bytes]:
        """Encoded elements and location-independent ``ColumnMetaData``."""
        meta = {number: field for number, field in self.meta.items() if number <= LAST_OF_META_HEAD}
        cached = self.indexes.footer.encoded.get(self.leaf)
        if cached is None or cached[0] != meta:  # equal in most row groups
            cached = meta, tuple(map(encode_struct, self.elements)), encode_struct(meta)
            self.indexes.footer.encoded[self.leaf] = cached
        return cached[1:]

    def size(self, pages: Int64s) -> int:
        """Return the bytes of some pages."""
        sizes = self.locations[:, 1]
        return int(sizes[pages[0]]) if len(pages) == 1 else int(sizes[pages].sum())

    def places(self, pages: Int64s) -> list[tuple[int, int]]:
        """Return (offset, length) of the dictionary and of some pages.

        Adjacent pages are combined.
        """
        first = int(self.locations[0, 0])
        start = value_or(self.meta, ColumnMetaData.DICTIONARY_PAGE_OFFSET, first)
        offsets, sizes = self.locations[pages, 0], self.locations[pages, 1]
        breaks = np.flatnonzero(offsets[1:] != offsets[:-1] + sizes[:-1]) + 1
        runs = zip(np.split(offsets, breaks), np.split(sizes, breaks), strict=True)
        ranges = [(int(where[0]), int(length.sum())) for where, length in runs if len(where)]
        return [(start, first - start), *ranges] if 0 < start < first else ranges

    def bounds(self, data_type: DataType) -> BoundsColumn | None:
        """Return the bounds of the pages as values of ``data_type``.

        None: there is no column index.
        """
        cached_bounds, cache_key = self.indexes.footer.bounds, (self.group, self.leaf, data_type)
        if cache_key not in cached_bounds:
            cached_bounds[cache_key] = self._bounds(data_type)
        return cached_bounds[cache_key]

    def _bounds(self, data_type: DataType) -> BoundsColumn | None:
        if not self.chunk.keys() >= _COLUMN_INDEX:
            return None
        start, length = value(self.chunk, ColumnChunk.COLUMN_INDEX_OFFSET), value(self.chunk, ColumnChunk.COLUMN_INDEX_LENGTH)
        kind, rows = value(self.meta, ColumnMetaData.TYPE), np.diff(self.starts)
        page_bounds, order = decode_column_index(self.indexes.read_range(start, length), kind, data_type, rows)
        statistics = value_or(self.meta, ColumnMetaData.STATISTICS, {})
        least, greatest = (None if raw is None else decode_plain(raw, kind) for raw in raw_bounds(statistics))
        of_chunk = column_bounds(least, greatest, value_or(statistics, ChunkStatistics.NULL_COUNT, None), int(self.starts[-1]), data_type)
        check_pages(page_bounds, of_chunk, order, data_type)
        return page_bounds


@dataclass(frozen=True, slots=True)
class PageIndexes:
    """Page indexes of one open file.

    ``read_range`` maps ``(offset, length)`` to bytes of the file. ``read_into`` fills a buffer from an offset, unchecked. ``parts`` caches
    decoded dictionaries. None: they are decoded with each page.
    """

    footer: PageFooter
    read_range: ReadRange
    read_into: ReadInto
    parts: FileParts | None = None

    def column(self, group: int, name: str) -> tuple[ColumnPages, ...] | None:
        """Return the leaf pages of a row group's column.

        None: a leaf has no offset index, or the column's layout is not supported.
        """
        chunks, _ = self.footer.groups[group]
        leaves = []
        for leaf, elements in self.footer.columns.get(name, ()):
            if not chunks[leaf].keys() >= _OFFSET_INDEX:
                return None
            leaves.append(ColumnPages(self, group, leaf, elements))
        return tuple(leaves) or None

    def layouts(self, group: int) -> dict[int, tuple[Int64s, Int64s]]:
        """Return pages and first rows of every leaf.

        Omits leaves with a missing or invalid offset index.
        """
        cached_layouts = self.footer.layouts
        if group not in cached_layouts:
            chunks, num_rows = self.footer.groups[group]
            pages = {leaf: lines for leaf, lines in self._locations(group).items() if lines is not None and len(lines)}
            cached_layouts[group] = layouts(pages, [chunk_extent(value(chunks[leaf], ColumnChunk.META_DATA)) for leaf in pages], num_rows)
        return cached_layouts[group]

    def _locations(self, group: int) -> dict[int, Int64s | None]:
        """Return the page locations of every leaf.

        Reads the offset indexes of the next row groups too, up to a size: they are adjacent in the file.
        """
        cached_locations = self.footer.locations
        if group not in cached_locations:
            places: dict[tuple[int, int], tuple[int, int]] = {}
            decoded: dict[int, dict[int, Int64s | None]] = {}
            size = 0
            for number in range(group, len(self.footer.groups)):
                chunks, _ = self.footer.groups[number]
                group_ranges = {(number, leaf): _offset_index(chunk) for leaf, chunk in enumerate(chunks) if chunk.keys() >= _OFFSET_INDEX}
                size += sum(length for _, length in group_ranges.values())
                if number != group and (number in cached_locations or size > thresholds.offset_index_ahead_bytes):
                    break
                places |= group_ranges
                decoded[number] = {}
            locations = page_locations(self._together(list(places.values()))) if places else []
            for (number, leaf), lines in zip(places, locations, strict=True):
                decoded[number][leaf] = lines
            cached_locations.update(decoded)  # update at once: other threads may read it
        return cached_locations[group]

    def _together(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        first, last = min(offset for offset, _ in places), max(offset + length for offset, length in places)
        if last - first > 2 * sum(length for _, length in places):
            return [self.read_range(offset, length) for offset, length in places]
        data = self.read_range(first, last - first)
        return [data[offset - first : offset - first + length] for offset, length in places]


class RowsOfPage(NamedTuple):
    """Number of a page, its row count, and some of its rows."""

    page: int
    num_rows: int
    rows: list[int]


class TouchedPages:
    """Pages that hold ``rows``, cached for columns with equal boundaries.

    ``rows`` are ascending positions in a row group.
    """

    def __init__(self, rows: Int64s) -> None:
        self._rows = rows
        self._pages_by_starts: dict[int, tuple[Int64s, Int64s]] = {}
        self._breaks: dict[int, tuple[bytes, bytes]] = {}
        self._inside: dict[int, list[RowsOfPage]] = {}

    def of(self, starts: Int64s) -> Int64s:
        """Return the page numbers of a column.

        ``starts`` are the first rows of its pages.
        """
        cached = self._pages_by_starts.get(id(starts))
        if cached is None:  # keep the array alive while its id is a key
            cached = self._pages_by_starts[id(starts)] = starts, np.flatnonzero(np.diff(np.searchsorted(self._rows, starts)))
        return cached[1]

    def rows(self, starts: Int64s) -> list[RowsOfPage]:
        """Return the touched pages with their rows."""
        rows_of_pages = self._inside.get(id(starts))
        if rows_of_pages is None:
            pages = self.of(starts)
            firsts, ends = starts[pages].tolist(), starts[pages + 1].tolist()
            cuts = np.searchsorted(self._rows, ends).tolist()
            page_spans = zip(pages.tolist(), firsts, ends, [0, *cuts], cuts, strict=False)
            rows_of_pages = [
                RowsOfPage(page, end - first, (self._rows[low:high] - first).tolist()) for page, first, end, low, high in page_spans
            ]
            self._inside[id(starts)] = rows_of_pages
        return rows_of_pages

    def breaks(self, starts: Int64s) -> object:
        """Return a key of the boundaries of touched pages.

        Columns with equal keys can be read together.
        """
        boundaries = self._breaks.get(id(starts))
        if boundaries is None:
            pages = self.of(starts)
            boundaries = self._breaks[id(starts)] = starts[pages].tobytes(), starts[pages + 1].tobytes()
        return boundaries


def _chunk(chunk: Struct) -> Struct:
    """Copy a column chunk without fields unused by page reads."""
    trimmed = dict(chunk)
    for number in chunk.keys() - _OF_CHUNK:
        del trimmed[number]
    if ColumnChunk.META_DATA in trimmed:
        kind, meta = trimmed[ColumnChunk.META_DATA]
        meta = dict(meta)
        for number in meta.keys() - _OF_META:
            del meta[number]
        trimmed[ColumnChunk.META_DATA] = kind, meta
    return trimmed


def _offset_index(chunk: Struct) -> tuple[int, int]:
    """Return offset and length of a chunk's offset index."""
    return value(chunk, ColumnChunk.OFFSET_INDEX_OFFSET), value(chunk, ColumnChunk.OFFSET_INDEX_LENGTH)


def _chains(schema: Sequence[Struct], position: int) -> list[tuple[Struct, ...]] | None:
    """Return the elements from ``position`` to each leaf.

    A map becomes a list of its keys, and one of its values. None: this would change the meaning of a list, or the type is INT96,
    whose unit is not in the file.
    """
    element = schema[position]
    if SchemaElement.NUM_CHILDREN not in element:
        return None if value(element, SchemaElement.TYPE) == PhysicalType.INT96 else [(element,)]
    children, end = [], position + 1
    for _ in range(value(element, SchemaElement.NUM_CHILDREN)):
        children.append(end)
        end = _end_of(schema, end)
    kind = value_or(element, SchemaElement.CONVERTED_TYPE, None)
    alone = {**element, SchemaElement.NUM_CHILDREN: (I32, 1)}
    if kind in {ConvertedType.MAP, ConvertedType.MAP_KEY_VALUE, ConvertedType.LIST}:
        members = value_or(schema[children[0]], SchemaElement.NUM_CHILDREN, 0)
        if len(children) != 1 or members != (1 if kind == ConvertedType.LIST else 2):
            return None
        alone[SchemaElement.CONVERTED_TYPE] = I32, ConvertedType.LIST
        alone.pop(SchemaElement.LOGICAL_TYPE, None)
    chains: list[tuple[Struct, ...]] = []
    for child in children:
        inner = _chains(schema, child)
        if inner is None:
            return None
        chains += [(alone, *chain) for chain in inner]
    return chains


def _end_of(schema: Sequence[Struct], position: int) -> int:
    """Return one past the subtree at ``position``."""
    pending = 1
    while pending:
        pending += value_or(schema[position], SchemaElement.NUM_CHILDREN, 0) - 1
        position += 1
    return position


def page_locations(indexes: Sequence[bytes]) -> list[Int64s | None]:
    """Decode the page locations of each ``OffsetIndex``.

    One line per page: offset, size and first row. None for an invalid index.

    >>> from lsm.parquet.thrift import I32, I64, LIST, STRUCT, encode_struct
    >>> page = {1: (I64, 4), 2: (I32, 300), 3: (I64, 0)}
    >>> page_locations([encode_struct({1: (LIST, (STRUCT, [page]))})])[0].tolist()
    [[4, 300, 0]]
    """
    data = b"".join(indexes) + _END
    ends = np.cumsum([len(index) for index in indexes], dtype=np.int64)
    heads = [list_head(index, 0, STRUCT) or _NO_PAGE for index in indexes]
    counts = np.array([count for count, _ in heads], np.int64)
    first = np.concatenate([[0], ends[:-1]]) + np.array([size for _, size in heads], np.int64)
    all_lines, valid = _split(np.frombuffer(data, np.uint8), first, counts, ends)
    lines = np.split(all_lines, np.cumsum(counts)[:-1])
    return [line if right else _one(index) for index, line, right in zip(indexes, lines, valid.tolist(), strict=True)]


def layouts(pages: Mapping[int, Int64s], spans: Sequence[tuple[int, int]], num_rows: int) -> dict[int, tuple[Int64s, Int64s]]:
    """Return pages and first rows of a row group's leaves.

    First rows end with the number of rows. Leaves with equal first rows share one array. ``spans`` has start and end of each leaf's
    chunk. A leaf is omitted if its pages are not in order inside of its chunk. It is also omitted if its rows do not ascend from 0 to
    below ``num_rows``.

    >>> lines = np.array([[4, 300, 0], [304, 80, 5]])
    >>> [(leaf, starts.tolist()) for leaf, (_, starts) in layouts({7: lines, 8: lines}, [(4, 384), (4, 383)], 9).items()]
    [(7, [0, 5, 9])]
    """
    if not pages:
        return {}
    offsets, sizes, rows = np.concatenate(list(pages.values())).T
    counts = np.array([len(lines) for lines in pages.values()], np.int64)
    last = np.cumsum(counts) - 1
    first = last + 1 - counts
    starts, ends = np.array(spans, np.int64).T
    next_offset, next_row = np.append(offsets[1:], 0), np.append(rows[1:], 0)
    next_offset[last], next_row[last] = ends, num_rows
    right = (offsets >= 0) & (sizes > 0) & (sizes <= next_offset - offsets) & (rows < next_row)
    right[first] &= (rows[first] == 0) & (offsets[first] >= starts)
    fits = np.logical_and.reduceat(right, first).tolist()
    alike: dict[bytes, Int64s] = {}
    layout_by_leaf = {}
    for (leaf, lines), fit in zip(pages.items(), fits, strict=True):
        if fit:
            breaks = np.append(lines[:, 2], num_rows)
            layout_by_leaf[leaf] = lines, alike.setdefault(breaks.tobytes(), breaks)
    return layout_by_leaf


def _split(data: UInt8s, first: Int64s, counts: Int64s, ends: Int64s) -> tuple[Int64s, Mask]:
    """Decode the pages of all indexes, and mark valid indexes."""
    closing = np.flatnonzero(data < 0x80)
    tokens = _TOKENS * counts
    begins = np.searchsorted(closing, first)
    before = np.cumsum(tokens) - tokens
    places = np.repeat(begins - before, tokens) + np.arange(int(tokens.sum()))
    in_data = places < closing.size
    places = np.minimum(places, closing.size - 1)
    last = closing[places]
    start = np.minimum(closing[np.maximum(places - 1, 0)] + 1, data.size - 1)
    start[before[tokens > 0]] = first[tokens > 0]
    size = last - start + 1
    right = in_data & (size <= _MAX_NUMBER) & (last < np.repeat(ends, tokens))
    values = _numbers(data, start, np.minimum(size, _MAX_NUMBER)).reshape(-1, _TOKENS)
    right &= size > 0
    pages = right.reshape(-1, _TOKENS).all(axis=1)
    for token, header in _HEADERS:
        pages &= (values[:, token] == header) & (size.reshape(-1, _TOKENS)[:, token] == 1)
    raw = values[:, (1, 3, 5)]
    of_index = np.repeat(np.arange(counts.size), counts)
    wrong = np.bincount(of_index[~pages], minlength=counts.size) > 0
    return unzigzag(raw), ~wrong & (counts > 0)


def _numbers(data: UInt8s, start: Int64s, size: Int64s) -> Int64s:
    """Decode varints of ``size`` bytes at ``start``."""
    value = (data[start] & 0x7F).astype(np.int64)
    for step in range(1, int(size.max(initial=0))):
        longer = np.flatnonzero(size > step)
        value[longer] |= (data[start[longer] + step] & 0x7F).astype(np.int64) << (7 * step)
    return value


def _one(index: bytes) -> Int64s | None:
    try:
        fields, _ = decode_struct(index)
        return np.array([_place(page) for page in list_of(fields, OffsetIndex.PAGE_LOCATIONS)], np.int64).reshape(-1, 3)
    except (ValueError, LookupError, TypeError, OverflowError):
        return None


def _place(page: Struct) -> tuple[int, int, int]:
    return value(page, PageLocation.OFFSET), value(page, PageLocation.COMPRESSED_PAGE_SIZE), value(page, PageLocation.FIRST_ROW_INDEX)
