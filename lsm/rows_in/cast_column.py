"""Casts of columns that parse texts and round numbers.

Each cast also returns which values do not fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.leaf_types import is_bytes, is_text
from manifest.types.cast_rules import INTEGER_BITS, INTEGER_DIGITS
from manifest.types.data_type import DataType
from sparkexpr.values.arrays import Mask
from sparkexpr.values.column_type import FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Kind

_TRUE, _FALSE = pa.array(["true", "t", "yes", "y", "1"]), pa.array(["false", "f", "no", "n", "0"])
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_INFINITE = r"[+-]?(nan|inf|infinity)"
_DATE = r"\d{4}-\d{1,2}-\d{1,2}"
_OFFSET = r"(Z|[+-]\d{2}:?\d{2})"


def cast_column(column: Any, target_type: DataType, *, rounds: bool) -> tuple[Any, Any]:
    """Return the cast values, and which of them do not fit.

    Values that do not fit are null. A column that needs no such cast is returned as it is.

    >>> from manifest.types.ddl import parse_ddl
    >>> values, unfit = cast_column(pa.array([" 7", "x", None, "7.5"]), parse_ddl("n INT")[0].type, rounds=True)
    >>> values.to_pylist(), unfit.tolist()
    ([7, None, None, 8], [False, True, False, False])
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    source_type = column.type
    if target_type.is_nested and source_type != target_type.arrow:
        return _cast_nested(column, target_type, rounds=rounds)
    if source_type == target_type.arrow or pa.types.is_nested(source_type) or pa.types.is_null(source_type):
        return column, np.zeros(len(column), np.bool_)
    if target_type.kind in STRINGS:
        cast = column if is_text(source_type) or is_bytes(source_type) else pc.cast(column, pa.string())
    elif pa.types.is_floating(source_type) and (target_type.kind in INTEGERS or target_type.kind is Kind.DECIMAL):
        cast = _float_to_decimal(column, target_type, rounds=rounds)
    elif pa.types.is_floating(source_type) and target_type.kind is Kind.FLOAT:
        cast = _finite(column.cast(target_type.arrow, safe=False), pc.is_inf(column))
    elif is_text(source_type) or (is_exact(source_type) and target_type.kind in _FROM_TEXT_OF_NUMBERS):
        text = column if pa.types.is_string(source_type) else pc.cast(column, pa.string())
        cast = _from_text(pc.utf8_trim_whitespace(text), target_type, rounds=rounds)
    else:
        cast = column
    had_value, left = np.asarray(column.is_valid()), np.asarray(cast.is_valid())
    return cast, had_value & ~left


def _cast_nested(column: Any, target_type: DataType, *, rounds: bool) -> tuple[Any, Mask]:
    """Cast the values inside a list, map or row. A row fits if all of them do."""
    types, source_type = pa.types, column.type
    unfit = np.zeros(len(column), np.bool_)
    is_list = types.is_list(source_type) or types.is_large_list(source_type)
    if target_type.kind is Kind.ARRAY and is_list:
        values, mask = cast_column(column.values, target_type.part("element"), rounds=rounds)
        kind = pa.list_(values.type) if types.is_list(source_type) else pa.large_list(values.type)
        array = type(column).from_arrays(_offsets(column), values, type=kind, mask=_null_mask(column))
        return array, _rows_with(column, mask)
    if target_type.kind is Kind.MAP and types.is_map(source_type):
        keys, wrong_keys = cast_column(column.keys, target_type.part("key"), rounds=rounds)
        items, wrong_items = cast_column(column.items, target_type.part("value"), rounds=rounds)
        if not wrong_keys.any():  # a key cannot be null: conform refuses such a value
            kind = pa.map_(keys.type, items.type)
            array = pa.MapArray.from_arrays(_offsets(column), keys, items, type=kind, mask=_null_mask(column))
            return array, _rows_with(column, wrong_items)
    if target_type.kind is Kind.ROW and types.is_struct(source_type):
        fields = {field.name: field.type for field in target_type.fields}
        parts = []
        for field, part in zip(source_type, column.flatten(), strict=True):
            field_type = fields.get(field.name)
            values, mask = (part, False) if field_type is None else cast_column(part, field_type, rounds=rounds)
            parts.append(values)
            unfit |= mask
        return pa.StructArray.from_arrays(parts, names=[field.name for field in source_type], mask=_null_mask(column)), unfit
    return column, unfit


