"""Reading the first rows of an order (``ORDER BY ... LIMIT n``) without reading what cannot be among them.

What bounds the work: a range-bitmap index names a file's candidates; and once enough rows are found, the worst of them is a
filter on everything that is read afterwards, so that files, row groups and pages drop out by minima and maxima, and the
columns outside the order are decoded for the few rows that pass. The most promising files are read first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fileindex.base.column_type import Plain
from fileindex.base.float_order import spark_order_key
from fileindex.base.lazy import cached_property
from fileindex.predicate.tree import FALSE, TRUE, ColumnRef, IsNull, Predicate, all_of
from lsm.keys.order_by import RowOrder, TopRows
from lsm.read.metrics import ReadReport
from lsm.read.split import read_split
from lsm.scan.file_pruner import FilePruner
from lsm.scan.splits import DataSplit
from manifest.stats.column_stats import may_match
from manifest.store import FileStore


@dataclass(frozen=True)
class TopRead:
    """A sorted and limited read of a table's splits; its units may be read by several threads at once.

    Args:
        store: the table.
        columns: names to return; those of the order are among them.
        predicate: rows to return, exactly.
        order: how they are sorted.
        limit: how many of them.
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
        """The splits cut into single files where nothing is merged, those first whose statistics promise the best values."""
        found = [unit for split in splits for unit in (_files(split) if self._stand_alone(split) else [split])]
        best = [self._best(unit) for unit in found]
        rated = [number for number, value in enumerate(best) if value is not None]
        rated.sort(key=lambda number: spark_order_key(best[number]), reverse=not self.order.columns[0].ascending)
        return [found[number] for number in (*rated, *(number for number, value in enumerate(best) if value is None))]

    def read(self, unit: DataSplit, report: ReadReport) -> None:
        """Add the rows of a unit that may be among the first. Raises as ``read_split``."""
        alone = self._stand_alone(unit) and len(unit.files) == 1
        if alone and self._needs_seed(unit):
            seen = ReadReport()
            for batch in read_split(self.store, unit, columns=self.order.names, predicate=self.predicate, report=seen):
                self._seeds.add(batch)
            report.bytes_read += seen.bytes_read
        wanted = all_of(self.predicate, self._bound())
        if wanted == FALSE or (alone and not self._may_match(unit, wanted)):
            report.files_outranked += len(unit.files)
            return
        hint = self.order, self.limit
        for batch in read_split(self.store, unit, columns=self.columns, predicate=wanted, top=hint, report=report):
            self.top.add(batch)

    def _stand_alone(self, split: DataSplit) -> bool:
        return split.stands_alone

    def _needs_seed(self, unit: DataSplit) -> bool:
        """Whether reading the sort columns first pays: nothing bounds the rows yet, and no index will name the candidates."""
        file = unit.files[0]
        indexed = self.store.options.file_index_read_enabled and (file.embedded_index is not None or file.index_file is not None)
        return not indexed and file.row_count > self.limit and set(self.columns) > set(self.order.names) and self._bound() == TRUE

    def _bound(self) -> Predicate:
        """What a row must satisfy to be among the first, by the rows found and those seen."""
        column_type = self.store.schema.column_types[self.order.columns[0].name]
        found = self.top.bound(column_type)
        return found if found != TRUE else self._seeds.bound(column_type, ties=True)

    def _may_match(self, unit: DataSplit, wanted: Predicate) -> bool:
        pruner = FilePruner(self.store, wanted)
        residual = pruner.residual(unit.partition)
        return may_match(residual, pruner.bounds(unit.files[0]), self.store.schema.column_types)

    @cached_property
    def _first_column(self) -> FilePruner:
        return FilePruner(self.store, IsNull(ColumnRef(self.order.columns[0].name)))

    def _best(self, unit: DataSplit) -> Plain:
        """The best value of the first sort column that a unit can have; None if that is not known."""
        column = self.order.columns[0]
        if not self._stand_alone(unit) or len(unit.files) != 1:
            return None
        known = self._first_column.bounds(unit.files[0])(ColumnRef(column.name))
        return None if known is None else known.min if column.ascending else known.max


def _files(split: DataSplit) -> list[DataSplit]:
    vectors = split.deletion_files or (None,) * len(split.files)
    return [
        split.model_copy(update={"files": (file,), "deletion_files": None if vector is None else (vector,)})
        for file, vector in zip(split.files, vectors, strict=True)
    ]


__all__ = ["TopRead"]
