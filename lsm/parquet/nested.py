"""Single pages of nested columns: every leaf is decoded from pages of its own, then the leaves are woven together.

The leaves of a column break their pages at different rows. So each is read as if it were the only one: a map of which only the
keys are there is a list of keys. Lists, maps and structs of any depth can be read so, if they are laid out in three levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.arrays import Int64s
from lsm.parquet.page_index import ColumnPages
from lsm.parquet.page_reader import take_leaves
from manifest.types.data_type import DataType

_Longs = Int64s


@dataclass(frozen=True)
class NestedPages:
    """The data pages of a nested column in one row group, leaf by leaf; it has no minima and maxima."""

    leaves: tuple[ColumnPages, ...]

    @property
    def starts(self) -> _Longs:
        """First row of every page of the first leaf, and the number of rows at the end."""
        return self.leaves[0].starts

    def bounds(self, _: DataType) -> None:
        """Nothing is known of nested values."""
        return

    def take(self, rows: _Longs, arrow: Any) -> Any:
        """The values at ``rows`` (ascending positions in the row group) as an Array of type ``arrow``. Raises as the decoder does."""
        return weave(arrow, take_leaves(self.leaves, rows))


def weave(arrow: Any, leaves: Sequence[Any]) -> Any:
    """An Array of the nested type ``arrow`` from its leaves, each inside lists and structs of nothing else.

    >>> keys, items = pa.array([["a", "b"], None, []]), pa.array([[1, None], None, []], pa.list_(pa.int32()))
    >>> weave(pa.map_(pa.string(), pa.int32()), [keys, items]).to_pylist()
    [[('a', 1), ('b', None)], None, []]
    """
    first = leaves[0]
    if not pa.types.is_nested(arrow):
        return first
    mask = first.is_null() if first.null_count else None
    if pa.types.is_struct(arrow):
        children, at = [], 0
        for field in arrow:
            count = leaf_count(field.type)
            children.append(weave(field.type, [leaf.field(0) for leaf in leaves[at : at + count]]))
            at += count
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=mask)
    lengths = pc.fill_null(pc.list_value_length(first), 0)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths.to_numpy())]), pa.int32())
    values = [leaf.flatten() for leaf in leaves]
    if pa.types.is_map(arrow):
        count = leaf_count(arrow.key_type)
        keys, items = weave(arrow.key_type, values[:count]), weave(arrow.item_type, values[count:])
        return pa.MapArray.from_arrays(offsets, keys, items, type=arrow, mask=mask)
    return pa.ListArray.from_arrays(offsets, weave(arrow.value_type, values), type=arrow, mask=mask)


def can_weave(arrow: Any) -> bool:
    """Whether all that is nested in the Arrow type are lists with 32-bit offsets, maps and structs."""
    if pa.types.is_struct(arrow):
        return arrow.num_fields > 0 and all(can_weave(arrow.field(at).type) for at in range(arrow.num_fields))
    if pa.types.is_map(arrow):
        return can_weave(arrow.key_type) and can_weave(arrow.item_type)
    if pa.types.is_list(arrow):
        return can_weave(arrow.value_type)
    return not pa.types.is_nested(arrow)


def leaf_count(arrow: Any) -> int:
    """Leaf columns that an Arrow type has in a Parquet file."""
    if pa.types.is_struct(arrow):
        return sum(leaf_count(arrow.field(position).type) for position in range(arrow.num_fields))
    if pa.types.is_map(arrow):
        return leaf_count(arrow.key_type) + leaf_count(arrow.item_type)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return leaf_count(arrow.value_type)
    return 1


__all__ = ["NestedPages", "can_weave", "leaf_count", "weave"]
