"""CHAR as ORC keeps it: padded with blanks to its length, which readers take away."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.column_type import Kind
from lsm.orc.nested import with_parts
from lsm.orc.tail import OrcKind, OrcTail
from manifest.types.data_type import DataType


def without_padding(array: Any, tail: OrcTail, column: int) -> Any:
    """``array``, which is a column with its number in a file, without the blanks at the end of every CHAR in it."""
    if all(tail.types[number].kind is not OrcKind.CHAR for number in tail.below(column)):
        return array
    if pa.types.is_nested(array.type):
        children = tail.types[column].children
        return with_parts(array, lambda part, at: without_padding(part, tail, children[at]))
    return pc.utf8_rtrim(array, characters=" ")


def without_blanks(column: Any, type_: DataType) -> Any:
    """A column to write without the blanks at the end of a CHAR: in ORC they mean nothing, and other readers take them away."""
    return pc.utf8_rtrim(column, characters=" ") if type_.kind is Kind.CHAR else column


__all__ = ["without_blanks", "without_padding"]
