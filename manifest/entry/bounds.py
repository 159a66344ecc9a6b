"""Column bounds of many files, and predicate evaluation on them.

The result for each file is that of ``may_match``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fileindex.predicate.tree import And, ColumnRef, ComputedPredicate, IsNull, Leaf, Or, Predicate, StartsWith
from manifest.avro.columnar import optional_longs
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import ORC_UNBOUNDED
from manifest.entry.objects import counts_of
from manifest.row.binary_row import EMPTY_ROW
from manifest.row.columns import RowColumns
from manifest.stats.column_stats import ColumnBounds, leaf_may_match, prefix_may_match, slot_type
from manifest.types.data_type import DataType
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import AnyArray, Indices, Int64s, Mask
from sparkexpr.values.column_type import BINARIES, FLOATS, STRINGS, ColumnType, Kind, Plain
from sparkexpr.values.float_order import spark_order


@dataclass(frozen=True, slots=True)
class BoundsColumn:
    """Bounds of one column in several files.

    Args:
        low: Minima. Strings are UTF-8 bytes, which sort like their characters. Undefined where ``known`` is False.
        high: Maxima, as ``low``.
        known: Whether a file has bounds.
        nulls: Null counts, -1 if unknown.
        rows: Row counts.
    """

    low: AnyArray
    high: AnyArray
    known: Mask
    nulls: Int64s
    rows: Int64s

    @classmethod
    def all_null(cls, rows: Int64s) -> BoundsColumn:
        """Return an all-null column of files with ``rows``."""
        nothing = np.zeros(rows.size, np.int64)
        return cls(nothing, nothing, np.zeros(rows.size, np.bool_), rows, rows)

    @classmethod
    def of(cls, bounds: Sequence[ColumnBounds], data_type: DataType) -> BoundsColumn:
        """Return bounds of single files as a column."""
        is_bounded = np.array([b.min is not None and b.max is not None for b in bounds], np.bool_)
        low, high = (
            _values([_to_stored(value) for value in side], data_type) for side in ([b.min for b in bounds], [b.max for b in bounds])
        )
        nulls = np.array([-1 if b.null_count is None else b.null_count for b in bounds], np.int64)
        return cls(low, high, is_bounded, nulls, np.array([b.row_count for b in bounds], np.int64))

    def take(self, rows: Indices) -> BoundsColumn:
        """Return the bounds of some files."""
        return BoundsColumn(self.low[rows], self.high[rows], self.known[rows], self.nulls[rows], self.rows[rows])

    def each(self, data_type: DataType) -> list[ColumnBounds]:
        """Return the bounds of each file as plain values."""
        kind = data_type.column_type.kind
        as_plain: Callable[[Any], Plain] = bytes.decode if kind in STRINGS else bool if kind is Kind.BOOLEAN else lambda value: value
        rows = zip(self.low.tolist(), self.high.tolist(), self.known.tolist(), self.nulls.tolist(), self.rows.tolist(), strict=True)
        return [
            ColumnBounds(as_plain(low) if is_bounded else None, as_plain(high) if is_bounded else None, None if nulls < 0 else nulls, count)
            for low, high, is_bounded, nulls, count in rows
        ]


BoundsColumnLookup: TypeAlias = Callable[[ColumnRef], BoundsColumn | None]


def value_bounds(
    entries: EntryColumns, names: Sequence[str], types: Sequence[DataType], requested: Container[str] | None = None
) -> dict[str, BoundsColumn]:
    """Return value statistics of entries by column name.

    An entry whose null counts have another number of columns has no bounds. Raises ``ValueError`` for rows that cannot be decoded.

    Args:
        entries: Entries whose statistics rows have the same columns.
        names: Columns of the statistics rows.
        types: Their types.
        requested: Columns to return. None: all.
    """
    arity, size = len(names), len(entries)
    counts, fits = _null_counts(entries, arity)
    rows = np.flatnonzero(fits)
    sides = []
    for side in ("_MIN_VALUES", "_MAX_VALUES"):
        spans = entries.columns.spans[f"_FILE._VALUE_STATS.{side}"]
        sides.append(RowColumns.of(entries.payload, spans.start[rows], spans.end[rows], arity))
    bounds_by_name = {}
    for position, (name, data_type) in enumerate(zip(names, types, strict=True)):
        if requested is not None and name not in requested:
            continue
        slot = slot_type(data_type)
        (low, has_low), (high, has_high) = [side.field(position, slot) for side in sides]
        is_bounded = np.zeros(size, np.bool_)
        is_bounded[rows] = has_low & has_high
        if data_type.kind in ORC_UNBOUNDED:
            is_bounded &= ~entries.is_orc
        low, high = _spread(low, rows, size), _spread(high, rows, size)
        bounds_by_name[name] = BoundsColumn(low, high, is_bounded, counts[:, position], entries.row_count)
    return bounds_by_name


def _null_counts(entries: EntryColumns, arity: int) -> tuple[Int64s, Mask]:
    """Return null counts, one row per entry, and valid entries.

    -1 is unknown. An entry with counts of another number of columns is not valid.
    """
    spans = entries.columns.spans["_FILE._VALUE_STATS._NULL_COUNTS"]
    if len(entries) > thresholds.bounds_one_by_one:
        return optional_longs(entries.payload, spans, arity)
    null_counts, fits = np.full((len(entries), arity), -1, np.int64), np.zeros(len(entries), np.bool_)
    for row in np.flatnonzero(spans.present).tolist():
        try:
            counts = counts_of(entries.payload[spans.start[row] : spans.end[row]])
        except (EOFError, ValueError, LookupError):
            continue
        if len(counts) == arity:
            null_counts[row], fits[row] = [-1 if count is None else count for count in counts], True
    return null_counts, fits


def key_bounds(
    entries: EntryColumns, names: Sequence[str], types: Sequence[DataType], requested: Container[str]
) -> dict[str, BoundsColumn]:
    """Return bounds of the ``requested`` key columns.

    The first column has the exact keys of the files, the others their key statistics. Files without key statistics have no bounds.
    Raises ``ValueError`` for rows that cannot be decoded.
    """
    bounds_by_name = {}
    for position, (name, data_type) in enumerate(zip(names, types, strict=True)):
        if name not in requested:
            continue
        fields = ("_MIN_KEY", "_MAX_KEY") if position == 0 else ("_KEY_STATS._MIN_VALUES", "_KEY_STATS._MAX_VALUES")
        low_spans, high_spans = [entries.columns.spans[f"_FILE.{field}"] for field in fields]
        low_start, low_end, high_start, high_end = low_spans.start, low_spans.end, high_spans.start, high_spans.end
        empty = len(EMPTY_ROW)
        filled = (low_end - low_start > empty) & (high_end - high_start > empty)
        rows = np.flatnonzero(filled if position else np.ones(filled.size, np.bool_))
        lows = RowColumns.of(entries.payload, low_start[rows], low_end[rows], len(types))
        highs = RowColumns.of(entries.payload, high_start[rows], high_end[rows], len(types))
        (low, has_low), (high, has_high) = lows.field(position, data_type), highs.field(position, data_type)
        is_bounded = np.zeros(len(entries), np.bool_)
        is_bounded[rows] = has_low & has_high
        if data_type.kind in ORC_UNBOUNDED:
            is_bounded &= ~entries.is_orc
        low, high = _spread(low, rows, is_bounded.size), _spread(high, rows, is_bounded.size)
        bounds_by_name[name] = BoundsColumn(low, high, is_bounded, np.where(is_bounded, 0, -1), entries.row_count)
    return bounds_by_name


def may_match_each(predicate: Predicate, bounds: BoundsColumnLookup, types: Mapping[str, ColumnType], count: int) -> Mask:
    """Return ``may_match`` of each of ``count`` files.

    ``bounds`` returns None for a column without bounds.

    >>> from fileindex.predicate.tree import Compare, Op
    >>> column = BoundsColumn.of([ColumnBounds(1, 5, 0, 9), ColumnBounds(7, 9, 0, 9)], DataType(Kind.INT))
    >>> may_match_each(Compare(ColumnRef("a"), Op.GT, 5), lambda _: column, {"a": ColumnType(Kind.INT)}, 2)
    array([False,  True])
    """

    def of_leaf(leaf: Leaf) -> Mask:
        column = bounds(leaf.column)
        return np.ones(count, np.bool_) if column is None else _leaf(leaf, column, types.get(leaf.column.name))

    return combine_masks(predicate, count, of_leaf)


def combine_masks(predicate: Predicate, count: int, of_leaf: Callable[[Leaf], Mask]) -> Mask:
    """Return a predicate's mask, given the masks of its leaves.

    >>> combine_masks(Or(()), 2, lambda _: np.ones(2, np.bool_)).tolist()
    [False, False]
    """
    match predicate:
        case And(children):
            mask = np.ones(count, np.bool_)
            for child in children:
                mask &= combine_masks(child, count, of_leaf)
            return mask
        case Or(children):
            mask = np.zeros(count, np.bool_)
            for child in children:
                mask |= combine_masks(child, count, of_leaf)
            return mask
        case ComputedPredicate():
            return np.ones(count, np.bool_)
        case leaf:
            return of_leaf(leaf)


def _leaf(leaf: Leaf, bounds: BoundsColumn, column_type: ColumnType | None) -> Mask:
    all_null: Mask = (bounds.nulls >= 0) & (bounds.nulls >= bounds.rows)
    if isinstance(leaf, IsNull):
        may_match: Mask = ~all_null if leaf.negated else bounds.nulls != 0
        return may_match
    if not bounds.known.any():
        return ~all_null
    kind = None if column_type is None else column_type.kind
    if isinstance(leaf, StartsWith):
        if kind not in STRINGS:
            return ~all_null
        prefix, pairs = leaf.prefix.encode(), zip(bounds.low.tolist(), bounds.high.tolist(), strict=True)
        hits = np.array([prefix_may_match(prefix, low, high, negated=leaf.negated) for low, high in pairs], np.bool_)
    elif kind in FLOATS:
        hits = leaf_may_match(leaf, spark_order(bounds.low), spark_order(bounds.high), spark_order)
    else:
        hits = leaf_may_match(leaf, bounds.low, bounds.high, _comparable)
    return ~all_null & (np.asarray(hits, np.bool_) | ~bounds.known)


def _comparable(value: Plain) -> Any:
    stored = _to_stored(value)
    return _as_object(stored) if isinstance(stored, bytes) else stored


def _as_object(value: bytes) -> AnyArray:
    r"""Return ``value`` as a numpy object scalar.

    >>> _as_object(b"a\0") == np.array([b"a", b"a\0"], object)
    array([False,  True])
    """
    # np.array(value) would strip trailing NULs.
    scalar = np.empty((), object)
    scalar[()] = value
    return scalar


def _to_stored(value: Plain) -> Any:
    return value.encode() if isinstance(value, str) else value


def _values(values: Sequence[Any], data_type: DataType) -> AnyArray:
    kind = data_type.kind
    if kind in STRINGS or kind in BINARIES:
        objects = np.empty(len(values), object)
        objects[:] = [b"" if value is None else value for value in values]
        return objects
    numbers = [0 if value is None else value for value in values]
    wide = any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in numbers)
    return np.array(numbers, object if wide else np.float64 if kind in FLOATS else np.int64)


def _spread(values: AnyArray, rows: Int64s, size: int) -> AnyArray:
    """Return a longer column with ``values`` at the positions ``rows``."""
    if rows.size == size:
        return values
    column = np.zeros(size, values.dtype)
    if values.dtype == object:
        column[:] = b"" if values.size and isinstance(values[0], bytes) else 0
    column[rows] = values
    return column
