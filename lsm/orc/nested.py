"""Nested columns with changed parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa


def with_parts(array: Any, change: Callable[[Any, int], Any]) -> Any:
    """Apply ``change`` to each part of a nested array.

    ``change`` receives the part of the row, list or map, and its position. Parts must keep their types.
    """
    kind = array.type
    nulls = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        parts = [change(array.field(at), at) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=nulls)
    offsets = pa.array(array.offsets.to_numpy())  # a copy: Arrow accepts no null mask together with sliced offsets
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(offsets, change(array.keys, 0), change(array.items, 1), type=kind, mask=nulls)
    return pa.ListArray.from_arrays(offsets, change(array.values, 0), type=kind, mask=nulls)


__all__ = ["with_parts"]
