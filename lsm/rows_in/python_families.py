"""Families of Python types with a common Arrow type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from sparkexpr.values.variant_type import VARIANT_ARROW
from sparkexpr.variant.values import Variant


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
