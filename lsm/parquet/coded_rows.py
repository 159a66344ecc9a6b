"""A few rows of dictionary pages, without the decoder.

The decoder decodes all rows before the wanted one, and the whole dictionary, at each read. A dictionary page stores numbers of
dictionary entries in runs. Here runs are skipped up to the wanted rows, and dictionaries that are used again are cached for the process.

Nested leaves are decoded if they repeat once, as elements of a list, or keys or values of a map.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lsm.parquet.chunk_values import decompress
from lsm.parquet.fields import (
    ColumnMetaData,
    DataPageHeader,
    DictionaryPageHeader,
    Encoding,
    FieldRepetitionType,
    PageHeader,
    PageType,
    SchemaElement,
    value,
    value_or,
)
from lsm.parquet.footer_fixup import PARQUET_MAGIC, extent, file_end, row_group
from lsm.parquet.page_index import LAST_OF_META_HEAD, ColumnPages, RowsOfPage, TouchedPages
from lsm.parquet.page_reader import LONGEST, take_leaves
from lsm.parquet.thrift import BINARY, I32, I64, LIST, STRUCT, Struct, decode_struct, encode_struct, varint
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, UInt8s

Code: TypeAlias = int | None
"""Number of a dictionary entry, or None for null."""
_Run: TypeAlias = tuple[int, int, int, int]
"""First value of a run, one past the last, and the position of the packed values. If it is -1, all values are the last number."""
_ENDS_EARLY = "the runs of a page end early"
_PACKED = -1
"""Marks packed values among repeated ones."""
_USED_ONCE = object()
"""Cache entry of a dictionary whose page was read once."""
_MARK_BYTES = 100
_LENGTH_BYTES = 4
_MORE, _MORE_LEVELS = 1.1, 64
"""Factor and summand of estimated numbers of levels."""
_NESTED_ELEMENTS = 3
"""Number of schema elements from a list to its elements, or a map to its keys."""


def take_rows(leaves: Sequence[ColumnPages], rows: Int64s) -> list[Any]:
    """Return the values of leaves at ``rows``, as Arrays.

    ``rows`` are ascending positions in the row group. Arrays have the file's types. Nested leaves are Arrays of lists.

    Raises:
        ValueError, LookupError: Pages hold other rows than their index says. The decoder's errors are possible too.
    """
    pages_of = TouchedPages(rows)
    arrays: list[Any] = [None] * len(leaves)
    if len(rows) <= thresholds.coded_rows:
        for number, leaf in enumerate(leaves):
            if leaf.has_dictionary:
                with suppress(ValueError, LookupError, TypeError, AttributeError, pa.ArrowException, OSError):  # the decoder reports damage
                    arrays[number] = _take_coded(leaf, pages_of.rows(leaf.starts))
    missing = [number for number, array in enumerate(arrays) if array is None]
    for number, array in zip(missing, take_leaves([leaves[number] for number in missing], rows, pages_of), strict=True):
        arrays[number] = array
    return arrays


def _take_coded(leaf: ColumnPages, touched: Sequence[RowsOfPage]) -> Any | None:
    """Return the values of a leaf at some rows.

    None: the pages have another layout or are large, or the dictionary is not cached yet.
    """
    depth = _levels_of(leaf)
    if depth is None or max([page_rows.num_rows for page_rows in touched]) > thresholds.coded_page_rows:
        return None
    parts, cache_key = leaf.indexes.parts, ("dictionary", leaf.group, leaf.leaf)
    if parts is None:
        return None
    dictionary = parts.get(cache_key)
    if dictionary is None:
        # A dictionary that is used once costs more alone than together with its page.
        parts.put(cache_key, _USED_ONCE, _MARK_BYTES, lesser=True)
        return None
    coded = _Found([], [], [])
    for page_rows in touched:
        page = _Page.read(leaf, page_rows.page)
        if page is None:
            return None
        (_read_lists if depth.repeats else _read_values)(page, depth, page_rows, coded)
    if dictionary is _USED_ONCE:
        dictionary = _decode_dictionary(leaf)
        parts.put(cache_key, dictionary, dictionary.nbytes, lesser=True)
    return coded.array(dictionary, is_nested=depth.repeats)


@dataclass(frozen=True, slots=True)
class _Levels:
    """Maximum levels of a leaf.

    ``of_element`` is the least definition level of a row with elements.
    """

    max_definition: int
    of_element: int
    repeats: bool


def _levels_of(leaf: ColumnPages) -> _Levels | None:
    """Return the levels of a leaf. None: it nests in another way."""
    kinds = [value_or(element, SchemaElement.REPETITION_TYPE, FieldRepetitionType.REQUIRED) for element in leaf.elements]
    optional = [kind != FieldRepetitionType.REQUIRED for kind in kinds]
    if len(kinds) == 1:
        return _Levels(sum(optional), 0, repeats=False)
    if len(kinds) != _NESTED_ELEMENTS or [kind == FieldRepetitionType.REPEATED for kind in kinds] != [False, True, False]:
        return None
    return _Levels(sum(optional), sum(optional[:2]), repeats=True)


@dataclass(frozen=True, slots=True)
class _Found:
    """Codes of the values of rows.

    ``lengths`` and ``nulls`` describe lists, one each.
    """

    codes: list[Code]
    lengths: list[int]
    nulls: list[bool]

    def array(self, dictionary: Any, *, is_nested: bool) -> Any:
        codes = pa.array(self.codes, pa.int32())
        values = dictionary.take(codes)  # raises for codes without an entry
        if not is_nested:
            return values
        offsets = pa.array(np.cumsum([0, *self.lengths]), pa.int32())
        return pa.ListArray.from_arrays(offsets, values, mask=pa.array(self.nulls, pa.bool_()) if any(self.nulls) else None)


@dataclass(frozen=True, slots=True)
class _Page:
    """Decompressed data page: ``count`` levels, then values."""

    data: bytes
    count: int

    @classmethod
    def read(cls, leaf: ColumnPages, page: int) -> _Page | None:
        """Read and verify a page. None: it is not a version 1 page of dictionary codes."""
        offset, size, _ = leaf.locations[page].tolist()
        raw = leaf.indexes.read_range(offset, size)
        header, length = decode_struct(raw[:LONGEST])
        page_header = value_or(header, PageHeader.DATA_PAGE_HEADER, None)
        if (
            page_header is None
            or value(header, PageHeader.TYPE) != PageType.DATA_PAGE
            or value(page_header, DataPageHeader.ENCODING) not in Encoding.OF_DICTIONARY
        ):
            return None
        encodings = DataPageHeader.DEFINITION_LEVEL_ENCODING, DataPageHeader.REPETITION_LEVEL_ENCODING
        if any(value(page_header, number) != Encoding.RLE for number in encodings):
            return None
        return cls(_body(leaf, raw, header, length), value(page_header, DataPageHeader.NUM_VALUES))


def _body(leaf: ColumnPages, raw: bytes, header: Struct, length: int) -> bytes:
    """Return the decompressed bytes after a page header of ``length`` bytes."""
    size, plain = value(header, PageHeader.COMPRESSED_PAGE_SIZE), value(header, PageHeader.UNCOMPRESSED_PAGE_SIZE)
    body = memoryview(raw)[length : length + size]
    checksum = value_or(header, PageHeader.CRC, None)
    if len(body) != size or not 0 <= plain <= value(leaf.meta, ColumnMetaData.TOTAL_UNCOMPRESSED_SIZE):
        raise ValueError("the size of a page does not fit its column chunk")
    if checksum is not None and zlib.crc32(body) != checksum & 0xFFFFFFFF:
        raise ValueError("the checksum of a page does not match")
    data = decompress(body, value(leaf.meta, ColumnMetaData.CODEC), plain)
    if len(data) != plain:
        raise ValueError(f"a page has {len(data)} bytes, but its header says {plain}")
    return data


def _read_values(page: _Page, depth: _Levels, page_rows: RowsOfPage, coded: _Found) -> None:
    """Add the codes of some rows of a flat leaf's page."""
    rows, count = page_rows.rows, page_rows.num_rows
    if page.count != count:
        raise ValueError(f"a page has {page.count} rows, but its index says {count}")
    position = 0
    ranks: list[Code] = list(rows)
    if depth.max_definition:
        position, end = _section(page.data, 0)
        _, stop, packed_at, level = next(_runs(page.data, position, end, 1, count))
        if packed_at < 0 and stop >= count:  # the usual case: all or no values are null
            ranks = list(rows) if level else [None] * len(rows)
        else:
            defined = levels(page.data, position, end, 1, rows[-1] + 1) != 0
            before = np.cumsum(defined) - 1
            ranks = [rank if is_defined else None for rank, is_defined in zip(before[rows].tolist(), defined[rows].tolist(), strict=True)]
        position = end
    _add_codes(page, position, ranks, coded)


