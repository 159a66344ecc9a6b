"""CHAR as ORC keeps it: padded with blanks to its length, which readers take away."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.column_type import Kind
from lsm.orc.tail import OrcKind, OrcTail
from manifest.types.data_type import DataType


def without_padding(array: Any, tail: OrcTail, column: int) -> Any:
    """``array``, which is a column with its number in a file, without the blanks at the end of every CHAR in it."""
    if all(tail.types[number].kind is not OrcKind.CHAR for number in tail.below(column)):
        return array
    type_ = tail.types[column]
    nulls = array.is_null() if array.null_count else None
    match type_.kind:
        case OrcKind.STRUCT:
            children = [without_padding(array.field(at), tail, child) for at, child in enumerate(type_.children)]
            return pa.StructArray.from_arrays(children, fields=list(array.type), mask=nulls)
        case OrcKind.LIST:
            return pa.ListArray.from_arrays(_offsets(array), without_padding(array.values, tail, type_.children[0]), mask=nulls)
        case OrcKind.MAP:
            keys, values = (without_padding(part, tail, each) for part, each in zip((array.keys, array.items), type_.children, strict=True))
            return pa.MapArray.from_arrays(_offsets(array), keys, values, mask=nulls)
        case _:
            return pc.utf8_rtrim(array, characters=" ")


def without_blanks(column: Any, type_: DataType) -> Any:
    """A column to write without the blanks at the end of a CHAR: in ORC they mean nothing, and other readers take them away."""
    return pc.utf8_rtrim(column, characters=" ") if type_.kind is Kind.CHAR else column


def _offsets(array: Any) -> Any:
    return pa.array(array.offsets.to_numpy())  # a copy: Arrow takes no null mask together with sliced offsets


__all__ = ["without_blanks", "without_padding"]
