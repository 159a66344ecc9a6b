"""Casts of nested arrays with hidden nulls.

The fields of a null row are null too, even those whose type is not nullable. Arrow's casts and Spark's readers reject such
hidden nulls. These functions replace them by zeros, which no reader sees.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LONGEST_FIXED = 32


def cast_nested(column: Any, target: Any, *, safe: bool = True) -> Any:
    """Cast to ``target`` and fill hidden nulls of non-nullable fields.

    Raises Arrow's errors, also for visible nulls in such fields.

    >>> part = pa.field("n", pa.int64(), nullable=False)
    >>> rows = cast_nested(pa.nulls(1, pa.struct([part])), pa.struct([part]))
    >>> rows.to_pylist(), rows.field(0).to_pylist()
    ([None], [0])
    """
    if pa.types.is_nested(column.type) and not column.type.equals(target):
        column = _own_values(column)
    if not _needs_values(target):
        return column if column.type.equals(target) else pc.cast(column, target, safe=safe)
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([cast_nested(chunk, target, safe=safe) for chunk in column.chunks], target)
    return pc.cast(_fill(column, target, hidden=None), target, safe=safe)


def _own_values(column: Any) -> Any:
    """Return a nested column whose children have the values of its rows only."""
    # Arrow casts all values of a list or map, also those outside of a slice, and rejects the slice for them.
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_own_values(chunk) for chunk in column.chunks], column.type)
    if isinstance(column, pa.ExtensionArray) or not _has_others(column):
        return column
    return pa.concat_arrays([column.slice(0, 0), column])


def _has_others(array: Any) -> bool:
    """Return whether children have values of no row, as those of a slice have."""
    kind, types = array.type, pa.types
    if types.is_struct(kind):
        return any(_has_others(array.field(index)) for index in range(kind.num_fields))
    if types.is_fixed_size_list(kind):
        return len(array.values) != len(array) * kind.list_size or _has_others(array.values)
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind)):
        return bool(types.is_nested(kind))  # views of lists
    if not len(array):
        return True
    first, last = (array.offsets[index].as_py() for index in (0, -1))
    children = (array.keys, array.items) if types.is_map(kind) else (array.values,)
    return first != 0 or any(last != len(child) or (len(child) and _has_others(child)) for child in children)


@lru_cache(maxsize=256)
def _needs_values(target: Any) -> bool:
    """Return whether a type has a row with non-nullable fields."""
    if pa.types.is_map(target):
        return _needs_values(target.item_type)  # keys are never null
    fields = [target.field(index) for index in range(target.num_fields)]
    has_required = pa.types.is_struct(target) and not all(field.nullable for field in fields)
    return has_required or any(_needs_values(field.type) for field in fields)


def _fill(array: Any, target: Any, *, hidden: Any) -> Any:
    """Return ``array`` without hidden nulls inside.

    ``hidden`` is the mask of rows that no reader sees, if ``array`` must not contain nulls. None: it may.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if hidden is None and not _needs_values(target):
        return array
    if pa.types.is_null(array.type):
        array = pa.nulls(len(array), target)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if str(array.type).endswith("_view"):
        array = array.cast(target)
    nulls = array.is_null() if array.null_count else None
    if hidden is not None and nulls is not None and not pc.any(pc.and_not(nulls, hidden)).as_py():
        return _fill_all(array, target, pc.or_(nulls, hidden))
    unseen = nulls if hidden is None or nulls is None else pc.or_(nulls, hidden)
    return _rebuild(array, target, nulls, hidden if nulls is None else unseen)


def _fill_all(array: Any, target: Any, unseen: Any) -> Any:
    """Fill an array whose own nulls are all hidden."""
    if pa.types.is_nested(array.type):
        return _rebuild(array, target, None, unseen)
    return pc.fill_null(array, _zero(array.type))


def _rebuild(array: Any, target: Any, nulls: Any, unseen: Any) -> Any:
    """Return a nested array with mask ``nulls`` and filled children.

    ``unseen`` is the mask of rows whose children no reader sees.
    """
    if pa.types.is_struct(array.type) and pa.types.is_struct(target):
        return _rebuild_struct(array, target, nulls, unseen)
    if pa.types.is_map(array.type) and pa.types.is_map(target):
        kind = array.type
        offsets, positions = _entries(array)
        keys, items = array.keys.take(positions), _fill(array.items.take(positions), target.item_type, hidden=None)
        map_type = pa.map_(pa.field(kind.key_field.name, keys.type, nullable=False), kind.item_field.with_type(items.type))
        return pa.MapArray.from_arrays(offsets, keys, items, type=map_type, mask=nulls)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        values = _fill(array.flatten(), target.value_type, hidden=None)
        kind = pa.list_(array.type.value_field.with_type(values.type))
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        return pa.ListArray.from_arrays(_offsets(lengths), values, type=kind, mask=nulls)
    return array


def _rebuild_struct(array: Any, target: Any, nulls: Any, unseen: Any) -> Any:
    positions = {target.field(index).name: index for index in range(target.num_fields)}
    parts, fields = [], []
    for index in range(array.type.num_fields):
        field = array.type.field(index)
        goal = target.field(positions.get(field.name, min(index, target.num_fields - 1)))
        needed = unseen if not goal.nullable else None
        part = _fill(array.field(index), goal.type, hidden=needed)
        parts.append(part)
        fields.append(field.with_type(part.type).with_nullable(True))
    return pa.StructArray.from_arrays(parts, fields=fields, mask=nulls)


def entry_lists(maps: Any) -> Any:
    """Convert maps to lists of key-value rows.

    >>> entry_lists(pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))).to_pylist()
    [[{'key': 'a', 'value': 1}], None]
    """
    # Arrow's own cast rejects maps with hidden nulls.
    offsets, positions = _entries(maps)
    entries = pa.StructArray.from_arrays(
        [maps.keys.take(positions), maps.items.take(positions)], fields=[maps.type.key_field, maps.type.item_field]
    )
    return pa.ListArray.from_arrays(offsets, entries, mask=maps.is_null() if maps.null_count else None)


def _offsets(lengths: Any) -> Any:
    return pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))


def _entries(maps: Any) -> tuple[Any, Any]:
    """Return offsets and positions of the entries of non-null maps."""
    bounds = maps.offsets.to_numpy()
    lengths = np.where(maps.is_valid().to_numpy(zero_copy_only=False), np.diff(bounds), 0)
    offsets = _offsets(lengths)
    positions = np.repeat(bounds[:-1] - offsets.to_numpy()[:-1], lengths) + np.arange(lengths.sum())
    return offsets, pa.array(positions)


def _zero(kind: Any) -> Any:
    """Return zero, or the empty text, as a scalar."""
    width = kind.byte_width if pa.types.is_fixed_size_binary(kind) else 0
    zeros = pa.py_buffer(bytes(max(_LONGEST_FIXED, width)))
    variable = pa.types.is_binary(kind) or pa.types.is_string(kind) or pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    return pa.Array.from_buffers(kind, 1, [None, zeros, pa.py_buffer(b"")] if variable else [None, zeros])[0]
