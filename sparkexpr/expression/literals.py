"""Typing and conversion of literals in expressions."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from sparkexpr.errors import InvalidFilter
from sparkexpr.expression.tree import Expression, LiteralValue
from sparkexpr.expression.types import BIGINT_TYPE, BOOLEAN_TYPE, BYTES_TYPE, DOUBLE_TYPE, INT_TYPE, MOST_DIGITS, TEXT_TYPE, decimal_type
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import is_plain

NULL = LiteralValue(None, BOOLEAN_TYPE)
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400


def literal_value(value: bool | float | str | bytes | Decimal | None) -> LiteralValue:
    """Return a literal with Spark's type for it.

    An integer is INT if it fits, else BIGINT. A DECIMAL has the literal's number of digits.

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
        raise InvalidFilter(f"{value} is not a DECIMAL")
    unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    scale = max(-exponent, 0)
    precision = max(len(str(unscaled)), scale)
    return LiteralValue(-unscaled if sign else unscaled, decimal_type(precision, scale, str(value)))


def is_null_literal(expression: Expression) -> bool:
    """Return whether the expression is NULL, which has any type."""
    return isinstance(expression, LiteralValue) and expression.value is None


def tight_decimal(literal: LiteralValue) -> ColumnType:
    """Return the DECIMAL that Spark uses for an integer literal.

    Its precision is the literal's number of digits.
    """
    return ColumnType(Kind.DECIMAL, precision=len(str(abs(int(literal.value or 0)))), scale=0)


def literal_as(literal: LiteralValue, target: ColumnType) -> LiteralValue | None:
    """Return the literal converted to another type.

    None if this function does not support the conversion.

    >>> literal_as(literal_value(Decimal("1.5")), DOUBLE_TYPE)
    LiteralValue(value=1.5, type=ColumnType(kind=<Kind.DOUBLE: 'DOUBLE'>, precision=0, scale=0, length=0, key=None, value=None))
    """
    source, value = literal.type, literal.value
    if value is None:
        return LiteralValue(None, target)
    converted: Plain = None
    if (
        (source.kind in STRINGS and target.kind in STRINGS)
        or (source.kind in BINARIES and target.kind in BINARIES)
        or (source.kind in INTEGERS and target.kind in INTEGERS)
    ):
        converted = value
    elif target.kind is Kind.DOUBLE and (source.kind in INTEGERS or source.kind is Kind.DECIMAL):
        converted = float(Fraction(int(value), 10**source.scale))
    elif target.kind is Kind.DOUBLE and source.kind in FLOATS:
        converted = value
    elif target.kind is Kind.DECIMAL and (source.kind in INTEGERS or source.kind is Kind.DECIMAL) and source.scale <= target.scale:
        converted = int(value) * 10 ** (target.scale - source.scale)
    elif target.kind in TIMESTAMPS and (source.kind in TIMESTAMPS or source.kind is Kind.DATE):
        seconds = Fraction(int(value) * _DAY) if source.kind is Kind.DATE else Fraction(int(value), _PER_SECOND[source.unit])
        ticks = seconds * _PER_SECOND[target.unit]
        converted = int(ticks) if ticks.denominator == 1 else None
    if converted is None or not is_plain(converted, target) or (target.kind is Kind.DECIMAL and target.precision > MOST_DIGITS):
        return None
    return LiteralValue(converted, target)
