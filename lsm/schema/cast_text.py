"""Conversions between values and Paimon's text.

Paimon's ``BinaryStringUtils`` and ``DateTimeUtils``, vectorised.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.column_type import FLOATS, INTEGERS, TIMESTAMPS, Kind
from manifest.io.errors import CastFailed
from manifest.types.data_type import MAX_LENGTH, DataType

_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_FORMS = {
    Kind.DATE: r"^\d{4}-\d{2}-\d{2}( \d{2}:\d{2}:\d{2}(\.\d{1,9})?)?$",
    Kind.TIME: r"^\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?$",
    Kind.TIMESTAMP: r"^\d{4}-\d{2}-\d{2}( \d{2}:\d{2}:\d{2}(\.\d{1,9})?)?$",
    Kind.DECIMAL: r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?$",
    **dict.fromkeys(INTEGERS, r"^[+-]?(\d+(\.\d*)?|\.\d+)$"),
    **dict.fromkeys(FLOATS, r"^\s*([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|NaN|[+-]?Infinity)\s*$"),
}
_SECOND_LENGTH = 19
_DAY_LENGTH = 10
_FLOAT_PARTS = r"^(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<fraction>\d+))?(?:e(?P<exponent>[+-]?\d+))?$"


def to_text(array: Any, old: DataType) -> Any:
    """Convert values of type ``old`` to text.

    >>> to_text(pa.array([1.5, 1e10, None]), DataType(Kind.DOUBLE)).to_pylist()
    ['1.5', '1.0E10', None]
    """
    match old.kind:
        case Kind.DECIMAL:
            return plain_decimal(array)
        case kind if kind in FLOATS:
            return _java_floats(array)
        case Kind.TIME if old.precision:
            return pc.replace_substring_regex(array.cast(pa.string()), r"0{1,2}$", "")
        case Kind.TIME:
            return pc.utf8_slice_codeunits(array.cast(pa.string()), 0, 8)
        case kind if kind in TIMESTAMPS:
            length = _SECOND_LENGTH + (old.precision + 1 if old.precision else 0)
            return pc.utf8_slice_codeunits(array.cast(pa.string()), 0, length)
    return array.cast(pa.string())


def plain_decimal(array: Any) -> Any:
    """Format decimals with all digits of their scale, without exponent."""
    scale = array.type.scale
    if scale == 0:
        return array.cast(pa.string())
    unscaled = pa.Array.from_buffers(pa.decimal128(38, 0), len(array), array.buffers()[:2], offset=array.offset).cast(pa.string())
    sign = pc.if_else(pc.starts_with(unscaled, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(unscaled, "-"), scale + 1, "0")
    point = pc.binary_join_element_wise
    return point(sign, pc.utf8_slice_codeunits(digits, 0, stop=-scale), ".", pc.utf8_slice_codeunits(digits, -scale), "")


def _java_floats(array: Any) -> Any:
    """Format floats with the shortest digits in Java's notation.

    Plain from 0.001 up to 10 million, otherwise ``d.dE<n>``.
    """
    text = array.cast(pa.string())
    parts = pc.extract_regex(text, _FLOAT_PARTS)
    sign, whole, fraction, exponent = (pc.struct_field(parts, name) for name in ("sign", "whole", "fraction", "exponent"))
    fraction = pc.if_else(pc.equal(fraction, ""), "0", fraction)
    plain = pc.binary_join_element_wise(sign, whole, ".", fraction, "")
    size = pc.abs(array)
    is_plain = pc.or_(pc.equal(size, 0), pc.and_(pc.greater_equal(size, pa.scalar(0.001, array.type)), pc.less(size, 1e7)))
    shown = pc.if_else(is_plain, plain, _scientific(sign, whole, fraction, exponent))
    named = pc.case_when(
        pc.make_struct(pc.is_nan(array), pc.equal(array, float("inf")), pc.equal(array, float("-inf"))), "NaN", "Infinity", "-Infinity"
    )
    return pc.coalesce(named, shown)


def _scientific(sign: Any, whole: Any, fraction: Any, exponent: Any) -> Any:
    all_digits = pc.binary_join_element_wise(whole, fraction, "")
    significant = pc.utf8_ltrim(all_digits, "0")
    leading = pc.subtract(pc.utf8_length(all_digits), pc.utf8_length(significant))
    given = pc.if_else(pc.equal(exponent, ""), "0", pc.utf8_ltrim(exponent, "+")).cast(pa.int32())
    power = pc.add(pc.subtract(pc.subtract(pc.utf8_length(whole), leading), 1), given)
    rest = pc.utf8_rtrim(pc.utf8_slice_codeunits(significant, 1), "0")
    rest = pc.if_else(pc.equal(rest, ""), "0", rest)
    return pc.binary_join_element_wise(sign, pc.utf8_slice_codeunits(significant, 0, 1), ".", rest, "E", power.cast(pa.string()), "")


def from_text(array: Any, new: DataType) -> Any:
    """Parse text as values of type ``new``.

    A DECIMAL result has more digits than the type.

    Raises:
        CastFailed: A text cannot be parsed; the message shows it.
        pyarrow.ArrowInvalid: A value does not fit.

    >>> from_text(pa.array(["1.9", "-07"]), DataType(Kind.INT)).to_pylist()
    [1, -7]
    """
    if new.kind is Kind.BOOLEAN:
        return _booleans(array, new)
    _refuse(array, pc.match_substring_regex(array, _FORMS[new.kind]), new)
    match new.kind:
        case Kind.DATE:
            return pc.utf8_slice_codeunits(array, 0, _DAY_LENGTH).cast(pa.date32())
        case Kind.TIME:
            return pc.binary_join_element_wise("1970-01-01", array, " ").cast(pa.timestamp("ms")).cast(pa.time32("ms"))
        case Kind.TIMESTAMP:
            return _timestamps(array, new)
        case Kind.DECIMAL:
            return array.cast(pa.decimal256(76, 38))
        case kind if kind in INTEGERS:
            cut = pc.replace_substring_regex(pc.utf8_ltrim(array, "+"), r"\..*$", "")
            return pc.if_else(pc.is_in(cut, pa.array(["", "-"])), "0", cut).cast(new.arrow)
    return pc.utf8_trim_whitespace(array).cast(new.arrow)


def _booleans(array: Any, new: DataType) -> Any:
    lowered = pc.utf8_lower(array)
    true = pc.is_in(lowered, pa.array(_TRUE))
    _refuse(array, pc.or_(true, pc.is_in(lowered, pa.array(_FALSE))), new)
    return pc.if_else(array.is_valid(), true, pa.scalar(None, pa.bool_()))


def _timestamps(array: Any, new: DataType) -> Any:
    whole = pc.if_else(pc.equal(pc.utf8_length(array), _DAY_LENGTH), pc.binary_join_element_wise(array, "00:00:00", " "), array)
    if new.precision == 0:
        return pc.utf8_slice_codeunits(whole, 0, _SECOND_LENGTH).cast(new.arrow)
    return pc.utf8_slice_codeunits(whole, 0, _SECOND_LENGTH + 1 + new.precision).cast(new.arrow)


def _refuse(array: Any, fits: Any, new: DataType) -> None:
    unfit = pc.index(fits, False).as_py()
    if unfit >= 0 and array[unfit].is_valid:
        raise CastFailed(f"{array[unfit].as_py()!r} is no {new}")
    if pc.any(pc.and_(pc.invert(fits), array.is_valid())).as_py():
        raise CastFailed(f"a text is no {new}")


def fit_text(array: Any, new: DataType) -> Any:
    """Cut text to the length of ``new``.

    CHAR is padded with spaces.

    >>> fit_text(pa.array(["abcd", "x"]), DataType(Kind.CHAR, length=3)).to_pylist()
    ['abc', 'x  ']
    """
    if new.length == MAX_LENGTH:
        return array
    cut = pc.utf8_slice_codeunits(array, 0, new.length)
    return pc.utf8_rpad(cut, new.length, " ") if new.kind is Kind.CHAR else cut


def fit_binary(array: Any, new: DataType) -> Any:
    r"""Cut bytes to the length of ``new``.

    BINARY is padded with zeros.

    >>> fit_binary(pa.array([b"abcd", b"x"]), DataType(Kind.BINARY, length=3)).to_pylist()
    [b'abc', b'x\x00\x00']
    """
    if new.length == MAX_LENGTH:
        return array
    if new.kind is Kind.BINARY:
        array = pc.binary_join_element_wise(array, pa.scalar(bytes(new.length), pa.binary()), pa.scalar(b"", pa.binary()))
    return pc.binary_slice(array, 0, new.length)


__all__ = ["fit_binary", "fit_text", "from_text", "plain_decimal", "to_text"]