def _read_lists(page: _Page, depth: _Levels, page_rows: RowsOfPage, coded: _Found) -> None:
    """Add the codes of some rows of a repeated leaf's page."""
    rows, count = page_rows.rows, page_rows.num_rows
    start_of_levels, end = _section(page.data, 0)
    # Levels behind the last wanted row are not needed. Where it ends is an estimate.
    needed = min(page.count, _MORE_LEVELS + int((rows[-1] + 2) * _MORE * page.count / count))
    starts = np.flatnonzero(levels(page.data, start_of_levels, end, 1, needed) == 0)
    if len(starts) <= rows[-1] + 1 and needed < page.count:
        needed = page.count
        starts = np.flatnonzero(levels(page.data, start_of_levels, end, 1, needed) == 0)
    if len(starts) <= rows[-1] or starts[0] != 0 or (needed == page.count and len(starts) != count):
        raise ValueError(f"a page has {len(starts)} rows, but its index says {count}")
    start_of_levels, end = _section(page.data, end)
    definition = levels(page.data, start_of_levels, end, depth.max_definition.bit_length(), needed)
    defined = definition == depth.max_definition
    before = np.cumsum(defined) - 1
    ranks: list[Code] = []
    for row in rows:
        start, stop = int(starts[row]), page.count if row + 1 == len(starts) else int(starts[row + 1])
        is_empty = definition[start] < depth.of_element
        coded.lengths.append(0 if is_empty else stop - start)
        coded.nulls.append(bool(definition[start] < depth.of_element - 1))
        if not is_empty:
            ranks += [int(before[element]) if defined[element] else None for element in range(start, stop)]
    _add_codes(page, end, ranks, coded)


