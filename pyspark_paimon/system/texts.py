"""Values as the texts that Paimon's system tables have: Java's spelling in statistics and keys, SQL's in partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from fileindex.base.column_type import Kind, Plain
from manifest.io.partition_path import value_spelled
from manifest.types.data_type import DataType


def java_text(value: Plain, data_type: DataType) -> str:
    """A value of statistics or of a key: dates and times are numbers; bytes, which Java does not spell, are in hex.

    >>> java_text(1e10, DataType(Kind.DOUBLE)), java_text(19753, DataType(Kind.DATE)), java_text(None, DataType(Kind.INT))
    ('1.0E10', '19753', 'null')
    >>> java_text(1_706_695_200_000, DataType(Kind.TIMESTAMP, precision=3))
    '2024-01-31T10:00'
    """
    if value is None:
        return "null"
    return value.hex() if isinstance(value, bytes) else value_spelled(value, data_type.column_type, legacy=True)


def sql_text(value: Plain, data_type: DataType) -> str:
    """A value of a partition, cast to a string.

    >>> sql_text(19753, DataType(Kind.DATE)), sql_text(36_001_100, DataType(Kind.TIME, precision=3))
    ('2024-01-31', '10:00:01.1')
    """
    if value is None:
        return "null"
    text = value_spelled(value, data_type.column_type, legacy=False)
    if data_type.kind is Kind.TIME and "." in text:  # here one digit stays, in directories all do
        whole, _, fraction = text.partition(".")
        return f"{whole}.{fraction.rstrip('0') or '0'}"
    return text


def braced(values: Iterable[Plain], types: Iterable[DataType]) -> str:
    """A partition.

    >>> braced((19753, None), (DataType(Kind.DATE), DataType(Kind.INT)))
    '{2024-01-31, null}'
    """
    return "{" + ", ".join(sql_text(value, data_type) for value, data_type in zip(values, types, strict=True)) + "}"


def bracketed(texts: Iterable[str]) -> str:
    """A list in Java's spelling.

    >>> bracketed(["a", "b"])
    '[a, b]'
    """
    return f"[{', '.join(texts)}]"


def mapped(texts: Mapping[str, str]) -> str:
    """A sorted map in Java's spelling.

    >>> mapped({"b": "2", "a": "1"})
    '{a=1, b=2}'
    """
    return "{" + ", ".join(f"{name}={texts[name]}" for name in sorted(texts)) + "}"


def type_text(data_type: DataType) -> str:
    """A type with the names of nested fields quoted, as ``DESCRIBE`` has it.

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
    """An instant by this process' clock on the wall, as Paimon shows it."""
    whole, rest = divmod(millis, 1000)
    return datetime.fromtimestamp(whole, UTC).astimezone().replace(tzinfo=None) + timedelta(milliseconds=rest)


def duration_text(duration: timedelta) -> str:
    """A duration in Java's spelling.

    >>> duration_text(timedelta(days=1, minutes=30)), duration_text(timedelta(milliseconds=1500))
    ('PT24H30M', 'PT1.5S')
    """
    millis = duration // timedelta(milliseconds=1)
    minutes, rest = divmod(millis, 60_000)
    seconds = f"{Decimal(rest) / 1000:f}S" if rest else ""
    parts = (f"{minutes // 60}H" if minutes >= 60 else "") + (f"{minutes % 60}M" if minutes % 60 else "") + seconds
    return f"PT{parts or '0S'}"


__all__ = ["braced", "bracketed", "duration_text", "java_text", "mapped", "sql_text", "type_text", "wall_clock"]
