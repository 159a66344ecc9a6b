"""Versions grouped by key, and the history of a column.

All merge functions use these. A *place* is the number of a version: all versions of a key have consecutive positions, oldest first.
Functions that choose a version return one place per key, -1 for null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.keys.encoding import WordColumn, one_array
from lsm.keys.sort import Sorted
from paimon_base.lazy import cached_property
from sparkexpr.values.arrays import Int64s, Mask


@dataclass(frozen=True)
class Versions:
    """Versions of many keys.

    ``rows[place]`` is the version's row in the folded table. ``starts`` are the first positions of the keys.
    """

    rows: Int64s
    starts: Int64s

    @property
    def count(self) -> int:
        """Number of versions."""
        return len(self.rows)

    @cached_property
    def keys(self) -> Int64s:
        """Key number of every place."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)

    @cached_property
    def sizes(self) -> Int64s:
        """Number of versions per key."""
        return np.diff(np.append(self.starts, self.count))

    @cached_property
    def last(self) -> Int64s:
        """Position of the last version of every key."""
        ends: Int64s = self.starts + self.sizes - 1
        return ends

    @cached_property
    def positions(self) -> Int64s:
        """All positions."""
        return np.arange(self.count)

    def last_where(self, mask: Mask) -> Int64s:
        """Return the last place in ``mask`` per key, or -1.

        >>> Versions(np.arange(4), np.array([0, 2])).last_where(np.array([True, True, False, False])).tolist()
        [1, -1]
        """
        return np.maximum.reduceat(np.where(mask, self.positions, -1), self.starts)

    def first_where(self, mask: Mask) -> Int64s:
        """Return the first place in ``mask`` per key, or -1."""
        first_positions = np.minimum.reduceat(np.where(mask, self.positions, self.count), self.starts)
        return np.where(first_positions == self.count, -1, first_positions)

    def valid(self, column: Any) -> Mask:
        """Return where the column is not null."""
        array = one_array(column)
        if not array.null_count:
            return np.ones(self.count, np.bool_)
        is_valid: Mask = array.is_valid().to_numpy(zero_copy_only=False)[self.rows]
        return is_valid

    def rows_at(self, positions: Int64s) -> Int64s:
        """Return the rows at ``positions``; -1 stays -1."""
        return np.where(positions < 0, -1, self.rows[positions])


@dataclass(frozen=True)
class VersionHistory:
    """Effect of every version on one column.

    A version without a mark leaves the column unchanged.

    Args:
        versions: Versions of the keys.
        newer: Adds in order.
        older: Late adds: the current value is newer by the column's sequence group. None: no late adds.
        retract: Versions that retract their value. None: no retracts.
        seed: Versions whose value replaces the current one without being added. The same version may also retract it.
        past: Adds before a seed. Their values are gone, but they count for functions that use the first add.
    """

    versions: Versions
    newer: Mask
    older: Mask | None = None
    retract: Mask | None = None
    seed: Mask | None = None
    past: Mask | None = None

    @cached_property
    def sets(self) -> Mask:
        """Versions that provide a value: adds and seeds."""
        mask = self.newer
        for more in (self.older, self.seed):
            mask = mask if more is None else mask | more
        return mask

    @cached_property
    def in_order(self) -> Mask:
        """Versions with any mark except ``older``."""
        mask = self.newer
        for more in (self.retract, self.seed):
            mask = mask if more is None else mask | more
        return mask

    def without_retracts(self) -> VersionHistory:
        """Return the history without retracts."""
        return self if self.retract is None else replace(self, retract=None)


@dataclass(frozen=True)
class GroupFold:
    """Fold of a table.

    Rows of keys with one version pass unchanged. ``versions`` covers the other keys.
    """

    rows: Any
    sorted_rows: Sorted
    versions: Versions
    is_single: Mask

    @classmethod
    def of(cls, rows: Any, sorted_rows: Sorted) -> GroupFold:
        """Separate keys with one version from keys with several."""
        sizes = np.diff(np.append(sorted_rows.starts, len(sorted_rows.order)))
        is_single = sizes == 1
        if not is_single.any():
            return cls(rows, sorted_rows, Versions(sorted_rows.order, sorted_rows.starts), is_single)
        several = sizes[~is_single]
        starts = np.cumsum(several) - several
        return cls(rows, sorted_rows, Versions(sorted_rows.order[np.repeat(~is_single, sizes)], starts), is_single)

    def table(self, columns: Sequence[Any]) -> Any:
        """Build the folded table from its columns."""
        fields = [field.with_type(column.type) for field, column in zip(self.rows.schema, columns, strict=True)]
        return pa.Table.from_arrays(list(columns), schema=pa.schema(fields))

    @cached_property
    def _single_rows(self) -> Int64s:
        return self.sorted_rows.order[self.sorted_rows.starts[self.is_single]]

    def gather(self, name: str, rows: Int64s) -> Any:
        """Return the folded column with the values of ``rows``.

        ``rows`` has one row per key with several versions, -1 for null.
        """
        result_rows = np.empty(len(self.is_single), np.int64)
        result_rows[self.is_single] = self._single_rows
        result_rows[~self.is_single] = rows
        missing = result_rows < 0
        return one_array(self.rows.column(name)).take(pa.array(result_rows, mask=missing if missing.any() else None))

    def with_values(self, name: str, values: Any) -> Any:
        """Return the folded column with new ``values``.

        ``values`` has one value per key with several versions.
        """
        column = one_array(self.rows.column(name))
        values = values if values.type == column.type else values.cast(column.type)
        singles = self._single_rows
        if not len(singles):
            return values
        value_index = np.empty(len(self.is_single), np.int64)
        value_index[self.is_single] = np.arange(len(singles))
        value_index[~self.is_single] = np.arange(len(values)) + len(singles)
        return pa.concat_arrays([column.take(pa.array(singles)), values]).take(pa.array(value_index))


@dataclass
class Best:
    """Choice of the greatest or smallest value of every key.

    Compares in Paimon's key order.
    """

    versions: Versions
    greatest: bool = True
    _open: Int64s = field(default_factory=lambda: np.empty(0, np.int64))

    def of(self, column: Any, candidates: Mask) -> Int64s:
        """Return the position of each key's best version, or -1.

        >>> versions = Versions(np.arange(4), np.array([0, 3]))
        >>> Best(versions).of(pa.array(["b", "ba", "a", None]), np.array([True, True, True, False])).tolist()
        [1, -1]
        """
        best_positions = np.full(len(self.versions.starts), -1)
        positions = np.flatnonzero(candidates)
        for word in WordColumn.of(column).words:
            keys = self.versions.keys[positions]
            starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else keys
            sizes = np.diff(np.append(starts, len(positions)))
            alone = sizes == 1
            best_positions[keys[starts[alone]]] = positions[starts[alone]]
            if alone.all():
                return best_positions
            several = np.repeat(~alone, sizes)
            positions, sizes = positions[several], sizes[~alone]
            starts = np.cumsum(sizes) - sizes
            values = word(self.versions.rows[positions])
            best = (np.maximum if self.greatest else np.minimum).reduceat(values, starts)
            positions = positions[values == np.repeat(best, sizes)]
        best_positions[self.versions.keys[positions]] = positions
        return best_positions
