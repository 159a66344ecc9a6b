"""Families of Python types with a common Arrow type."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum

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
