"""Parts of ROW, ARRAY and MAP arrays as ordinary arrays.

All rows are searched together, not row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.errors import FilterFailed, UnsupportedType


def column_part(array: Any, key: str | None) -> Any:
    """Return a column, or the values of one key of its maps.

    ``key`` None: the column. Raises as ``map_entries``.
    """
    return array if key is None else map_entries(array, [key])[0]


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
    offsets, stored, items = _text_entries(array)
    rows = len(array)
    if not keys or rows == 0:
        return [items.slice(0, 0) if rows == 0 else pa.nulls(rows, items.type) for _ in keys]
    first, last = int(offsets[0]), int(offsets[-1])
    matched = pc.index_in(stored.slice(first, last - first), value_set=pa.array(keys, stored.type))
    codes = matched.fill_null(-1).to_numpy(zero_copy_only=False)
    entries = np.flatnonzero(codes >= 0)
    owners = np.repeat(np.arange(rows), np.diff(offsets))[entries]
    if array.null_count:
        live = np.asarray(array.is_valid())[owners]
        entries, owners = entries[live], owners[live]
    codes = codes[entries]
    columns = []
    for code in range(len(keys)):
        positions = np.flatnonzero(codes == code)
        columns.append(_take(items, entries[positions] + first, owners[positions], rows))
    return columns


def struct_field(array: Any, name: str) -> Any:
    """Return a field of structs.

    It is null where the struct is null.

    >>> structs = pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int32())]))
    >>> struct_field(structs, "a").to_pylist()
    [1, None, None]
    """
    position = array.type.get_field_index(name)
    if position < 0:
        raise UnsupportedType(f"Arrow {array.type} has no field '{name}'")
    return pc.struct_field(array, [position])


def array_of(elements: Sequence[Any]) -> Any:
    """Return a list for each row, of the elements of all arrays.

    >>> array_of([pa.array([1, 2]), pa.array([3, None])]).to_pylist()
    [[1, 3], [2, None]]
    """
    rows, size = len(elements[0]), len(elements)
    order = np.arange(rows * size).reshape(size, rows).T.ravel()
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1) * size, pa.int32()), pa.concat_arrays(elements).take(pa.array(order)))


def struct_of(names: Sequence[str], values: Sequence[Any]) -> Any:
    """Return structs of the values of each row.

    >>> struct_of(["a"], [pa.array([1, None])]).to_pylist()
    [{'a': 1}, {'a': None}]
    """
    return pa.StructArray.from_arrays(values, list(names))


def with_field(array: Any, name: str, values: Any) -> Any:
    """Return structs with other values of a field. No struct is null.

    >>> structs = pa.array([{"a": 1, "b": 2}, None], pa.struct([("a", pa.int32()), ("b", pa.int32())]))
    >>> with_field(structs, "a", pa.array([7, 8], pa.int32())).to_pylist()
    [{'a': 7, 'b': 2}, {'a': 8, 'b': None}]
    """
    fields = [array.type.field(index) for index in range(array.type.num_fields)]
    children = [values if field.name == name else struct_field(array, field.name) for field in fields]
    return pa.StructArray.from_arrays(children, fields=fields)


def list_size(array: Any) -> Any:
    """Return the number of elements or entries of each row.

    It is null where the row is null.

    >>> list_size(pa.array([[1, None], [], None], pa.list_(pa.int32()))).to_pylist()
    [2, 0, None]
    """
    sizes = np.diff(_offsets(array)).astype(np.int32)
    return pa.array(sizes, mask=_nulls(array))


def list_item(array: Any, index: int, *, strict: bool) -> Any:
    """Return the element at ``index``, from 0, of each list.

    A negative index counts from the end. It is null where the list is null.
    ``strict``: Raise ``FilterFailed`` for a list without that element. Else the element is null.

    >>> list_item(pa.array([[1, 2], [3], None], pa.list_(pa.int32())), 1, strict=False).to_pylist()
    [2, None, None]
    """
    offsets, nulls = _offsets(array), _nulls(array)
    positions = (offsets[:-1] if index >= 0 else offsets[1:]) + index
    missing = (positions < offsets[:-1]) | (positions >= offsets[1:])
    if strict and (wrong := missing & ~nulls).any():
        size = int(np.diff(offsets)[wrong][0])
        raise FilterFailed(f"an ARRAY of {size} elements has no such element; write get(array, index) or try_element_at, which give NULL")
    return array.values.take(pa.array(positions, mask=missing | nulls))


def owned_values(array: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """Return the elements of all lists, and the row of each element.

    >>> values, rows = owned_values(pa.array([[1, 2], None, [3]], pa.list_(pa.int32())))
    >>> values.to_pylist(), rows.tolist()
    ([1, 2, 3], [0, 0, 2])
    """
    offsets = _offsets(array)
    first, last = int(offsets[0]), int(offsets[-1])
    return array.values.slice(first, last - first), np.repeat(np.arange(len(array)), np.diff(offsets))


def any_of_rows(answers: Any, owners: np.ndarray[Any, Any], array: Any) -> Any:
    """Return whether any element of each list is true.

    As in SQL, a list without a true element but with an unknown one is unknown.

    >>> lists = pa.array([[1, 2], None, [3]], pa.list_(pa.int32()))
    >>> any_of_rows(pa.array([False, None, True]), owned_values(lists)[1], lists).to_pylist()
    [None, None, True]
    """
    true, unknown = np.asarray(answers.fill_null(False)), np.asarray(answers.is_null())
    hits, open_ = (np.bincount(owners[flags], minlength=len(array)) > 0 for flags in (true, unknown))
    return pa.array(hits, mask=(open_ & ~hits) | _nulls(array))


def map_item(array: Any, matched: Any) -> Any:
    """Return the map value of the matched key of each row.

    ``matched``: for each entry of ``map_keys``, whether its key is the wanted one.
    """
    offsets, _, items = _entries(array)
    entries = np.flatnonzero(np.asarray(matched.fill_null(False)))
    owners = np.repeat(np.arange(len(array)), np.diff(offsets))[entries]
    live = ~_nulls(array)[owners]
    return _take(items, entries[live] + int(offsets[0]), owners[live], len(array))


def map_keys(array: Any) -> Any:
    """Return the keys of all maps, one after the other."""
    offsets, keys, _ = _entries(array)
    first, last = int(offsets[0]), int(offsets[-1])
    return keys.slice(first, last - first)


def _offsets(array: Any) -> np.ndarray[Any, Any]:
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        starts: np.ndarray[Any, Any] = (array.offset + np.arange(len(array) + 1, dtype=np.int64)) * size
        return starts
    offsets: np.ndarray[Any, Any] = np.asarray(array.offsets).astype(np.int64)
    return offsets


def _nulls(array: Any) -> np.ndarray[Any, Any]:
    is_null: np.ndarray[Any, Any] = np.asarray(array.is_null())
    return is_null


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
    return np.asarray(array.offsets), keys, items


def _text_entries(array: Any) -> tuple[np.ndarray[Any, Any], Any, Any]:
    offsets, keys, items = _entries(array)
    if pa.types.is_dictionary(keys.type):
        keys = keys.dictionary_decode()
    if keys.type == pa.string_view():
        keys = keys.cast(pa.large_string())
    if not (pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)):
        raise UnsupportedType(f"Arrow {array.type} has keys that are not strings")
    return offsets, keys, items
