"""Inner values of nested columns with their types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from manifest.types.data_type import MAX_LENGTH, DataType
from paimon_base.hidden_nulls import entry_lists
from sparkexpr.values.column_type import Kind

_VARIANT_PART = DataType(Kind.VARBINARY, length=MAX_LENGTH, nullable=False)


def nested_parts(column: Any, data_type: DataType) -> Iterator[tuple[Any, DataType]]:
    """Yield the inner values of a nested column, and their types.

    Fields of rows are found by name: their order is not that of the type.
    """
    for array in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        match data_type.kind:
            case Kind.ROW:
                valid = array.drop_null()
                yield from ((pc.struct_field(valid, [valid.type.get_field_index(field.name)]), field.type) for field in data_type.fields)
            case Kind.VARIANT:
                valid = array.drop_null()
                yield from ((pc.struct_field(valid, [valid.type.get_field_index(part.name)]), _VARIANT_PART) for part in data_type.arrow)
            case Kind.ARRAY | Kind.VECTOR:
                yield array.flatten(), data_type.part("element")
            case Kind.MULTISET:
                yield entry_lists(array).flatten().field(0), data_type.part("element")
            case Kind.MAP:
                entries = entry_lists(array).flatten()
                yield entries.field(0), data_type.part("key")
                yield entries.field(1), data_type.part("value")
