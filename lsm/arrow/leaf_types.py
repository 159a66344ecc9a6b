"""Arrow types with other types at their leaves."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa


def with_leaves(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Apply ``change`` to every type that is not nested.

    List views count as leaves: Arrow casts some of them to lists of other values.

    >>> with_leaves(pa.list_(pa.string_view()), without_views)
    ListType(list<item: large_string>)
    """
    types = pa.types

    def changed(field: pa.Field) -> pa.Field:
        return field.with_type(with_leaves(field.type, change))

    if types.is_struct(kind):
        return pa.struct([changed(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(changed(kind.key_field), changed(kind.item_field), kind.keys_sorted)
    if types.is_list(kind):
        return pa.list_(changed(kind.value_field))
    if types.is_large_list(kind):
        return pa.large_list(changed(kind.value_field))
    if types.is_fixed_size_list(kind):
        return pa.list_(changed(kind.value_field), kind.list_size)
    return change(kind)


def without_views(kind: pa.DataType) -> pa.DataType:
    """Return the large type of a text or binary view.

    Other types are returned unchanged.
    """
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind


def takeable(leaf: pa.DataType) -> pa.DataType:
    """Return an equivalent type that Arrow can ``take``.

    Arrow cannot take texts in views.
    """
    return with_leaves(leaf.value_type, takeable) if pa.types.is_dictionary(leaf) else without_views(leaf)


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is one of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is one of bytes."""
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or kind == pa.binary_view())
