"""Reading single pages of a Parquet file: what the page indexes promise, and a few rows without decoding the rest.

The decoder knows whole column chunks only. So the pages that hold the wanted rows are put, with the chunk's dictionary, into a
small Parquet file in memory, which the decoder reads as any other. Leaves of columns with an offset index can be read so.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lsm.thrift_compact import BINARY, I32, I64, LIST, STRUCT, Struct, decode_struct, encode_struct

ReadRange = Callable[[int, int], bytes]
_Longs = npt.NDArray[np.int64]

_MAGIC = b"PAR1"
_MAX_FOOTER = 256 * 1024
"""Larger footers take longer to look through than pages save."""
_INT96, _FIXED = 3, 7
_REPEATED = 2
_MAP, _MAP_KEY_VALUE, _LIST = 1, 2, 3
_LOGICAL = 10
_PAGE_HEADER = 8 * 1024
"""More than a page header takes up, unless its statistics are very long texts."""
_FORMATS = {0: "<?", 1: "<i", 2: "<q", 4: "<f", 5: "<d"}


@dataclass(frozen=True, slots=True)
class PageBounds:
    """What the column index says of a page: raw minimum and maximum (None for a page of nulls only), nulls (None: unknown), rows."""

    low: Any
    high: Any
    null_count: int | None
    row_count: int


@dataclass(frozen=True)
class ColumnPages:
    """The data pages of a leaf in one row group; ``elements`` lead from its top-level column to it, with nothing beside."""

    read_range: ReadRange
    version: int
    elements: tuple[Struct, ...]
    root: Struct
    chunk: Struct
    num_rows: int

    @cached_property
    def _meta(self) -> Struct:
        meta: Struct = self.chunk[3][1]
        return meta

    @cached_property
    def _locations(self) -> npt.NDArray[np.int64]:
        """Offset, size and first row of every page. Raises ``ValueError`` if they do not fit the chunk."""
        index, _ = decode_struct(self.read_range(self.chunk[4][1], self.chunk[5][1]))
        pages = np.array([(page[1][1], page[2][1], page[3][1]) for page in index[1][1][1]], np.int64).reshape(-1, 3)
        offsets, sizes, rows = pages.T
        chunk_start = self._meta.get(11, self._meta[9])[1]
        chunk_end = chunk_start + self._meta[7][1]
        fits = len(pages) > 0 and rows[0] == 0 and offsets[0] >= chunk_start and offsets[-1] + sizes[-1] <= chunk_end
        if not fits or (np.diff(rows) <= 0).any() or rows[-1] >= self.num_rows or (offsets[:-1] + sizes[:-1] > offsets[1:]).any():
            raise ValueError("its offset index does not fit its column chunk")
        return pages

    @cached_property
    def starts(self) -> _Longs:
        """First row of every page, and the number of rows at the end."""
        return np.append(self._locations[:, 2], self.num_rows)

    def touched(self, rows: _Longs) -> tuple[_Longs, int, int]:
        """The pages that hold ``rows`` (ascending), their bytes, and the bytes of all pages."""
        pages = np.flatnonzero(np.diff(np.searchsorted(rows, self.starts)))
        sizes = self._locations[:, 1]
        return pages, int(sizes[pages].sum()), int(sizes.sum())

    def bounds(self) -> list[PageBounds] | None:
        """What the column index says, page by page; None if there is none."""
        if 6 not in self.chunk or 7 not in self.chunk:
            return None
        index, _ = decode_struct(self.read_range(self.chunk[6][1], self.chunk[7][1]))
        empty, low, high = (index[field][1][1] for field in (1, 2, 3))
        nulls = index[5][1][1] if 5 in index else [None] * len(empty)
        counts = np.diff(self.starts).tolist()
        if not len(empty) == len(low) == len(high) == len(nulls) == len(counts):
            raise ValueError("its column index has another number of pages than its offset index")
        return [
            PageBounds(None, None, count, count) if null_page == 1 else PageBounds(self._raw(least), self._raw(most), null_count, count)
            for null_page, least, most, null_count, count in zip(empty, low, high, nulls, counts, strict=True)
        ]

    def _raw(self, data: bytes) -> Any:
        layout = _FORMATS.get(self._meta[1][1])
        return data if layout is None else struct.unpack(layout, data)[0]

    def take(self, rows: _Longs) -> Any:
        """The values at ``rows`` (ascending positions in the row group) as an Array of the file's type. Raises as the decoder does."""
        pages, _, _ = self.touched(rows)
        counts = np.diff(self.starts)[pages]
        column = pq.ParquetFile(pa.BufferReader(self._small_file(pages, int(counts.sum()))), page_checksum_verification=True).read()[0]
        if len(column) != counts.sum():
            raise ValueError(f"{len(column)} rows are in pages of {counts.sum()}")
        page_of = np.searchsorted(self.starts, rows, side="right") - 1
        place = np.searchsorted(pages, page_of)
        before = np.cumsum(counts) - counts
        taken = column.take(pa.array(rows - self.starts[page_of] + before[place]))
        return taken.combine_chunks() if taken.num_chunks != 1 else taken.chunk(0)

    def _small_file(self, pages: _Longs, rows: int) -> bytes:
        parts = [_MAGIC]
        meta = {number: field for number, field in self._meta.items() if number in {1, 2, 3, 4, 6}}
        first = self._meta[9][1]
        dictionary = self._meta.get(11, (I64, first))[1]
        if 0 < dictionary < first:
            parts.append(self.read_range(dictionary, first - dictionary))
            meta[11] = I64, len(_MAGIC)
        meta[9] = I64, sum(map(len, parts))
        parts += [self.read_range(start, end - start) for start, end in self._ranges(pages)]
        size = sum(map(len, parts)) - len(_MAGIC)
        values = rows if len(self.elements) == 1 else self._value_count(pages)
        meta |= {5: (I64, values), 7: (I64, size)}
        chunk: Struct = {2: (I64, 0), 3: (STRUCT, meta)}
        group: Struct = {1: (LIST, (STRUCT, [chunk])), 2: (I64, size), 3: (I64, rows)}
        root = {**self.root, 5: (I32, 1)}
        footer = encode_struct(
            {
                1: (I32, self.version),
                2: (LIST, (STRUCT, [root, *self.elements])),
                3: (I64, rows),
                4: (LIST, (STRUCT, [group])),
                6: (BINARY, b"pyspark-paimon"),
            }
        )
        return b"".join([*parts, footer, len(footer).to_bytes(4, "little"), _MAGIC])

    def _value_count(self, pages: _Longs) -> int:
        """Values of nested pages, by their headers: rows have any number of them."""
        total = 0
        for offset, size in self._locations[pages, :2].tolist():
            header, _ = decode_struct(self.read_range(offset, min(size, _PAGE_HEADER)))
            total += header[5 if 5 in header else 8][1][1][1]
        return total

    def _ranges(self, pages: _Longs) -> list[tuple[int, int]]:
        """Byte ranges of ``pages``, neighbours joined."""
        found: list[tuple[int, int]] = []
        for offset, size in self._locations[pages, :2].tolist():
            if found and found[-1][1] == offset:
                found[-1] = found[-1][0], offset + size
            else:
                found.append((offset, offset + size))
        return found


