"""Values as texts, as in Paimon's system tables.

Statistics and keys have Java's notation, partitions that of SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from manifest.io.paths import value_spelled
from manifest.types.data_type import DataType
from sparkexpr.values.column_type import Kind, Plain


def java_text(value: Plain, data_type: DataType) -> str:
    """Format a value of statistics or of a key.

    Dates and times are numbers. Bytes are hexadecimal digits, as Java has no notation for them.

    >>> java_text(1e10, DataType(Kind.DOUBLE)), java_text(19753, DataType(Kind.DATE)), java_text(None, DataType(Kind.INT))
    ('1.0E10', '19753', 'null')
    >>> java_text(1_706_695_200_000, DataType(Kind.TIMESTAMP, precision=3))
    '2024-01-31T10:00'
    """
    if value is None:
        return "null"
    return value.hex() if isinstance(value, bytes) else value_spelled(value, data_type.column_type, legacy=True)


def sql_text(value: Plain, data_type: DataType) -> str:
    """Format a value of a partition, cast to a string.

    >>> sql_text(19753, DataType(Kind.DATE)), sql_text(36_001_100, DataType(Kind.TIME, precision=3))
    ('2024-01-31', '10:00:01.1')
    """
    if value is None:
        return "null"
    text = value_spelled(value, data_type.column_type, legacy=False)
    if data_type.kind is Kind.TIME and "." in text:  # Paimon keeps one digit here, but all digits in directory names
        integer, _, fraction = text.partition(".")
        return f"{integer}.{fraction.rstrip('0') or '0'}"
    return text


def format_partition(values: Iterable[Plain], types: Iterable[DataType]) -> str:
    """Format a partition.

    >>> format_partition((19753, None), (DataType(Kind.DATE), DataType(Kind.INT)))
    '{2024-01-31, null}'
    """
    return "{" + ", ".join(sql_text(value, data_type) for value, data_type in zip(values, types, strict=True)) + "}"


def format_list(texts: Iterable[str]) -> str:
    """Format a list in Java's notation.

    >>> format_list(["a", "b"])
    '[a, b]'
    """
    return f"[{', '.join(texts)}]"


def format_map(texts: Mapping[str, str]) -> str:
    """Format a sorted map in Java's notation.

    >>> format_map({"b": "2", "a": "1"})
    '{a=1, b=2}'
    """
    return "{" + ", ".join(f"{name}={texts[name]}" for name in sorted(texts)) + "}"


def type_text(data_type: DataType) -> str:
    """Format a type with quoted names of nested fields.

    >>> type_text(DataType.from_json({"type": "ROW", "fields": [{"id": 0, "name": "k", "type": "INT"}]}))
    'ROW<`k` INT>'
    """
    suffix = "" if data_type.nullable else " NOT NULL"
    if data_type.kind is Kind.ROW:
        return f"ROW<{', '.join(f'`{field.name}` {type_text(field.type)}' for field in data_type.fields)}>{suffix}"
    if data_type.kind is Kind.MAP:
        return f"MAP<{type_text(data_type.part('key'))}, {type_text(data_type.part('value'))}>{suffix}"
    if data_type.kind in {Kind.ARRAY, Kind.MULTISET}:
        return f"{data_type.kind}<{type_text(data_type.part('element'))}>{suffix}"
    return str(data_type)


def wall_clock(millis: int) -> datetime:
    """Convert an instant to local time, as Paimon shows it."""
    seconds, rest = divmod(millis, 1000)
    return datetime.fromtimestamp(seconds, UTC).astimezone().replace(tzinfo=None) + timedelta(milliseconds=rest)


def duration_text(duration: timedelta) -> str:
    """Format a duration in Java's notation.

    >>> duration_text(timedelta(days=1, minutes=30)), duration_text(timedelta(milliseconds=1500))
    ('PT24H30M', 'PT1.5S')
    """
    millis = duration // timedelta(milliseconds=1)
    minutes, rest = divmod(millis, 60_000)
    seconds = f"{Decimal(rest) / 1000:f}S" if rest else ""
    parts = (f"{minutes // 60}H" if minutes >= 60 else "") + (f"{minutes % 60}M" if minutes % 60 else "") + seconds
    return f"PT{parts or '0S'}"
