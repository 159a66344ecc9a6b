"""Statistics of a data file that was just written.

Parquet statistics come from the footer. Those for other formats come from the rows. For Parquet, only what the footer lacks is read from the
rows: NaN, timestamps finer than microseconds (stored as INT96), and null counts of columns with very large values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from manifest.options.parquet_options import SYSTEM_MODE, Keep, StatsMode
from manifest.row.binary_row import encode_row
from manifest.stats.column_stats import SimpleStats, slot_type
from manifest.types.data_type import DataField, DataType
from sparkexpr.values.column_type import BINARIES, FLOATS, STRINGS, TIMESTAMPS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import from_scalar

_NAN = float("nan")
_MICROS = 6
_SIZED = frozenset({*STRINGS, *BINARIES, Kind.BLOB})
"""Types without footer statistics if values are very large."""


@dataclass(slots=True)
class _Running:
    """Bounds and null count of the rows so far."""

    type: ColumnType
    least: Plain = None
    greatest: Plain = None
    nulls: int = 0

    def add(self, column: pa.Array | pa.ChunkedArray) -> None:
        self.nulls += column.null_count
        if self.type.kind in BINARIES:
            return
        bounds = pc.min_max(column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column)
        if not bounds["min"].is_valid:
            return
        low, high = self._plain(bounds["min"]), self._plain(bounds["max"])
        if self.type.kind in FLOATS:  # orders differ in -0.0 and 0.0: include both
            low, high = low or -0.0, high or 0.0
            # Arrow ignores NaN, so its minimum is NaN only where all values are.
            if math.isnan(low):
                return
        self.least = low if self.least is None else min(self.least, low)
        self.greatest = high if self.greatest is None else max(self.greatest, high)

    def _plain(self, value: pa.Scalar) -> Any:
        return from_scalar(value, self.type)


class StatsCollector:
    """Collects value and key statistics of one data file.

    Call ``update`` for each batch, then ``value_stats`` and ``key_stats`` once. Nested columns have no statistics and binary ones only null
    counts, as in Paimon. A column with NaN has NaN as its maximum, because Parquet footers omit NaN. If a row group has only NaN, the footer has
    no minimum either and the column's bounds are unknown. With ``rows`` there is no footer, and all statistics come from the rows.
    """

    def __init__(
        self,
        fields: Sequence[DataField],
        modes: Mapping[str, StatsMode],
        *,
        dense: bool = True,
        rows: bool = False,
        keys: Sequence[str] = (),
    ) -> None:
        self._fields = tuple(fields)
        self._modes = modes
        self._dense = dense
        self._floats = [field.name for field in fields if field.type.kind in FLOATS]
        self._with_nan: set[str] = set()
        fine = [field for field in fields if field.type.kind in TIMESTAMPS and field.type.precision > _MICROS]
        tracked = (
            [field for field in fields if not field.type.is_nested and (modes[field.name].keep is not Keep.NONE or field.name in keys)]
            if rows
            else fine
        )
        self._running = {field.name: _Running(field.type.column_type) for field in tracked}
        self._nulls = {field.name: 0 for field in fields if field.type.kind in _SIZED}

    def update(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Collect what the footer lacks from a batch of rows."""
        for name in self._floats:
            if name not in self._with_nan and pc.any(pc.is_nan(batch.column(name))).as_py():
                self._with_nan.add(name)
        for name, running in self._running.items():
            running.add(batch.column(name))
        for name in self._nulls:
            self._nulls[name] += batch.column(name).null_count

    def value_stats(self, footer: pq.FileMetaData | None) -> tuple[SimpleStats, tuple[str, ...] | None]:
        """Return statistics, and the names of included columns.

        Without omitted columns, the names are missing (None).
        """
        leaves = _leaf_positions(footer)
        included: list[DataField] = []
        for field in self._fields:
            has_stats = not field.type.is_nested and self._modes[field.name].keep is not Keep.NONE
            if has_stats or not self._dense:
                included.append(field)
        stats = self._stats(footer, leaves, [(field.name, field.name, field.type) for field in included], self._modes)
        return stats, None if len(included) == len(self._fields) else tuple(field.name for field in included)

    def key_stats(self, footer: pq.FileMetaData | None, names: Sequence[str], prefix: str) -> SimpleStats:
        """Return statistics of key columns, truncated at 128.

        The file stores them as ``prefix`` + name. No column is omitted.
        """
        types = {field.name: field.type for field in self._fields}
        columns = [(name, f"{prefix}{name}", types[name]) for name in names]
        return self._stats(footer, _leaf_positions(footer), columns, dict.fromkeys(names, SYSTEM_MODE))

    def _stats(
        self,
        footer: pq.FileMetaData | None,
        leaves: Mapping[str, int],
        columns: Sequence[tuple[str, str, DataType]],
        modes: Mapping[str, StatsMode],
    ) -> SimpleStats:
        low: list[Plain] = []
        high: list[Plain] = []
        nulls: list[int | None] = []
        slots = []
        for name, stored_as, data_type in columns:
            mode = modes[name]
            silent = data_type.is_nested or mode.keep is Keep.NONE
            least, greatest, count = (None, None, None) if silent or footer is None else _column(footer, leaves[stored_as], data_type)
            if count is None and not silent and name in self._running:
                running = self._running[name]
                least, greatest, count = running.least, running.greatest, running.nulls
            if count is None and not silent:
                count = self._nulls.get(name)
            if name in self._with_nan and least is not None:
                greatest = _NAN
            least, greatest = mode.bound(least, greatest)
            low.append(least)
            high.append(greatest)
            nulls.append(count)
            slots.append(slot_type(data_type))
        return SimpleStats(encode_row(low, slots), encode_row(high, slots), tuple(nulls))


def _leaf_positions(footer: pq.FileMetaData | None) -> dict[str, int]:
    return {} if footer is None else {footer.schema.column(i).path: i for i in range(footer.num_columns)}


def _column(footer: pq.FileMetaData, leaf: int, data_type: DataType) -> tuple[Plain, Plain, int | None]:
    """Return minimum, maximum and null count over all row groups.

    None where a row group lacks them.
    """
    low: list[Plain] = []
    high: list[Plain] = []
    nulls = 0
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(leaf)
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return None, None, None
        nulls += statistics.null_count
        if statistics.null_count == chunk.num_values:
            continue
        if data_type.kind in BINARIES or not statistics.has_min_max:
            low, high = [None], [None]
            continue
        least, greatest = statistics.min_raw, statistics.max_raw
        if isinstance(least, bytes):
            least, greatest = _plain(least, data_type), _plain(greatest, data_type)
        low.append(least)
        high.append(greatest)
    if not low or None in low:
        return None, None, nulls
    return min(low), max(high), nulls  # type: ignore[type-var]  # plain values of one column share a type


def _plain(raw: bytes, data_type: DataType) -> Plain:
    if data_type.kind in STRINGS:
        return raw.decode()
    return int.from_bytes(raw, "big", signed=True) if data_type.kind is Kind.DECIMAL else raw
