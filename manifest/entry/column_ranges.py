"""Column minima and maxima of whole manifests, for manifest pruning.

They are in the field ``_COLUMN_RANGES`` of a manifest list. Other engines ignore this field and drop it when they rewrite the list.
Without it nothing is skipped. A range covers the files that a manifest adds *and* those it deletes. A skipped manifest skips its DELETEs
too, but the files that reappear that way have no wanted row either. A column has no range if an entry has no statistics of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manifest.entry.bounds import BoundsColumn, key_bounds, value_bounds
from manifest.entry.columns import EntryColumns
from manifest.entry.objects import names_of
from manifest.options.parquet_options import Keep, StatsMode
from manifest.row.binary_row import EMPTY_ROW, decode_row, encode_row
from manifest.stats.column_stats import ColumnBounds, SimpleStats, decode_bounds
from manifest.types.data_type import DataField, DataType
from paimon_base.errors import PaimonError
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Indices
from sparkexpr.values.column_type import FLOATS, INTEGERS, STRINGS, Kind, Plain
from sparkexpr.values.float_order import spark_order_key

_MODE = StatsMode(Keep.TRUNCATE, 32)
_INTEGER_ORDER = ("TINYINT", "SMALLINT", "INT", "BIGINT")

FieldsOf = Callable[[int], Sequence[DataField]]


@dataclass(frozen=True, slots=True)
class ColumnRanges:
    """Bounds of the columns ``field_ids`` over ``row_count`` rows.

    Values have the types of the manifest's schema.
    """

    field_ids: tuple[int, ...]
    row_count: int
    stats: SimpleStats
    _decoded: list[tuple[object, dict[int, ColumnBounds]]] = field(default_factory=list, init=False, repr=False, compare=False)
    """Last arguments and result of ``bounds``."""

    def bounds(self, fields: Iterable[DataField]) -> dict[int, ColumnBounds]:
        """Return bounds by field id, {} if they are invalid.

        ``fields`` are the fields of the manifest's schema.
        """
        for cached_fields, bounds in self._decoded:
            if cached_fields is fields:
                return bounds
        bounds = self._bounds(fields)
        self._decoded[:] = [(fields, bounds)]
        return bounds

    def _bounds(self, fields: Iterable[DataField]) -> dict[int, ColumnBounds]:
        by_id = {field.id: field.type for field in fields}
        if not by_id.keys() >= set(self.field_ids) or len(self.stats.null_counts) != len(self.field_ids):
            return {}
        types = [by_id[field_id] for field_id in self.field_ids]
        try:
            low, high = decode_row(self.stats.min_values, types), decode_row(self.stats.max_values, types)
        except (ValueError, PaimonError):
            return {}
        return {
            field_id: ColumnBounds(least, greatest, nulls, self.row_count)
            for field_id, least, greatest, nulls in zip(self.field_ids, low, high, self.stats.null_counts, strict=True)
        }

    def to_avro(self) -> dict[str, Any]:
        """Return the record of a manifest list."""
        return {
            "_FIELD_IDS": list(self.field_ids),
            "_ROW_COUNT": self.row_count,
            "_MIN_VALUES": self.stats.min_values,
            "_MAX_VALUES": self.stats.max_values,
            "_NULL_COUNTS": list(self.stats.null_counts),
        }

    @classmethod
    def from_avro(cls, record: Any) -> ColumnRanges | None:
        """Return the ranges of a record, None if invalid."""
        # Ranges are optional: an unknown shape is no error.
        match record:
            case {
                "_FIELD_IDS": list(field_ids),
                "_ROW_COUNT": int(rows),
                "_MIN_VALUES": bytes(low),
                "_MAX_VALUES": bytes(high),
                "_NULL_COUNTS": list(nulls),
            }:
                return cls(tuple(field_ids), rows, SimpleStats(low, high, tuple(nulls)))
            case _:
                return None


@dataclass(frozen=True, slots=True)
class RangePolicy:
    """Selection of the columns that get ranges.

    Args:
        fields_of: Returns the columns of a schema version.
        key: Ids and types of the trimmed primary key, in order. () for a table without one.
        partition: Names of the partition columns, which have their own statistics.
        values: Whether filters on non-key columns may skip files.
    """

    fields_of: FieldsOf
    key: tuple[tuple[int, DataType], ...]
    partition: tuple[str, ...]
    values: bool

    def ranges(self, entries: EntryColumns) -> ColumnRanges | None:
        """Return the ranges over all ``entries``, None if unknown."""
        if not len(entries):
            return None
        try:
            target = self.fields_of(int(entries.schema_id.max()))
            bounds_by_id = {**(self._values(entries, target) if self.values else {}), **self._keys(entries)}
        except (PaimonError, ValueError):  # no ranges for unreadable entries: reading the file itself reports the error
            return None
        return _fit_ranges(bounds_by_id, [field for field in target if field.name not in self.partition], int(entries.row_count.sum()))

    def _keys(self, entries: EntryColumns) -> dict[int, ColumnBounds]:
        names, types = [str(field_id) for field_id, _ in self.key], [data_type for _, data_type in self.key]
        bounds_by_name = key_bounds(entries, names, types, names)
        return {field_id: _merge([_summary(bounds_by_name[str(field_id)], data_type)], data_type) for field_id, data_type in self.key}

    def _values(self, entries: EntryColumns, target: Sequence[DataField]) -> dict[int, ColumnBounds]:
        """Return ranges by value statistics, over files of several schemas."""
        parts: dict[int, list[ColumnBounds]] = {field.id: [] for field in target if field.name not in self.partition}
        types = {field.id: field.type for field in target}
        for schema_id, covered, rows in stats_groups(entries):
            group = entries.select(rows)
            fields = self.fields_of(schema_id)
            by_name = {field.name: field for field in fields}
            names = tuple(by_name) if covered is None else covered
            if not all(name in by_name for name in names):
                return {}
            stored = _bounds_of(group, names, [by_name[name].type for name in names], {field.name for field in fields if field.id in parts})
            by_id = {field.id: field for field in fields}
            count = int(group.row_count.sum())
            for field_id in list(parts):
                field = by_id.get(field_id)
                if field is None:  # added later: all null in these files
                    parts[field_id].append(ColumnBounds(None, None, count, count))
                elif field.name in stored and same_values(field.type, types[field_id]):
                    parts[field_id] += stored[field.name]
                else:
                    del parts[field_id]
        return {field_id: _merge(bounds, types[field_id]) for field_id, bounds in parts.items() if bounds}


def _bounds_of(
    entries: EntryColumns, names: Sequence[str], types: Sequence[DataType], requested: Container[str]
) -> dict[str, list[ColumnBounds]]:
    """Return bounds of each column.

    Of each file for few files, else one for all.
    """
    if len(entries) > thresholds.ranges_one_by_one:
        columns = value_bounds(entries, names, types, requested)
        by_name = dict(zip(names, types, strict=True))
        return {name: [_summary(column, by_name[name])] for name, column in columns.items()}
    bounds_by_name: dict[str, list[ColumnBounds]] = {name: [] for name in names if name in requested}
    for file in entries.files():
        file_bounds = decode_bounds(file.value_stats, names, types, file.row_count, requested, unbounded=file.unbounded)
        for name, bounds in bounds_by_name.items():
            bounds.append(file_bounds.get(name) or ColumnBounds(None, None, None, file.row_count))
    return bounds_by_name


def stats_groups(entries: EntryColumns) -> list[tuple[int, tuple[str, ...] | None, Indices]]:
    """Group entries whose value statistics have the same columns.

    Returns (schema id, ``value_stats_cols``, rows).
    """
    schema_ids = entries.schema_id
    covered = entries.columns.spans["_FILE._VALUE_STATS_COLS"]
    if not covered.present.any() and (schema_ids == schema_ids[:1]).all():
        return [(int(schema_ids[0]), None, np.arange(len(entries)))] if len(entries) else []
    groups: dict[tuple[int, bytes | None], list[int]] = {}
    columns = zip(schema_ids.tolist(), covered.slices(entries.payload), covered.present.tolist(), strict=True)
    for row, (schema_id, names, present) in enumerate(columns):
        groups.setdefault((schema_id, names if present else None), []).append(row)
    return [(schema_id, None if names is None else names_of(names), np.array(rows)) for (schema_id, names), rows in groups.items()]


def _summary(column: BoundsColumn, data_type: DataType) -> ColumnBounds:
    """Return one range over all files.

    Unknown if the range of one file is unknown.
    """
    rows = int(column.rows.sum())
    nulls = int(column.nulls.sum()) if ((column.nulls >= 0) & (column.nulls <= column.rows)).all() else None
    empty = (column.nulls >= 0) & (column.nulls >= column.rows)
    filled = column.known & ~empty
    if not (filled | empty).all() or not filled.any():
        return ColumnBounds(None, None, nulls, rows)
    return ColumnBounds(_plain(column.low[filled].min(), data_type), _plain(column.high[filled].max(), data_type), nulls, rows)


def _merge(parts: Sequence[ColumnBounds], data_type: DataType) -> ColumnBounds:
    """Return one range over all ``parts``, with truncated strings.

    Unknown if one part is unknown.
    """
    rows = sum([part.row_count for part in parts])
    counts = [part.null_count for part in parts if part.null_count is not None and part.null_count <= part.row_count]
    nulls = sum(counts) if len(counts) == len(parts) else None
    filled = [part for part in parts if not part.all_null]
    if not filled or any(part.min is None or part.max is None for part in filled):
        return ColumnBounds(None, None, nulls, rows)
    low: list[Any] = [part.min for part in filled]
    high: list[Any] = [part.max for part in filled]
    if data_type.kind in FLOATS and any(map(math.isnan, low)):
        return ColumnBounds(None, None, nulls, rows)
    least, greatest = _MODE.bound(min(low), max(high, key=spark_order_key))
    if data_type.kind in FLOATS:  # orders differ in -0.0 and 0.0: include both
        least, greatest = -0.0 if least == 0 else least, 0.0 if greatest == 0 else greatest
    return ColumnBounds(least, greatest, nulls, rows)


def _plain(value: Any, data_type: DataType) -> Plain:
    if data_type.kind in STRINGS:
        return str(value.decode())
    plain: Plain = value.item() if isinstance(value, np.generic) else value
    return bool(plain) if data_type.kind is Kind.BOOLEAN else plain


def _fit_ranges(bounds_by_id: Mapping[int, ColumnBounds], fields: Iterable[DataField], row_count: int) -> ColumnRanges | None:
    """Return ranges of known columns that fit into ``range_bytes``."""
    fitting: list[tuple[DataField, ColumnBounds]] = []
    size = 0
    for column in fields:
        bounds = bounds_by_id.get(column.id)
        if bounds is None or column.type.is_nested or (bounds.min is None and bounds.null_count is None):
            continue
        column_types = [column.type]
        size += len(encode_row([bounds.min], column_types)) + len(encode_row([bounds.max], column_types)) - 2 * len(EMPTY_ROW)
        if size > thresholds.range_bytes:
            break
        fitting.append((column, bounds))
    if not fitting:
        return None
    types = [column.type for column, _ in fitting]
    low, high = encode_row([bounds.min for _, bounds in fitting], types), encode_row([bounds.max for _, bounds in fitting], types)
    nulls = tuple([bounds.null_count for _, bounds in fitting])
    return ColumnRanges(tuple([column.id for column, _ in fitting]), row_count, SimpleStats(low, high, nulls))


def same_values(old: DataType, new: DataType) -> bool:
    """Return whether both types have the same plain values."""
    # Only integers may have become wider.
    if old.kind in INTEGERS and new.kind in INTEGERS:
        return _INTEGER_ORDER.index(old.kind) <= _INTEGER_ORDER.index(new.kind)
    return old.with_nullable(nullable=True) == new.with_nullable(nullable=True)
