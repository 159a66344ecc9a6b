"""Page locations of many column chunks, decoded together with numpy.

In Thrift's compact protocol every byte below 128 ends a token, a number or a field header. The entry of a page has
seven tokens with constant headers, so all pages of a row group are split and checked at once. An index with another
encoding is decoded by the general Thrift decoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fileindex.base.arrays import Int64s, Mask, UInt8s
from lsm.parquet.fields import OffsetIndex, PageLocation, list_of, value
from lsm.parquet.thrift import STRUCT, Struct, decode_struct, list_head, unzigzag

_NO_PAGE = 0, 0
_TOKENS = 7
_HEADERS = ((0, 0x16), (2, 0x15), (4, 0x16), (6, 0x00))
"""Position and value of the header tokens of a page: before a long, an int, a long, and at the end of the struct."""
_END = b"\x00"
"""Appended to the last index, so that its last token always has an end."""
_MAX_NUMBER = 9
"""Maximum bytes of a number below 2^62. Valid offsets and sizes are smaller."""


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
    found, valid = _split(np.frombuffer(data, np.uint8), first, counts, ends)
    lines = np.split(found, np.cumsum(counts)[:-1])
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
    found = {}
    for (leaf, lines), fit in zip(pages.items(), fits, strict=True):
        if fit:
            breaks = np.append(lines[:, 2], num_rows)
            found[leaf] = lines, alike.setdefault(breaks.tobytes(), breaks)
    return found


def _split(data: UInt8s, first: Int64s, counts: Int64s, ends: Int64s) -> tuple[Int64s, Mask]:
    """Decode the pages of all indexes, and mark valid indexes."""
    closing = np.flatnonzero(data < 0x80)
    tokens = _TOKENS * counts
    begins = np.searchsorted(closing, first)
    before = np.cumsum(tokens) - tokens
    places = np.repeat(begins - before, tokens) + np.arange(int(tokens.sum()))
    inside = places < closing.size
    places = np.minimum(places, closing.size - 1)
    last = closing[places]
    start = np.minimum(closing[np.maximum(places - 1, 0)] + 1, data.size - 1)
    start[before[tokens > 0]] = first[tokens > 0]
    size = last - start + 1
    right = inside & (size <= _MAX_NUMBER) & (last < np.repeat(ends, tokens))
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


__all__ = ["layouts", "page_locations"]
