"""Reads of the first rows (``ORDER BY ... LIMIT n``).

A range-bitmap index returns a file's candidates. Once enough rows are found, the worst of them becomes a
filter for all further reads. So files, row groups and pages are skipped by minima and maxima, and the
columns outside of the order are decoded for few rows only. The most promising files are read first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fileindex.predicate.tree import FALSE, TRUE, ColumnRef, IsNull, Predicate, all_of
from lsm.keys.order_by import RowOrder, TopRows
from lsm.read.metrics import ReadReport
from lsm.read.split import read_split
from lsm.scan.file_pruner import FilePruner
from lsm.scan.splits import DataSplit
from manifest.schema.secondary_index import secondary_indexes
from manifest.stats.column_stats import may_match
from manifest.store import FileStore
from paimon_base.lazy import LazyModule, cached_property
from sparkexpr.values.column_type import Plain
from sparkexpr.values.float_order import spark_order_key

if TYPE_CHECKING:
    from lsm.read import indexed_top
else:  # few tables have secondary indexes
    indexed_top = LazyModule("lsm.read.indexed_top")


@dataclass(frozen=True)
class TopRead:
    """Sorted and limited read of a table's splits.

    Several threads may read its units at once.

    Args:
        store: Store of the table.
        columns: Names to return, including the sort columns.
        predicate: Exact filter of rows.
        order: Sort order.
        limit: Number of rows.
    """

    store: FileStore
    columns: tuple[str, ...]
    predicate: Predicate
    order: RowOrder
    limit: int
    top: TopRows = field(init=False)
    _seeds: TopRows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "top", TopRows(self.order, self.limit))
        object.__setattr__(self, "_seeds", TopRows(self.order, self.limit))

    def units(self, splits: Sequence[DataSplit]) -> list[DataSplit]:
        """Cut splits into units, the most promising first.

        Splits without a merge are cut into single files. Statistics of the first sort column define the order.
        """
        units = [unit for split in self._by_index(splits) for unit in (_files(split) if self._has_independent_files(split) else [split])]
        best = [self._best(unit) for unit in units]
        rated = [number for number, value in enumerate(best) if value is not None]
        rated.sort(key=lambda number: spark_order_key(best[number]), reverse=not self.order.columns[0].ascending)
        return [units[number] for number in (*rated, *(number for number, value in enumerate(best) if value is None))]

    def _by_index(self, splits: Sequence[DataSplit]) -> Sequence[DataSplit]:
        """Return the splits with the rows that a secondary index finds."""
        store, column = self.store, self.order.columns[0].name
        indexes = secondary_indexes(store.schema) if store.options.global_index_enabled else ()
        index = next((index for index in indexes if index.column == column), None)
        return splits if index is None else indexed_top.IndexedTop(store, index, self.order, self.limit, self.predicate).restrict(splits)

    def read(self, unit: DataSplit, report: ReadReport) -> None:
        """Add a unit's rows that may be among the first.

        Raises the errors of ``read_split``.
        """
        alone = self._has_independent_files(unit) and len(unit.files) == 1
        if alone and self._needs_seed(unit):
            seed_report = ReadReport()
            for batch in read_split(self.store, unit, columns=self.order.names, predicate=self.predicate, report=seed_report):
                self._seeds.add(batch)
            report.bytes_read += seed_report.bytes_read
        condition = all_of(self.predicate, self._bound())
        if condition == FALSE or (alone and not self._may_match(unit, condition)):
            report.files_outranked += len(unit.files)
            return
        hint = self.order, self.limit
        for batch in read_split(self.store, unit, columns=self.columns, predicate=condition, top=hint, report=report):
            self.top.add(batch)

    def _has_independent_files(self, split: DataSplit) -> bool:
        return split.has_independent_files

    def _needs_seed(self, unit: DataSplit) -> bool:
        """Return whether to read the sort columns first.

        That is faster if no bound is known yet and no index returns the candidates.
        """
        file = unit.files[0]
        indexed = self.store.options.file_index_read_enabled and (file.embedded_index is not None or file.index_file is not None)
        return not indexed and file.row_count > self.limit and set(self.columns) > set(self.order.names) and self._bound() == TRUE

    def _bound(self) -> Predicate:
        """Return the filter that rows among the first match."""
        column_type = self.store.schema.column_types[self.order.columns[0].name]
        bound = self.top.bound(column_type)
        return bound if bound != TRUE else self._seeds.bound(column_type, ties=True)

    def _may_match(self, unit: DataSplit, condition: Predicate) -> bool:
        pruner = FilePruner(self.store, condition)
        residual = pruner.residual(unit.partition)
        return may_match(residual, pruner.bounds(unit.files[0]), self.store.schema.column_types)

    @cached_property
    def _first_column(self) -> FilePruner:
        return FilePruner(self.store, IsNull(ColumnRef(self.order.columns[0].name)))

    def _best(self, unit: DataSplit) -> Plain:
        """Return the best possible value of the first sort column.

        None: unknown.
        """
        column = self.order.columns[0]
        if not self._has_independent_files(unit) or len(unit.files) != 1:
            return None
        column_bounds = self._first_column.bounds(unit.files[0])(ColumnRef(column.name))
        return None if column_bounds is None else column_bounds.min if column.ascending else column_bounds.max


def _files(split: DataSplit) -> list[DataSplit]:
    vectors = split.deletion_files or (None,) * len(split.files)
    return [
        split.model_copy(update={"files": (file,), "deletion_files": None if vector is None else (vector,)})
        for file, vector in zip(split.files, vectors, strict=True)
    ]
