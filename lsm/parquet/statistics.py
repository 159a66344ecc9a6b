"""Raw minima and maxima of Parquet's footers and page indexes as bounds of plain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from fileindex.base.column_type import BINARIES, FLOATS, STRINGS, Kind, Plain
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType


def column_bounds(low: Any, high: Any, nulls: int | None, rows: int, data_type: DataType) -> ColumnBounds:
    r"""Bounds of ``rows`` values of ``data_type``; a raw value that cannot be read as one (or None) makes them unknown.

    >>> column_bounds(b"a", b"\xff", 0, 5, DataType(Kind.VARCHAR, length=9)).min is None
    True
    """
    if low is None or high is None:
        return ColumnBounds(None, None, nulls, rows)
    try:
        least, most = _plain(low, data_type), _plain(high, data_type)
    except (ValueError, TypeError, OverflowError):
        return ColumnBounds(None, None, nulls, rows)
    if data_type.kind in FLOATS:
        most = math.nan  # writers leave NaN, the greatest value, out of the maximum
    return ColumnBounds(least, most, nulls, rows)


def check_pages(pages: Sequence[ColumnBounds], chunk: ColumnBounds, order: int) -> None:
    """Raises ``ValueError`` if the bounds of pages leave out what those of their chunk know, or do not ascend (1) or descend (2) as they should.

    >>> pages = [ColumnBounds(1, 4, 0, 9), ColumnBounds(6, 8, 0, 9)]
    >>> check_pages(pages, ColumnBounds(1, 8, 0, 18), 1)
    >>> check_pages(pages, ColumnBounds(0, 8, 0, 18), 1)
    Traceback (most recent call last):
    ValueError: its pages have other bounds than their chunk
    """
    nulls = [page.null_count for page in pages]
    if chunk.null_count is not None and None not in nulls and sum(nulls) != chunk.null_count:  # type: ignore[arg-type]  # no None
        raise ValueError("its pages have another number of nulls than their chunk")
    filled: list[Any] = [page for page in pages if not page.all_null]
    if not filled or any(page.min is None for page in filled):
        return
    low: list[Any] = [page.min for page in filled]
    high: list[Any] = [page.max for page in filled]
    if chunk.min is not None and (min(low) > chunk.min or max(high) < chunk.max):
        raise ValueError("its pages have other bounds than their chunk")
    for side in (low, high) if order in {1, 2} else ():
        steps = pairwise(side if order == 1 else side[::-1])
        if any(after < before for before, after in steps):
            raise ValueError("its pages are not in the order that their index says")


def has_bounds(arrow: Any, data_type: DataType) -> bool:
    """Whether raw bounds of a column stored as ``arrow`` have the physical form of plain values of ``data_type``."""
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


__all__ = ["check_pages", "column_bounds", "has_bounds"]
