"""Literals of Spark's SQL.

Numbers with suffixes, texts, DATE, TIME, TIMESTAMP, binary (``X'1A'``) and casts of literals.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np
import pyarrow as pa
from sqlglot import exp

from paimon_base.errors import InvalidFilter
from pyspark_paimon.filter.ast import DateLiteral, Literal, TimestampLiteral
from pyspark_paimon.filter.literals import number_of, parse_date, parse_time, parse_timestamp
from pyspark_paimon.filter.now_literals import is_now, now_literal
from pyspark_paimon.filter.parameters import GIVEN
from sparkexpr.values.column_type import Kind

_Type = exp.DataType.Type
_INTEGERS = {_Type.TINYINT: Kind.TINYINT, _Type.SMALLINT: Kind.SMALLINT, _Type.INT: Kind.INT, _Type.BIGINT: Kind.BIGINT}
_FLOATS = {_Type.FLOAT, _Type.DOUBLE}
_TEXTS = {_Type.TEXT, _Type.VARCHAR, _Type.CHAR}
_ZONED = {_Type.TIMESTAMP, _Type.TIMESTAMPTZ, _Type.TIMESTAMPLTZ}


def literal_of(node: exp.Expression) -> Literal:
    """Return the value of a literal.

    Raises ``InvalidFilter`` for any other node.

    >>> import sqlglot
    >>> [literal_of(sqlglot.parse_one(text, dialect="spark")) for text in ("-1.50", "1e3", "'Oslo'", "X'41'", "7L")]
    [Decimal('-1.50'), 1000.0, 'Oslo', b'A', 7]
    """
    while isinstance(node, exp.Paren):
        node = node.this
    if is_now(node):
        return now_literal(node)
    match node:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.RawString():
            return str(node.this)
        case exp.Literal():
            return str(node.this) if node.is_string else _number(str(node.this))
        case exp.Neg():
            return _negative(node)
        case exp.Concat() if _joins_texts(node):
            return "".join(str(part.this) for part in node.expressions)
        case exp.HexString():
            return _binary(str(node.this))
        case exp.Cast():
            return _cast(node)
        case exp.Placeholder() if GIVEN in node.meta:
            return _parameter(node)
    raise InvalidFilter(
        f"'{node.sql(dialect='spark')[:120]}' is not a literal; compare a column with a number, a text, a DATE or a TIMESTAMP"
    )


def is_literal(node: exp.Expression) -> bool:
    """Return whether ``node`` has the form of a literal."""
    if is_now(node):
        return True
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    match node:
        case exp.Cast():
            return not node.args.get("safe") and is_literal(node.this)
        case exp.Concat():
            return _joins_texts(node)
    return isinstance(node, exp.Null | exp.Boolean | exp.RawString | exp.Literal | exp.HexString | exp.Placeholder)


def _joins_texts(node: exp.Concat) -> bool:
    # ConcatWs is a subclass, and its first text is a separator.
    return not isinstance(node, exp.ConcatWs) and all(isinstance(part, exp.Literal) and part.is_string for part in node.expressions)


def _parameter(node: exp.Placeholder) -> Literal:
    value = node.meta[GIVEN]
    if isinstance(value, tuple | pa.Array | pa.ChunkedArray):
        raise InvalidFilter(f"parameter ':{node.name}' is a list, which can only be used as IN :{node.name}")
    literal: Literal = value
    return literal


def _number(text: str) -> Literal:
    """Parse a number as Spark does."""
    # Numbers are exact unless they have an exponent, which makes a DOUBLE.
    if "e" in text.lower():
        return float(text)
    try:
        return int(text) if text.isdigit() else Decimal(text)
    except (ValueError, InvalidOperation):
        raise InvalidFilter(f"'{text[:120]}' is not a number") from None


def _negative(node: exp.Neg) -> Literal:
    value = literal_of(node.this)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise InvalidFilter(f"'{node.sql(dialect='spark')[:120]}': a minus must precede a number")
    return value.copy_negate() if isinstance(value, Decimal) else -value  # minus rounds a Decimal to 28 digits


def _binary(digits: str) -> bytes:
    try:
        return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
    except ValueError:
        raise InvalidFilter(f"X'{digits[:120]}' must have hexadecimal digits only") from None


def _cast(node: exp.Cast) -> Literal:
    value, target = literal_of(node.this), node.to.this
    if value is None or (target in _TEXTS and isinstance(value, str)):
        return value
    if target in _INTEGERS or target in _FLOATS or target is _Type.DECIMAL:
        return _cast_number(node, value)
    match value:
        case str() if target is _Type.DATE:
            return parse_date(value)
        case str() if target is _Type.TIME:
            return parse_time(value)
        case str() if target in _ZONED or target is _Type.TIMESTAMPNTZ:
            return parse_timestamp(value, zoned=target in _ZONED)
        case str() if target is _Type.BOOLEAN and value.strip().lower() in {"true", "false"}:
            return value.strip().lower() == "true"
        case TimestampLiteral() | DateLiteral() if target in _ZONED or target is _Type.TIMESTAMPNTZ:
            return value
    raise InvalidFilter(f"'{node.sql(dialect='spark')[:120]}': this cast of a literal is not supported; write the literal in its type")


def _cast_number(node: exp.Cast, value: Literal) -> Literal:
    target = node.to.this
    number = number_of(value, _INTEGERS.get(target, Kind.DOUBLE))
    if target is _Type.FLOAT:
        return float(np.float32(float(number)))
    if target is _Type.DOUBLE:
        return float(number)
    if isinstance(number, Fraction) and target in _INTEGERS and number.denominator == 1:
        return int(number)
    if isinstance(value, str | int | Decimal) and target is _Type.DECIMAL:
        scale = int(node.to.expressions[1].name) if len(node.to.expressions) == 2 else 0
        if isinstance(number, Fraction) and (number * 10**scale).denominator == 1:
            return Decimal(value)
    raise InvalidFilter(f"'{node.sql(dialect='spark')[:120]}' is not an exact value of type {node.to.sql(dialect='spark')}")
