"""Row groups and pages of a file that statistics, dictionaries and Bloom filters cannot exclude."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyroaring import BitMap

from fileindex.predicate.tree import FALSE, And, ColumnRef, ComputedPredicate, Or, Predicate, leaves, values_of
from lsm.formats.open_data_file import OpenDataFile
from lsm.parquet.footer import RowGroup
from lsm.parquet.row_group_pages import GroupPages
from lsm.read.metrics import ReadReport
from lsm.schema.evolution import SchemaMapping
from manifest.entry.bounds import BoundsColumn
from manifest.stats.column_stats import ColumnBounds, may_match
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptIndex
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import ColumnType


@dataclass(frozen=True)
class RowGroupPruner:
    """Pruner of an open file. Indexes in the file are advice: damage is counted as a warning.

    Args:
        data: Open data file.
        mapping: Mapping from table columns to file columns.
        types: Types of the table's columns, for predicates.
        residual: Filter of rows.
        rows: Positions of the rows to return. None: all.
        report: Counters to add warnings to.
        filter_sources: Columns of the file that a filter decodes.
    """

    data: OpenDataFile
    mapping: SchemaMapping
    types: Mapping[str, ColumnType]
    residual: Predicate
    rows: BitMap | None
    report: ReadReport
    filter_sources: Sequence[str]

    def may_match(self, group: RowGroup) -> bool:
        """Return whether a row of the group may be returned."""
        if self.residual == FALSE:
            return False
        if self.rows is not None and not self.rows.range_cardinality(group.first_row, group.end_row):
            return False
        return may_match(self.residual, lambda column: self.bounds(group, column), self.types) and self._may_have_values(group)

    def _may_have_values(self, group: RowGroup) -> bool:
        """Return False if Bloom filters and dictionaries exclude a match."""
        if self._in_file is None:
            return True
        if self.rows is not None and thresholds.sparse * self.rows.range_cardinality(group.first_row, group.end_row) <= group.num_rows:
            return True  # single pages are as cheap
        size = self.data.compressed_size(self.filter_sources, [group])
        return self._may_have(self._in_file, group, min(thresholds.probe_bytes, size // thresholds.probe_pays))

    @cached_property
    def _in_file(self) -> Predicate | None:
        """Weaker filter on the file's columns. None: it searches no value."""
        return self.mapping.to_file(self.residual).inclusive if any(values_of(leaf) is not None for leaf in leaves(self.residual)) else None

    @cached_property
    def file_types(self) -> dict[str, DataType]:
        """Types of the file's columns."""
        return {source.name: source.type for source in self.mapping.sources.values() if source is not None}

    def _may_have(self, predicate: Predicate, group: RowGroup, most_bytes: int) -> bool:
        match predicate:
            case And(children):
                return all(self._may_have(child, group, most_bytes) for child in children)
            case Or(children):
                return any(self._may_have(child, group, most_bytes) for child in children)
            case ComputedPredicate():
                return True
        name = predicate.column.name
        source = self.file_types.get(name)
        if source is None or predicate.column.key is not None:
            return True
        if not may_match(predicate, lambda _: self.data.bounds(group, name, source), {name: source.column_type}):
            return False
        values = values_of(predicate)
        try:
            return values is None or not self.data.lacks(group, name, values, source, most_bytes)
        except CorruptIndex as error:
            self.report.index.warnings[str(error)] += 1
            return True

    def bounds(self, group: RowGroup, column: ColumnRef) -> ColumnBounds | None:
        """Return the bounds of a table column in a row group."""
        source = self.mapping.sources.get(column.name)
        if column.key is not None or source is None:
            return None
        stored_bounds = self.data.bounds(group, source.name, source.type)
        return None if stored_bounds is None else self.mapping.bounds(column.name, stored_bounds)

    def page_bounds(self, pages: GroupPages, column: ColumnRef) -> tuple[BoundsColumn, Any] | None:
        """Return the bounds of a table column's pages, and their starts."""
        source = self.mapping.sources.get(column.name)
        if column.key is not None or source is None:
            return None
        stored_bounds = self.data.page_bounds(pages, source.name, source.type)
        return None if stored_bounds is None else (self.mapping.bounds_of_each(column.name, stored_bounds[0]), stored_bounds[1])
