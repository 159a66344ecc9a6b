"""Check of Parquet footers for Spark's own reader.

The check passes if Spark's reader returns the same values as ours.
Writers of Paimon tables differ in details: INT96 or INT64 timestamps, with or without a zone, lists of two or three levels. Spark reads
only columns of exactly the form below; our own reader reads the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fileindex.base.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Kind
from manifest.types.data_type import DataField, DataType

_PHYSICAL: Mapping[Kind, frozenset[str]] = {
    Kind.BOOLEAN: frozenset({"BOOLEAN"}),
    **dict.fromkeys((Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.DATE), frozenset({"INT32"})),
    **dict.fromkeys((Kind.BIGINT, *TIMESTAMPS), frozenset({"INT64"})),
    Kind.FLOAT: frozenset({"FLOAT"}),
    Kind.DOUBLE: frozenset({"DOUBLE"}),
    Kind.DECIMAL: frozenset({"INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"}),
    **dict.fromkeys(STRINGS, frozenset({"BYTE_ARRAY"})),
    **dict.fromkeys(BINARIES, frozenset({"BYTE_ARRAY"})),
}
_WIDTHS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}


def is_native(type_: DataType) -> bool:
    """Return whether Spark's own reader and ours give the same Spark type.

    >>> number = DataType(Kind.INT)
    >>> is_native(number), is_native(DataType(Kind.ARRAY, element=number)), is_native(DataType(Kind.MULTISET, element=number))
    (True, True, False)
    """
    # Everything that Spark reads from files is nullable. An expression corrects that for a column, but not inside of one.
    # Spark also skips row groups by minima and maxima of nested floats, which omit NaN.
    match type_.kind:
        case kind if kind in TIMESTAMPS:
            return type_.precision <= 6
        case kind if kind in _PHYSICAL:
            return True
        case Kind.ARRAY:
            return _is_native_part(type_.part("element"))
        case Kind.MAP:
            key = type_.part("key")
            return not key.is_nested and is_native(key) and _is_native_part(type_.part("value"))
        case Kind.ROW:
            inner = [field.type for field in type_.fields]
            return bool(inner) and all(_is_native_part(part) and not _has_floats(part) for part in inner)
        case _:
            return False


def _is_native_part(type_: DataType) -> bool:
    return type_.nullable and is_native(type_)


def _has_floats(type_: DataType) -> bool:
    return type_.kind in FLOATS or any(_has_floats(child) for child in type_.children)


class Footer:
    """Leaf columns in a footer (``pq.FileMetaData``)."""

    def __init__(self, metadata: Any) -> None:
        schema = metadata.schema
        self._leaves = {leaf.path: leaf for leaf in (schema.column(at) for at in range(metadata.num_columns))}
        tops = {path.partition(".")[0].lower() for path in self._leaves}
        self.is_unambiguous = len(tops) == len({path.partition(".")[0] for path in self._leaves})
        """Whether no two names differ only in case. Spark cannot distinguish such columns."""

    def has(self, field: DataField) -> bool:
        """Return whether Spark reads the file's column as its ``spark_type``."""
        leaves = ((self._leaves.get(path), type_) for path, type_ in _leaves(field.name, field.type))
        return all(leaf is not None and _fits(leaf, type_) for leaf, type_ in leaves)


def _leaves(path: str, type_: DataType) -> Iterator[tuple[str, DataType]]:
    match type_.kind:
        case Kind.ARRAY:
            yield from _leaves(f"{path}.list.element", type_.part("element"))
        case Kind.MAP:
            yield from _leaves(f"{path}.key_value.key", type_.part("key"))
            yield from _leaves(f"{path}.key_value.value", type_.part("value"))
        case Kind.ROW:
            for field in type_.fields:
                yield from _leaves(f"{path}.{field.name}", field.type)
        case _:
            yield path, type_


def _fits(leaf: Any, type_: DataType) -> bool:
    """Return whether a leaf has the physical and logical type of ``type_``."""
    if leaf.physical_type not in _PHYSICAL[type_.kind]:
        return False
    logical: dict[str, Any] = json.loads(leaf.logical_type.to_json())
    name = logical.get("Type")
    match type_.kind:
        case Kind.DECIMAL:
            return name == "Decimal" and (logical["precision"], logical["scale"]) == (type_.precision, type_.scale)
        case kind if kind in TIMESTAMPS:
            zoned = type_.kind is Kind.TIMESTAMP_LTZ
            return name == "Timestamp" and logical["isAdjustedToUTC"] == zoned and logical["timeUnit"] in {"milliseconds", "microseconds"}
        case Kind.DATE:
            return name == "Date"
        case kind if kind in STRINGS:
            return name == "String"
        case kind if kind in INTEGERS:
            plain = name == "None" and kind in {Kind.INT, Kind.BIGINT}
            return plain or (name == "Int" and bool(logical["isSigned"]) and logical["bitWidth"] == _WIDTHS[kind])
        case _:
            return name == "None"


__all__ = ["Footer", "is_native"]
