"""Reads of a few rows without decoding whole column chunks.

The decoder knows whole chunks only. So the pages with the wanted rows, and the dictionaries, are copied into a
small in-memory Parquet file. One file serves all columns with equal page boundaries, which is usual for
writers that count rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lsm.parquet.fields import ColumnMetaData, DataPageHeader, PageHeader, PhysicalType, value, value_or
from lsm.parquet.footer_fixup import PARQUET_MAGIC, extent, file_end, row_group
from lsm.parquet.page_index import LAST_OF_META_HEAD, ColumnPages, TouchedPages
from lsm.parquet.thrift import I64, Struct, decode_struct, unzigzag, with_fields
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, Mask, UInt8s, arrow_array

LONGEST = 8 * 1024
"""Maximum bytes of a page header, unless its statistics are very long texts."""
_NUMBER = rb"[\x80-\xff]{0,4}[\x00-\x7f]"
_USUAL = re.compile(rb"\x15\x00\x15%b\x15(%b)(?:\x15(%b)\x1c|\x2c)\x15(%b)" % (_NUMBER, _NUMBER, _NUMBER, _NUMBER))
"""Header of a version 1 data page: type, two sizes, optional checksum, then the data page header with the number of values."""
_DIGITS, _I32 = 5, 0x15
_USUAL_LENGTH = 3 + 4 * (_DIGITS + 1) + _DIGITS + 2
"""Maximum bytes read of a header that matches ``_USUAL``."""


def take_leaves(leaves: Sequence[ColumnPages], rows: Int64s, pages_of: TouchedPages) -> list[Any]:
    """Return the values of leaves at ``rows``, as Arrays.

    ``rows`` are ascending positions in the row group, on ``pages_of``. Arrays have the file's types.

    Raises:
        ValueError, LookupError: Pages hold other rows than their index says. The decoder's errors are possible too.
    """
    alike: dict[object, list[int]] = {}
    for number, leaf in enumerate(leaves):
        alone = number if len(leaf.elements) > 1 else None
        alike.setdefault((alone, pages_of.breaks(leaf.starts)), []).append(number)
    arrays: list[Any] = [None] * len(leaves)
    for members in alike.values():
        values = _Pages([leaves[number] for number in members], pages_of.of(leaves[members[0]].starts)).take(rows)
        for number, array in zip(members, values, strict=True):
            arrays[number] = array
    return arrays


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
        requested_rows = decoded.slice(0, count) if len(places) == count else decoded.take(arrow_array(places))
        return [_plain(column) for column in requested_rows.columns]

    def _decode(self, count: int) -> Any:
        """Decode at least the first ``count`` rows of the pages.

        For flat columns exactly ``count`` rows, because page headers have the number of rows.
        """
        content = self._content()
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True, read_dictionary=self._dictionaries())
        threads = len(content) > thresholds.page_thread_bytes
        if self._is_nested or count == self._rows:
            decoded = file.read(use_threads=threads)
            if decoded.num_rows != self._rows:
                raise ValueError(f"pages have {decoded.num_rows} rows, but their index says {self._rows}")
            return decoded
        decoded = next(file.iter_batches(batch_size=count, use_threads=threads), None)
        if decoded is None or decoded.num_rows != count:
            decoded_rows = 0 if decoded is None else decoded.num_rows
            raise ValueError(f"pages have {decoded_rows} rows, but {count} of {self._rows} were expected")
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
        total = offset = 0
        for size, count in zip(sizes, counts, strict=True):
            values, _, _ = data_page(data[offset : offset + min(size, LONGEST)])
            if not self._is_nested and values != count:
                raise ValueError(f"a page has {values} rows, but its index says {count}")
            total += values
            offset += size
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
    runs: list[tuple[int, list[int], list[int]]] = []
    end = -1
    counts = (leaf.starts[pages + 1] - leaf.starts[pages]).tolist()
    for (offset, size, _), count in zip(leaf.locations[pages].tolist(), counts, strict=True):
        if offset == end:
            runs[-1][1].append(size)
            runs[-1][2].append(count)
        else:
            runs.append((offset, [size], [count]))
        end = offset + size
    return runs


def _plain(column: Any) -> Any:
    """Return a column as one array of the file's type."""
    array = column if isinstance(column, pa.Array) else column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def data_page(header: bytes) -> tuple[int, int, int | None]:
    """Decode the header of a data page.

    Returns value count, compressed size and checksum.

    ``header`` begins with the page header. Values include nulls. The checksum may be missing.

    Raises:
        ValueError, LookupError: The header is damaged.

    >>> from lsm.parquet.thrift import I32, STRUCT, encode_struct
    >>> page = {1: (I32, 0), 2: (I32, 300), 3: (I32, 200), 5: (STRUCT, {1: (I32, 100)})}
    >>> data_page(encode_struct(page)), data_page(encode_struct(page | {4: (I32, -5)}))
    ((100, 200, None), (100, 200, 4294967291))
    """
    usual = _USUAL.match(header)
    if usual is None:
        return _any_data_page(header)
    size, checksum, values = usual.groups()
    return _number(values), _number(size), None if checksum is None else _number(checksum) & 0xFFFFFFFF


