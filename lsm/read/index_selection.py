"""Row selection by file index.

No data file is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyroaring import BitMap

from fileindex.format.bsi import NumberSummary
from fileindex.format.container import ContainerReader
from fileindex.predicate.tree import FALSE, ColumnRef, Predicate, all_of, conjuncts
from fileindex.query.evaluate import evaluate_terms
from fileindex.query.top_n import summary, top_n
from fileindex.query.value_counts import value_counts
from fileindex.rowset.result import SKIP, RowSet
from fileindex.rowset.roaring import all_rows
from lsm.keys.order_by import RowOrder
from lsm.read.metrics import ReadReport
from lsm.schema.evolution import SchemaMapping
from manifest.entry.data_file import DataFileMeta
from manifest.io.file_cache import FileParts
from manifest.store import FileStore
from sparkexpr.values.column_type import ColumnType

_SIZE_BYTES = 100
"""Approximate bytes in memory of a cached file size."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of a file that may match.

    ``rows`` are positions, None for all. ``residual`` must still be checked on them.
    """

    rows: BitMap | None
    residual: Predicate

    @property
    def is_empty(self) -> bool:
        """Whether no row can match."""
        return self.residual == FALSE or (self.rows is not None and not self.rows)

    def count(self, row_count: int) -> int:
        """Return the number of rows, if no condition is left.

        >>> from fileindex.predicate.tree import TRUE
        >>> Selection(BitMap([1]), TRUE).count(3), Selection(None, TRUE).count(3), Selection(None, FALSE).count(3)
        (1, 3, 0)
        """
        return 0 if self.is_empty else row_count if self.rows is None else len(self.rows)

    def within(self, rows: BitMap | None) -> Selection:
        """Keep only the rows of a set. None: all.

        >>> from fileindex.predicate.tree import TRUE
        >>> Selection(BitMap([1, 2]), TRUE).within(BitMap([2, 3])).rows
        BitMap([2])
        """
        return self if rows is None else Selection(rows if self.rows is None else self.rows & rows, self.residual)

    def without(self, dead: BitMap, row_count: int) -> Selection:
        """Remove the rows of a deletion vector.

        >>> from fileindex.predicate.tree import TRUE
        >>> Selection(None, TRUE).without(BitMap([1]), 3).rows
        BitMap([0, 2])
        """
        return Selection((all_rows(row_count) if self.rows is None else self.rows) - dead, self.residual)


@dataclass(frozen=True)
class FileIndex:
    """File index of a data file.

    Optional: a damaged index selects no rows, and is counted as a warning.

    Args:
        container: Reader of the index bytes.
        mapping: Mapping from table columns to file columns.
        types: Types of the file's columns.
        row_count: Number of rows of the file.
        report: Counters to add to.
    """

    container: ContainerReader
    mapping: SchemaMapping
    types: Mapping[str, ColumnType]
    row_count: int
    report: ReadReport

    def select(self, predicate: Predicate) -> Selection:
        """Return the rows that may match ``predicate``.

        The residual has the terms that no index answers exactly.
        """
        terms = conjuncts(predicate)
        projected = [self.mapping.to_file(term) for term in terms]
        results = evaluate_terms(projected, self.container, self.types, self.row_count, self.report.index)
        if SKIP in results:
            return Selection(BitMap(), FALSE)
        residual = all_of(*(term for term, result in zip(terms, results, strict=True) if not result.exact))
        row_sets = [result.rows for result in results if isinstance(result, RowSet)]
        if not row_sets:
            return Selection(None, residual)
        rows = BitMap.intersection(all_rows(self.row_count), *row_sets)
        self.report.rows_indexed += len(rows)
        return Selection(None if len(rows) == self.row_count else rows, residual)

    def first(self, order: RowOrder, limit: int, rows: BitMap | None) -> BitMap | None:
        """Return the rows that may be among the first ``limit``.

        They are a subset of ``rows``. None means all rows, in argument and result.
        """
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
        """Return the summary of a numeric column from an index.

        ``rows`` None means all rows. None: no index has an exact summary.
        """
        source = self.mapping.same(ColumnRef(column))
        if source is None:
            return None
        return summary(self.container, ColumnRef(source.name), self.types, rows, row_count=self.row_count, notes=self.report.index)

    def value_counts(self, column: ColumnRef, rows: BitMap | None) -> tuple[Any, Any] | None:
        """Return the values of a column and the number of rows with each.

        ``rows`` None means all rows. None: no index has the values.
        """
        source = self.mapping.same(column)
        if source is None:
            return None
        in_file = ColumnRef(source.name, column.key)
        return value_counts(self.container, in_file, self.types, rows, row_count=self.row_count, notes=self.report.index)


def open_container(store: FileStore, path: str, file: DataFileMeta, report: ReadReport) -> ContainerReader | None:
    """Return the indexes of the data file at ``path``.

    They are embedded, or in a sidecar file. None: not available; a failure to open is counted as a warning.
    """
    if not store.options.file_index_read_enabled:
        return None
    if file.embedded_index is not None:
        return ContainerReader.of(file.embedded_index)
    if file.index_file is None:
        return None
    sidecar = store.paths.extra_file(path, file.index_file)
    try:
        ranges = store.file_io.open_ranges(sidecar, store.cache.files)
        parts = FileParts(store.cache.files, store.file_io, sidecar)
        size = parts.load("size", ranges.size, lambda _: _SIZE_BYTES)
        return ContainerReader(ranges.read, size, file.index_file, parts.load)
    except OSError as error:
        report.index.warnings[f"{sidecar}: {error.strerror or error}"] += 1
        return None
