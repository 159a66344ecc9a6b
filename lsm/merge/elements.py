"""Flattened elements of arrays and maps over many versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.keys.encoding import one_array
from lsm.merge.version_groups import VersionHistory, Versions
from paimon_base.hidden_nulls import entry_lists
from paimon_base.lazy import cached_property
from sparkexpr.values.arrays import Int64s, Mask


@dataclass(frozen=True)
class Elements:
    """Elements of the values of a nested column.

    Args:
        values: Flat elements. For a MAP, structs of key and value.
        positions: Version of each element, ascending.
        history: History of the column.
    """

    values: Any
    positions: Int64s
    history: VersionHistory
    kind: Any

    @classmethod
    def of(cls, history: VersionHistory, column: Any, version_mask: Mask) -> Elements:
        """Return the elements of the versions in ``version_mask``.

        Their values must not be null.
        """
        positions = np.flatnonzero(version_mask)
        collections = one_array(column).take(pa.array(history.versions.rows[positions]))
        kind = collections.type
        if pa.types.is_map(kind):
            collections = entry_lists(collections)
        lengths = pc.list_value_length(collections).to_numpy(zero_copy_only=False)
        return cls(collections.flatten(), np.repeat(positions, lengths), history, kind)

    @cached_property
    def keys(self) -> Int64s:
        """Key number of each element."""
        return self.history.versions.keys[self.positions]

    def part(self, name: str) -> Any:
        """Return a field of struct elements."""
        return self.values.field(self.values.type.get_field_index(name))

    def where(self, mask: Mask) -> Elements:
        """Return the elements in ``mask``."""
        return Elements(self.values.filter(pa.array(mask)), self.positions[mask], self.history, self.kind)

    def group(self, codes: Int64s, order: Int64s | None = None) -> tuple[Int64s, Versions]:
        """Group elements by key and code, sorted by ``order``.

        Without ``order`` elements keep their order.

        Returns:
            The element at each place of the versions, and the versions, whose rows are elements.
        """
        ties = np.arange(len(codes)) if order is None else order
        by = np.lexsort((ties, codes, self.keys))
        changes = np.ones(len(by), np.bool_)
        changes[1:] = (np.diff(codes[by]) != 0) | (np.diff(self.keys[by]) != 0)
        return by, Versions(by, np.flatnonzero(changes))

    def first_of_each(self, codes: Int64s) -> Mask:
        """Return a mask of first elements per key and code."""
        by, versions = self.group(codes)
        mask = np.zeros(len(by), np.bool_)
        mask[by[versions.starts]] = True
        return mask

    def pack(self, element_indices: Int64s, is_null: Mask) -> Any:
        """Build one array or map per key from ``element_indices`` elements.

        ``element_indices`` must be grouped by key.
        """
        counts = (
            np.bincount(self.keys[element_indices], minlength=len(is_null)) if len(element_indices) else np.zeros(len(is_null), np.int64)
        )
        return nested_array(self.kind, self.values.take(pa.array(element_indices, pa.int64())), counts, is_null)


def nested_array(kind: Any, values: Any, counts: Int64s, is_null: Mask) -> Any:
    """Cut ``values`` into arrays or maps of ``counts`` elements.

    For maps, ``values`` are structs of key and value.
    """
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    mask = pa.array(is_null)
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(offsets, values.field(0), values.field(1), type=kind, mask=mask)
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=mask)


def codes_of(array: Any) -> Int64s:
    """Return a number for each value, equal for equal values.

    Null equals null, and NaN equals NaN.

    >>> first, null, other, again = codes_of(pa.array([{"a": 1}, None, {"a": 2}, {"a": 1}])).tolist()
    >>> first == again and len({first, null, other}) == 3
    True
    """
    kind = array.type
    if pa.types.is_struct(kind):
        columns = [array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)]
        columns += [np.where(columns[0] == 1, codes_of(part), -1) for part in array.flatten()]
        return combine_codes(columns)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        if pa.types.is_map(kind):
            array = entry_lists(array)
        lengths = pc.fill_null(pc.list_value_length(array), -1).to_numpy(zero_copy_only=False)
        inner = codes_of(array.flatten())
        ends = np.cumsum(np.maximum(lengths, 0))
        texts = [
            None if length < 0 else inner[end - length : end].tobytes() for length, end in zip(lengths.tolist(), ends.tolist(), strict=True)
        ]
        array = pa.array(texts, pa.binary())
    if pa.types.is_floating(array.type):
        bits = np.where(np.isnan(filled := array.fill_null(0).to_numpy()), np.nan, filled).view(f"<i{array.type.bit_width // 8}")
        array = pa.array(bits, mask=array.is_null().to_numpy(zero_copy_only=False))
    codes: Int64s = array.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def combine_codes(columns: list[Int64s]) -> Int64s:
    """Combine the codes of several columns into one code."""
    joined = columns[0]
    for column in columns[1:]:
        _, left_codes = np.unique(joined, return_inverse=True)
        right_values, right_codes = np.unique(column, return_inverse=True)
        joined = left_codes * len(right_values) + right_codes
    return joined
