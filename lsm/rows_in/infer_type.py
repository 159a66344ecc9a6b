"""Inference of Arrow types from Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.rows_in.python_families import ARROW_TYPES, Family, family_of
from lsm.rows_in.python_values import InvalidValue, without_pandas_nulls

_WIDER = {
    frozenset({Family.INT, Family.FLOAT}): Family.FLOAT,
    frozenset({Family.INT, Family.DECIMAL}): Family.DECIMAL,
    frozenset({Family.DATE, Family.DATETIME}): Family.DATETIME,
}
_INT64 = 2**63
_UNITS = {"D": pa.date32(), "generic": pa.timestamp("us")}


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
