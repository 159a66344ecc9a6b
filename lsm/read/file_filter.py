"""Filters bound to partition constants and file schemas.

Conditions that file statistics prove are removed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fileindex.predicate.tree import FALSE, TRUE, In, IsNull, Leaf, Predicate, map_leaves, negate
from lsm.scan.file_pruner import FilePruner
from lsm.scan.predicates import bind_constants
from lsm.schema.evolution import SchemaMapping, column_types
from lsm.schema.parquet_schema import KIND_FIELD, SEQUENCE_FIELD
from manifest.entry.data_file import DataFileMeta
from manifest.stats.column_stats import BoundsLookup, may_match, values_between
from manifest.store import FileStore
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import FLOATS, ColumnType, Plain


# The residual is computed where a file is read, not by the planner. It takes about 0.125 ms, a few percent of opening the file, and tasks
# share the work. The planner would also compute it for files that a limit or a count never reaches, and splits would grow by a tenth.
def residual_after_statistics(predicate: Predicate, bounds: BoundsLookup, types: Mapping[str, ColumnType]) -> Predicate:
    """Remove the leaves of ``predicate`` that hold for every row.

    Returns TRUE if all hold. A leaf always holds if its negation cannot match and no null makes it unknown. Values of a long IN list outside
    of the bounds are removed.

    >>> from sparkexpr.values.column_type import Kind
    >>> from fileindex.predicate.tree import ColumnRef, Compare, Op
    >>> from manifest.stats.column_stats import ColumnBounds
    >>> terms = [Compare(ColumnRef("id"), Op.GT, value) for value in (9, 10)]
    >>> known = ColumnBounds(10, 20, 0, 100)
    >>> [residual_after_statistics(term, lambda _: known, {"id": ColumnType(Kind.INT)}) == TRUE for term in terms]
    [True, False]
    """
    return map_leaves(predicate, lambda leaf: TRUE if _always(leaf, bounds, types) else _shorten(leaf, bounds, types))


def _shorten(leaf: Leaf, bounds: BoundsLookup, types: Mapping[str, ColumnType]) -> Predicate:
    """Remove values of a long IN outside of the bounds.

    Only if at most half of the values remain.
    """
    if not isinstance(leaf, In) or len(leaf.values) < thresholds.listed_values or leaf.negated:
        return leaf
    column_bounds, column_type = bounds(leaf.column), types.get(leaf.column.name)
    if column_bounds is None or column_bounds.min is None or column_bounds.max is None or column_type is None or column_type.kind in FLOATS:
        return leaf
    values = values_between(leaf.values, column_bounds.min, column_bounds.max)
    return leaf if 2 * len(values) > len(leaf.values) else replace(leaf, values=values) if values else FALSE


def _always(leaf: Leaf, bounds: BoundsLookup, types: Mapping[str, ColumnType]) -> bool:
    column_bounds = bounds(leaf.column)
    column_type = types.get(leaf.column.name)
    if column_bounds is not None and column_bounds.max is not None and column_type is not None and column_type.kind in FLOATS:
        column_bounds = replace(column_bounds, max=math.nan)  # NaN is the greatest value, but some writers omit it from the maximum
    if column_bounds is None or may_match(negate(leaf), lambda _: column_bounds, types):
        return False
    return column_bounds.null_count == 0 or isinstance(leaf, IsNull)


_SYSTEM = (SEQUENCE_FIELD, KIND_FIELD)


@dataclass(frozen=True)
class FileFilter:
    """Filter of a table's files.

    Results per schema and partition are cached.

    Args:
        store: Store of the table.
        predicate: Filter on the table's columns.
    """

    store: FileStore
    predicate: Predicate = TRUE
    _mappings: dict[int, SchemaMapping] = field(default_factory=dict, init=False, repr=False, compare=False)
    _inside: dict[tuple[bytes, int], FilterInside] = field(default_factory=dict, init=False, repr=False, compare=False)
    _narrowed: dict[Predicate, FileFilter] = field(default_factory=dict, init=False, repr=False, compare=False)

    def narrowed(self, predicate: Predicate) -> FileFilter:
        """Return the filter of the same files with another predicate."""
        if predicate not in self._narrowed:
            self._narrowed[predicate] = FileFilter(self.store, predicate)
        return self._narrowed[predicate]

    @cached_property
    def types(self) -> Mapping[str, ColumnType]:
        """Types of table columns and system columns, for predicates."""
        return {**self.store.schema.column_types, **column_types(_SYSTEM)}

    def mapping(self, schema_id: int) -> SchemaMapping:
        """Return the mapping to files of a schema.

        Includes the system columns.
        """
        mapping = self._mappings.get(schema_id)
        if mapping is None:
            fields = self.store.schemas.get(schema_id).fields
            mapping = self._mappings[schema_id] = SchemaMapping.of((*self.store.schema.fields, *_SYSTEM), (*fields, *_SYSTEM), schema_id)
        return mapping

    def inside(self, partition: bytes, schema_id: int) -> FilterInside:
        """Return the filter for files of a partition and schema."""
        filter_inside = self._inside.get((partition, schema_id))
        if filter_inside is None:
            columns = self.store.partition
            constants: dict[str, Plain] = {name: None for name, source in self.mapping(schema_id).sources.items() if source is None}
            constants.update(zip(columns.names, columns.decode(partition), strict=True))
            filter_inside = FilterInside(self, constants, bind_constants(self.predicate, constants, self.types))
            self._inside[partition, schema_id] = filter_inside
        return filter_inside


@dataclass(frozen=True)
class FilterInside:
    """Filter with constant columns replaced.

    ``constants`` are partition columns, and nulls of columns added later. ``residual`` is the filter with these values.
    """

    filter: FileFilter
    constants: Mapping[str, Plain]
    residual: Predicate

    @cached_property
    def _pruner(self) -> FilePruner:
        return FilePruner(self.filter.store, self.residual)

    def unproven(self, file: DataFileMeta) -> Predicate:
        """Return ``residual`` without conditions that statistics prove."""
        if self.residual in {TRUE, FALSE}:
            return self.residual
        return residual_after_statistics(self.residual, self._pruner.bounds(file), self.filter.types)
