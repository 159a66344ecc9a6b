"""What the page indexes of a Parquet file promise: where the pages of a column lie, which rows they hold, their minima and maxima.

Leaves of columns with an offset index can be read by pages; ``page_reader`` decodes them.
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
from lsm.parquet.footer_seal import FooterSeal
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
"""Number of the last field of ``ColumnMetaData`` that does not depend on where pages lie."""
_IN_MEMORY, _INDEX_IN_MEMORY = 24, 16
"""Bytes in memory for a byte of a footer, and of page indexes."""


@dataclass(frozen=True)
class PageFooter:
    """What a footer says about page indexes, and what has been read of these; holds nothing of an open file.

    Args:
        version: of the format.
        schema: the schema's elements, the root first.
        groups: of every row group the chunks (only with what reading by pages needs) and the rows.
    """

    version: int
    schema: tuple[Struct, ...]
    groups: tuple[tuple[tuple[Struct, ...], int], ...]
    weight: int
    """Bytes in memory, about, once all indexes have been read."""
    seal: FooterSeal | None = None
    locations: dict[int, dict[int, Int64s | None]] = field(default_factory=dict, repr=False)
    layouts: dict[int, dict[int, tuple[Int64s, Int64s]]] = field(default_factory=dict, repr=False)
    bounds: dict[tuple[int, int, DataType], BoundsColumn | None] = field(default_factory=dict, repr=False)
    encoded: dict[int, tuple[Struct, tuple[bytes, ...], bytes]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, fields: Struct, length: int, seal: FooterSeal | None = None) -> PageFooter | None:
        """Of a footer (Thrift's ``FileMetaData``) of ``length`` bytes, and the checksums of the indexes; None if it is too large, or has no page indexes.

        Raises ``ValueError``, or what else the decoding of broken bytes raises, if it cannot be looked through.
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
        return cls(value(fields, FileMetaData.VERSION), tuple(list_of(fields, FileMetaData.SCHEMA)), tuple(groups), weight, seal)

    @cached_property
    def columns(self) -> dict[str, list[tuple[int, tuple[Struct, ...]]]]:
        """The leaves of every top-level column that can be read by pages: the number of each, and the elements that lead to it."""
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
    """The data pages of a leaf in one row group; ``elements`` lead from its top-level column to it, with nothing beside."""

    indexes: PageIndexes
    group: int
    leaf: int
    elements: tuple[Struct, ...]

    @property
    def name(self) -> str:
        """Of its top-level column in the file."""
        name: bytes = value(self.elements[0], SchemaElement.NAME)
        return name.decode()

    @property
    def compressed_size(self) -> int:
        """Bytes of the column chunk."""
        size: int = value(self.meta, ColumnMetaData.TOTAL_COMPRESSED_SIZE)
        return size

    @property
    def holds_differences(self) -> bool:
        """Whether pages are stored as DELTA_BINARY_PACKED."""
        return Encoding.DELTA_BINARY_PACKED in list_of(self.meta, ColumnMetaData.ENCODINGS)

    @cached_property
    def chunk(self) -> Struct:
        """The column chunk (Thrift's ``ColumnChunk``)."""
        return self.indexes.footer.groups[self.group][0][self.leaf]

    @cached_property
    def meta(self) -> Struct:
        """Its ``ColumnMetaData``."""
        meta: Struct = value(self.chunk, ColumnChunk.META_DATA)
        return meta

    @property
    def locations(self) -> Int64s:
        """Offset, size and first row of every page. Raises ``ValueError`` if they do not fit the chunk."""
        return self._layout[0]

    @property
    def starts(self) -> Int64s:
        """First row of every page, and the number of rows at the end; one object for all leaves of a row group that break alike."""
        return self._layout[1]

    @cached_property
    def _layout(self) -> tuple[Int64s, Int64s]:
        found = self.indexes.layouts(self.group).get(self.leaf)
        if found is None:
            raise ValueError("its offset index cannot be read, or does not fit its column chunk")
        return found

    @property
    def encoded(self) -> tuple[tuple[bytes, ...], bytes]:
        """As Thrift's bytes the elements, and what a ``ColumnMetaData`` says that does not depend on where pages lie."""
        meta = {number: field for number, field in self.meta.items() if number <= LAST_OF_META_HEAD}
        known = self.indexes.footer.encoded.get(self.leaf)
        if known is None or known[0] != meta:  # the same in most row groups
            known = meta, tuple(map(encode_struct, self.elements)), encode_struct(meta)
            self.indexes.footer.encoded[self.leaf] = known
        return known[1:]

    def size(self, pages: Int64s) -> int:
        """Bytes of some pages."""
        sizes = self.locations[:, 1]
        return int(sizes[pages[0]]) if len(pages) == 1 else int(sizes[pages].sum())

    def places(self, pages: Int64s) -> list[tuple[int, int]]:
        """(offset, length) of the dictionary, and of some pages, those that lie side by side as one."""
        first = int(self.locations[0, 0])
        start = value_or(self.meta, ColumnMetaData.DICTIONARY_PAGE_OFFSET, first)
        offsets, sizes = self.locations[pages, 0], self.locations[pages, 1]
        breaks = np.flatnonzero(offsets[1:] != offsets[:-1] + sizes[:-1]) + 1
        runs = zip(np.split(offsets, breaks), np.split(sizes, breaks), strict=True)
        found = [(int(where[0]), int(length.sum())) for where, length in runs if len(where)]
        return [(start, first - start), *found] if 0 < start < first else found

    def bounds(self, data_type: DataType) -> BoundsColumn | None:
        """What the column index says of the pages, as values of ``data_type``; None if there is none."""
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
    """The page indexes of one open file: its ``footer``, and ``(offset, length)`` to bytes of the file."""

    footer: PageFooter
    read_range: ReadRange

    def column(self, group: int, name: str) -> tuple[ColumnPages, ...] | None:
        """The pages of a column's leaves in a row group; None if one has no offset index, or the column is laid out otherwise."""
        chunks, _ = self.footer.groups[group]
        leaves = []
        for leaf, elements in self.footer.columns.get(name, ()):
            if not chunks[leaf].keys() >= _OFFSET_INDEX:
                return None
            leaves.append(ColumnPages(self, group, leaf, elements))
        return tuple(leaves) or None

    def layouts(self, group: int) -> dict[int, tuple[Int64s, Int64s]]:
        """The pages of every leaf of a row group, and where they start; without leaves whose offset index is missing or makes no sense.

        Offset indexes lie side by side, so one read gets them all.
        """
        known = self.footer.layouts
        if group not in known:
            chunks, num_rows = self.footer.groups[group]
            pages = {leaf: lines for leaf, lines in self._locations(group).items() if lines is not None and len(lines)}
            known[group] = layouts(pages, [chunk_extent(value(chunks[leaf], ColumnChunk.META_DATA)) for leaf in pages], num_rows)
        return known[group]

    def _locations(self, group: int) -> dict[int, Int64s | None]:
        """The pages of every leaf of a row group as its offset index has them; those of the next groups are decoded along, up to a size."""
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
            known.update(decoded)  # complete, for other threads may look
        return known[group]

    def _together(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        first, last = min(offset for offset, _ in places), max(offset + length for offset, length in places)
        if last - first > 2 * sum(length for _, length in places):
            return [self.read_range(offset, length) for offset, length in places]
        data = self.read_range(first, last - first)
        return [data[offset - first : offset - first + length] for offset, length in places]


class TouchedPages:
    """The pages that hold ``rows`` (ascending positions in a row group): asked for once of all columns that break alike."""

    def __init__(self, rows: Int64s) -> None:
        self._rows = rows
        self._known: dict[int, tuple[Int64s, Int64s]] = {}
        self._breaks: dict[int, tuple[bytes, bytes]] = {}

    def of(self, starts: Int64s) -> Int64s:
        """Numbers of the pages, of a column whose pages begin at ``starts``."""
        known = self._known.get(id(starts))
        if known is None:  # with the array, which must live for as long as its id counts
            known = self._known[id(starts)] = starts, np.flatnonzero(np.diff(np.searchsorted(self._rows, starts)))
        return known[1]

    def breaks(self, starts: Int64s) -> object:
        """The same for columns whose touched pages begin and end at the same rows."""
        known = self._breaks.get(id(starts))
        if known is None:
            pages = self.of(starts)
            known = self._breaks[id(starts)] = starts[pages].tobytes(), starts[pages + 1].tobytes()
        return known


def _chunk(chunk: Struct) -> Struct:
    """A column chunk without statistics and whatever else reading by pages does not ask for."""
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
    """Offset and length of a chunk's offset index."""
    return value(chunk, ColumnChunk.OFFSET_INDEX_OFFSET), value(chunk, ColumnChunk.OFFSET_INDEX_LENGTH)


def _chains(schema: Sequence[Struct], at: int) -> list[tuple[Struct, ...]] | None:
    """The elements from the one at ``at`` to each of its leaves; a map is a list of its keys, and one of its values.

    None where that would change what a list is made of, or for INT96, whose unit the file does not tell.
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
    """One past the last element of the subtree at ``at``."""
    pending = 1
    while pending:
        pending += value_or(schema[at], SchemaElement.NUM_CHILDREN, 0) - 1
        at += 1
    return at


__all__ = ["LAST_OF_META_HEAD", "ColumnPages", "PageFooter", "PageIndexes", "ReadRange", "TouchedPages"]
