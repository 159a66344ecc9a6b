"""Conversion of Arrow scalars and arrays to filter literals."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.predicate.tree import ValueSet
from paimon_base.errors import InvalidFilter
from pyspark_paimon.filter.ast import DateLiteral, Literal, TimeLiteral, TimestampLiteral, literal_from_python
from sparkexpr.values.column_type import INTEGERS, STRINGS, ColumnType, Kind, Plain

NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_LONG = 64


def literal_of_scalar(scalar: Any) -> Literal:
    """Convert an Arrow scalar to a literal.

    Raises ``InvalidFilter`` for durations and nested types, which no column can be compared with.
    """
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_timestamp(kind):
        return TimestampLiteral(scalar.value * NANOS[kind.unit], wall=kind.tz is None)
    if pa.types.is_time(kind):
        return TimeLiteral(scalar.value * NANOS[kind.unit])
    if pa.types.is_date32(kind):
        return DateLiteral(scalar.value)
    if pa.types.is_duration(kind) or pa.types.is_nested(kind):
        raise InvalidFilter(f"a literal of type {kind} cannot be compared with a column")
    return literal_from_python(scalar.as_py())


def literals_of(values: Any) -> tuple[Literal, ...]:
    """Return the literals of a tuple or an Arrow array."""
    return values if isinstance(values, tuple) else tuple(map(literal_of_scalar, values))


def members(values: Any, column_type: ColumnType) -> ValueSet | None:
    """Return the distinct values of a long list.

    Values outside the range of the column and nulls are left out. The types must match without rounding: whole numbers
    for an integer column, texts for a text column, days for a DATE.
    None: the list is short or of another type, and the caller binds its values one by one.

    >>> members(pa.array([3, 300, 3]), ColumnType(Kind.TINYINT))
    (3,)
    """
    array = _long(values) if isinstance(values, tuple) else values
    if array is None:
        return None
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if column_type.kind in STRINGS and (pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()):
        return _distinct(array.cast(pa.large_string()))
    if column_type.kind is Kind.DATE and pa.types.is_date32(kind):
        return _distinct(array.view(pa.int32()))
    if column_type.kind not in INTEGERS or not pa.types.is_integer(kind) or kind == pa.uint64():
        return None
    bits = {Kind.TINYINT: 7, Kind.SMALLINT: 15, Kind.INT: 31, Kind.BIGINT: 63}[column_type.kind]
    numbers = array.cast(pa.int64())
    fits = pc.and_(pc.greater_equal(numbers, -(2**bits)), pc.less_equal(numbers, 2**bits - 1))
    return _distinct(numbers.filter(fits.fill_null(False)))


def _distinct(array: Any) -> ValueSet:
    values: list[Plain] = array.drop_null().unique().to_pylist()
    return ValueSet(values)


def _long(values: tuple[Literal, ...]) -> Any:
    """Convert a long tuple of whole numbers or of texts."""
    if len(values) < _LONG:
        return None
    kinds = {type(value) for value in values} - {type(None)}
    if kinds not in ({int}, {str}):
        return None
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None