def _null_mask(column: Any) -> Any:
    return column.is_null() if column.null_count else None


def _offsets(column: Any) -> Any:
    return pa.array(column.offsets.to_numpy())  # a copy: Arrow accepts no null mask together with sliced offsets


def _rows_with(column: Any, wrong: Mask) -> Mask:
    """Return which lists have a value that is ``wrong``."""
    if not wrong.any():
        return np.zeros(len(column), np.bool_)
    before = np.concatenate([[0], np.cumsum(wrong)])[column.offsets.to_numpy()]
    rows: Mask = (before[1:] > before[:-1]) & np.asarray(column.is_valid())
    return rows


_FROM_TEXT_OF_NUMBERS = INTEGERS | {Kind.DECIMAL, Kind.BOOLEAN}


def is_exact(arrow_type: pa.DataType) -> bool:
    """Return whether numbers of an Arrow type are exact."""
    return bool(pa.types.is_integer(arrow_type) or pa.types.is_decimal(arrow_type))


def _from_text(text: pa.Array, target_type: DataType, *, rounds: bool) -> pa.Array:
    """Parse texts; null where one does not fit."""
    if target_type.kind is Kind.DECIMAL:
        return _decimal(text, target_type.precision, target_type.scale, rounds=rounds).cast(target_type.arrow)
    if target_type.kind in INTEGERS:
        return _integer(_decimal(text, INTEGER_DIGITS[target_type.kind], 0, rounds=rounds), target_type)
    if target_type.kind in FLOATS:
        return _float(text, target_type)
    if target_type.kind is Kind.BOOLEAN:
        lowered = pc.utf8_lower(text)
        return pc.if_else(pc.is_in(lowered, _TRUE), True, pc.if_else(pc.is_in(lowered, _FALSE), False, pa.scalar(None, pa.bool_())))
    if target_type.kind in {Kind.DATE, Kind.TIME} or target_type.kind in TIMESTAMPS:
        return _time(text, target_type, rounds=rounds)
    return text


def _matching(text: pa.Array, pattern: str) -> pa.Array:
    """Return the texts that match as a whole, else null."""
    return pc.if_else(pc.match_substring_regex(text, f"^(?:{pattern})$", ignore_case=True), text, pa.scalar(None, text.type))


def _decimal(text: pa.Array, precision: int, scale: int, *, rounds: bool) -> pa.Array:
    """Parse decimal texts as DECIMAL of 256 bits; null where one has too many digits."""
    integer_digits = precision - scale
    fraction = r"\d*" if rounds else rf"\d{{0,{scale}}}0*"
    exact = _matching(
        pc.if_else(pc.match_substring_regex(text, r"\d"), text, pa.scalar(None, text.type)),
        rf"[+-]?0*\d{{0,{integer_digits}}}(\.{fraction})?",
    )
    # One more digit decides how to round half away from zero; the others do not matter.
    cut = pc.replace_substring_regex(exact, rf"(\.\d{{0,{scale + 1}}})\d*$", r"\1")
    numbers = pc.cast(pc.replace_substring_regex(cut, r"^([+-]?)0+(\d)", r"\1\2"), pa.decimal256(precision + 2, scale + 1))
    return _within(pc.round(numbers, scale, "half_towards_infinity"), precision, scale)


def _within(numbers: pa.Array, precision: int, scale: int) -> pa.Array:
    """Return rounded numbers as DECIMAL(precision, scale), null above it."""
    limit = pa.scalar(10 ** (precision - scale), pa.decimal256(precision - scale + 1, 0))
    fitting = pc.if_else(pc.less(pc.abs(numbers), limit), numbers, pa.scalar(None, numbers.type))
    return fitting.cast(pa.decimal256(precision, scale))


def _integer(numbers: pa.Array, target_type: DataType) -> pa.Array:
    bits = INTEGER_BITS[target_type.kind]
    wide = pa.decimal256(numbers.type.precision, 0)
    low, high = pa.scalar(-(1 << (bits - 1)), pa.decimal256(20, 0)), pa.scalar((1 << (bits - 1)) - 1, pa.decimal256(20, 0))
    fits = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    return pc.if_else(fits, numbers, pa.scalar(None, wide)).cast(target_type.arrow)


