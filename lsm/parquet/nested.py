"""Page reads of nested columns.

Leaves of a column have different page boundaries, so each leaf is decoded from its own pages, as if it were the only one: a map with
only its keys is a list of keys. Then the leaves are combined. Works for lists, maps and structs of any depth in the three-level layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.parquet.coded_rows import take_rows
from lsm.parquet.page_index import ColumnPages
from manifest.types.data_type import DataType
from sparkexpr.values.arrays import Int64s, numpy_array

_Longs = Int64s


@dataclass(frozen=True)
class NestedPages:
    """Data pages of a nested column in one row group.

    There are no minima and maxima.
    """

    leaves: tuple[ColumnPages, ...]

    @property
    def starts(self) -> _Longs:
        """First rows of the first leaf's pages, then row count."""
        return self.leaves[0].starts

    def bounds(self, _: DataType) -> None:
        """Return None: nested values have no bounds."""
        return

    def take(self, rows: _Longs, arrow: Any) -> Any:
        """Return the values at ``rows`` as an ``arrow`` Array.

        ``rows`` are ascending positions in the row group. Raises the decoder's errors.
        """
        return weave(arrow, take_rows(self.leaves, rows))


def weave(arrow: Any, leaves: Sequence[Any]) -> Any:
    """Combine leaves into an Array of the nested type ``arrow``.

    Each leaf is inside lists and structs without other members.

    >>> keys, items = pa.array([["a", "b"], None, []]), pa.array([[1, None], None, []], pa.list_(pa.int32()))
    >>> weave(pa.map_(pa.string(), pa.int32()), [keys, items]).to_pylist()
    [[('a', 1), ('b', None)], None, []]
    """
    first = leaves[0]
    if not pa.types.is_nested(arrow):
        return first
    mask = first.is_null() if first.null_count else None
    if pa.types.is_struct(arrow):
        children, first_leaf = [], 0
        for field in arrow:
            count = leaf_count(field.type)
            children.append(weave(field.type, [leaf.field(0) for leaf in leaves[first_leaf : first_leaf + count]]))
            first_leaf += count
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=mask)
    lengths = pc.fill_null(pc.list_value_length(first), 0)
    offsets = pa.array(np.concatenate([[0], np.cumsum(numpy_array(lengths))]), pa.int32())
    values = [leaf.flatten() for leaf in leaves]
    if pa.types.is_map(arrow):
        count = leaf_count(arrow.key_type)
        keys, items = weave(arrow.key_type, values[:count]), weave(arrow.item_type, values[count:])
        return pa.MapArray.from_arrays(offsets, keys, items, type=arrow, mask=mask)
    return pa.ListArray.from_arrays(offsets, weave(arrow.value_type, values), type=arrow, mask=mask)


def can_weave(arrow: Any) -> bool:
    """Return whether ``weave`` supports an Arrow type.

    Nested types must be structs, maps, or lists with 32-bit offsets.
    """
    if pa.types.is_struct(arrow):
        return arrow.num_fields > 0 and all(can_weave(arrow.field(index).type) for index in range(arrow.num_fields))
    if pa.types.is_map(arrow):
        return can_weave(arrow.key_type) and can_weave(arrow.item_type)
    if pa.types.is_list(arrow):
        return can_weave(arrow.value_type)
    return not pa.types.is_nested(arrow)


def leaf_count(arrow: Any) -> int:
    """Return the number of leaf columns of an Arrow type."""
    if pa.types.is_struct(arrow):
        return sum(leaf_count(arrow.field(position).type) for position in range(arrow.num_fields))
    if pa.types.is_map(arrow):
        return leaf_count(arrow.key_type) + leaf_count(arrow.item_type)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return leaf_count(arrow.value_type)
    return 1
