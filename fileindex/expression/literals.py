"""Literals inside expressions: the type that Spark gives one, and a literal as a value of another type."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from fileindex.base.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, ColumnType, Kind, Plain
from fileindex.base.errors import InvalidFilter
from fileindex.base.plain_value import is_plain
from fileindex.expression.tree import Expression, LiteralValue
from fileindex.expression.types import BIGINT_TYPE, BOOLEAN_TYPE, BYTES_TYPE, DOUBLE_TYPE, INT_TYPE, MOST_DIGITS, TEXT_TYPE, decimal_type

NULL = LiteralValue(None, BOOLEAN_TYPE)


def literal_value(value: bool | float | str | bytes | Decimal | None) -> LiteralValue:
    """A literal with the type that Spark gives it: an INT if it fits, else a BIGINT; a DECIMAL of just its digits.

    >>> literal_value(7).type.kind, literal_value(Decimal("1.50"))
    (<Kind.INT: 'INT'>, LiteralValue(value=150, type=ColumnType(kind=<Kind.DECIMAL: 'DECIMAL'>, precision=3, scale=2, length=0, key=None, value=None)))
    """
    match value:
        case None:
            return NULL
        case bool():
            return LiteralValue(value, BOOLEAN_TYPE)
        case int() if is_plain(value, INT_TYPE):
            return LiteralValue(value, INT_TYPE)
        case int() if is_plain(value, BIGINT_TYPE):
            return LiteralValue(value, BIGINT_TYPE)
        case int():
            return LiteralValue(value, decimal_type(len(str(abs(value))), 0, str(value)))
        case float():
            return LiteralValue(value, DOUBLE_TYPE)
        case str():
            return LiteralValue(value, TEXT_TYPE)
        case bytes():
            return LiteralValue(value, BYTES_TYPE)
        case Decimal():
            return _decimal(value)


def _decimal(value: Decimal) -> LiteralValue:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidFilter(f"{value} is no DECIMAL")
    unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    scale = max(-exponent, 0)
    precision = max(len(str(unscaled)), scale)
    return LiteralValue(-unscaled if sign else unscaled, decimal_type(precision, scale, str(value)))


def is_null_literal(expression: Expression) -> bool:
    """Whether the expression is NULL, which has any type."""
    return isinstance(expression, LiteralValue) and expression.value is None


def tight_decimal(literal: LiteralValue) -> ColumnType:
    """The DECIMAL that Spark takes an integer literal for: of as many digits as it has."""
    return ColumnType(Kind.DECIMAL, precision=len(str(abs(int(literal.value or 0)))), scale=0)


def literal_as(literal: LiteralValue, wanted: ColumnType) -> LiteralValue | None:
    """The literal as a value of another type, if that is done without Arrow; None if it is not.

    >>> literal_as(literal_value(Decimal("1.5")), DOUBLE_TYPE)
    LiteralValue(value=1.5, type=ColumnType(kind=<Kind.DOUBLE: 'DOUBLE'>, precision=0, scale=0, length=0, key=None, value=None))
    """
    given, value = literal.type, literal.value
    if value is None:
        return LiteralValue(None, wanted)
    found: Plain = None
    if (
        (given.kind in STRINGS and wanted.kind in STRINGS)
        or (given.kind in BINARIES and wanted.kind in BINARIES)
        or (given.kind in INTEGERS and wanted.kind in INTEGERS)
    ):
        found = value
    elif wanted.kind is Kind.DOUBLE and (given.kind in INTEGERS or given.kind is Kind.DECIMAL):
        found = float(Fraction(int(value), 10**given.scale))
    elif wanted.kind is Kind.DOUBLE and given.kind in FLOATS:
        found = value
    elif wanted.kind is Kind.DECIMAL and (given.kind in INTEGERS or given.kind is Kind.DECIMAL) and given.scale <= wanted.scale:
        found = int(value) * 10 ** (wanted.scale - given.scale)
    if found is None or not is_plain(found, wanted) or (wanted.kind is Kind.DECIMAL and wanted.precision > MOST_DIGITS):
        return None
    return LiteralValue(found, wanted)


__all__ = ["NULL", "is_null_literal", "literal_as", "literal_value", "tight_decimal"]
