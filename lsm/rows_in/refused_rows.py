"""Search for values that ``conform`` refuses.

All values of a column are judged at once, in nested types level by level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.rows_in.conform import conform_column
from lsm.rows_in.constrain import is_bounded, lengths
from lsm.rows_in.lossless_cast import LossyCast, lossless_cast
from manifest.io.errors import NullInKey, SchemaMismatch
from manifest.types.data_type import DataField, DataType
from paimon_base.hidden_nulls import entry_lists
from sparkexpr.values.arrays import Mask
from sparkexpr.values.column_type import Kind

_REFUSED = (SchemaMismatch, NullInKey)


def refused_rows(column: Any, field: DataField) -> Mask:
    """Return which values ``conform`` refuses.

    Raises:
        SchemaMismatch: No value of the column's type fits.

    >>> from manifest.types.ddl import parse_ddl
    >>> refused_rows(pa.array([["a"], ["ab"], None]), parse_ddl("t ARRAY<VARCHAR(1)>")[0]).tolist()
    [False, True, False]
    """
    conform_column(column.slice(0, 0), field)
    if _conforms(column, field):
        return np.zeros(len(column), np.bool_)
    refused = _refused(column, field.type)
    positions = np.flatnonzero(~refused)
    remaining = column.take(pa.array(positions))
    if not _conforms(remaining, field):  # a layout or cast that is not judged above
        refused[positions[_refused_by_search(remaining, field)]] = True
    return refused


def _conforms(column: Any, field: DataField) -> bool:
    try:
        conform_column(column, field)
    except _REFUSED:
        return False
    return True


def _refused_by_search(column: Any, field: DataField) -> Mask:
    """Return which values are refused, by bisection. Each costs several calls."""
    refused = np.zeros(len(column), np.bool_)
    ranges = [(0, len(column))]
    while ranges:
        start, stop = ranges.pop()
        if _conforms(column.slice(start, stop - start), field):
            continue
        if stop - start == 1:
            refused[start] = True
        else:
            middle = (start + stop) // 2
            ranges += [(start, middle), (middle, stop)]
    return refused


def _refused(array: Any, data_type: DataType) -> Mask:
    """Return which values surely do not fit their type."""
    valid = np.asarray(array.is_valid())
    refused: Mask = np.zeros(len(array), np.bool_) if data_type.nullable else ~valid
    if pa.types.is_null(array.type):
        return refused
    match data_type.kind:
        case Kind.ROW:
            for field in data_type.fields:
                if (index := array.type.get_field_index(field.name)) >= 0:
                    refused |= valid & _refused(array.field(index), field.type)
        case Kind.ARRAY if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            refused |= rows_with(array, _refused(array.values, data_type.part("element")))
        case Kind.MAP | Kind.MULTISET:
            lists = entry_lists(array)
            parts = ("key", "value") if data_type.kind is Kind.MAP else ("element",)
            for index, part in enumerate(parts):
                refused |= rows_with(lists, _refused(lists.values.field(index), data_type.part(part)))
        case _ if not data_type.is_nested:
            refused |= _changed(array, data_type.arrow) | _overlong(array, data_type)
    return refused


def rows_with(lists: Any, refused: Mask) -> Mask:
    """Return which lists have a refused value."""
    if not refused.any():
        return np.zeros(len(lists), np.bool_)
    before = np.concatenate([[0], np.cumsum(refused)])[np.asarray(lists.offsets)]
    has_refused: Mask = (before[1:] > before[:-1]) & np.asarray(lists.is_valid())
    return has_refused


def _changed(array: Any, target: Any) -> Mask:
    """Return which values a cast to ``target`` changes."""
    unchanged = np.zeros(len(array), np.bool_)
    if array.type == target:
        return unchanged
    try:
        lossless_cast(array, target)
    except LossyCast:
        try:
            restored = array.cast(target, safe=False).cast(array.type, safe=False)
            same = pc.equal(restored, array)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return unchanged
        if pa.types.is_floating(array.type):
            same = pc.or_(same, pc.and_(pc.is_nan(restored), pc.is_nan(array)))
        return ~np.asarray(pc.fill_null(same, fill_value=True))
    return unchanged


def _overlong(array: Any, data_type: DataType) -> Mask:
    if not is_bounded(data_type):
        return np.zeros(len(array), np.bool_)
    return np.asarray(pc.fill_null(pc.greater(lengths(array, data_type), data_type.length), fill_value=False))
