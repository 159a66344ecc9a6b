"""Aggregates of a split, with as few reads as possible.

For files that need no merge, metadata have row counts, null counts and exact bounds of numbers and times. A ``bsi`` index has
count, extremes and sum of any set of rows. Other columns are read from the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from fileindex.predicate.tree import TRUE, ColumnRef, IsNull, Predicate, all_of
from lsm.aggregate.names import AggregateName
from lsm.aggregate.summary import ColumnSummary, RowSummary
from lsm.incremental.planner import IncrementalSplit
from lsm.incremental.read import read_incremental
from lsm.read.data_file import DataFileRead
from lsm.read.index_selection import Selection
from lsm.read.metrics import ReadReport
from lsm.read.split import SplitRead, read_split
from lsm.scan.file_pruner import FilePruner
from lsm.scan.splits import DataSplit
from manifest.store import FileStore
from paimon_base.lazy import cached_property
from sparkexpr.values.column_type import INTEGERS, TIMESTAMPS, Kind

Unread: TypeAlias = Callable[[ReadReport], RowSummary]
"""Computes the part of an aggregation that needs data files."""

_EXACT = INTEGERS | {Kind.DATE, Kind.TIME, Kind.DECIMAL, Kind.BOOLEAN}
"""Kinds with exact bounds in metadata. Bounds of texts are truncated, and bounds of floats exclude NaN."""
_MICROS = 6


@dataclass(frozen=True)
class RowAggregation:
    """Aggregation of the rows that match ``predicate``.

    Each method may raise the errors of ``read_split``.

    Args:
        store: Store of the table.
        predicate: Filter that the plan was made with. None: all rows.
        functions: Aggregates of each column. Empty: only count rows.
    """

    store: FileStore
    predicate: Predicate | None
    functions: Mapping[str, frozenset[AggregateName]]

    def known(self, split: DataSplit, report: ReadReport) -> tuple[RowSummary, Sequence[Unread]]:
        """Aggregate a split from metadata and indexes.

        The second result computes the remaining parts, in any order and thread.
        """
        summary = self._nothing()
        rows = self._known_rows(split)
        if rows is not None:
            summary.rows = rows
            return summary, ()
        if isinstance(split, IncrementalSplit):
            return summary, [partial(self._of_changes, split)]
        if not split.has_independent_files:
            return summary, [partial(self._aggregate_merge, split)]
        reader = self._reader(split, report)
        unread: list[Unread] = []
        for file in split.files:
            read = reader.alone(file)
            selection = read.certain()
            if selection is None:
                unread.append(partial(self._of_file, read))
            elif columns := self._by_metadata(read, selection, summary):
                unread.append(partial(self._of_columns, read, columns))
        return summary, unread

    def cheap(self, split: DataSplit) -> RowSummary | None:
        """Aggregate a split from metadata, indexes and footers only.

        None: pages of data files must be read.
        """
        rows = self._known_rows(split)
        summary = self._nothing()
        if rows is not None:
            summary.rows = rows
            return summary
        if isinstance(split, IncrementalSplit) or not split.has_independent_files:
            return None
        reader = self._reader(split, ReadReport())
        for file in split.files:
            read = reader.alone(file)
            selection = read.certain(footer=True)
            if selection is None or self._by_metadata(read, selection, summary):
                return None
        return summary

    def _known_rows(self, split: DataSplit) -> int | None:
        """Return the row count of a split, if that suffices.

        None: the split's metadata does not have it, or columns are aggregated.
        """
        return split.merged_row_count if self.predicate is None and not self.functions else None

    def _reader(self, split: DataSplit, report: ReadReport) -> SplitRead:
        return SplitRead(self.store, split, tuple(self.functions), TRUE if self.predicate is None else self.predicate, report)

    def _nothing(self) -> RowSummary:
        return RowSummary.of(
            self.functions, {column.name: column.type for column in self.store.schema.fields if column.name in self.functions}
        )

    def _aggregate_merge(self, split: DataSplit, report: ReadReport) -> RowSummary:
        return self._sum_of(read_split(self.store, split, columns=tuple(self.functions), predicate=self.predicate, report=report))

    def _of_changes(self, split: IncrementalSplit, report: ReadReport) -> RowSummary:
        return self._sum_of(read_incremental(self.store, split, columns=tuple(self.functions), predicate=self.predicate, report=report))

    def _sum_of(self, batches: Iterator[Any]) -> RowSummary:
        return self._nothing().add_all(batches)

    def _of_file(self, read: DataFileRead, report: ReadReport) -> RowSummary:
        """Aggregate a file whose footer may have the row count."""
        read = replace(read, report=report)
        selection = read.certain(footer=True)
        if selection is None:
            return self._sum_of(read.batches())
        summary = self._nothing()
        if columns := self._by_metadata(read, selection, summary):
            summary.merge(self._of_columns(read, columns, report))
        return summary

    def _of_columns(self, read: DataFileRead, columns: Sequence[str], report: ReadReport) -> RowSummary:
        summary = self._nothing()
        for batch in replace(read, columns=columns, report=report).batches():
            summary.add(batch, counted=True)
        return summary

    def _by_metadata(self, read: DataFileRead, selection: Selection, summary: RowSummary) -> list[str]:
        """Add a file's rows and the known values of columns.

        Returns the columns that must be read.
        """
        rows = selection.count(read.file.row_count)
        summary.rows += rows
        return [name for name, column in summary.columns.items() if rows and not self._add_known(read, selection, rows, name, column)]

    def _add_known(self, read: DataFileRead, selection: Selection, rows: int, name: str, column: ColumnSummary) -> bool:
        constants = read.constants
        if name in constants:
            column.add_constant(constants[name], rows)
            return True
        bounds = self._bounds.bounds(read.file)(ColumnRef(name))
        if bounds is not None and bounds.null_count is not None and bounds.null_count <= bounds.row_count:
            if bounds.all_null:
                return True
            if selection.rows is None:
                if column.functions == {"count"}:
                    column.count += rows - bounds.null_count
                    return True
                exact = "sum" not in column.functions and self._is_exact(read, name, column)
                if exact and bounds.min is not None and bounds.max is not None:
                    column.count += rows - bounds.null_count
                    column.extend(bounds.min, bounds.max)
                    return True
        numbers = read.numbers(name, selection.rows)
        if numbers is None:
            return False
        column.count += numbers.count
        column.extend(numbers.least, numbers.greatest)
        column.total += numbers.total
        return True

    def _is_exact(self, read: DataFileRead, name: str, column: ColumnSummary) -> bool:
        """Return whether bounds in metadata are values of the column."""
        if column.type is None or read.mapping.same(ColumnRef(name)) is None:
            return False
        if column.type.kind in TIMESTAMPS:
            return column.type.precision <= _MICROS and read.file.format != "orc"
        return column.type.kind in _EXACT

    @cached_property
    def _bounds(self) -> FilePruner:
        return FilePruner(self.store, all_of(*(IsNull(ColumnRef(name)) for name in self.functions)))
