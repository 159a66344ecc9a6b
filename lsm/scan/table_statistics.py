"""Table statistics: collection from rows, and use in scans.

Collection takes one pass with bounded memory. Distinct values are counted by hash: exactly up to ``exact_distinct``, then by HyperLogLog
(Flajolet et al.) with 2^14 registers, whose standard error is 0.8 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.keys.hashing import hash_array, xxh64
from fileindex.predicate.tree import ColumnRef, Predicate
from lsm.scan.other_branch import other_branch
from manifest.snapshot.snapshot import Snapshot
from manifest.stats.column_stats import ColumnBounds, may_match
from manifest.stats.table_stats import ColumnStatistics, Statistics, parse_value, value_text
from manifest.store import FileStore
from manifest.types.data_type import DataField
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import UInt64s, numpy_array
from sparkexpr.values.column_type import BINARIES, FLOATS, STRINGS, ColumnType, Kind, Plain
from sparkexpr.values.float_order import extremes, spark_order_key
from sparkexpr.values.plain_value import plain_array

_Hashes: TypeAlias = UInt64s

_REGISTER_BITS = 14
_REGISTERS = 1 << _REGISTER_BITS
_RANK_BITS = 64 - _REGISTER_BITS
_ALPHA = 0.7213 / (1 + 1.079 / _REGISTERS)
_LENGTHS = {Kind.BOOLEAN: 1, Kind.TINYINT: 1, Kind.SMALLINT: 2, Kind.INT: 4, Kind.FLOAT: 4, Kind.DATE: 4, Kind.TIME: 4}


class DistinctCounter:
    """Counter of distinct 64-bit hashes.

    >>> counter = DistinctCounter()
    >>> counter.add(np.array([1, 2, 2, 3], np.uint64))
    >>> counter.add(np.array([3, 4], np.uint64))
    >>> counter.count
    4
    """

    def __init__(self) -> None:
        self._hashes: _Hashes | None = np.zeros(0, np.uint64)
        self._registers = np.zeros(0, np.uint8)

    def add(self, hashes: _Hashes) -> None:
        """Add hashes."""
        new_hashes = hashes
        if self._hashes is not None:
            self._hashes = np.union1d(self._hashes, new_hashes)
            if self._hashes.size <= thresholds.exact_distinct:
                return
            new_hashes, self._hashes = self._hashes, None
            self._registers = np.zeros(_REGISTERS, np.uint8)
        mixed = _mix(new_hashes)
        registers = (mixed >> np.uint64(_RANK_BITS)).astype(np.intp)
        rest = (mixed << np.uint64(_REGISTER_BITS)) | np.uint64(1 << (_REGISTER_BITS - 1))
        _, exponent = np.frexp(rest.astype(np.float64))  # position of the highest bit, one too high if rounding carries
        rank = np.minimum(65 - exponent, _RANK_BITS + 1).astype(np.uint8)
        np.maximum.at(self._registers, registers, rank)

    @property
    def count(self) -> int:
        """Number of distinct hashes, exact or estimated."""
        if self._hashes is not None:
            return int(self._hashes.size)
        estimate = _ALPHA * _REGISTERS**2 / float(np.exp2(-self._registers.astype(np.float64)).sum())
        empty = int(np.count_nonzero(self._registers == 0))
        if estimate <= 2.5 * _REGISTERS and empty:
            estimate = _REGISTERS * math.log(_REGISTERS / empty)
        return round(estimate)


def _mix(hashes: _Hashes) -> _Hashes:
    """Mix the bits of hashes."""
    # Hashes of adjacent numbers have equal high bits.
    x = hashes ^ (hashes >> np.uint64(33))
    x = x * np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x = x * np.uint64(0xC4CEB9FE1A85EC53)
    return np.asarray(x ^ (x >> np.uint64(33)))


@dataclass(slots=True)
class _Column:
    """Running statistics of one column."""

    column: DataField
    nulls: int = 0
    values: int = 0
    least: Plain = None
    greatest: Plain = None
    length: int = 0
    longest: int = 0
    distinct: DistinctCounter = field(default_factory=DistinctCounter)

    def add(self, array: pa.Array) -> None:
        self.nulls += array.null_count
        self.values += len(array) - array.null_count
        data_type = self.column.type
        if data_type.is_nested or data_type.kind in {Kind.VARIANT, Kind.BLOB}:
            return
        kind = data_type.column_type
        self._measure(array, kind)
        dense = array.drop_null()
        if not len(dense):
            return
        self._extend(dense, kind)
        self.distinct.add(_hashes(dense, kind))

    def _measure(self, array: pa.Array, kind: ColumnType) -> None:
        if kind.kind in STRINGS or kind.kind in BINARIES:
            lengths = pc.utf8_length(array) if kind.kind in STRINGS else pc.binary_length(array)
            self.length += pc.sum(lengths).as_py() or 0
            self.longest = max(self.longest, pc.max(lengths).as_py() or 0)

    def _extend(self, dense: pa.Array, kind: ColumnType) -> None:
        if kind.kind in BINARIES:
            return
        low, high = extremes(dense, kind)
        if self.least is None or self.greatest is None:
            self.least, self.greatest = low, high
        else:
            self.least = min(self.least, low, key=spark_order_key)
            self.greatest = max(self.greatest, high, key=spark_order_key)

    def finish(self) -> ColumnStatistics:
        kind = self.column.type.kind
        if self.column.type.is_nested or kind in {Kind.VARIANT, Kind.BLOB}:
            return ColumnStatistics(col_id=self.column.id, null_count=self.nulls)
        least, greatest = value_text(self.least, self.column.type), value_text(self.greatest, self.column.type)
        has_lengths = kind in STRINGS or kind in BINARIES
        fixed = _fixed_length(self.column.type.column_type)
        return ColumnStatistics(
            col_id=self.column.id,
            distinct_count=self.distinct.count,
            min=least if greatest is not None else None,
            max=greatest if least is not None else None,
            null_count=self.nulls,
            avg_len=-(-self.length // max(self.values, 1)) if has_lengths else fixed,
            max_len=self.longest if has_lengths else fixed,
        )


def collect_statistics(batches: Iterable[pa.RecordBatch], fields: Sequence[DataField]) -> tuple[int, dict[str, ColumnStatistics]]:
    """Return the row count and the statistics by column.

    ``fields`` are the columns of the batches, in order.

    >>> from manifest.types.data_type import from_arrow
    >>> table = pa.table({"city": ["Oslo", None, "Lima", "Oslo"]})
    >>> collect_statistics(table.to_batches(), from_arrow(table.schema))[1]["city"].distinct_count
    2
    """
    columns = [_Column(field) for field in fields]
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        for column, array in zip(columns, batch.columns, strict=True):
            column.add(array)
    return rows, {column.column.name: column.finish() for column in columns}


def statistics_of(store: FileStore, snapshot: Snapshot) -> Statistics | None:
    """Return the statistics of ``snapshot``.

    They may describe an older snapshot. None: the snapshot has no statistics.
    """
    if snapshot.statistics is None:
        return None
    with store.reading(snapshot):
        return store.statistics_files.read(snapshot.statistics)


def own_statistics(store: FileStore, snapshot: Snapshot) -> Statistics | None:
    """Return the statistics of exactly the rows of ``snapshot``.

    None: there are no such statistics, or they are not readable.
    """
    try:
        statistics = statistics_of(store, snapshot) if snapshot.statistics is not None else None
    # Statistics are optional.
    except CorruptFile:
        return None
    return statistics if statistics is not None and statistics.describes(snapshot) else None


def counted_rows(store: FileStore, snapshot: Snapshot | None) -> int | None:
    """Return the row count of an analyzed, unchanged snapshot.

    None: unknown, or engines may see different rows, or another branch adds rows.
    """
    statistics = (
        None if snapshot is None or store.schema.kind.has_single_version or other_branch(store) else own_statistics(store, snapshot)
    )
    return None if statistics is None else statistics.merged_record_count


def proves_empty(store: FileStore, statistics: Statistics, predicate: Predicate) -> bool:
    """Return whether ``statistics`` prove that no row matches.

    A column whose type changed since then is not used.
    """
    rows = statistics.merged_record_count
    if rows is None:
        return False
    schema = store.schema
    counted = schema if statistics.schema_id == schema.id else store.schemas.get(statistics.schema_id)
    types = {field.id: field.type.with_nullable(nullable=True) for field in counted.fields}
    by_id = {column.col_id: column for column in statistics.col_stats.values()}

    def bounds(column: ColumnRef) -> ColumnBounds | None:
        table_field = schema.field(column.name)
        column_stats = by_id.get(table_field.id)
        if column_stats is None or column.key is not None or types.get(table_field.id) != table_field.type.with_nullable(nullable=True):
            return None
        try:
            low, high = (None if text is None else parse_value(text, table_field.type) for text in (column_stats.min, column_stats.max))
        except ValueError:
            return None
        return ColumnBounds(low, high, column_stats.null_count, rows)

    return not may_match(predicate, bounds, schema.column_types)


def _hashes(dense: pa.Array, kind: ColumnType) -> _Hashes:
    plain = plain_array(dense, kind)
    if kind.kind in FLOATS:
        plain = pc.add(plain, pa.scalar(0.0, plain.type))  # -0.0 and 0.0 count as one value
    if pa.types.is_decimal(plain.type):
        words = np.frombuffer(plain.buffers()[1], "<u8").reshape(-1, 2)[plain.offset : plain.offset + len(plain)]
        mixed: _Hashes = _mix(words[:, 0].copy()) ^ words[:, 1]
        return mixed
    if kind.kind in STRINGS or kind.kind in BINARIES:
        return xxh64(plain)
    if plain.type == pa.bool_():
        plain = plain.cast(pa.int8())
    if kind.kind in FLOATS:
        return hash_array(plain, kind)
    return np.asarray(numpy_array(plain).astype(np.int64)).view(np.uint64)


def _fixed_length(kind: ColumnType) -> int:
    """Return the estimated bytes of a value in memory."""
    return 16 if kind.kind is Kind.DECIMAL and kind.precision > 18 else _LENGTHS.get(kind.kind, 8)