class PageIndexes:
    """The page indexes of one file.

    Args:
        read_range: ``(offset, length)`` to bytes of the file.
        size: bytes of the file.
        footer_size: bytes of its footer.

    Raises:
        ValueError: the footer cannot be looked through.
    """

    def __init__(self, read_range: ReadRange, size: int, footer_size: int) -> None:
        if footer_size > _MAX_FOOTER:
            raise ValueError("its footer is too large")
        self._read_range = read_range
        footer, _ = decode_struct(read_range(size - 8 - footer_size, footer_size))
        self._version: int = footer[1][1]
        self._schema: list[Struct] = footer[2][1][1]
        self._groups: list[Struct] = footer[4][1][1]

    @cached_property
    def _columns(self) -> dict[str, list[tuple[int, tuple[Struct, ...]]]]:
        """The leaves of every top-level column that can be read by pages: the number of each, and the elements that lead to it."""
        found: dict[str, list[tuple[int, tuple[Struct, ...]]]] = {}
        leaf, at = 0, 1
        while at < len(self._schema):
            end = _end_of(self._schema, at)
            count = sum(5 not in inner for inner in self._schema[at:end])
            chains = _chains(self._schema, at) if self._schema[at].get(3, (I32, 0))[1] != _REPEATED else None
            if chains is not None:
                found[self._schema[at][4][1].decode()] = list(zip(range(leaf, leaf + count), chains, strict=True))
            leaf, at = leaf + count, end
        return found

    def column(self, group: int, name: str) -> tuple[ColumnPages, ...] | None:
        """The pages of a column's leaves in a row group; None if one has no offset index, or the column is laid out otherwise."""
        row_group = self._groups[group]
        leaves = []
        for leaf, elements in self._columns.get(name, ()):
            chunk: Struct = row_group[1][1][1][leaf]
            if 4 not in chunk or 5 not in chunk or 3 not in chunk:
                return None
            leaves.append(ColumnPages(self._read_range, self._version, elements, self._schema[0], chunk, row_group[3][1]))
        return tuple(leaves) or None


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


__all__ = ["ColumnPages", "PageBounds", "PageIndexes"]