def _section(data: bytes, offset: int) -> tuple[int, int]:
    """Return start and end of levels that begin with their length."""
    start = offset + _LENGTH_BYTES
    end = start + int.from_bytes(data[offset:start], "little")
    if end > len(data):
        raise ValueError("the levels of a page exceed it")
    return start, end


def _add_codes(page: _Page, offset: int, ranks: Sequence[Code], coded: _Found) -> None:
    """Add the dictionary codes of ascending ranks. None: null."""
    value_ranks = [rank for rank in ranks if rank is not None]
    codes = iter(codes_at(page.data, offset + 1, len(page.data), page.data[offset], value_ranks) if value_ranks else ())
    coded.codes.extend(None if rank is None else next(codes) for rank in ranks)


def _runs(data: bytes, offset: int, end: int, width: int, count: int) -> Iterator[_Run]:
    """Yield the runs of ``count`` values of ``width`` bits.

    Raises ``ValueError`` if they end early.
    """
    first, size = 0, (width + 7) // 8
    while first < count:
        if offset >= end:
            raise ValueError(_ENDS_EARLY)
        header = data[offset]
        offset += 1
        if header > 0x7F:
            header, offset = varint(data, offset - 1)
        half, packed_offset = header >> 1, offset
        if header & 1:
            stop, offset = first + half * 8, offset + half * width
        else:
            stop, offset = first + half, offset + size
        if offset > end:
            raise ValueError(_ENDS_EARLY)
        yield (
            (first, stop, packed_offset, 0)
            if header & 1
            else (first, stop, -1, data[packed_offset] if size == 1 else int.from_bytes(data[packed_offset:offset], "little"))
        )
        first = stop


