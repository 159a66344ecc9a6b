"""Which rows of a data file are wanted, before it is opened: by its file index, and by what an index answers exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyroaring import BitMap

from fileindex.base.column_type import ColumnType
from fileindex.format.bsi import NumberSummary
from fileindex.format.container import ContainerReader
from fileindex.predicate.tree import FALSE, TRUE, ColumnRef, Predicate, leaves
from fileindex.query.evaluate import evaluate
from fileindex.query.summary import summary
from fileindex.query.top_n import top_n
from fileindex.rowset.result import RowSet
from fileindex.rowset.roaring import all_rows
from lsm.keys.order_by import RowOrder
from lsm.read.metrics import ReadReport
from lsm.schema.evolution import SchemaMapping
from manifest.entry.data_file import DataFileMeta
from manifest.io.file_cache import FileParts
from manifest.store import FileStore


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of a file: at most those of ``rows`` (positions; None: all), and of them those for which ``residual`` is true."""

    rows: BitMap | None
    residual: Predicate

    @property
    def is_empty(self) -> bool:
        """Certainly no row."""
        return self.residual == FALSE or (self.rows is not None and not self.rows)

    def count(self, row_count: int) -> int:
        """How many rows there are of a file of ``row_count`` rows, where nothing is left to check.

        >>> Selection(BitMap([1]), TRUE).count(3), Selection(None, TRUE).count(3), Selection(None, FALSE).count(3)
        (1, 3, 0)
        """
        return 0 if self.is_empty else row_count if self.rows is None else len(self.rows)

    def without(self, dead: BitMap, row_count: int) -> Selection:
        """Less the rows that a deletion vector marks, of a file of ``row_count`` rows.

        >>> Selection(None, TRUE).without(BitMap([1]), 3).rows
        BitMap([0, 2])
        """
        return Selection((all_rows(row_count) if self.rows is None else self.rows) - dead, self.residual)


@dataclass(frozen=True)
class FileIndex:
    """The file index of a data file: advice, so that whatever is wrong with it selects nothing and is counted.

    Args:
        container: its bytes.
        mapping: from the table's columns to the file's.
        types: the file's columns.
        row_count: the file's rows.
        report: counters to add to.
    """

    container: ContainerReader
    mapping: SchemaMapping
    types: Mapping[str, ColumnType]
    row_count: int
    report: ReadReport

    def select(self, predicate: Predicate) -> Selection:
        """The rows that can satisfy ``predicate``; where the index is exact, and told of all its columns, nothing is left to check."""
        result = evaluate(self.mapping.to_file(predicate), self.container, self.types, self.row_count, self.report.index)
        if not result.remains:
            return Selection(BitMap(), FALSE)
        if not isinstance(result, RowSet):
            return Selection(None, predicate)
        rows = result.rows & all_rows(self.row_count)
        self.report.rows_indexed += len(rows)
        answers_all = result.exact and all(self.mapping.same(leaf.column) is not None for leaf in leaves(predicate))
        return Selection(None if len(rows) == self.row_count else rows, TRUE if answers_all else predicate)

    def first(self, order: RowOrder, limit: int, rows: BitMap | None) -> BitMap | None:
        """Of ``rows`` (None: all) those that can be among the first ``limit``; None for all. They hold every row to be sorted, and no other."""
        column = order.columns[0]
        source = self.mapping.same(ColumnRef(column.name))
        if source is None or len(rows if rows is not None else range(self.row_count)) <= limit:
            return rows
        result = top_n(
            self.container,
            ColumnRef(source.name),
            self.types,
            limit,
            ascending=column.ascending,
            nulls_first=bool(column.nulls_first),
            strict=len(order.columns) == 1,
            candidates=rows,
            row_count=self.row_count,
            notes=self.report.index,
        )
        if not result.remains:
            return BitMap()
        if not isinstance(result, RowSet):
            return rows
        self.report.rows_ranked += len(result.rows)
        self.report.files_ranked += 1
        return result.rows & all_rows(self.row_count)

    def numbers(self, column: str, rows: BitMap | None) -> NumberSummary | None:
        """What the numbers of a column of ``rows`` (None: all) come to, if an index tells it exactly."""
        source = self.mapping.same(ColumnRef(column))
        if source is None:
            return None
        return summary(self.container, ColumnRef(source.name), self.types, rows, row_count=self.row_count, notes=self.report.index)


def open_container(store: FileStore, path: str, file: DataFileMeta, report: ReadReport) -> ContainerReader | None:
    """The indexes of the data file at ``path``: embedded, or beside it; None, and a warning, if they cannot be reached."""
    if not store.options.file_index_read_enabled:
        return None
    if file.embedded_index is not None:
        return ContainerReader.of(file.embedded_index)
    if file.index_file is None:
        return None
    sidecar = store.paths.extra_file(path, file.index_file)
    try:
        ranges = store.file_io.open_ranges(sidecar, store.cache.files)
        return ContainerReader(ranges.read, ranges.size(), file.index_file, FileParts(store.cache.files, store.file_io, sidecar).load)
    except OSError as error:
        report.index.warnings[f"{sidecar}: {error.strerror or error}"] += 1
        return None


__all__ = ["FileIndex", "Selection", "open_container"]
