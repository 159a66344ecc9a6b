"""Partition values in directory names.

As in Paimon's ``PartitionPathUtils`` and ``InternalRowPartitionComputer``.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from decimal import Context, Decimal

import numpy as np

from fileindex.base.column_type import ColumnType, Kind, Plain
from fileindex.base.errors import UnsupportedType

_UNSAFE = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")
_ALL_DIGITS = Context(prec=80)
_DIGITS = {"ms": 3, "us": 6, "ns": 9}


def escape(text: str) -> str:
    """Escape ``text`` as one path component.

    Unsafe characters become ``%`` and two upper-case hex digits.

    >>> escape("10:30 a/b")
    '10%3A30 a%2Fb'
    """
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def partition_text(value: Plain, column: ColumnType, default_name: str, *, legacy: bool) -> str:
    """Return the unescaped directory text of a plain value.

    Null and blank text become ``default_name``. ``legacy`` is the option ``partition.legacy-name``: Java's ``toString`` (dates are epoch
    days) instead of SQL casts. Raises ``UnsupportedType`` for legacy names of binary values, which Paimon itself cannot reproduce.

    >>> partition_text(20454, ColumnType(Kind.DATE), "-", legacy=True), partition_text(20454, ColumnType(Kind.DATE), "-", legacy=False)
    ('20454', '2026-01-01')
    """
    text = None if value is None else value_spelled(value, column, legacy=legacy)
    return default_name if text is None or not text.strip() else text


def value_spelled(value: Plain, column: ColumnType, *, legacy: bool) -> str:
    """Return a non-null value as unescaped partition text."""
    match column.kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.DECIMAL:
            return f"{Decimal(int(value or 0)).scaleb(-column.scale, _ALL_DIGITS):f}" if column.scale else str(value)
        case Kind.FLOAT | Kind.DOUBLE:
            return java_float_text(float(value or 0.0), single=column.kind is Kind.FLOAT)
        case Kind.BINARY | Kind.VARBINARY:
            if legacy:
                raise UnsupportedType("a binary partition column has no reproducible directory with 'partition.legacy-name'='true'")
            return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        case Kind.DATE if not legacy:
            return _date_text(int(value or 0))
        case Kind.TIME if not legacy:
            return _time_text(int(value or 0), column.precision)
        case Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ:
            return _timestamp_text(int(value or 0), column, legacy=legacy)
        case _:
            return str(value)


def java_float_text(value: float, *, single: bool) -> str:
    """Return the shortest text in Java's notation.

    >>> java_float_text(1.5, single=False), java_float_text(1e10, single=False), java_float_text(0.1, single=True)
    ('1.5', '1.0E10', '0.1')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(str(np.float32(value)) if single else repr(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0") or "0"
    point = len(text) + int(exponent)  # digits before the decimal point
    prefix = "-" if sign else ""
    text = text.rstrip("0") or "0"
    if text == "0":
        return f"{prefix}0.0"
    if -3 < point <= 7:
        whole = text[: max(point, 0)].ljust(point, "0") or "0"
        fraction = "0" * max(-point, 0) + text[max(point, 0) :] or "0"
        return f"{prefix}{whole}.{fraction}"
    return f"{prefix}{text[0]}.{text[1:] or '0'}E{point - 1}"


def _date_text(days: int) -> str:
    text = str(np.datetime64(days, "D"))
    return f"+{text}" if text[4] != "-" and not text.startswith("-") else text


def _time_text(millis: int, precision: int) -> str:
    text = f"{millis // 3_600_000:02d}:{millis // 60_000 % 60:02d}:{millis // 1000 % 60:02d}"
    return f"{text}.{f'{millis % 1000:03d}'[:precision]}" if precision else text


def _timestamp_text(value: int, column: ColumnType, *, legacy: bool) -> str:
    digits = _DIGITS[column.unit]
    seconds, fraction = divmod(value, 10**digits)
    if not legacy and column.kind is Kind.TIMESTAMP_LTZ:
        offset = datetime.fromtimestamp(seconds, UTC).astimezone().utcoffset()
        seconds += int(offset.total_seconds()) if offset else 0
    days, clock = divmod(seconds, 86_400)
    hour, minute, second = clock // 3600, clock // 60 % 60, clock % 60
    nanos = f"{fraction * 10 ** (9 - digits):09d}"
    if not legacy:
        text = f"{_date_text(days)} {hour:02d}:{minute:02d}:{second:02d}"
        return f"{text}.{nanos[: column.precision]}" if column.precision else text
    text = f"{_date_text(days)}T{hour:02d}:{minute:02d}"
    if second or fraction:
        text += f":{second:02d}"
    if fraction:
        text += "." + nanos[: 3 if nanos.endswith("000000") else 6 if nanos.endswith("000") else 9]
    return text


__all__ = ["escape", "java_float_text", "partition_text", "value_spelled"]
