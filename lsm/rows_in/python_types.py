"""Arrow types of Python values.

A family is the Python types with a common Arrow type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from sparkexpr.values.variant_type import VARIANT_ARROW
from sparkexpr.variant.values import Variant


class InvalidValue(ValueError):
    """A value does not fit its column.

    ``row`` is its position in the sequence, ``path`` the path to a nested value.
    """

    def __init__(self, row: int, path: str, reason: str) -> None:
        super().__init__(row, path, reason)
        self.row = row
        self.path = path
        self.reason = reason

    def inside(self, row: int, step: str) -> InvalidValue:
        """Return the error for the value that contains this one."""
        return InvalidValue(row, step + self.path, self.reason)


class Family(StrEnum):
    """Kind of value of a Python type."""

    NULL = "null"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    DECIMAL = "Decimal"
    TEXT = "str"
    BYTES = "bytes"
    DATE = "date"
    DATETIME = "datetime"
    DATETIME64 = "datetime64"
    TIME = "time"
    LIST = "list"
    MAPPING = "dict"
    ARROW = "Arrow scalar"
    VARIANT = "Variant"
    OTHER = "other"


ARROW_TYPES = {
    Family.BOOL: pa.bool_(),
    Family.FLOAT: pa.float64(),
    Family.TEXT: pa.string(),
    Family.BYTES: pa.binary(),
    Family.DATE: pa.date32(),
    Family.TIME: pa.time64("us"),
    Family.VARIANT: VARIANT_ARROW,
}
"""Arrow types of the families with one type."""
CONVERSION_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""Errors of Arrow for values that it cannot convert."""

_PANDAS_NULLS = frozenset({"NAType", "NaTType"})
_BY_CLASS: tuple[tuple[Family, tuple[type, ...]], ...] = (
    (Family.NULL, (type(None),)),
    (Family.BOOL, (bool, np.bool_)),
    (Family.OTHER, (np.longdouble, np.timedelta64, np.complexfloating, np.void)),
    (Family.DATETIME64, (np.datetime64,)),
    (Family.INT, (int, np.integer)),
    (Family.FLOAT, (float, np.floating)),
    (Family.DECIMAL, (Decimal,)),
    (Family.TEXT, (str,)),
    (Family.BYTES, (bytes, bytearray, memoryview)),
    (Family.DATETIME, (datetime,)),
    (Family.DATE, (date,)),
    (Family.TIME, (time,)),
    (Family.ARROW, (pa.Scalar,)),
    (Family.VARIANT, (Variant,)),
    (Family.MAPPING, (Mapping,)),
    (Family.LIST, (list, tuple, np.ndarray)),
)
_WIDER = {
    frozenset({Family.INT, Family.FLOAT}): Family.FLOAT,
    frozenset({Family.INT, Family.DECIMAL}): Family.DECIMAL,
    frozenset({Family.DATE, Family.DATETIME}): Family.DATETIME,
}
_INT64 = 2**63
_UNITS = {"D": pa.date32(), "generic": pa.timestamp("us")}


def family_of(kind: type) -> Family:
    """Return the family of a Python type.

    >>> family_of(np.int8), family_of(bool), family_of(set)
    (<Family.INT: 'int'>, <Family.BOOL: 'bool'>, <Family.OTHER: 'other'>)
    """
    if kind.__name__ in _PANDAS_NULLS and kind.__module__.startswith("pandas."):
        return Family.NULL
    return next((family for family, classes in _BY_CLASS if issubclass(kind, classes)), Family.OTHER)


def without_pandas_nulls(values: Sequence[Any]) -> tuple[Sequence[Any], frozenset[type]]:
    """Replace ``pd.NA`` and ``pd.NaT`` by None.

    Also returns the types of the other values.
    """
    kinds = set(map(type, values))
    nulls = {kind for kind in kinds if family_of(kind) is Family.NULL}
    if nulls - {type(None)}:
        values = [None if type(value) in nulls else value for value in values]
    return values, frozenset(kinds - nulls)


def without_nan(values: Sequence[Any]) -> Sequence[Any]:
    """Replace NaN by None, like pandas."""
    kinds = {kind for kind in set(map(type, values)) if family_of(kind) in {Family.FLOAT, Family.DECIMAL}}
    if not kinds:
        return values
    return [
        None if type(value) in kinds and (value.is_nan() if isinstance(value, Decimal) else np.isnan(value)) else value for value in values
    ]


def infer_type(values: Sequence[Any]) -> pa.DataType:
    """Return the Arrow type that holds all values.

    Without any value it is the null type.

    Raises:
        InvalidValue: A value has another kind than the others.

    >>> infer_type([1, None, 2.5]), infer_type([{"a": [b"x"]}])
    (DataType(double), StructType(struct<a: list<item: binary>>))
    """
    values, kinds = without_pandas_nulls(values)
    families = frozenset(family_of(kind) for kind in kinds)
    if not families:
        return pa.null()
    family = next(iter(families)) if len(families) == 1 else _WIDER.get(families, Family.OTHER)
    present = [value for value in values if value is not None]
    match family:
        case Family.INT:
            return pa.int64() if all(-_INT64 <= value < _INT64 for value in present) else pa.decimal128(38, 0)
        case Family.DECIMAL:
            return _decimal(present)
        case Family.DATETIME:
            times = [value for value in present if hasattr(value, "tzinfo")]
            unit = "ns" if any(getattr(value, "nanosecond", 0) for value in times) else "us"
            return pa.timestamp(unit, "UTC" if any(value.utcoffset() is not None for value in times) else None)
        case Family.DATETIME64:
            unit = np.datetime_data(np.array(present).dtype)[0]
            return _UNITS.get(unit) or pa.timestamp(unit if unit in {"s", "ms", "us", "ns"} else "ns")
        case Family.LIST:
            return pa.list_(infer_type(list(chain.from_iterable(present))))
        case Family.MAPPING:
            return _of_mappings(present)
        case Family.ARROW:
            return present[0].type
        case Family.OTHER:
            return _other(values)
    return ARROW_TYPES[family]


def _decimal(values: Sequence[Any]) -> pa.DataType:
    """Return the narrowest decimal for all digits, at most 38."""
    scales = [max(0, -number.as_tuple().exponent) if hasattr(number, "as_tuple") and number.is_finite() else 0 for number in values]
    return pa.decimal128(38, min(38, max(scales)))


def _of_mappings(values: Sequence[Mapping[Any, Any]]) -> pa.DataType:
    names = list(dict.fromkeys(chain.from_iterable(values)))
    if not names:
        return pa.map_(pa.string(), pa.string())  # a struct without fields has no length in Arrow
    if all(isinstance(name, str) for name in names):
        return pa.struct([(name, infer_type([value.get(name) for value in values])) for name in names])
    return pa.map_(infer_type(names), infer_type(list(chain.from_iterable(value.values() for value in values))))


def _other(values: Sequence[Any]) -> pa.DataType:
    """Raise ``InvalidValue`` for the first value of another kind."""
    first: Family | None = None
    for row, value in enumerate(values):
        if value is None:
            continue
        family = family_of(type(value))
        first = family if first is None else first
        if family is Family.OTHER:
            raise InvalidValue(row, "", f"{value!r:.60} ({type(value).__name__}) has no Arrow type")
        if family is not first and frozenset({family, first}) not in _WIDER:
            raise InvalidValue(row, "", f"{value!r:.60} ({type(value).__name__}) is in one column with values of kind {first}")
    raise InvalidValue(0, "", "the values are of several kinds")
