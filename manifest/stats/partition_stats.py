"""Decoding, order, statistics and pruning of partitions and keys."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fileindex.base.column_type import ColumnType, Plain
from fileindex.base.errors import CorruptFile
from fileindex.base.float_order import total_order_key
from fileindex.predicate.tree import ColumnRef, Predicate
from manifest.row.binary_row import decode_row, encode_row
from manifest.stats.column_stats import ColumnBounds, SimpleStats, may_match
from manifest.types.data_type import DataType


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
        known = self.bounds(stats, entries, path)
        return not known or self._may_match(predicate, known)

    def bounds(self, stats: SimpleStats, entries: int, path: str) -> dict[str, ColumnBounds]:
        """Return bounds of partition columns by name, {} if unknown.

        ``entries`` is the number of the manifest's entries. Raises ``CorruptFile``.
        """
        if not self.names or len(stats.null_counts) != len(self.names):
            return {}
        low, high = self.decode(stats.min_values, path), self.decode(stats.max_values, path)
        columns = zip(self.names, low, high, stats.null_counts, strict=True)
        return {name: ColumnBounds(least, most, nulls, entries) for name, least, most, nulls in columns}

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
        wanted = [self.order(p) for p in partitions]

        def overlaps(stats: SimpleStats, path: str) -> bool:
            if not self.names or len(stats.null_counts) != len(self.names):
                return bool(wanted)
            low = [total_order_key(v) for v in self.decode(stats.min_values, path)]
            high = [total_order_key(v) for v in self.decode(stats.max_values, path)]

            def holds(value: tuple[object, ...], column: int) -> bool:
                return stats.null_counts[column] != 0 if value == total_order_key(None) else low[column] <= value <= high[column]

            return any(all(holds(value, column) for column, value in enumerate(values)) for values in wanted)

        return overlaps

    def _may_match(self, predicate: Predicate, by_name: Mapping[str, ColumnBounds]) -> bool:
        types: Mapping[str, ColumnType] = {name: t.column_type for name, t in zip(self.names, self.types, strict=True)}

        def bounds_of(column: ColumnRef) -> ColumnBounds | None:
            return by_name.get(column.name) if column.key is None else None

        return may_match(predicate, bounds_of, types)


__all__ = ["PartitionType"]
