"""Column statistics: stored form, bounds, and predicate evaluation.

The stored form is Paimon's ``SimpleStats``. Bounds may be wider than the data, never narrower. Unknown bounds keep the file.

Predicate leaves are evaluated on bounds, which are plain values or numpy arrays of them. ``to_key`` converts a literal, or an array of floats, to the comparable form. The result is
a bool or a mask. The values of an IN are sorted once and searched.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from fileindex.predicate.tree import (
    And,
    ColumnRef,
    Compare,
    ComputedPredicate,
    In,
    IsNull,
    Op,
    Or,
    Predicate,
    StartsWith,
    ValueSet,
    derive,
)
from manifest.row.binary_row import EMPTY_ROW, decode_fields, decode_row, encode_row
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from sparkexpr.values.arrays import AnyArray
from sparkexpr.values.column_type import FLOATS, ColumnType, Kind, Plain
from sparkexpr.values.float_order import spark_order_key, total_order_key


@dataclass(frozen=True, slots=True)
class SimpleStats:
    """Serialised minima and maxima, and null counts.

    All for the same columns in the same order.
    """

    min_values: bytes = EMPTY_ROW
    max_values: bytes = EMPTY_ROW
    null_counts: tuple[int | None, ...] = ()

    EMPTY: ClassVar[SimpleStats]
    """Statistics of no columns."""


SimpleStats.EMPTY = SimpleStats()


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Bounds of a column's values in ``row_count`` rows.

    None is unknown.
    """

    min: Plain
    max: Plain
    null_count: int | None
    row_count: int

    @property
    def all_null(self) -> bool:
        """Whether all values are certainly null."""
        return self.null_count is not None and self.null_count >= self.row_count


def decode_bounds(
    stats: SimpleStats,
    names: Sequence[str],
    types: Sequence[DataType],
    row_count: int,
    requested: Container[str] | None = None,
    *,
    unbounded: Collection[Kind] = frozenset(),
) -> dict[str, ColumnBounds]:
    """Return bounds by column name.

    Returns {} if the stored rows have other columns than ``names``.

    Args:
        stats: Stored statistics.
        names: Columns of the statistics.
        types: Their types.
        row_count: Rows of the file.
        requested: Columns to return. None: all.
        unbounded: Kinds whose bounds are unreliable. Only their null counts are returned.

    >>> from sparkexpr.values.column_type import Kind
    >>> from manifest.row.binary_row import encode_row
    >>> types = (DataType(Kind.INT),)
    >>> decode_bounds(SimpleStats(encode_row((1,), types), encode_row((9,), types), (0,)), ["id"], types, 5)
    {'id': ColumnBounds(min=1, max=9, null_count=0, row_count=5)}
    """
    arity = len(names)
    if len(stats.null_counts) != arity:
        return {}
    positions = [i for i, name in enumerate(names) if requested is None or name in requested]
    fields = [(i, _NULL_SLOT if types[i].is_nested else types[i]) for i in positions]
    minima, maxima = decode_fields(stats.min_values, arity, fields), decode_fields(stats.max_values, arity, fields)
    bounds_by_name = {
        names[i]: ColumnBounds(low, high, stats.null_counts[i], row_count) for i, low, high in zip(positions, minima, maxima, strict=True)
    }
    for i in positions if unbounded else ():
        if types[i].kind in unbounded:
            bounds_by_name[names[i]] = ColumnBounds(None, None, stats.null_counts[i], row_count)
    return bounds_by_name


def slot_type(data_type: DataType) -> DataType:
    """Return a column's type in a row of minima.

    Nested columns are always null there and have any fixed type.
    """
    return _NULL_SLOT if data_type.is_nested else data_type


_NULL_SLOT = DataType(Kind.BIGINT)
BoundsLookup = Callable[[ColumnRef], ColumnBounds | None]


def may_match(predicate: Predicate, bounds: BoundsLookup, types: Mapping[str, ColumnType]) -> bool:
    """Return False only if no row can satisfy ``predicate``.

    Floats compare as in Spark SQL. ``bounds`` returns None for a column (or map entry) without bounds.

    >>> from sparkexpr.values.column_type import Kind
    >>> from fileindex.predicate.tree import Op
    >>> id_ = ColumnRef("id")
    >>> known = ColumnBounds(10, 20, 0, 100)
    >>> [may_match(Compare(id_, Op.GT, v), lambda _: known, {"id": ColumnType(Kind.INT)}) for v in (19, 20)]
    [True, False]
    """
    match predicate:
        case And(children):
            return all(may_match(child, bounds, types) for child in children)
        case Or(children):
            return any(may_match(child, bounds, types) for child in children)
        case ComputedPredicate():
            return True
        case leaf:
            column_bounds = bounds(leaf.column)
            if column_bounds is None:
                return True
            column_type = types.get(leaf.column.name)
            return _leaf_may_match(leaf, column_bounds, column_type is not None and column_type.kind in FLOATS)


