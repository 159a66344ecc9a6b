"""``ORDER BY`` in Spark SQL's order, and bounded top-N.

NaN is the greatest number and equal to itself, -0.0 equals 0.0, strings and binaries compare by unsigned bytes.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.predicate.tree import FALSE, TRUE, ColumnRef, Compare, IsNull, Op, Predicate, any_of
from lsm.keys.encoding import WordColumn, one_array
from lsm.keys.sort import SortColumn, sort_rows
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import UInt64s, arrow_array
from sparkexpr.values.column_type import FLOATS, INTEGERS, STRINGS, TIMESTAMPS, ColumnType, Kind
from sparkexpr.values.plain_value import fixed_array, from_scalar

_BOUNDED = frozenset(INTEGERS | FLOATS | STRINGS | TIMESTAMPS | {Kind.DATE, Kind.TIME, Kind.DECIMAL})
"""Kinds ordered like their literals, so that the last row can become a filter."""


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Order of rows by one or several columns.

    >>> order = RowOrder((SortColumn("a", ascending=False),))
    >>> order.first(pa.table({"a": [1.5, None, float("nan"), -0.0]}), 3)["a"].to_pylist()
    [nan, 1.5, -0.0]
    """

    columns: tuple[SortColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def sorted(self, rows: Any) -> Any:
        """Return a table's rows in this order.

        The sort is stable.

        Raises:
            UnsupportedType: A column has no order.
        """
        return self.first(rows, rows.num_rows)

    def first(self, rows: Any, count: int) -> Any:
        """Return the first ``count`` rows in this order."""
        keys = [_words(rows.column(column.name), column) for column in self.columns]
        return rows.take(arrow_array(sort_rows(keys, length=rows.num_rows).order[:count]))


def _words(values: Any, column: SortColumn) -> WordColumn:
    array = one_array(values)
    if pa.types.is_floating(array.type):
        array = pc.add(array, fixed_array([0.0], array.type)[0])  # -0.0 + 0.0 is 0.0
    column_words = WordColumn.of(array, descending=not column.ascending)
    if not array.null_count or column.nulls_first:
        return column_words
    is_valid, rest = column_words.words[0], column_words.words[1:]

    def nulls_last(rows: Any) -> UInt64s:
        valid = is_valid(rows)
        return valid ^ np.uint64(1)

    return WordColumn((nulls_last, *rest), column_words.length)


class TopRows:
    """Collector of the first ``limit`` rows.

    Thread-safe. Memory is bounded by a few times ``limit`` rows.
    """

    def __init__(self, order: RowOrder, limit: int) -> None:
        self.order = order
        self.limit = limit
        self._pending: list[Any] = []
        self._count = 0
        self._is_cut = True
        self._lock = threading.Lock()

    def add(self, rows: Any) -> None:
        """Add a record batch."""
        if not rows.num_rows or not self.limit:
            return
        with self._lock:
            self._pending.append(rows)
            self._count += rows.num_rows
            self._is_cut = False
            if self._count > max(thresholds.kept_order_rows, 4 * self.limit):
                self._cut()

    def rows(self, schema: Any) -> Any:
        """Return the rows found so far, in order."""
        with self._lock:
            self._cut()
            return pa.Table.from_batches(self._pending, schema)

    def bound(self, column_type: ColumnType, *, ties: bool = False) -> Predicate:
        """Return the filter that rows among the first match.

        It uses the first column. TRUE while every row may match.

        Args:
            column_type: Type of the first column.
            ties: Include rows equal to the last one in the first column.
        """
        with self._lock:
            self._cut()
            if not self.limit:
                return FALSE
            if self._count < self.limit:
                return TRUE
            last = self._pending[-1].column(self.order.columns[0].name)[-1]
        return _at_least(self.order.columns[0], last, column_type, ties=ties or len(self.order.columns) > 1)

    def _cut(self) -> None:
        if self._is_cut:
            return
        first = self.order.first(pa.Table.from_batches(self._pending), self.limit)
        self._pending = first.combine_chunks().to_batches()
        self._count = first.num_rows
        self._is_cut = True


def _at_least(column: SortColumn, last: Any, column_type: ColumnType, *, ties: bool) -> Predicate:
    """Return the filter of rows before ``last`` by this column.

    ``last`` is an Arrow scalar. With ``ties`` equal rows are included.
    """
    reference = ColumnRef(column.name)
    if not last.is_valid:
        if column.nulls_first:
            return IsNull(reference) if ties else FALSE
        return TRUE if ties else IsNull(reference, negated=True)
    if column_type.kind not in _BOUNDED:
        return TRUE
    op = (Op.LE if ties else Op.LT) if column.ascending else (Op.GE if ties else Op.GT)
    better = Compare(reference, op, from_scalar(last, column_type))
    return any_of(IsNull(reference), better) if column.nulls_first else better
