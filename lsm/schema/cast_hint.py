"""Hints in error messages to make rows fit a column."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import pyarrow as pa

from fileindex.base.column_type import STRINGS, TIMESTAMPS, Kind
from manifest.types.data_type import DataField

_NAMES = {
    Kind.BOOLEAN: "pa.bool_()",
    Kind.TINYINT: "pa.int8()",
    Kind.SMALLINT: "pa.int16()",
    Kind.INT: "pa.int32()",
    Kind.BIGINT: "pa.int64()",
    Kind.FLOAT: "pa.float32()",
    Kind.DOUBLE: "pa.float64()",
    Kind.DATE: "pa.date32()",
    Kind.TIME: "pa.time32('ms')",
    Kind.CHAR: "pa.string()",
    Kind.VARCHAR: "pa.string()",
    Kind.BINARY: "pa.binary()",
    Kind.VARBINARY: "pa.binary()",
}


_PYTHON_VALUES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_integer, "int, cast texts like this: int(value)"),
    (pa.types.is_floating, "float, cast texts like this: float(value)"),
    (pa.types.is_decimal, "decimal.Decimal, cast texts like this: Decimal(value)"),
    (pa.types.is_date, "datetime.date"),
    (pa.types.is_timestamp, "datetime.datetime, cast ISO texts like this: datetime.fromisoformat(value)"),
    (pa.types.is_time, "datetime.time"),
    (pa.types.is_boolean, "bool"),
    (pa.types.is_string, "str, cast others like this: str(value)"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_map, "a dict, or pairs (key, value), whose keys are not None"),
    (pa.types.is_list, "a list"),
    (pa.types.is_struct, "a dict"),
)

_VALUES = {
    Kind.ARRAY: "; give lists: pa.array([[...]])",
    Kind.MULTISET: "; give pairs (value, count)",
    Kind.MAP: "; give dicts, or pairs (key, value)",
    Kind.ROW: "; give dicts",
    Kind.BOOLEAN: "; compare it with something that is true",
}
"""Hints for types without a cast."""


def cast_hint(field: DataField, source: Any) -> str:
    """Return a hint with the cast that fits a column.

    Example: ``"; cast like this: pc.cast(rows['d'], pa.date32())"``. Empty if Arrow has no such cast.

    >>> from manifest.types.data_type import DataType
    >>> cast_hint(DataField(0, "d", DataType(Kind.DATE)), pa.string())
    "; cast like this: pc.cast(rows['d'], pa.date32())"
    """
    made = _expression(field, source, f"rows[{field.name!r}]")
    return _VALUES.get(field.type.kind, "") if made is None else f"; cast like this: {made}"


def wider_hint(field: DataField) -> str:
    """Return the hint for values outside of the column's range.

    >>> from manifest.types.data_type import DataType
    >>> wider_hint(DataField(0, "n", DataType(Kind.INT)))
    "; give values in its range, or the column a wider type: table.change_type('n', ...)"
    """
    return f"; give values in its range, or the column a wider type: table.change_type({field.name!r}, ...)"


def shorter_hint(field: DataField) -> str:
    """Return the hint for too long text or binary values.

    >>> from manifest.types.data_type import DataType
    >>> shorter_hint(DataField(0, "c", DataType(Kind.CHAR, length=3)))
    "; cut it like this: pc.utf8_slice_codeunits(rows['c'], 0, 3), or give the column a longer type: table.change_type('c', ...)"
    """
    cut = "utf8_slice_codeunits" if field.type.kind in STRINGS else "binary_slice"
    made = f"pc.{cut}(rows[{field.name!r}], 0, {field.type.length})"
    return f"; cut it like this: {made}, or give the column a longer type: table.change_type({field.name!r}, ...)"


def missing_hint(field: DataField) -> str:
    """Return the hint for a missing column.

    >>> from manifest.types.data_type import DataType
    >>> missing_hint(DataField(0, "n", DataType(Kind.INT)))
    "; add it like this: rows.append_column('n', pa.array([...], pa.int32()))"
    """
    wanted = _arrow_type_code(field)
    return f"; add it like this: rows.append_column({field.name!r}, pa.array([...]{'' if wanted is None else f', {wanted}'}))"


def values_hint(wanted: pa.DataType | None) -> str:
    """Return the hint for Python values refused by Arrow.

    >>> values_hint(pa.date32()), values_hint(None)
    ('; give datetime.date', '')
    """
    if wanted is None:
        return ""
    kinds = (given for is_kind, given in _PYTHON_VALUES if is_kind(wanted))
    return "".join(f"; give {given}" for given in islice(kinds, 1))


def _expression(field: DataField, source: Any, rows: str) -> str | None:
    types, kind = pa.types, field.type.kind
    wanted = _arrow_type_code(field)
    if wanted is None or types.is_nested(source):
        return None
    if kind in TIMESTAMPS and types.is_timestamp(source) and (source.tz is None) != (field.type.arrow.tz is None):
        return f"pc.local_timestamp({rows})" if field.type.arrow.tz is None else f"pc.assume_timezone({rows}, 'UTC')"
    if kind in TIMESTAMPS and types.is_timestamp(source) and source.unit != field.type.arrow.unit:
        return f"pc.cast({rows}, {wanted}, safe=False)"
    if types.is_floating(source) and kind is Kind.DECIMAL:
        return f"pc.cast(pc.round({rows}, {field.type.scale}), {wanted})"
    if types.is_floating(source) and wanted.startswith("pa.int"):
        return f"pc.cast(pc.round({rows}), {wanted})"
    if types.is_floating(source) and kind is Kind.FLOAT:
        return f"pc.cast({rows}, {wanted}, safe=False)"
    if types.is_integer(source) and kind is Kind.DATE:
        return f"pc.cast(pc.cast({rows}, pa.int32()), {wanted})"
    if types.is_timestamp(source) and kind is Kind.DATE:
        return f"pc.cast(pc.floor_temporal({rows}, unit='day'), {wanted})"
    if types.is_decimal(source) and kind is Kind.DECIMAL:
        return f"pc.cast(pc.round({rows}, {field.type.scale}), {wanted})"
    try:
        pa.nulls(0, source).cast(field.type.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return f"pc.cast({rows}, {wanted})"


def _arrow_type_code(field: DataField) -> str | None:
    kind = field.type.kind
    if kind is Kind.DECIMAL:
        return f"pa.decimal128({field.type.precision}, {field.type.scale})"
    if kind in TIMESTAMPS:
        arrow = field.type.arrow
        return f"pa.timestamp('{arrow.unit}')" if arrow.tz is None else f"pa.timestamp('{arrow.unit}', 'UTC')"
    return _NAMES.get(kind)


__all__ = ["cast_hint", "missing_hint", "shorter_hint", "values_hint", "wider_hint"]
