"""Page indexes of a Parquet file.

They have the location, rows, minima and maxima of pages. Leaves of columns with an offset index can be read by
pages; ``page_reader`` decodes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from fileindex.base.arrays import Int64s
from fileindex.base.lazy import cached_property
from fileindex.base.thresholds import thresholds
from lsm.parquet.fields import (
    ChunkStatistics,
    ColumnChunk,
    ColumnMetaData,
    ConvertedType,
    Encoding,
    FieldRepetitionType,
    FileMetaData,
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
from lsm.parquet.offset_index import layouts, page_locations
from lsm.parquet.statistics import check_pages, column_bounds, decode_column_index
from lsm.parquet.thrift import I32, Struct, encode_struct
from manifest.entry.bounds import BoundsColumn
from manifest.types.data_type import DataType

ReadRange = Callable[[int, int], bytes]

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
        if length > thresholds().footer_index_bytes or not [chunk for chunk in first if ColumnChunk.OFFSET_INDEX_OFFSET in chunk]:
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
        found: dict[str, list[tuple[int, tuple[Struct, ...]]]] = {}
        leaf, at = 0, 1
        while at < len(self.schema):
            end = _end_of(self.schema, at)
            count = sum(SchemaElement.NUM_CHILDREN not in inner for inner in self.schema[at:end])
            repetition = value_or(self.schema[at], SchemaElement.REPETITION_TYPE, FieldRepetitionType.REQUIRED)
            chains = _chains(self.schema, at) if repetition != FieldRepetitionType.REPEATED else None
            if chains is not None:
                found[value(self.schema[at], SchemaElement.NAME).decode()] = list(zip(range(leaf, leaf + count), chains, strict=True))
            leaf, at = leaf + count, end
        return found


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
        found = self.indexes.layouts(self.group).get(self.leaf)
        if found is None:
            raise ValueError("an offset index cannot be read, or does not fit its column chunk")
        return found

    @property
    def encoded(self) -> tuple[tuple[bytes, ...], bytes]:
        """Encoded elements and location-independent ``ColumnMetaData``."""
        meta = {number: field for number, field in self.meta.items() if number <= LAST_OF_META_HEAD}
        known = self.indexes.footer.encoded.get(self.leaf)
        if known is None or known[0] != meta:  # equal in most row groups
            known = meta, tuple(map(encode_struct, self.elements)), encode_struct(meta)
            self.indexes.footer.encoded[self.leaf] = known
        return known[1:]

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
        found = [(int(where[0]), int(length.sum())) for where, length in runs if len(where)]
        return [(start, first - start), *found] if 0 < start < first else found

    def bounds(self, data_type: DataType) -> BoundsColumn | None:
        """Return the bounds of the pages as values of ``data_type``.

        None: there is no column index.
        """
        known, place = self.indexes.footer.bounds, (self.group, self.leaf, data_type)
        if place not in known:
            known[place] = self._bounds(data_type)
        return known[place]

    def _bounds(self, data_type: DataType) -> BoundsColumn | None:
        if not self.chunk.keys() >= _COLUMN_INDEX:
            return None
        start, length = value(self.chunk, ColumnChunk.COLUMN_INDEX_OFFSET), value(self.chunk, ColumnChunk.COLUMN_INDEX_LENGTH)
        kind, rows = value(self.meta, ColumnMetaData.TYPE), np.diff(self.starts)
        found, order = decode_column_index(self.indexes.read_range(start, length), kind, data_type, rows)
        statistics = value_or(self.meta, ColumnMetaData.STATISTICS, {})
        least, most = (None if raw is None else decode_plain(raw, kind) for raw in raw_bounds(statistics))
        of_chunk = column_bounds(least, most, value_or(statistics, ChunkStatistics.NULL_COUNT, None), int(self.starts[-1]), data_type)
        check_pages(found, of_chunk, order, data_type)
        return found


@dataclass(frozen=True, slots=True)
class PageIndexes:
    """Page indexes of one open file.

    ``read_range`` maps ``(offset, length)`` to bytes of the file.
    """

    footer: PageFooter
    read_range: ReadRange

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
        known = self.footer.layouts
        if group not in known:
            chunks, num_rows = self.footer.groups[group]
            pages = {leaf: lines for leaf, lines in self._locations(group).items() if lines is not None and len(lines)}
            known[group] = layouts(pages, [chunk_extent(value(chunks[leaf], ColumnChunk.META_DATA)) for leaf in pages], num_rows)
        return known[group]

    def _locations(self, group: int) -> dict[int, Int64s | None]:
        """Return the page locations of every leaf.

        Reads the offset indexes of the next row groups too, up to a size: they are adjacent in the file.
        """
        known = self.footer.locations
        if group not in known:
            places: dict[tuple[int, int], tuple[int, int]] = {}
            decoded: dict[int, dict[int, Int64s | None]] = {}
            size = 0
            for number in range(group, len(self.footer.groups)):
                chunks, _ = self.footer.groups[number]
                here = {(number, leaf): _offset_index(chunk) for leaf, chunk in enumerate(chunks) if chunk.keys() >= _OFFSET_INDEX}
                size += sum(length for _, length in here.values())
                if number != group and (number in known or size > thresholds().offset_index_ahead_bytes):
                    break
                places |= here
                decoded[number] = {}
            found = page_locations(self._together(list(places.values()))) if places else []
            for (number, leaf), lines in zip(places, found, strict=True):
                decoded[number][leaf] = lines
            known.update(decoded)  # update at once: other threads may read it
        return known[group]

    def _together(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        first, last = min(offset for offset, _ in places), max(offset + length for offset, length in places)
        if last - first > 2 * sum(length for _, length in places):
            return [self.read_range(offset, length) for offset, length in places]
        data = self.read_range(first, last - first)
        return [data[offset - first : offset - first + length] for offset, length in places]


class TouchedPages:
    """Pages that hold ``rows``, cached for columns with equal boundaries.

    ``rows`` are ascending positions in a row group.
    """

    def __init__(self, rows: Int64s) -> None:
        self._rows = rows
        self._known: dict[int, tuple[Int64s, Int64s]] = {}
        self._breaks: dict[int, tuple[bytes, bytes]] = {}

    def of(self, starts: Int64s) -> Int64s:
        """Return the page numbers of a column.

        ``starts`` are the first rows of its pages.
        """
        known = self._known.get(id(starts))
        if known is None:  # keep the array alive while its id is a key
            known = self._known[id(starts)] = starts, np.flatnonzero(np.diff(np.searchsorted(self._rows, starts)))
        return known[1]

    def breaks(self, starts: Int64s) -> object:
        """Return a key of the boundaries of touched pages.

        Columns with equal keys can be read together.
        """
        known = self._breaks.get(id(starts))
        if known is None:
            pages = self.of(starts)
            known = self._breaks[id(starts)] = starts[pages].tobytes(), starts[pages + 1].tobytes()
        return known


def _chunk(chunk: Struct) -> Struct:
    """Copy a column chunk without fields unused by page reads."""
    kept = dict(chunk)
    for number in chunk.keys() - _OF_CHUNK:
        del kept[number]
    if ColumnChunk.META_DATA in kept:
        kind, meta = kept[ColumnChunk.META_DATA]
        meta = dict(meta)
        for number in meta.keys() - _OF_META:
            del meta[number]
        kept[ColumnChunk.META_DATA] = kind, meta
    return kept


def _offset_index(chunk: Struct) -> tuple[int, int]:
    """Return offset and length of a chunk's offset index."""
    return value(chunk, ColumnChunk.OFFSET_INDEX_OFFSET), value(chunk, ColumnChunk.OFFSET_INDEX_LENGTH)


def _chains(schema: Sequence[Struct], at: int) -> list[tuple[Struct, ...]] | None:
    """Return the elements from ``at`` to each leaf.

    A map becomes a list of its keys, and one of its values. None: this would change the meaning of a list, or the type is INT96,
    whose unit is not in the file.
    """
    element = schema[at]
    if SchemaElement.NUM_CHILDREN not in element:
        return None if value(element, SchemaElement.TYPE) == PhysicalType.INT96 else [(element,)]
    children, end = [], at + 1
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
    found: list[tuple[Struct, ...]] = []
    for child in children:
        inner = _chains(schema, child)
        if inner is None:
            return None
        found += [(alone, *chain) for chain in inner]
    return found


def _end_of(schema: Sequence[Struct], at: int) -> int:
    """Return one past the subtree at ``at``."""
    pending = 1
    while pending:
        pending += value_or(schema[at], SchemaElement.NUM_CHILDREN, 0) - 1
        at += 1
    return at


__all__ = ["LAST_OF_META_HEAD", "ColumnPages", "PageFooter", "PageIndexes", "ReadRange", "TouchedPages"]
