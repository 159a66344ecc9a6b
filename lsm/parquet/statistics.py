"""Raw minima and maxima of Parquet's footers and page indexes as bounds of plain values."""

from __future__ import annotations

import math
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


__all__ = ["column_bounds", "has_bounds"]