def data_pages(content: bytes, starts: Int64s, sizes: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Decode the headers of many data pages, like ``data_page``.

    ``starts`` and ``sizes`` include the page headers. A missing checksum is -1.

    >>> from lsm.parquet.thrift import I32, STRUCT, encode_struct
    >>> page = encode_struct({1: (I32, 0), 2: (I32, 300), 3: (I32, 200), 4: (I32, -5), 5: (STRUCT, {1: (I32, 100)})})
    >>> [found.tolist() for found in data_pages(page + bytes(200), np.array([0]), np.array([len(page) + 200]))]
    [[100], [200], [4294967291]]
    """
    room = np.minimum(starts[:, None] + np.arange(_USUAL_LENGTH), len(content) - 1)
    heads = np.frombuffer(content, np.uint8)[room]
    page = np.arange(len(starts))
    usual = (heads[:, :3] == (_I32, 0, _I32)).all(axis=1)
    positions = _numbers(heads, np.full(len(starts), 3), usual)[1]
    usual &= heads[page, positions] == _I32
    inner, positions = _numbers(heads, positions + 1, usual)
    has_checksum = heads[page, positions] == _I32
    checksums, behind = _numbers(heads, positions + 1, usual)
    positions = np.where(has_checksum, behind, positions)
    usual &= (heads[page, positions] == np.where(has_checksum, 0x1C, 0x2C)) & (heads[page, positions + 1] == _I32)
    values, _ = _numbers(heads, positions + 2, usual)
    checksums = np.where(has_checksum, checksums & 0xFFFFFFFF, -1)
    for other in np.flatnonzero(~usual).tolist():
        start = int(starts[other])
        values[other], inner[other], checksum = _any_data_page(content[start : start + min(int(sizes[other]), LONGEST)])
        checksums[other] = -1 if checksum is None else checksum
    return values, inner, checksums


def _numbers(heads: UInt8s, positions: Int64s, usual: Mask) -> tuple[Int64s, Int64s]:
    """Decode one number per row, and return the end positions.

    Rows whose number has no end are removed from ``usual``.
    """
    digits = heads[np.arange(len(heads))[:, None], positions[:, None] + np.arange(_DIGITS)]
    ends = digits < 0x80  # other bytes continue the number
    last = ends.argmax(axis=1)
    usual &= ends.any(axis=1)
    parts = (digits & 0x7F).astype(np.int64) << 7 * np.arange(_DIGITS)
    raw = np.where(np.arange(_DIGITS) <= last[:, None], parts, 0).sum(axis=1)
    return unzigzag(raw), positions + last + 1


def _any_data_page(header: bytes) -> tuple[int, int, int | None]:
    fields, _ = decode_struct(header)
    header_field = PageHeader.DATA_PAGE_HEADER if PageHeader.DATA_PAGE_HEADER in fields else PageHeader.DATA_PAGE_HEADER_V2
    return value(value(fields, header_field), DataPageHeader.NUM_VALUES), value(fields, PageHeader.COMPRESSED_PAGE_SIZE), _checksum(fields)


def dictionary_page(header: bytes) -> tuple[int, int, int | None]:
    """Decode the header of a dictionary page.

    Returns header length, compressed size and checksum.

    Raises the errors of ``data_page``.

    >>> from lsm.parquet.thrift import I32, STRUCT, encode_struct
    >>> dictionary_page(encode_struct({1: (I32, 2), 2: (I32, 300), 3: (I32, 200), 7: (STRUCT, {1: (I32, 9)})}))
    (13, 200, None)
    """
    fields, length = decode_struct(header)
    if PageHeader.DICTIONARY_PAGE_HEADER not in fields:
        raise ValueError("the page is not a dictionary page")
    return length, value(fields, PageHeader.COMPRESSED_PAGE_SIZE), _checksum(fields)


def _checksum(header: Struct) -> int | None:
    signed = value_or(header, PageHeader.CRC, None)
    return None if signed is None else signed & 0xFFFFFFFF


def _number(encoded: bytes) -> int:
    """Decode a zigzag varint of the compact protocol."""
    raw = 0
    for byte in reversed(encoded):
        raw = raw << 7 | byte & 0x7F
    return int(unzigzag(raw))
