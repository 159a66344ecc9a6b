"""Codes of Parquet's Variant Binary Encoding."""

from __future__ import annotations

from enum import IntEnum

VERSION = 1
SHORT_TEXT = 63
"""Most bytes of a text whose length is in its header."""
MOST_BYTES = 1 << 24
"""Most bytes of a value, and of its metadata. Paimon and Spark refuse more."""
MOST_NESTED = 500
"""Most levels of objects and arrays in a value that is encoded."""
MOST_DIGITS = 38


class Basic(IntEnum):
    """Basic types: the low two bits of a header."""

    PRIMITIVE = 0
    SHORT_STRING = 1
    OBJECT = 2
    ARRAY = 3


class Primitive(IntEnum):
    """Primitive types: the high six bits of a header."""

    NULL = 0
    TRUE = 1
    FALSE = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    INT64 = 6
    DOUBLE = 7
    DECIMAL4 = 8
    DECIMAL8 = 9
    DECIMAL16 = 10
    DATE = 11
    TIMESTAMP = 12
    TIMESTAMP_NTZ = 13
    FLOAT = 14
    BINARY = 15
    STRING = 16
    UUID = 20


INTEGER_WIDTHS = {Primitive.INT8: 1, Primitive.INT16: 2, Primitive.INT32: 4, Primitive.INT64: 8}
DECIMAL_WIDTHS = {Primitive.DECIMAL4: 4, Primitive.DECIMAL8: 8, Primitive.DECIMAL16: 16}
DECIMAL_DIGITS = {Primitive.DECIMAL4: 9, Primitive.DECIMAL8: 18, Primitive.DECIMAL16: MOST_DIGITS}


def primitive_header(kind: Primitive) -> bytes:
    """Return the header of a primitive value."""
    return bytes([kind << 2])
