"""Values of a VARIANT array in a column type, as Spark's ``variant_get`` gives them.

Values of the wanted kind are converted together. Others, and texts of objects, are cast one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.errors import CorruptVariant, FilterFailed
from sparkexpr.values.arrays import Int64s
from sparkexpr.values.column_type import BINARIES, STRINGS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import fixed_array
from sparkexpr.values.variant_type import VARIANT_ARROW, variant_array
from sparkexpr.variant.cast import InvalidCastError, cast_value
from sparkexpr.variant.decoding import decode, to_json
from sparkexpr.variant.encoding import reencode
from sparkexpr.variant.rows import ValueKind, VariantRows

_SAME_KIND = {
    Kind.BOOLEAN: ValueKind.BOOLEAN,
    Kind.BIGINT: ValueKind.INTEGER,
    Kind.DOUBLE: ValueKind.DOUBLE,
    Kind.FLOAT: ValueKind.FLOAT,
    Kind.DATE: ValueKind.DATE,
    Kind.TIMESTAMP: ValueKind.TIMESTAMP_NTZ,
    Kind.TIMESTAMP_LTZ: ValueKind.TIMESTAMP,
    **dict.fromkeys(STRINGS, ValueKind.STRING),
    **dict.fromkeys(BINARIES, ValueKind.BINARY),
}
_RANGES = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32}


def get_values(array: Any, path: Sequence[str | int], target: ColumnType, zone: str, *, strict: bool) -> Any:
    """Return the value at ``path`` of each row, in type ``target``.

    It is null where the row or the path's value is null, or the path is absent.

    Args:
        array: VARIANT array.
        path: Keys and indexes.
        target: Type of the result. Texts and binaries have the large types. A TIMESTAMP has microseconds.
        zone: Zone of clocks in texts.
        strict: Raise ``FilterFailed`` for a value that cannot be cast. Otherwise it is null.

    >>> from sparkexpr.variant.values import variant_column
    >>> rows = variant_column([{"a": 1}, {"a": "2"}, {"a": True}, {}, None])
    >>> get_values(rows, ["a"], ColumnType(Kind.INT), "UTC", strict=True).to_pylist()
    [1, 2, 1, None, None]
    """
    rows = VariantRows.of(array)
    for step in path:
        rows = rows.step(step)
    kinds = rows.kinds
    if target.kind is Kind.VARIANT:
        return _variants(rows)
    converted, rest = _same_kind(rows, kinds, target)
    other_rows = np.flatnonzero(rest & (kinds > ValueKind.NULL))
    if not len(other_rows):
        return converted
    values = [
        _cast(kind, value, target, zone, strict=strict)
        for kind, value in zip(kinds[other_rows].tolist(), _python_values(rows, kinds, other_rows, zone), strict=True)
    ]
    plain: list[Plain] = [None] * len(kinds)
    for row, value in zip(other_rows.tolist(), values, strict=True):
        plain[row] = value
    return pc.coalesce(converted, fixed_array(plain, target.arrow).cast(converted.type))


def _same_kind(rows: VariantRows, kinds: Any, target: ColumnType) -> tuple[Any, Any]:
    """Return the values of the wanted kind, and a mask of all others."""
    count = len(kinds)
    arrow = pa.large_string() if target.kind in STRINGS else pa.large_binary() if target.kind in BINARIES else target.arrow
    same = np.isin(kinds, [ValueKind.INTEGER]) if target.kind in _RANGES else kinds == _SAME_KIND.get(target.kind, -1)
    if target.kind in {Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ} and target.unit != "us":
        same = np.zeros(count, np.bool_)
    matching_rows: Int64s = np.flatnonzero(same)
    if not len(matching_rows):
        return pa.nulls(count, arrow), ~same
    values: Any
    match target.kind:
        case Kind.BOOLEAN:
            values = pa.array(rows.booleans(matching_rows))
        case Kind.DOUBLE | Kind.FLOAT:
            values = pa.array(rows.floats(matching_rows, single=target.kind is Kind.FLOAT))
        case kind if kind in STRINGS | BINARIES:
            values = _texts(rows.binaries(matching_rows)) if kind in STRINGS else rows.binaries(matching_rows)
        case kind if kind in _RANGES:
            numbers = rows.integers(matching_rows)
            fits = (numbers >= -(1 << (_RANGES[kind] - 1))) & (numbers < 1 << (_RANGES[kind] - 1))
            same[matching_rows[~fits]] = False  # cast one by one, which raises or gives null
            matching_rows, values = matching_rows[fits], pa.array(numbers[fits]).cast(arrow)
        case Kind.DATE:
            values = pa.array(rows.integers(matching_rows).astype(np.int32)).view(arrow)
        case _:
            values = pa.array(rows.integers(matching_rows)).view(arrow)
    positions = np.full(count, -1, np.int64)
    positions[matching_rows] = np.arange(len(matching_rows))
    return values.take(pa.array(positions, mask=positions < 0)), ~same


def _texts(binaries: Any) -> Any:
    try:
        return binaries.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise CorruptVariant(f"a text is not valid UTF-8: {error}") from error


def _cast(kind: int, value: Any, target: ColumnType, zone: str, *, strict: bool) -> Plain:
    try:
        return cast_value(ValueKind(kind), value, target, zone)
    except InvalidCastError:
        if not strict:
            return None
        shown = value if isinstance(value, int | float | bool) else f"{value!s:.60}"
        raise FilterFailed(f"the value {shown} of a VARIANT cannot be cast to {target.kind}; write try_variant_get() to get null") from None


def _python_values(rows: VariantRows, kinds: Any, row_numbers: Int64s, zone: str) -> list[Any]:
    """Return the values of rows ``row_numbers`` as ``cast_value`` takes them. Those with parts are JSON texts."""
    values: list[Any] = [None] * len(row_numbers)
    for kind in np.unique(kinds[row_numbers]).tolist():
        positions = np.flatnonzero(kinds[row_numbers] == kind)
        for position, value in zip(positions.tolist(), _of_kind(rows, kind, row_numbers[positions], zone), strict=True):
            values[position] = value
    return values


def _of_kind(rows: VariantRows, kind: int, row_numbers: Int64s, zone: str) -> list[Any]:
    match kind:
        case ValueKind.BOOLEAN:
            return list(rows.booleans(row_numbers).tolist())
        case ValueKind.DOUBLE | ValueKind.FLOAT:
            listed: list[Any] = rows.floats(row_numbers, single=kind == ValueKind.FLOAT).tolist()
            return listed
        case ValueKind.DECIMAL:
            return rows.decimals(row_numbers)
        case ValueKind.STRING:
            texts: list[Any] = _texts(rows.binaries(row_numbers)).to_pylist()
            return texts
        case ValueKind.BINARY:
            binaries: list[Any] = rows.binaries(row_numbers).to_pylist()
            return binaries
        case ValueKind.UUID:
            return [str(decode(value, metadata)) for value, metadata in rows.values(row_numbers)]
        case ValueKind.OBJECT | ValueKind.ARRAY:
            return [to_json(value, metadata, zone) for value, metadata in rows.values(row_numbers)]
    return list(rows.integers(row_numbers).tolist())


def _variants(rows: VariantRows) -> Any:
    """Return the values as a VARIANT array, each with only its own keys."""
    present = np.flatnonzero(rows.present)
    values: list[bytes] = [b""] * len(rows.starts)
    metadata = list(values)
    for row, (value, keys) in zip(present.tolist(), rows.values(present), strict=True):
        values[row], metadata[row] = reencode(value, keys)
    array = variant_array(pa.array(values, pa.binary()), pa.array(metadata, pa.binary()), pa.array(~rows.present))
    return array.cast(VARIANT_ARROW)
