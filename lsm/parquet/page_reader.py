"""Reads of a few rows without decoding whole column chunks.

The decoder knows whole chunks only. So the pages with the wanted rows, and the dictionaries, are copied into a
small in-memory Parquet file. One file serves all columns with equal page boundaries, which is usual for
writers that count rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fileindex.base.arrays import Int64s
from fileindex.base.thresholds import thresholds
from lsm.parquet.fields import ColumnMetaData, PhysicalType, value, value_or
from lsm.parquet.footer_writer import PARQUET_MAGIC, extent, file_end, row_group
from lsm.parquet.page_header import LONGEST, data_page
from lsm.parquet.page_index import LAST_OF_META_HEAD, ColumnPages, TouchedPages
from lsm.parquet.thrift import I64, Struct, with_fields


def take_leaves(leaves: Sequence[ColumnPages], rows: Int64s) -> list[Any]:
    """Return the values of leaves at ``rows``, as Arrays.

    ``rows`` are ascending positions in the row group. Arrays have the file's types.

    Raises:
        ValueError, LookupError: Pages hold other rows than their index says. The decoder's errors are possible too.
    """
    alike: dict[object, list[int]] = {}
    pages_of = TouchedPages(rows)
    for number, leaf in enumerate(leaves):
        alone = number if len(leaf.elements) > 1 else None
        alike.setdefault((alone, pages_of.breaks(leaf.starts)), []).append(number)
    found: list[Any] = [None] * len(leaves)
    for members in alike.values():
        taken = _Pages([leaves[number] for number in members], pages_of.of(leaves[members[0]].starts)).take(rows)
        for number, array in zip(members, taken, strict=True):
            found[number] = array
    return found


class _Pages:
    """Pages of leaves with equal boundaries.

    One nested leaf, or any number of flat ones. ``pages`` are page numbers of the first leaf.
    """

    def __init__(self, leaves: Sequence[ColumnPages], pages: Int64s) -> None:
        self._leaves = leaves
        self._first_row = leaves[0].starts[pages]
        self._counts = leaves[0].starts[pages + 1] - self._first_row
        self._rows = int(self._counts.sum())
        self._is_nested = len(leaves[0].elements) > 1
        self._parts = [PARQUET_MAGIC]
        self._size = len(PARQUET_MAGIC)

    def take(self, rows: Int64s) -> list[Any]:
        which = np.searchsorted(self._first_row, rows, side="right") - 1
        places = rows - self._first_row[which] + (np.cumsum(self._counts) - self._counts)[which]
        count = int(places[-1]) + 1
        decoded = self._decode(count)
        wanted = decoded.slice(0, count) if len(places) == count else decoded.take(pa.array(places))
        return [_plain(column) for column in wanted.columns]

    def _decode(self, count: int) -> Any:
        """Decode at least the first ``count`` rows of the pages.

        For flat columns exactly ``count`` rows, because page headers have the number of rows.
        """
        content = self._content()
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True, read_dictionary=self._dictionaries())
        threads = len(content) > thresholds().page_thread_bytes
        if self._is_nested or count == self._rows:
            decoded = file.read(use_threads=threads)
            if decoded.num_rows != self._rows:
                raise ValueError(f"pages have {decoded.num_rows} rows, but their index says {self._rows}")
            return decoded
        decoded = next(file.iter_batches(batch_size=count, use_threads=threads))
        if decoded.num_rows != count:
            raise ValueError(f"pages have {decoded.num_rows} rows, but {count} of {self._rows} were expected")
        return decoded

    def _dictionaries(self) -> list[str]:
        """Return text columns to read as dictionaries."""
        if self._is_nested:
            return []
        texts = [leaf for leaf in self._leaves if value(leaf.meta, ColumnMetaData.TYPE) == PhysicalType.BYTE_ARRAY]
        return [leaf.name for leaf in texts if ColumnMetaData.DICTIONARY_PAGE_OFFSET in leaf.meta]

    def _content(self) -> bytes:
        encoded = [leaf.encoded for leaf in self._leaves]
        chunks = [self._add(leaf, head) for leaf, (_, head) in zip(self._leaves, encoded, strict=True)]
        group = row_group(chunks, self._size, self._rows)
        elements = [element for of_leaf, _ in encoded for element in of_leaf]
        return b"".join([*self._parts, file_end(self._leaves[0].indexes.footer, len(self._leaves), elements, [group], self._rows)])

    def _add(self, leaf: ColumnPages, head: bytes) -> bytes:
        """Copy the dictionary and pages of a leaf.

        Returns the encoded ``ColumnMetaData``, which begins with ``head``.
        """
        meta: Struct = {}
        start = self._size
        read, first = leaf.indexes.read_range, value(leaf.meta, ColumnMetaData.DATA_PAGE_OFFSET)
        dictionary = value_or(leaf.meta, ColumnMetaData.DICTIONARY_PAGE_OFFSET, first)
        if 0 < dictionary < first:
            meta[ColumnMetaData.DICTIONARY_PAGE_OFFSET] = I64, self._size
            self._put(read(dictionary, first - dictionary))
        meta[ColumnMetaData.DATA_PAGE_OFFSET] = I64, self._size
        values = 0
        pages = np.searchsorted(leaf.starts, self._first_row)
        for offset, sizes, counts in _runs(leaf, pages):
            data = read(offset, sum(sizes))
            values += self._values(data, sizes, counts)
            self._put(data)
        size = self._size - start
        places = extent(values, size)
        return with_fields(head, LAST_OF_META_HEAD, places | meta)

    def _values(self, data: bytes, sizes: Sequence[int], counts: Sequence[int]) -> int:
        """Return the number of values in pages, from their headers.

        A flat column has one value per row, a nested one any number.
        """
        total = at = 0
        for size, count in zip(sizes, counts, strict=True):
            values, _, _ = data_page(data[at : at + min(size, LONGEST)])
            if not self._is_nested and values != count:
                raise ValueError(f"a page has {values} rows, but its index says {count}")
            total += values
            at += size
        return total

    def _put(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)


def _runs(leaf: ColumnPages, pages: Int64s) -> list[tuple[int, list[int], list[int]]]:
    """Combine adjacent pages.

    Each run has the offset of the first page, and the sizes and row counts of all.
    """
    if len(pages) == 1:
        page = pages[0]
        offset, size, start = leaf.locations[page].tolist()
        return [(offset, [size], [int(leaf.starts[page + 1]) - start])]
    found: list[tuple[int, list[int], list[int]]] = []
    end = -1
    counts = (leaf.starts[pages + 1] - leaf.starts[pages]).tolist()
    for (offset, size, _), count in zip(leaf.locations[pages].tolist(), counts, strict=True):
        if offset == end:
            found[-1][1].append(size)
            found[-1][2].append(count)
        else:
            found.append((offset, [size], [count]))
        end = offset + size
    return found


def _plain(column: Any) -> Any:
    """Return a column as one array of the file's type."""
    array = column if isinstance(column, pa.Array) else column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


__all__ = ["take_leaves"]
