"""Rules of the schema for the values of a column: NOT NULL, lengths, defaults."""

from __future__ import annotations

from itertools import starmap
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lsm.schema.nested_parts import nested_parts
from manifest.types.data_type import MAX_LENGTH, DataType
from sparkexpr.values.column_type import BINARIES, STRINGS, Kind


def has_null(column: Any, data_type: DataType) -> bool:
    """Return whether a NOT NULL type has a null.

    Parts of nested types are checked too.
    """
    if not data_type.nullable and column.null_count:
        return True
    if (
        pa.types.is_null(column.type)
        or not data_type.is_nested
        or (data_type.kind is not Kind.VARIANT and all(child.nullable and not child.is_nested for child in data_type.children))
    ):
        return False
    return any(has_null(part, type_) for part, type_ in nested_parts(column, data_type))


def overlong(column: Any, data_type: DataType) -> tuple[int, DataType] | None:
    """Return an excessive length, and the type that it exceeds.

    Parts of nested types are checked too. None: all fit.
    """
    if not is_bounded(data_type) or not len(column):
        return None
    if data_type.is_nested:
        return next(filter(None, starmap(overlong, nested_parts(column, data_type))), None)
    longest = pc.max(lengths(column, data_type)).as_py()
    return (longest, data_type) if longest is not None and longest > data_type.length else None


def lengths(column: Any, data_type: DataType) -> Any:
    """Return the lengths of texts or binaries."""
    return pc.utf8_length(column) if data_type.kind in STRINGS else pc.binary_length(column)


def is_bounded(data_type: DataType) -> bool:
    """Return whether a type, or a part of it, limits lengths."""
    return (data_type.kind in STRINGS | BINARIES and data_type.length < MAX_LENGTH) or any(map(is_bounded, data_type.children))
