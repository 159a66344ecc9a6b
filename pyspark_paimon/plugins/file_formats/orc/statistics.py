"""Exact bounds from ORC stripe statistics.

Not used: floats (writers differ over NaN), timestamps (stored in milliseconds, in the writer's zone), CHAR (padded) and binary.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context

from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType
from pyspark_paimon.plugins.file_formats.orc.protobuf import OrcMessage, decode_zigzag, integer, messages, text
from pyspark_paimon.plugins.file_formats.orc.tail import OrcKind, OrcType
from sparkexpr.values.column_type import Kind, Plain

_VALUES, _INTEGERS, _TEXTS, _DECIMALS, _DATES, _TIMES = 1, 2, 4, 6, 7, 9
_WHOLE = {Kind.TINYINT: OrcKind.BYTE, Kind.SMALLINT: OrcKind.SHORT, Kind.INT: OrcKind.INT, Kind.BIGINT: OrcKind.LONG}
_LEAST, _MOST = 1, 2
_EXTENTS = (1, 2, 3, 4)
"""Fields of timestamp bounds: in the writer's zone, and in UTC."""
_EXACT = Context(prec=80)
_NANOS_MILLIS = 2**63 // 10**6 - 1
"""Maximum distance from 1970 in milliseconds that 64-bit nanoseconds can represent."""


def stripe_bounds(statistics: OrcMessage, stored: OrcType, rows: int, data_type: DataType) -> ColumnBounds | None:
    """Return the bounds of a column of ``rows`` rows.

    None: unknown.

    Raises:
        ValueError, ArithmeticError: The statistics are damaged.
    """
    if _VALUES not in statistics:
        return None
    nulls = rows - integer(statistics, _VALUES)
    if nulls < 0:
        raise ValueError(f"a column has {-nulls} values more than rows")
    low, high = _extent(statistics, stored, data_type)
    if low is None or high is None:
        low = high = None
    return ColumnBounds(low, high, nulls, rows)


def _extent(statistics: OrcMessage, stored: OrcType, data_type: DataType) -> tuple[Plain, Plain]:
    if _WHOLE.get(data_type.kind) is stored.kind:
        return _each(statistics, _INTEGERS, lambda values, side: decode_zigzag(integer(values, side)))
    match data_type.kind, stored.kind:
        case (Kind.DATE, OrcKind.DATE):
            return _each(statistics, _DATES, lambda values, side: decode_zigzag(integer(values, side)))
        case (Kind.VARCHAR, OrcKind.STRING | OrcKind.VARCHAR):
            return _each(statistics, _TEXTS, lambda values, side: text(values, side).decode())
        case (Kind.DECIMAL, OrcKind.DECIMAL) if data_type.scale == stored.scale:
            return _each(
                statistics,
                _DECIMALS,
                lambda values, side: int(_EXACT.create_decimal(text(values, side).decode()).scaleb(data_type.scale, _EXACT)),
            )
    return None, None


def _each(statistics: OrcMessage, kind: int, value: Callable[[OrcMessage, int], Plain]) -> tuple[Plain, Plain]:
    values = messages(statistics, kind)
    if not values or not {_LEAST, _MOST} <= values[-1].keys():
        return None, None  # truncated texts have other fields
    return value(values[-1], _LEAST), value(values[-1], _MOST)


def exceeds_nanos(statistics: OrcMessage) -> bool:
    """Return whether a timestamp column exceeds nanoseconds since 1970."""
    extents = [integer(values, side) for values in messages(statistics, _TIMES) for side in _EXTENTS]
    return any(abs(decode_zigzag(value)) > _NANOS_MILLIS for value in extents)
