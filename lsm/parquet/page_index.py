"""What the page indexes of a Parquet file promise: where the pages of a column lie, which rows they hold, their minima and maxima.

Leaves of columns with an offset index can be read by pages; ``page_reader`` decodes them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fileindex.base.arrays import Int64s
from lsm.parquet.footer_structure import raw_bounds
from lsm.parquet.offset_index import layouts, page_locations
from lsm.parquet.statistics import check_pages, column_bounds
from lsm.parquet.thrift import I32, Struct, decode_struct, encode_struct
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType

ReadRange = Callable[[int, int], bytes]

_MAX_FOOTER = 256 * 1024
"""Larger footers take longer to look through than pages save."""
_INT96 = 3
_REPEATED = 2
_MAP, _MAP_KEY_VALUE, _LIST = 1, 2, 3
_LOGICAL = 10
_FORMATS = {0: "<?", 1: "<i", 2: "<q", 4: "<f", 5: "<d"}
_OF_CHUNK = frozenset({3, 4, 5, 6, 7})
_OF_META = frozenset({1, 2, 3, 4, 7, 9, 11, 12})
LAST_OF_META_HEAD = 4
"""Number of the last field of ``ColumnMetaData`` that does not depend on where pages lie."""
_AHEAD_BYTES = 64 << 10
"""Of offset indexes: decoding those of several row groups at once costs little more than those of one."""
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
    locations: dict[int, dict[int, Int64s | None]] = field(default_factory=dict, repr=False)
    layouts: dict[int, dict[int, tuple[Int64s, Int64s]]] = field(default_factory=dict, repr=False)
    bounds: dict[tuple[int, int, DataType], list[ColumnBounds] | None] = field(default_factory=dict, repr=False)
    encoded: dict[int, tuple[Struct, tuple[bytes, ...], bytes]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, fields: Struct, length: int) -> PageFooter | None:
        """Of a footer (Thrift's ``FileMetaData``) of ``length`` bytes; None if it is too large, or has no page indexes.

        Raises ``ValueError``, or what else the decoding of broken bytes raises, if it cannot be looked through.
        """
        if length > _MAX_FOOTER or not any(4 in chunk for group in fields[4][1][1][:1] for chunk in group[1][1][1]):
            return None
        groups = tuple((tuple(map(_chunk, group[1][1][1])), group[3][1]) for group in fields[4][1][1])
        indexes = sum(chunk[length][1] for chunks, _ in groups for chunk in chunks for length in (5, 7) if length in chunk)
        return cls(fields[1][1], tuple(fields[2][1][1]), groups, _IN_MEMORY * length + _INDEX_IN_MEMORY * indexes)

    @cached_property
    def columns(self) -> dict[str, list[tuple[int, tuple[Struct, ...]]]]:
        """The leaves of every top-level column that can be read by pages: the number of each, and the elements that lead to it."""
        found: dict[str, list[tuple[int, tuple[Struct, ...]]]] = {}
        leaf, at = 0, 1
        while at < len(self.schema):
            end = _end_of(self.schema, at)
            count = sum(5 not in inner for inner in self.schema[at:end])
            chains = _chains(self.schema, at) if self.schema[at].get(3, (I32, 0))[1] != _REPEATED else None
            if chains is not None:
                found[self.schema[at][4][1].decode()] = list(zip(range(leaf, leaf + count), chains, strict=True))
            leaf, at = leaf + count, end
        return found


@dataclass(frozen=True)
class ColumnPages:
    """The data pages of a leaf in one row group; ``elements`` lead from its top-level column to it, with nothing beside."""

    indexes: PageIndexes
    group: int
    leaf: int
    elements: tuple[Struct, ...]

    @cached_property
    def chunk(self) -> Struct:
        """The column chunk (Thrift's ``ColumnChunk``)."""
        return self.indexes.footer.groups[self.group][0][self.leaf]

    @cached_property
    def meta(self) -> Struct:
        """Its ``ColumnMetaData``."""
        meta: Struct = self.chunk[3][1]
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
        meta = {number: value for number, value in self.meta.items() if number <= LAST_OF_META_HEAD}
        known = self.indexes.footer.encoded.get(self.leaf)
        if known is None or known[0] != meta:  # the same in most row groups
            known = meta, tuple(map(encode_struct, self.elements)), encode_struct(meta)
            self.indexes.footer.encoded[self.leaf] = known
        return known[1:]

    def size(self, pages: Int64s) -> int:
        """Bytes of some pages."""
        sizes = self.locations[:, 1]
        return int(sizes[pages[0]]) if len(pages) == 1 else int(sizes[pages].sum())

    def bounds(self, data_type: DataType) -> list[ColumnBounds] | None:
        """What the column index says, page by page, as plain values of ``data_type``; None if there is none."""
        known, place = self.indexes.footer.bounds, (self.group, self.leaf, data_type)
        if place not in known:
            known[place] = self._bounds(data_type)
        return known[place]

    def _bounds(self, data_type: DataType) -> list[ColumnBounds] | None:
        if 6 not in self.chunk or 7 not in self.chunk:
            return None
        index, used = decode_struct(self.indexes.read_range(self.chunk[6][1], self.chunk[7][1]))
        if used != self.chunk[7][1]:
            raise ValueError("its column index has another length than its footer says")
        empty, low, high = (index[field][1][1] for field in (1, 2, 3))
        nulls = index[5][1][1] if 5 in index else [None] * len(empty)
        counts = np.diff(self.starts).tolist()
        if not len(empty) == len(low) == len(high) == len(nulls) == len(counts):
            raise ValueError("its column index has another number of pages than its offset index")
        found = [
            ColumnBounds(None, None, count, count)
            if null_page == 1
            else column_bounds(self._raw(least), self._raw(most), null_count, count, data_type)
            for null_page, least, most, null_count, count in zip(empty, low, high, nulls, counts, strict=True)
        ]
        statistics = self.meta.get(12, (0, {}))[1]
        least, most = (None if raw is None else self._raw(raw) for raw in raw_bounds(statistics))
        check_pages(found, column_bounds(least, most, statistics.get(3, (0, None))[1], sum(counts), data_type), index[4][1])
        return found

    def _raw(self, data: bytes) -> Any:
        layout = _FORMATS.get(self.meta[1][1])
        return data if layout is None else struct.unpack(layout, data)[0]


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
            if not chunks[leaf].keys() >= {3, 4, 5}:
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
            known[group] = layouts(pages, [_span(chunks[leaf][3][1]) for leaf in pages], num_rows)
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
                here = {(number, leaf): (chunk[4][1], chunk[5][1]) for leaf, chunk in enumerate(chunks) if chunk.keys() >= {3, 4, 5}}
                size += sum(length for _, length in here.values())
                if number != group and (number in known or size > _AHEAD_BYTES):
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
    kept = {number: value for number, value in chunk.items() if number in _OF_CHUNK}
    if 3 in kept:
        kind, meta = kept[3]
        kept[3] = kind, {number: value for number, value in meta.items() if number in _OF_META}
    return kept


def _span(meta: Struct) -> tuple[int, int]:
    """Where a column chunk's bytes start and end, by its ``ColumnMetaData``."""
    start = meta.get(11, meta[9])[1]
    return start, start + meta[7][1]


def _chains(schema: Sequence[Struct], at: int) -> list[tuple[Struct, ...]] | None:
    """The elements from the one at ``at`` to each of its leaves; a map is a list of its keys, and one of its values.

    None where that would change what a list is made of, or for INT96, whose unit the file does not tell.
    """
    element = schema[at]
    if 5 not in element:
        return None if element[1][1] == _INT96 else [(element,)]
    children, end = [], at + 1
    for _ in range(element[5][1]):
        children.append(end)
        end = _end_of(schema, end)
    kind = element.get(6, (I32, None))[1]
    alone = {**element, 5: (I32, 1)}
    if kind in {_MAP, _MAP_KEY_VALUE, _LIST}:
        members = schema[children[0]].get(5, (I32, 0))[1]
        if len(children) != 1 or members != (1 if kind == _LIST else 2):
            return None
        alone = {number: value for number, value in alone.items() if number != _LOGICAL} | {6: (I32, _LIST)}
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
        pending += schema[at].get(5, (I32, 0))[1] - 1
        at += 1
    return at


__all__ = ["LAST_OF_META_HEAD", "ColumnPages", "PageFooter", "PageIndexes", "ReadRange", "TouchedPages"]
