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


def get_values(array: Any, path: Sequence[str | int], wanted: ColumnType, zone: str, *, strict: bool) -> Any:
    """Return the value at ``path`` of each row, in type ``wanted``.

    It is null where the row or the path's value is null, or the path is absent.

    Args:
        array: VARIANT array.
        path: Keys and indexes.
        wanted: Type of the result. Texts and binaries have the large types. A TIMESTAMP has microseconds.
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
    if wanted.kind is Kind.VARIANT:
        return _variants(rows)
    found, rest = _same_kind(rows, kinds, wanted)
    others = np.flatnonzero(rest & (kinds > ValueKind.NULL))
    if not len(others):
        return found
    values = [
        _cast(kind, value, wanted, zone, strict=strict)
        for kind, value in zip(kinds[others].tolist(), _python_values(rows, kinds, others, zone), strict=True)
    ]
    plain: list[Plain] = [None] * len(kinds)
    for row, value in zip(others.tolist(), values, strict=True):
        plain[row] = value
    return pc.coalesce(found, fixed_array(plain, wanted.arrow).cast(found.type))


def _same_kind(rows: VariantRows, kinds: Any, wanted: ColumnType) -> tuple[Any, Any]:
    """Return the values of the wanted kind, and a mask of all others."""
    count = len(kinds)
    arrow = pa.large_string() if wanted.kind in STRINGS else pa.large_binary() if wanted.kind in BINARIES else wanted.arrow
    same = np.isin(kinds, [ValueKind.INTEGER]) if wanted.kind in _RANGES else kinds == _SAME_KIND.get(wanted.kind, -1)
    if wanted.kind in {Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ} and wanted.unit != "us":
        same = np.zeros(count, np.bool_)
    at: Int64s = np.flatnonzero(same)
    if not len(at):
        return pa.nulls(count, arrow), ~same
    values: Any
    match wanted.kind:
        case Kind.BOOLEAN:
            values = pa.array(rows.booleans(at))
        case Kind.DOUBLE | Kind.FLOAT:
            values = pa.array(rows.floats(at, single=wanted.kind is Kind.FLOAT))
        case kind if kind in STRINGS | BINARIES:
            values = _texts(rows.binaries(at)) if kind in STRINGS else rows.binaries(at)
        case kind if kind in _RANGES:
            numbers = rows.integers(at)
            fits = (numbers >= -(1 << (_RANGES[kind] - 1))) & (numbers < 1 << (_RANGES[kind] - 1))
            same[at[~fits]] = False  # cast one by one, which raises or gives null
            at, values = at[fits], pa.array(numbers[fits]).cast(arrow)
        case Kind.DATE:
            values = pa.array(rows.integers(at).astype(np.int32)).view(arrow)
        case _:
            values = pa.array(rows.integers(at)).view(arrow)
    positions = np.full(count, -1, np.int64)
    positions[at] = np.arange(len(at))
    return values.take(pa.array(positions, mask=positions < 0)), ~same


def _texts(binaries: Any) -> Any:
    try:
        return binaries.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise CorruptVariant(f"a text is no UTF-8: {error}") from error


def _cast(kind: int, value: Any, wanted: ColumnType, zone: str, *, strict: bool) -> Plain:
    try:
        return cast_value(ValueKind(kind), value, wanted, zone)
    except InvalidCastError:
        if not strict:
            return None
        shown = value if isinstance(value, int | float | bool) else f"{value!s:.60}"
        raise FilterFailed(f"the value {shown} of a VARIANT cannot be cast to {wanted.kind}; write try_variant_get() to get null") from None


def _python_values(rows: VariantRows, kinds: Any, at: Int64s, zone: str) -> list[Any]:
    """Return the values of rows ``at`` as ``cast_value`` takes them. Those with parts are JSON texts."""
    found: list[Any] = [None] * len(at)
    for kind in np.unique(kinds[at]).tolist():
        own = np.flatnonzero(kinds[at] == kind)
        for place, value in zip(own.tolist(), _of_kind(rows, kind, at[own], zone), strict=True):
            found[place] = value
    return found


def _of_kind(rows: VariantRows, kind: int, at: Int64s, zone: str) -> list[Any]:
    match kind:
        case ValueKind.BOOLEAN:
            return list(rows.booleans(at).tolist())
        case ValueKind.DOUBLE | ValueKind.FLOAT:
            listed: list[Any] = rows.floats(at, single=kind == ValueKind.FLOAT).tolist()
            return listed
        case ValueKind.DECIMAL:
            return rows.decimals(at)
        case ValueKind.STRING:
            texts: list[Any] = _texts(rows.binaries(at)).to_pylist()
            return texts
        case ValueKind.BINARY:
            binaries: list[Any] = rows.binaries(at).to_pylist()
            return binaries
        case ValueKind.UUID:
            return [str(decode(value, metadata)) for value, metadata in rows.values(at)]
        case ValueKind.OBJECT | ValueKind.ARRAY:
            return [to_json(value, metadata, zone) for value, metadata in rows.values(at)]
    return list(rows.integers(at).tolist())


def _variants(rows: VariantRows) -> Any:
    """Return the values as a VARIANT array, each with only its own keys."""
    present = np.flatnonzero(rows.present)
    values: list[bytes] = [b""] * len(rows.starts)
    metadata = list(values)
    for row, (value, keys) in zip(present.tolist(), rows.values(present), strict=True):
        values[row], metadata[row] = reencode(value, keys)
    found = variant_array(pa.array(values, pa.binary()), pa.array(metadata, pa.binary()), pa.array(~rows.present))
    return found.cast(VARIANT_ARROW)
