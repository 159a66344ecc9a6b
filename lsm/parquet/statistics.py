"""Bounds of plain values from Parquet footers and page indexes.

Bounds of the pages of a chunk are columns. Numbers have a fixed width and are decoded together. A column index with other values, or with
an all-null page, is decoded by the general Thrift decoder.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.parquet.fields import ColumnIndex, PhysicalType, decode_plain, list_of, value
from lsm.parquet.thrift import BINARY, I64, TRUE_FIELD, decode_struct, list_head, unzigzag
from manifest.entry.bounds import BoundsColumn
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType
from sparkexpr.values.arrays import AnyArray, Int64s
from sparkexpr.values.column_type import BINARIES, FLOATS, STRINGS, Kind, Plain

_FORMS = {PhysicalType.INT32: "<i4", PhysicalType.INT64: "<i8", PhysicalType.FLOAT: "<f4", PhysicalType.DOUBLE: "<f8"}
_NOT_ALL_NULL = b"\x02"
_NUMBER, _LONGER, _END = 0x15, 0x80, 0x00


def column_bounds(low: Any, high: Any, nulls: int | None, rows: int, data_type: DataType) -> ColumnBounds:
    r"""Return the bounds of ``rows`` values of ``data_type``.

    A raw value that is missing or cannot be decoded makes them unknown.

    >>> column_bounds(b"a", b"\xff", 0, 5, DataType(Kind.VARCHAR, length=9)).min is None
    True
    """
    if low is None or high is None:
        return ColumnBounds(None, None, nulls, rows)
    try:
        least, greatest = _plain(low, data_type), _plain(high, data_type)
    except (ValueError, TypeError, OverflowError):
        return ColumnBounds(None, None, nulls, rows)
    if data_type.kind in FLOATS:
        greatest = math.nan  # NaN is the greatest value, but writers omit it from the maximum
    return ColumnBounds(least, greatest, nulls, rows)


def has_bounds(arrow: Any, data_type: DataType) -> bool:
    """Return whether raw bounds can be decoded as ``data_type``.

    ``arrow`` is the stored type of the column.
    """
    if data_type.is_nested:
        return False
    if data_type.kind in STRINGS:
        return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow))
    if data_type.kind in BINARIES:
        return bool(pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow))
    return bool(arrow == data_type.arrow)


def _plain(raw: Any, data_type: DataType) -> Plain:
    if data_type.kind in STRINGS:
        return bytes(raw).decode()
    if data_type.kind is Kind.DECIMAL and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    value: Plain = raw
    return value


def decode_column_index(index: bytes, physical_type: int, data_type: DataType, rows: Int64s) -> tuple[BoundsColumn, int]:
    """Return the bounds of pages, and their declared order.

    ``rows`` are the row counts of the pages. Order 1 is ascending, 2 descending.

    Raises:
        ValueError: The index is damaged. Other errors of damaged bytes are possible.

    >>> from sparkexpr.values.column_type import Kind
    >>> from lsm.parquet.thrift import I32, LIST, encode_struct
    >>> sides = [[bytes([at]) + bytes(3) for at in side] for side in ([1, 5], [4, 9])]
    >>> lists = {1: (LIST, (TRUE_FIELD, [2, 2])), 2: (LIST, (BINARY, sides[0])), 3: (LIST, (BINARY, sides[1]))}
    >>> bounds, _ = decode_column_index(encode_struct(lists | {4: (I32, 1)}), PhysicalType.INT32, DataType(Kind.INT), np.array([7, 8]))
    >>> bounds.low.tolist(), bounds.high.tolist(), bounds.nulls.tolist()
    ([1, 5], [4, 9], [-1, -1])
    """
    form = _FORMS.get(physical_type)
    alike = None if form is None else _numbers(index, np.dtype(form), len(rows))
    if alike is None:
        return _one_by_one(index, physical_type, data_type, rows)
    (low, high), nulls, order = alike
    if data_type.kind in FLOATS:
        low, high = low.astype(np.float64), np.full(len(rows), np.nan)  # NaN is the greatest value, but writers omit it from the maximum
    else:
        low, high = low.astype(np.int64), high.astype(np.int64)
    return BoundsColumn(low, high, np.ones(len(rows), np.bool_), nulls, rows), order


def check_pages(pages: BoundsColumn, chunk: ColumnBounds, order: int, data_type: DataType) -> None:
    """Check the bounds of pages against their chunk's bounds.

    ``order`` is 1 for ascending bounds, 2 for descending ones.

    Raises:
        ValueError: They exclude values of the chunk, or have another order.

    >>> from sparkexpr.values.column_type import Kind
    >>> number = DataType(Kind.INT)
    >>> pages = BoundsColumn.of([ColumnBounds(1, 4, 0, 9), ColumnBounds(6, 8, 0, 9)], number)
    >>> check_pages(pages, ColumnBounds(1, 8, 0, 18), 1, number)
    >>> check_pages(pages, ColumnBounds(0, 8, 0, 18), 1, number)
    Traceback (most recent call last):
    ValueError: the pages have other bounds than their chunk
    """
    counted = chunk.null_count is not None and (pages.nulls >= 0).all()
    if counted and pages.nulls.sum() != chunk.null_count:
        raise ValueError("the pages have another number of nulls than their chunk")
    filled = (pages.nulls < 0) | (pages.nulls < pages.rows)
    if not filled.any() or not pages.known[filled].all():
        return
    low, high = pages.low[filled], pages.high[filled]
    chunk_bounds = BoundsColumn.of([chunk], data_type)
    if chunk_bounds.known[0] and (low.min() > chunk_bounds.low[0] or high.max() < chunk_bounds.high[0]):
        raise ValueError("the pages have other bounds than their chunk")
    for side in (low, high) if order in {1, 2} else ():
        before, after = (side[:-1], side[1:]) if order == 1 else (side[1:], side[:-1])
        if (after < before).any():
            raise ValueError("the pages are not in the order that their index says")


def _numbers(index: bytes, form: np.dtype[Any], count: int) -> tuple[list[AnyArray], Int64s, int] | None:
    """Decode minima, maxima, null counts and order of ``count`` pages.

    None: a value does not have the width of ``form``, or the index has another unusual part.
    """
    flags = list_head(index, 0, TRUE_FIELD)
    if flags is None or flags[0] != count or index[flags[1] : flags[1] + count] != _NOT_ALL_NULL * count:
        return None
    offset, sides = flags[1] + count, []
    for _ in range(2):
        head, size = list_head(index, offset, BINARY), count * (1 + form.itemsize)
        if head is None or head[0] != count or head[1] + size > len(index):
            return None
        lines = np.frombuffer(index, np.uint8, size, head[1]).reshape(count, 1 + form.itemsize)
        if (lines[:, 0] != form.itemsize).any():
            return None
        sides.append(lines[:, 1:].copy().view(form).reshape(count))
        offset = head[1] + size
    if len(index) < offset + 3 or index[offset] != _NUMBER or index[offset + 1] >= _LONGER:
        return None
    order, offset = index[offset + 1], offset + 2
    nulls = np.full(count, -1, np.int64)
    if index[offset] != _END:
        head = list_head(index, offset, I64)
        if head is None or head[0] != count or head[1] + count >= len(index):
            return None
        raw, offset = np.frombuffer(index, np.uint8, count, head[1]), head[1] + count
        if (raw >= _LONGER).any():
            return None
        nulls = unzigzag(raw.astype(np.int64))
    return (sides, nulls, unzigzag(order)) if index[offset] == _END and offset + 1 == len(index) else None


def _one_by_one(index: bytes, physical_type: int, data_type: DataType, rows: Int64s) -> tuple[BoundsColumn, int]:
    fields, used = decode_struct(index)
    if used != len(index):
        raise ValueError("a column index has another length than its footer says")
    empty, low, high = (list_of(fields, number) for number in (ColumnIndex.NULL_PAGES, ColumnIndex.MIN_VALUES, ColumnIndex.MAX_VALUES))
    nulls = list_of(fields, ColumnIndex.NULL_COUNTS) if ColumnIndex.NULL_COUNTS in fields else [None] * len(empty)
    if not len(empty) == len(low) == len(high) == len(nulls) == len(rows):
        raise ValueError("a column index has another number of pages than its offset index")
    page_bounds = [
        ColumnBounds(None, None, count, count)
        if null_page == 1
        else column_bounds(decode_plain(least, physical_type), decode_plain(greatest, physical_type), null_count, count, data_type)
        for null_page, least, greatest, null_count, count in zip(empty, low, high, nulls, rows.tolist(), strict=True)
    ]
    return BoundsColumn.of(page_bounds, data_type), value(fields, ColumnIndex.BOUNDARY_ORDER)