def _float(text: pa.Array, target_type: DataType) -> pa.Array:
    numbers = _matching(text, f"{_NUMBER}|{_INFINITE}").cast(pa.float64()).cast(target_type.arrow, safe=False)
    return _finite(numbers, pc.match_substring_regex(text, r"[iI]"))


def _finite(numbers: pa.Array, may_be_infinite: pa.Array) -> pa.Array:
    """Return null for numbers that are too large for their type."""
    return pc.if_else(pc.and_(pc.is_inf(numbers), pc.invert(may_be_infinite)), pa.scalar(None, numbers.type), numbers)


def _float_to_decimal(column: pa.Array, target_type: DataType, *, rounds: bool) -> pa.Array:
    """Cast floats to numbers with few digits.

    A float fits if a number of the column converts back to it: 0.1 is a DECIMAL(2, 1).
    """
    precision, scale = (
        (target_type.precision, target_type.scale) if target_type.kind is Kind.DECIMAL else (INTEGER_DIGITS[target_type.kind], 0)
    )
    floats = column.cast(pa.float64())
    in_range = pc.if_else(pc.less(pc.abs(floats), 10.0 ** (precision - scale)), floats, pa.scalar(None, pa.float64()))
    if rounds:  # enough digits to see on which side of a half the float is
        numbers = pc.round(in_range.cast(pa.decimal256(precision + 22, scale + 20), safe=False), scale, "half_towards_infinity")
    else:
        numbers = in_range.cast(pa.decimal256(precision + 2, scale), safe=False)
        same = pc.equal(numbers.cast(pa.string()).cast(column.type), column)  # Arrow's own cast to floats is one digit off for some
        numbers = pc.if_else(same, numbers, pa.scalar(None, numbers.type))
    fitting = _within(numbers, precision, scale)
    return fitting.cast(target_type.arrow) if target_type.kind is Kind.DECIMAL else _integer(fitting, target_type)


def _time(text: pa.Array, target_type: DataType, *, rounds: bool) -> pa.Array:
    """Parse ISO dates and times by polars; null where a text is neither."""
    import polars as pl  # noqa: PLC0415  # takes 0.1 s, and few writes cast

    if target_type.kind is Kind.DATE:
        return pl.Series(pl.from_arrow(_matching(text, _DATE))).str.to_date("%Y-%m-%d", strict=False).to_arrow().cast(target_type.arrow)
    digits = r"\d*" if rounds else rf"\d{{0,{target_type.precision}}}0*"
    clock = rf"\d{{1,2}}:\d{{2}}(:\d{{2}}(\.{digits})?)?"
    if target_type.kind is Kind.TIME:
        padded = _with_seconds(_matching(text, clock), r"^(\d{1,2}:\d{2})$")
        parsed = pl.Series(pl.from_arrow(_cut(padded, target_type.precision))).str.to_time("%H:%M:%S%.f", strict=False).to_arrow()
        return parsed.cast(target_type.arrow, safe=False)
    zoned = target_type.kind is Kind.TIMESTAMP_LTZ
    spaced = pc.replace_substring_regex(_matching(text, rf"{_DATE}([ T]{clock} ?{_OFFSET if zoned else ''})?"), r"^(\S+?)[Tt]", r"\1 ")
    padded = spaced if zoned else _with_seconds(pc.replace_substring_regex(spaced, r"^(\S+)$", r"\1 00:00"), r"^(\S+ \d{1,2}:\d{2})$")
    if zoned:
        padded = pc.replace_substring_regex(padded, r"( \d{1,2}:\d{2})( ?[Zz+-])", r"\1:00\2")
    unit: Any = "ns" if target_type.arrow.unit == "ns" else "us"
    series = pl.Series(pl.from_arrow(_cut(padded, 9 if unit == "ns" else min(target_type.precision, 6))))
    if zoned:
        parsed = series.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%#z", time_unit=unit, time_zone="UTC", strict=False).to_arrow()
    else:
        parsed = series.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit=unit, strict=False).to_arrow()
    return parsed.cast(target_type.arrow, safe=False)


def _with_seconds(text: pa.Array, pattern: str) -> pa.Array:
    return pc.replace_substring_regex(text, pattern, r"\1:00")


def _cut(text: pa.Array, digits: int) -> pa.Array:
    """Cut fractions of seconds after ``digits`` digits."""
    return pc.replace_substring_regex(text, rf"(\.\d{{0,{digits}}})\d*", r"\1")
