"""Which changes of a column's type Paimon allows (``DataTypeCasts``), and which of them keep values or their order.

An *implicit* change keeps every value in its meaning; an *explicit* one may cut, round or fail, and is allowed unless the table
sets ``disable-explicit-type-casting``. Files are never rewritten: readers cast, so a change is only as good as the cast.
"""

from __future__ import annotations

from enum import Enum

from fileindex.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Kind
from manifest.types import DataType

INTEGER_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 19}
INTEGER_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
NUMBERS = INTEGERS | FLOATS | {Kind.DECIMAL}
_DATETIMES = TIMESTAMPS | {Kind.DATE, Kind.TIME}
_ZONED = "a local-zoned timestamp turns into it by the time zone of whoever reads"


class Cast(Enum):
    """What Paimon thinks of a change of type."""

    IMPLICIT = "implicit"
    EXPLICIT = "explicit"
    NONE = "none"


def cast_of(old: DataType, new: DataType) -> Cast:
    """How Paimon rates the change between two atomic types; nullability does not count.

    >>> cast_of(DataType(Kind.INT), DataType(Kind.BIGINT)), cast_of(DataType(Kind.BIGINT), DataType(Kind.INT))
    (<Cast.IMPLICIT: 'implicit'>, <Cast.EXPLICIT: 'explicit'>)
    >>> cast_of(DataType(Kind.DATE), DataType(Kind.DOUBLE))
    <Cast.NONE: 'none'>
    """
    if old.is_nested or new.is_nested:
        return Cast.IMPLICIT if old.with_nullable(nullable=True) == new.with_nullable(nullable=True) else Cast.NONE
    if _is_implicit(old.kind, new.kind):
        return Cast.IMPLICIT
    return Cast.EXPLICIT if _is_explicit(old.kind, new.kind) else Cast.NONE


def _is_implicit(old: Kind, new: Kind) -> bool:
    match new:
        case Kind.VARCHAR:
            return old in STRINGS
        case Kind.VARBINARY:
            return old in BINARIES
        case Kind.DECIMAL | Kind.DOUBLE:
            return old in NUMBERS
        case Kind.FLOAT:
            return old in INTEGERS | {Kind.DECIMAL, Kind.FLOAT}
        case _ if new in INTEGERS:
            return old in INTEGERS and INTEGER_BITS[old] <= INTEGER_BITS[new]
        case Kind.DATE | Kind.TIME:
            return old in {new, Kind.TIMESTAMP}
        case _ if new in TIMESTAMPS:
            return old in TIMESTAMPS
    return old is new


def _is_explicit(old: Kind, new: Kind) -> bool:
    if new in STRINGS:
        return old in STRINGS | BINARIES | NUMBERS | _DATETIMES | {Kind.BOOLEAN}
    if old in STRINGS:
        return new in BINARIES | NUMBERS | _DATETIMES | {Kind.BOOLEAN}
    if new in BINARIES:
        return old in BINARIES
    if new is Kind.BOOLEAN:
        return old in INTEGERS
    if new in NUMBERS:
        return old in NUMBERS | TIMESTAMPS | {Kind.BOOLEAN}
    if new in {Kind.DATE, Kind.TIME}:
        return old in TIMESTAMPS
    return new in TIMESTAMPS and old in _DATETIMES | NUMBERS


def why_not_built(old: DataType, new: DataType) -> str | None:
    """Why readers here cannot make the change, None if they can."""
    return None


__all__ = ["INTEGER_BITS", "INTEGER_DIGITS", "NUMBERS", "Cast", "cast_of", "why_not_built"]
