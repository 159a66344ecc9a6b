"""Statistics of ORC's stripes as bounds of plain values, where they are exact; of other types they say nothing here.

Left out are floats (writers differ over NaN), timestamps (kept in milliseconds, in the writer's zone), CHAR (padded) and binary.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context

from fileindex.base.column_type import Kind, Plain
from lsm.orc.protobuf import OrcMessage, integer, messages, signed, text
from lsm.orc.tail import OrcKind, OrcType
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType

_VALUES, _INTEGERS, _TEXTS, _DECIMALS, _DATES, _TIMES = 1, 2, 4, 6, 7, 9
_WHOLE = {Kind.TINYINT: OrcKind.BYTE, Kind.SMALLINT: OrcKind.SHORT, Kind.INT: OrcKind.INT, Kind.BIGINT: OrcKind.LONG}
_LEAST, _MOST = 1, 2
_EXTENTS = (1, 2, 3, 4)
"""Of times: by the writer's clock, and in UTC."""
_EXACT = Context(prec=80)
_NANOS_MILLIS = 2**63 // 10**6 - 1
"""Milliseconds from 1970 that nanoseconds can hold, either way."""


def stripe_bounds(found: OrcMessage, stored: OrcType, rows: int, data_type: DataType) -> ColumnBounds | None:
    """What the statistics of a column say of ``rows`` rows; None if nothing. Raises ``ValueError`` or ``ArithmeticError`` for broken ones."""
    if _VALUES not in found:
        return None
    nulls = rows - integer(found, _VALUES)
    if nulls < 0:
        raise ValueError(f"a column has {-nulls} values more than rows")
    low, high = _extent(found, stored, data_type)
    if low is None or high is None:
        low = high = None
    return ColumnBounds(low, high, nulls, rows)


def _extent(found: OrcMessage, stored: OrcType, data_type: DataType) -> tuple[Plain, Plain]:
    if _WHOLE.get(data_type.kind) is stored.kind:
        return _each(found, _INTEGERS, lambda said, side: signed(integer(said, side)))
    match data_type.kind, stored.kind:
        case (Kind.DATE, OrcKind.DATE):
            return _each(found, _DATES, lambda said, side: signed(integer(said, side)))
        case (Kind.VARCHAR, OrcKind.STRING | OrcKind.VARCHAR):
            return _each(found, _TEXTS, lambda said, side: text(said, side).decode())
        case (Kind.DECIMAL, OrcKind.DECIMAL) if data_type.scale == stored.scale:
            return _each(
                found, _DECIMALS, lambda said, side: int(_EXACT.create_decimal(text(said, side).decode()).scaleb(data_type.scale, _EXACT))
            )
    return None, None


def _each(found: OrcMessage, kind: int, value: Callable[[OrcMessage, int], Plain]) -> tuple[Plain, Plain]:
    said = messages(found, kind)
    if not said or not {_LEAST, _MOST} <= said[-1].keys():
        return None, None  # texts that were cut have other fields
    return value(said[-1], _LEAST), value(said[-1], _MOST)


def exceeds_nanos(found: OrcMessage) -> bool:
    """Whether the statistics of a timestamp column have one that nanoseconds since 1970 cannot hold."""
    extents = [integer(said, side) for said in messages(found, _TIMES) for side in _EXTENTS]
    return any(abs(signed(value)) > _NANOS_MILLIS for value in extents)


__all__ = ["exceeds_nanos", "stripe_bounds"]