def codes_at(data: bytes, offset: int, end: int, width: int, ranks: Sequence[int]) -> list[int]:
    """Return the values of ``width`` bits at ascending positions.

    ``data`` has runs from ``offset`` to ``end``.

    Raises:
        ValueError: The runs are too short.

    >>> codes_at(bytes([6 << 1, 5, 3, 0b10_001_000, 0b1_100_011_0, 0b111_110_10]), 0, 6, 3, [0, 5, 6, 7, 10, 13])
    [5, 5, 0, 1, 4, 7]
    """
    codes: list[int] = []
    mask, rank = (1 << width) - 1, ranks[0]
    for first, stop, packed_offset, same in _runs(data, offset, end, width, ranks[-1] + 1):
        while rank < stop:
            if packed_offset < 0:
                codes.append(same)
            else:
                bit = (rank - first) * width
                start, rest = packed_offset + bit // 8, bit % 8
                codes.append(int.from_bytes(data[start : start + (rest + width + 7) // 8], "little") >> rest & mask)
            if len(codes) == len(ranks):
                return codes
            rank = ranks[len(codes)]
    raise ValueError(_ENDS_EARLY)


def levels(data: bytes, offset: int, end: int, width: int, count: int) -> UInt8s:
    """Return the first ``count`` values of at most 8 bits.

    Arguments and errors are as for ``codes_at``.

    >>> levels(bytes([3, 0b11_10_01_00, 0b00_00_00_11, 2 << 1, 1]), 0, 5, 2, 10).tolist()
    [0, 1, 2, 3, 3, 0, 0, 0, 1, 1]
    """
    lengths: list[int] = []
    values: list[int] = []
    packed: list[bytes] = []
    level_count = 0
    # Not by ``_runs``: a generator takes 1.5 times as long for pages of many runs.
    while level_count < count:
        if offset >= end:
            raise ValueError(_ENDS_EARLY)
        header = data[offset]
        offset += 1
        if header > 0x7F:
            header, offset = varint(data, offset - 1)
        half, start = header >> 1, offset
        offset += half * width if header & 1 else 1
        if offset > end:
            raise ValueError(_ENDS_EARLY)
        if header & 1:
            packed.append(data[start:offset])
            values.append(_PACKED)
            lengths.append(half * 8)
        else:
            values.append(data[start])
            lengths.append(half)
        level_count += lengths[-1]
    lengths[-1] -= level_count - count
    bits = np.unpackbits(np.frombuffer(b"".join(packed), np.uint8), bitorder="little")
    unpacked: UInt8s = bits if width == 1 else bits.reshape(-1, width) @ (1 << np.arange(width, dtype=np.uint8))
    if len(packed) == len(values):
        return unpacked[:count]
    mixed = np.repeat(np.array(values, np.int16), lengths)
    is_packed = mixed == _PACKED
    mixed[is_packed] = unpacked[: np.count_nonzero(is_packed)]
    return mixed.astype(np.uint8)


def _decode_dictionary(leaf: ColumnPages) -> Any:
    """Decode a dictionary page like a page of plain values."""
    start, end = value(leaf.meta, ColumnMetaData.DICTIONARY_PAGE_OFFSET), value(leaf.meta, ColumnMetaData.DATA_PAGE_OFFSET)
    raw = leaf.indexes.read_range(start, end - start)
    header, length = decode_struct(raw[:LONGEST])
    page_header = value(header, PageHeader.DICTIONARY_PAGE_HEADER)
    is_plain = value(page_header, DictionaryPageHeader.ENCODING) in Encoding.OF_DICTIONARY_PAGE
    if not is_plain or value(header, PageHeader.TYPE) != PageType.DICTIONARY_PAGE:
        raise ValueError("a page is not a dictionary of plain values, as its column chunk says")
    count = value(page_header, DictionaryPageHeader.NUM_VALUES)
    data_header = {
        DataPageHeader.NUM_VALUES: (I32, count),
        DataPageHeader.ENCODING: (I32, Encoding.PLAIN),
        DataPageHeader.DEFINITION_LEVEL_ENCODING: (I32, Encoding.RLE),
        DataPageHeader.REPETITION_LEVEL_ENCODING: (I32, Encoding.RLE),
    }
    copied_fields = (PageHeader.UNCOMPRESSED_PAGE_SIZE, PageHeader.COMPRESSED_PAGE_SIZE, PageHeader.CRC)
    changed = {number: header[number] for number in copied_fields if number in header}
    page = (
        encode_struct({PageHeader.TYPE: (I32, PageType.DATA_PAGE), **changed, PageHeader.DATA_PAGE_HEADER: (STRUCT, data_header)})
        + raw[length:]
    )
    element = {**leaf.elements[-1], SchemaElement.REPETITION_TYPE: (I32, FieldRepetitionType.REQUIRED)}
    meta = {number: field for number, field in leaf.meta.items() if number <= LAST_OF_META_HEAD}
    meta |= {
        ColumnMetaData.ENCODINGS: (LIST, (I32, [Encoding.PLAIN])),
        ColumnMetaData.PATH_IN_SCHEMA: (LIST, (BINARY, [value(element, SchemaElement.NAME)])),
        **extent(count, len(page)),
        ColumnMetaData.DATA_PAGE_OFFSET: (I64, len(PARQUET_MAGIC)),
    }
    group = row_group([encode_struct(dict(sorted(meta.items())))], len(PARQUET_MAGIC) + len(page), count)
    content = b"".join([PARQUET_MAGIC, page, file_end(leaf.indexes.footer, 1, [element], [group], count)])
    decoded = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True).read(use_threads=False)
    if decoded.num_rows != count:
        raise ValueError(f"a dictionary has {decoded.num_rows} entries, but its header says {count}")
    return decoded.column(0).combine_chunks()
