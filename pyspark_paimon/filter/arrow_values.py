"""Arrow values as literals: one, or at once all those of a long list that suit a column as they are."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.column_type import INTEGERS, STRINGS, ColumnType, Kind, Plain
from fileindex.base.errors import InvalidFilter
from fileindex.predicate.value_set import ValueSet
from pyspark_paimon.filter.ast import Clock, Day, Literal, Moment, literal_from_python

NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_LONG = 64


def literal_of_scalar(scalar: Any) -> Literal:
    """An Arrow scalar as a literal. Raises ``InvalidFilter`` for a type that no column is compared with."""
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_timestamp(kind):
        return Moment(scalar.value * NANOS[kind.unit], wall=kind.tz is None)
    if pa.types.is_time(kind):
        return Clock(scalar.value * NANOS[kind.unit])
    if pa.types.is_date32(kind):
        return Day(scalar.value)
    if pa.types.is_duration(kind) or pa.types.is_nested(kind):
        raise InvalidFilter(f"a literal of type {kind} cannot be compared with a column")
    return literal_from_python(scalar.as_py())


def literals_of(values: Any) -> tuple[Literal, ...]:
    """A tuple of literals as it is, an Arrow array one by one."""
    return values if isinstance(values, tuple) else tuple(map(literal_of_scalar, values))


def members(values: Any, column_type: ColumnType) -> ValueSet | None:
    """The distinct values of a long list that a column can have, nulls left out; None if they must be bound one by one.

    Whole numbers for a column of integers, texts for one of texts, days for a DATE: nothing about them has to be rounded.

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
    inside = pc.and_(pc.greater_equal(numbers, -(2**bits)), pc.less_equal(numbers, 2**bits - 1))
    return _distinct(numbers.filter(inside.fill_null(False)))


def _distinct(array: Any) -> ValueSet:
    found: list[Plain] = array.drop_null().unique().to_pylist()
    return ValueSet(found)


def _long(values: tuple[Literal, ...]) -> Any:
    """A long tuple of nothing but whole numbers, or texts, and nulls, as an array."""
    if len(values) < _LONG:
        return None
    kinds = {type(value) for value in values} - {type(None)}
    if kinds not in ({int}, {str}):
        return None
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None


__all__ = ["NANOS", "literal_of_scalar", "literals_of", "members"]
