"""Row count and column aggregates of a scan.

Like Spark: nulls are not counted, NaN is the greatest value, sums of FLOAT are DOUBLE. Unlike Spark, sums of integers are exact at any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.aggregate.names import AggregateName
from manifest.types.data_type import DataType
from sparkexpr.values.arrays import numpy_array
from sparkexpr.values.column_type import FLOATS, INTEGERS, WITH_PARTS, ColumnType, Kind, Plain
from sparkexpr.values.float_order import extremes, spark_order_key
from sparkexpr.values.plain_json import plain_from_json, plain_to_json
from sparkexpr.values.plain_value import plain_array

_SUMMED = INTEGERS | FLOATS | {Kind.DECIMAL}
_UNORDERED = WITH_PARTS | {Kind.BLOB, Kind.GEOMETRY, Kind.GEOGRAPHY}
_WORDS = 4
"""32-bit words of a decimal, least first; only the last has the sign."""


def can_aggregate(function: AggregateName, kind: Kind) -> bool:
    """Return whether a kind of type supports an aggregate.

    >>> can_aggregate("sum", Kind.INT), can_aggregate("sum", Kind.DATE)
    (True, False)
    """
    if function == "count":
        return True
    return kind in _SUMMED if function == "sum" else kind not in _UNORDERED


@dataclass(slots=True)
class ColumnSummary:
    """Aggregates of one column: count, extremes and sum.

    Only the aggregates in ``functions`` are computed. Extremes None: no value.

    >>> found = ColumnSummary(ColumnType(Kind.INT), frozenset(["count", "min", "max", "sum"]))
    >>> found.add(pa.array([3, None, -1], pa.int32()))
    >>> found.count, found.least, found.greatest, found.total
    (2, -1, 3, 2)
    """

    type: ColumnType | None
    functions: frozenset[AggregateName]
    count: int = 0
    least: Plain = None
    greatest: Plain = None
    total: int | float = 0

    def add(self, array: Any) -> None:
        """Add the values of an array."""
        present = len(array) - array.null_count
        self.count += present
        if not present or self.type is None or self.functions == {"count"}:
            return
        if "min" in self.functions or "max" in self.functions:
            self.extend(*extremes(array, self.type))
        if "sum" in self.functions:
            self.total += _sum(plain_array(array, self.type))

    def add_constant(self, value: Plain, rows: int) -> None:
        """Add a value that ``rows`` rows have."""
        if value is None or not rows:
            return
        self.count += rows
        self.extend(value, value)
        if "sum" in self.functions and isinstance(value, int | float):
            self.total += value * rows

    def extend(self, least: Plain, greatest: Plain) -> None:
        """Include a smallest and a greatest value."""
        bounds = [value for value in (self.least, self.greatest, least, greatest) if value is not None]
        self.least = min(bounds, key=spark_order_key, default=None)
        self.greatest = max(bounds, key=spark_order_key, default=None)

    def merge(self, other: ColumnSummary) -> None:
        """Add the aggregates of ``other``."""
        self.count += other.count
        self.extend(other.least, other.greatest)
        self.total += other.total

    def value(self, function: AggregateName) -> Plain:
        """Return an aggregate. None: there is no value."""
        match function:
            case "count":
                return self.count
            case "min":
                return self.least
            case "max":
                return self.greatest
            case "sum":
                return self.total if self.count else None


@dataclass(slots=True)
class RowSummary:
    """Row count and column aggregates."""

    columns: dict[str, ColumnSummary]
    rows: int = 0

    @classmethod
    def of(cls, functions_by_column: Mapping[str, Iterable[AggregateName]], types: Mapping[str, DataType]) -> RowSummary:
        """Return an empty summary.

        Nested columns, and columns without a type, are only counted. Merging summaries needs no types.
        """
        return cls({name: ColumnSummary(_atomic(types.get(name)), frozenset(functions)) for name, functions in functions_by_column.items()})

    def add_all(self, batches: Iterable[Any]) -> RowSummary:
        """Add the rows of all batches. Return this summary."""
        for batch in batches:
            self.add(batch)
        return self

    def add(self, batch: Any, *, counted: bool = False) -> None:
        """Add the rows of a batch.

        With ``counted`` the rows are counted already, and only column values are added.
        """
        self.rows += 0 if counted else batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            self.columns[name].add(column)

    def merge(self, other: RowSummary) -> None:
        """Add the counts of ``other``."""
        self.rows += other.rows
        for name, column in self.columns.items():
            column.merge(other.columns[name])

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value for ``merge_json``."""
        plain = {
            name: [plain_to_json(value) for value in (column.count, column.least, column.greatest, column.total)]
            for name, column in self.columns.items()
        }
        return {"rows": self.rows, "columns": plain}

    def merge_json(self, json_counts: Mapping[str, Any]) -> None:
        """Add the counts of a ``to_json`` value."""
        self.rows += json_counts["rows"]
        for name, column in self.columns.items():
            count, least, greatest, total = map(plain_from_json, json_counts["columns"][name])
            column.merge(ColumnSummary(column.type, column.functions, count, least, greatest, total))  # type: ignore[arg-type]  # as written by to_json


def _atomic(data_type: DataType | None) -> ColumnType | None:
    return None if data_type is None or data_type.is_nested or data_type.kind in _UNORDERED else data_type.column_type


def _sum(physical: Any) -> int | float:
    """Return the sum of numbers, exact for integers."""
    if pa.types.is_floating(physical.type):
        return float(pc.sum(pc.cast(physical, pa.float64())).as_py())
    present = physical.drop_null()
    chunks = present.chunks if isinstance(present, pa.ChunkedArray) else [present]
    if pa.types.is_decimal(physical.type):
        return sum(_sum_of_words(_words(chunk)) for chunk in chunks)
    return sum(_sum_of_words(numpy_array(chunk).astype(np.int64).view(np.uint32).reshape(-1, 2)) for chunk in chunks)


def _words(decimals: Any) -> Any:
    data = decimals.buffers()[1]
    words = np.frombuffer(data, np.uint32, len(decimals) * _WORDS, decimals.offset * _WORDS * 4)
    return words.reshape(-1, _WORDS)


def _sum_of_words(words: Any) -> int:
    """Return the sum of little-endian two's complement numbers.

    Each row has the 32-bit words of a number. Sums per word cannot overflow.
    """
    low = words[:, :-1].sum(axis=0, dtype=np.int64).tolist()
    high = int(words[:, -1].view(np.int32).sum(dtype=np.int64)) if len(words) else 0
    return sum(int(part) << (32 * word_index) for word_index, part in enumerate([*low, high]))