def _leaf_may_match(leaf: Compare | In | IsNull | StartsWith, bounds: ColumnBounds, is_float: bool) -> bool:
    if isinstance(leaf, IsNull):
        if leaf.negated:
            return not bounds.all_null
        return bounds.null_count is None or bounds.null_count > 0
    if bounds.all_null:
        return False
    low, high = bounds.min, bounds.max
    if low is None or high is None:
        return True
    if isinstance(leaf, StartsWith):
        both_texts = isinstance(low, str) and isinstance(high, str)
        return not both_texts or prefix_may_match(leaf.prefix, low, high, negated=leaf.negated)
    if is_float:
        return bool(leaf_may_match(leaf, spark_order_key(low), spark_order_key(high), spark_order_key))
    return bool(leaf_may_match(leaf, low, high, identity))


def leaf_may_match(leaf: Compare | In, low: Any, high: Any, to_key: Callable[[Any], Any]) -> Any:
    """Return False only where no value between bounds matches.

    >>> from fileindex.predicate.tree import ColumnRef
    >>> leaf_may_match(In(ColumnRef("a"), (3, 7)), 4, 8, int), leaf_may_match(Compare(ColumnRef("a"), Op.NE, 4), 4, 4, int)
    (True, False)
    """
    if isinstance(leaf, Compare):
        return _may_compare(leaf.op, low, high, to_key(leaf.value))
    begin, end = _inside(leaf.values, low, high, to_key)
    return (low != high) | (begin >= end) if leaf.negated else begin < end


def values_between(values: tuple[Plain, ...], low: Plain, high: Plain) -> ValueSet:
    """Return the ``values`` from ``low`` to ``high``, sorted.

    Not for floats.

    >>> values_between((9, 3, 7), 3, 8)
    (3, 7)
    """
    begin, end = _inside(values, low, high, identity)
    return ValueSet(_sort(values, identity)[begin:end])


def identity(value: Any) -> Any:
    """Return ``value``: the ``to_key`` of all types except floats."""
    return value


