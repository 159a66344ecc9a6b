"""Types of expressions, as in Spark's ANSI mode.

Common types of operands, and the types of DECIMAL sums and products.
"""

from __future__ import annotations

from sparkexpr.errors import InvalidFilter
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, ColumnType, Kind

BOOLEAN_TYPE = ColumnType(Kind.BOOLEAN)
INT_TYPE = ColumnType(Kind.INT)
BIGINT_TYPE = ColumnType(Kind.BIGINT)
DOUBLE_TYPE = ColumnType(Kind.DOUBLE)
DATE_TYPE = ColumnType(Kind.DATE)
TEXT_TYPE = ColumnType(Kind.VARCHAR, length=2**31 - 1)
BYTES_TYPE = ColumnType(Kind.VARBINARY, length=2**31 - 1)

_WIDTHS = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 20}
MOST_DIGITS = 38


def is_number(column_type: ColumnType) -> bool:
    """Return whether the type is numeric."""
    return column_type.kind in INTEGERS or column_type.kind in FLOATS or column_type.kind is Kind.DECIMAL


def common_type(left: ColumnType, right: ColumnType, what: str) -> ColumnType:
    """Return the type in which Spark compares two types.

    Also for a choice between values of both. ``what`` names the call in the error.

    Raises ``InvalidFilter`` without a common type, or if it would not hold both exactly.

    >>> common_type(INT_TYPE, ColumnType(Kind.FLOAT), "=").kind, common_type(ColumnType(Kind.DECIMAL, 10, 2), INT_TYPE, "=")
    (<Kind.DOUBLE: 'DOUBLE'>, ColumnType(kind=<Kind.DECIMAL: 'DECIMAL'>, precision=12, scale=2, length=0, key=None, value=None))
    """
    kinds = {left.kind, right.kind}
    if kinds <= STRINGS:
        return TEXT_TYPE
    if kinds <= BINARIES:
        return BYTES_TYPE
    if left.kind is right.kind and left.kind in {Kind.BOOLEAN, Kind.DATE, Kind.TIME}:
        return left
    if kinds <= INTEGERS:
        return ColumnType(max(kinds, key=_WIDTHS.index))
    if kinds <= FLOATS | INTEGERS:
        return left if left.kind is right.kind else DOUBLE_TYPE  # ANSI: FLOAT and an integer widen to DOUBLE
    if kinds <= INTEGERS | {Kind.DECIMAL}:
        return _wider_decimal(as_decimal(left), as_decimal(right), what)
    if kinds <= TIMESTAMPS | {Kind.DATE}:
        zoned = Kind.TIMESTAMP_LTZ if Kind.TIMESTAMP_LTZ in kinds else Kind.TIMESTAMP
        precision = max(operand.precision for operand in (left, right) if operand.kind is not Kind.DATE)
        return ColumnType(zoned, precision=precision)
    hint = " (a DECIMAL would be rounded)" if Kind.DECIMAL in kinds and kinds & FLOATS else ""
    raise InvalidFilter(f"'{what}' has no common type for {left.kind} and {right.kind}{hint}; write a CAST of one of them")


def as_decimal(column_type: ColumnType) -> ColumnType:
    """Return the DECIMAL that holds an integer type's values.

    A DECIMAL is returned unchanged.
    """
    return column_type if column_type.kind is Kind.DECIMAL else ColumnType(Kind.DECIMAL, precision=_DIGITS[column_type.kind], scale=0)


def _wider_decimal(left: ColumnType, right: ColumnType, what: str) -> ColumnType:
    scale = max(left.scale, right.scale)
    integer_digits = max(left.precision - left.scale, right.precision - right.scale)
    return decimal_type(integer_digits + scale, scale, what)


def decimal_type(precision: int, scale: int, what: str) -> ColumnType:
    """Return a DECIMAL.

    Raises ``InvalidFilter`` beyond 38 digits, where Spark would round.
    """
    if precision > MOST_DIGITS:
        raise InvalidFilter(
            f"'{what}' of these DECIMALs needs {precision} digits, more than {MOST_DIGITS}; write a CAST of one side to fewer digits"
        )
    return ColumnType(Kind.DECIMAL, precision=precision, scale=scale)


def sum_type(left: ColumnType, right: ColumnType, what: str) -> ColumnType:
    """Return the DECIMAL that holds a sum or a difference."""
    scale = max(left.scale, right.scale)
    return decimal_type(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale, what)


def product_type(left: ColumnType, right: ColumnType, what: str) -> ColumnType:
    """Return the DECIMAL that holds ``left * right``."""
    return decimal_type(left.precision + right.precision + 1, left.scale + right.scale, what)
