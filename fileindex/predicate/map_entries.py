"""Entries of MAP columns as ordinary arrays.

All maps are searched together, not row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.errors import UnsupportedType


def map_entries(array: Any, keys: Sequence[str]) -> list[Any]:
    """Return an array of the map values of each key.

    ``keys`` must be distinct. Each array has ``len(array)`` elements, null where the map is null, lacks the key, or maps it to null.
    Of a key that a map repeats the last value counts, as in Spark's LAST_WIN policy. Entries with a null key are ignored.

    Raises:
        UnsupportedType: ``array`` is neither a map nor a list of key-value structs, or has no text keys.

    >>> maps = pa.array([[("a", 1), ("b", 2)], None, [("a", 3), ("a", 4)]], pa.map_(pa.string(), pa.int32()))
    >>> [values.to_pylist() for values in map_entries(maps, ["a", "b"])]
    [[1, None, 4], [2, None, None]]
    """
    offsets, map_keys, items = _entries(array)
    rows = len(array)
    if not keys or rows == 0:
        return [items.slice(0, 0) if rows == 0 else pa.nulls(rows, items.type) for _ in keys]
    first, last = int(offsets[0]), int(offsets[-1])
    matched = pc.index_in(map_keys.slice(first, last - first), value_set=pa.array(keys, map_keys.type))
    codes = matched.fill_null(-1).to_numpy(zero_copy_only=False)
    entries = np.flatnonzero(codes >= 0)
    owners = np.repeat(np.arange(rows), np.diff(offsets))[entries]
    if array.null_count:
        live = np.asarray(array.is_valid())[owners]
        entries, owners = entries[live], owners[live]
    codes = codes[entries]
    found = []
    for code in range(len(keys)):
        chosen = np.flatnonzero(codes == code)
        found.append(_take(items, entries[chosen] + first, owners[chosen], rows))
    return found


def _take(items: Any, entries: np.ndarray[Any, Any], owners: np.ndarray[Any, Any], rows: int) -> Any:
    if len(entries) == rows and (rows == 1 or bool((np.diff(owners) > 0).all())):
        return items.take(pa.array(entries))
    positions = np.full(rows, -1, dtype=np.int64)
    positions[owners] = entries  # numpy keeps the last of repeated targets
    return items.take(pa.array(positions, mask=positions < 0))


def _entries(array: Any) -> tuple[np.ndarray[Any, Any], Any, Any]:
    kind = array.type
    if pa.types.is_map(kind):
        keys, items = array.keys, array.items
    elif (
        (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2
    ):
        keys, items = array.values.flatten()
    else:
        raise UnsupportedType(f"Arrow {kind} is not a map")
    if pa.types.is_dictionary(keys.type):
        keys = keys.dictionary_decode()
    if keys.type == pa.string_view():
        keys = keys.cast(pa.large_string())
    if not (pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)):
        raise UnsupportedType(f"Arrow {kind} has keys that are not strings")
    return np.asarray(array.offsets), keys, items


__all__ = ["map_entries"]
