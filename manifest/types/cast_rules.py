"""Allowed changes of a column's type (Paimon's ``DataTypeCasts``).

Also which of them keep values or their order. An *implicit* change keeps the meaning of every value. An *explicit* one may truncate, round or
fail, and is allowed unless the table sets ``disable-explicit-type-casting``. Files are never rewritten: readers cast the values.
"""

from __future__ import annotations

from enum import Enum
from itertools import starmap

from manifest.types.data_type import MAX_LENGTH, DataType
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Kind

INTEGER_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 19}
INTEGER_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
NUMBERS = INTEGERS | FLOATS | {Kind.DECIMAL}
_DATETIMES = TIMESTAMPS | {Kind.DATE, Kind.TIME}
_SECONDS = frozenset({Kind.INT, Kind.BIGINT})
"""Numbers that may be seconds since the epoch."""


class Cast(Enum):
    """Paimon's rating of a type change."""

    IMPLICIT = "implicit"
    EXPLICIT = "explicit"
    NONE = "none"


def cast_of(old: DataType, new: DataType) -> Cast:
    """Return the rating of a change between two types.

    Ignores nullability.

    >>> cast_of(DataType(Kind.INT), DataType(Kind.BIGINT)), cast_of(DataType(Kind.BIGINT), DataType(Kind.INT))
    (<Cast.IMPLICIT: 'implicit'>, <Cast.EXPLICIT: 'explicit'>)
    >>> cast_of(DataType(Kind.DATE), DataType(Kind.DOUBLE))
    <Cast.NONE: 'none'>
    """
    if old.is_nested or new.is_nested:
        return Cast.IMPLICIT if old.with_nullable(nullable=True) == new.with_nullable(nullable=True) else Cast.NONE
    if _is_implicit(old.kind, new.kind):
        return Cast.NONE if old.kind is new.kind is Kind.TIME and old.precision != new.precision else Cast.IMPLICIT
    return Cast.EXPLICIT if _is_explicit(old, new) else Cast.NONE


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


def _is_explicit(old: DataType, new: DataType) -> bool:
    if new.kind in STRINGS:
        if old.kind in _DATETIMES:
            return new.kind is Kind.VARCHAR and new.length == MAX_LENGTH
        return old.kind in STRINGS | BINARIES | NUMBERS | {Kind.BOOLEAN}
    if old.kind in STRINGS:
        return new.kind in BINARIES | NUMBERS | _DATETIMES | {Kind.BOOLEAN}
    if new.kind in BINARIES:
        return old.kind in BINARIES
    if new.kind is Kind.BOOLEAN:
        return old.kind in INTEGERS
    if new.kind in NUMBERS:
        return old.kind in NUMBERS | {Kind.BOOLEAN} or (old.kind in TIMESTAMPS and new.kind in _SECONDS)
    if new.kind in {Kind.DATE, Kind.TIME}:
        return old.kind in TIMESTAMPS
    return new.kind in TIMESTAMPS and old.kind in _DATETIMES | _SECONDS


def keeps_order(old: DataType, new: DataType) -> bool:
    """Return whether a cast never fails and keeps order.

    Bounds can then be cast too.

    >>> keeps_order(DataType(Kind.INT), DataType(Kind.BIGINT)), keeps_order(DataType(Kind.INT), DataType(Kind.SMALLINT))
    (True, False)
    """
    match old.kind, new.kind:
        case (a, b) if a in INTEGERS and b in INTEGERS:
            return INTEGER_BITS[a] <= INTEGER_BITS[b]
        case (a, Kind.DECIMAL) if a in INTEGERS:
            return new.precision - new.scale >= INTEGER_DIGITS[a]
        case (Kind.DECIMAL, Kind.DECIMAL):
            return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        case (a, b) if b in FLOATS:
            return a in INTEGERS | {Kind.DECIMAL} or (a is Kind.FLOAT and b is Kind.DOUBLE)
        case (Kind.DATE, Kind.TIMESTAMP):
            return True
        case (a, b) if a is b and a in TIMESTAMPS:
            return old.precision <= new.precision
    return False


_EXACT_BITS = {Kind.FLOAT: 16, Kind.DOUBLE: 32}
"""Widest integers whose values are exact in a type."""
_MOST_TEXT = {Kind.BOOLEAN: 5, Kind.FLOAT: 24, Kind.DOUBLE: 24, Kind.DATE: 10, Kind.TIME: 12, Kind.TIMESTAMP: 29}
"""Largest number of characters of a value as text."""
_MICROS = 6
"""Digits of a second below which every date and time fits a type."""


def keeps_values(old: DataType, new: DataType) -> bool:
    """Return whether a change keeps every value exactly.

    A number as text is the same value. Nested types are compared part by part; fields of rows that one type lacks do not count.

    >>> keeps_values(DataType(Kind.INT), DataType(Kind.DOUBLE)), keeps_values(DataType(Kind.BIGINT), DataType(Kind.DOUBLE))
    (True, False)
    """
    if old.with_nullable(nullable=True) == new.with_nullable(nullable=True):
        return True
    if old.is_nested or new.is_nested:
        return old.kind is new.kind and _keeps_parts(old, new)
    if cast_of(old, new) is Cast.NONE:
        return False
    match old.kind, new.kind:
        case (a, Kind.VARCHAR) if a in STRINGS:
            return old.length <= new.length
        case (a, Kind.VARCHAR):
            return a not in BINARIES and _text_length(old) <= new.length
        case (a, Kind.VARBINARY):
            return (old.length if a in BINARIES else min(4 * old.length, MAX_LENGTH)) <= new.length
        case (a, b) if b in FLOATS:
            return (a in INTEGERS and INTEGER_BITS[a] <= _EXACT_BITS[b]) or (a is Kind.FLOAT and b is Kind.DOUBLE)
        case (Kind.BOOLEAN, b):
            return b in INTEGERS
        case (Kind.DECIMAL, b) if b in INTEGERS:
            return old.scale == 0 and old.precision < INTEGER_DIGITS[b]
        case (a, b) if b in INTEGERS or b is Kind.DECIMAL:
            return a in INTEGERS | {Kind.DECIMAL} and keeps_order(old, new)
        case (Kind.DATE, Kind.TIMESTAMP):
            return new.precision <= _MICROS
        case (a, b) if a is b and a in TIMESTAMPS:
            return old.precision <= new.precision and (old.precision > _MICROS or new.precision <= _MICROS)
    return False


def _keeps_parts(old: DataType, new: DataType) -> bool:
    if old.kind is Kind.ROW:
        fields = {field.id: field.type for field in old.fields}
        return all(keeps_values(fields[field.id], field.type) for field in new.fields if field.id in fields)
    pairs = list(zip(old.children, new.children, strict=True))
    return bool(pairs) and old.length == new.length and all(starmap(keeps_values, pairs))


def _text_length(data_type: DataType) -> int:
    if data_type.kind in INTEGERS:
        return INTEGER_DIGITS[data_type.kind] + 1
    return data_type.precision + 3 if data_type.kind is Kind.DECIMAL else _MOST_TEXT.get(data_type.kind, MAX_LENGTH + 1)


def may_null(old: DataType, new: DataType) -> bool:
    """Return whether a cast can turn a value into null.

    As for a number with too many digits for a DECIMAL.
    """
    return new.kind is Kind.DECIMAL and not keeps_order(old, new) and old.kind is not Kind.BOOLEAN