def _inside(values: tuple[Plain, ...], low: Any, high: Any, to_key: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return the range of sorted values between ``low`` and ``high``."""
    if isinstance(low, np.ndarray):
        line = derive(values, ("line", to_key), partial(_line, to_key))
        return np.searchsorted(line, low, "left"), np.searchsorted(line, high, "right")
    ordered = _sort(values, to_key)
    return bisect_left(ordered, low), bisect_right(ordered, high)


def _sort(values: tuple[Plain, ...], to_key: Callable[[Any], Any]) -> list[Any]:
    return derive(values, ("ordered", to_key), lambda literals: sorted(map(to_key, literals)))


def _line(to_key: Callable[[Any], Any], values: tuple[Plain, ...]) -> AnyArray:
    """Return the converted values as a sorted array."""
    if all(isinstance(value, float) for value in values):
        return np.sort(to_key(np.array(values, np.float64)))
    keys = [key.item() if isinstance(key, np.ndarray) else key for key in map(to_key, values)]
    if all(isinstance(key, int) and -(2**63) <= key < 2**63 for key in keys):
        return np.sort(np.array(keys, np.int64))
    objects = np.empty(len(keys), object)  # bytes, whose trailing NULs other arrays drop, and wide decimals
    objects[:] = keys
    return np.sort(objects)


def _may_compare(op: Op, low: Any, high: Any, value: Any) -> Any:
    match op:
        case Op.EQ:
            return (low <= value) & (value <= high)
        case Op.NE:
            return (low != value) | (high != value)
        case Op.LT:
            return low < value
        case Op.LE:
            return low <= value
        case Op.GT:
            return high > value
        case Op.GE:
            return high >= value


def prefix_may_match(prefix: Any, low: Any, high: Any, *, negated: bool) -> bool:
    """Return whether a string between bounds can start with ``prefix``.

    Strings may be UTF-8 bytes. ``negated``: whether one can start otherwise.
    """
    if negated:
        return not (low.startswith(prefix) and high.startswith(prefix))
    size = len(prefix)
    return bool(low[:size] <= prefix <= high[:size])


@dataclass(frozen=True, slots=True)
class PartitionType:
    """Names and types of a table's partition or key columns."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]

    def decode(self, partition: bytes, path: str = "partition") -> tuple[Plain, ...]:
        """Return the plain values of a serialised partition.

        ``path`` is the file for the error. Raises ``CorruptFile``.
        """
        try:
            values = decode_row(partition, self.types)
        except (ValueError, struct.error) as error:
            raise CorruptFile(path, f"a partition cannot be decoded ({error})") from error
        return values

    def encode(self, values: Sequence[Plain]) -> bytes:
        """Return the serialised partition of plain values."""
        return encode_row(values, self.types)

    def order(self, row: bytes) -> tuple[tuple[object, ...], ...]:
        """Return a row's sort key in Paimon's key order."""
        return tuple(map(total_order_key, self.decode(row, "key")))

    def stats(self, partitions: Iterable[bytes]) -> SimpleStats:
        """Return minima, maxima and null counts, never truncated.

        ``partitions`` has one partition per manifest entry.
        """
        if not self.names:
            return SimpleStats.EMPTY
        counted = [(self.decode(partition), count) for partition, count in Counter(partitions).items()]
        low: list[Plain] = []
        high: list[Plain] = []
        nulls: list[int | None] = []
        for column in range(len(self.names)):
            values = sorted((v[column] for v, _ in counted if v[column] is not None), key=total_order_key)
            low.append(values[0] if values else None)
            high.append(values[-1] if values else None)
            nulls.append(sum(count for v, count in counted if v[column] is None))
        return SimpleStats(self.encode(low), self.encode(high), tuple(nulls))

    def may_hold(self, predicate: Predicate, stats: SimpleStats, entries: int, path: str) -> bool:
        """Return whether a manifest may have a partition that matches."""
        partition_bounds = self.bounds(stats, entries, path)
        return not partition_bounds or self._may_match(predicate, partition_bounds)

    def bounds(self, stats: SimpleStats, entries: int, path: str) -> dict[str, ColumnBounds]:
        """Return bounds of partition columns by name, {} if unknown.

        ``entries`` is the number of the manifest's entries. Raises ``CorruptFile``.
        """
        if not self.names or len(stats.null_counts) != len(self.names):
            return {}
        low, high = self.decode(stats.min_values, path), self.decode(stats.max_values, path)
        columns = zip(self.names, low, high, stats.null_counts, strict=True)
        return {name: ColumnBounds(least, greatest, nulls, entries) for name, least, greatest, nulls in columns}

    def keeps(self, predicate: Predicate, partition: bytes, path: str = "partition") -> bool:
        """Return whether ``predicate`` may be true in ``partition``.

        Terms over other columns count as true.
        """
        values = self.decode(partition, path)
        return self._may_match(predicate, {name: ColumnBounds(v, v, int(v is None), 1) for name, v in zip(self.names, values, strict=True)})

    def spanning(self, partitions: Iterable[bytes]) -> Callable[[SimpleStats, str], bool]:
        """Return a test whether manifests may have one of ``partitions``.

        Its arguments are the manifest's partition statistics and path.
        """
        partition_keys = [self.order(p) for p in partitions]

        def overlaps(stats: SimpleStats, path: str) -> bool:
            if not self.names or len(stats.null_counts) != len(self.names):
                return bool(partition_keys)
            low = [total_order_key(v) for v in self.decode(stats.min_values, path)]
            high = [total_order_key(v) for v in self.decode(stats.max_values, path)]

            def holds(value: tuple[object, ...], column: int) -> bool:
                return stats.null_counts[column] != 0 if value == total_order_key(None) else low[column] <= value <= high[column]

            return any(all(holds(value, column) for column, value in enumerate(values)) for values in partition_keys)

        return overlaps

    def _may_match(self, predicate: Predicate, by_name: Mapping[str, ColumnBounds]) -> bool:
        types: Mapping[str, ColumnType] = {name: t.column_type for name, t in zip(self.names, self.types, strict=True)}

        def bounds_of(column: ColumnRef) -> ColumnBounds | None:
            return by_name.get(column.name) if column.key is None else None

        return may_match(predicate, bounds_of, types)
