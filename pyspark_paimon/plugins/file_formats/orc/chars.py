"""CHAR values in ORC files, padded with blanks.

Readers remove the padding.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from manifest.types.data_type import DataType
from pyspark_paimon.plugins.file_formats.orc.tail import OrcKind, OrcTail, with_parts
from sparkexpr.values.column_type import Kind


def without_padding(array: Any, tail: OrcTail, column: int) -> Any:
    """Remove trailing blanks from every CHAR in ``array``.

    ``column`` is the number of its column in the file.
    """
    if all(tail.types[number].kind is not OrcKind.CHAR for number in tail.below(column)):
        return array
    if pa.types.is_nested(array.type):
        children = tail.types[column].children
        return with_parts(array, lambda part, index: without_padding(part, tail, children[index]))
    return pc.utf8_rtrim(array, characters=" ")


def without_blanks(column: Any, type_: DataType) -> Any:
    """Remove trailing blanks from a CHAR column to be written.

    They have no meaning in ORC, and other readers remove them.
    """
    return pc.utf8_rtrim(column, characters=" ") if type_.kind is Kind.CHAR else column
