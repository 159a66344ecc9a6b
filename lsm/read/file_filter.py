"""A filter as data files see it: bound to a partition's constants and to a file's schema, less what statistics prove.

This residual is made where a file is read, not at planning: making it costs about an eighth of a millisecond, a few percent of opening
the file, and tasks share that out. Made by the planner it would be the driver's alone, for files too that a limit or a count never
reaches, and every split would carry a tree for each file, a tenth of its size, although the bounds that tell it travel anyway.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fileindex.base.column_type import FLOATS, ColumnType, Plain
from fileindex.base.lazy import cached_property
from fileindex.base.thresholds import thresholds
from fileindex.predicate.tree import FALSE, TRUE, In, IsNull, Leaf, Predicate, map_leaves, negate
from lsm.scan.file_pruner import FilePruner
from lsm.scan.predicates import bind_constants
from lsm.schema.evolution import SchemaMapping, column_types
from lsm.schema.parquet_schema import KIND_FIELD, SEQUENCE_FIELD
from manifest.entry.data_file import DataFileMeta
from manifest.stats.column_stats import BoundsLookup, may_match
from manifest.stats.leaf_on_bounds import values_between
from manifest.store import FileStore


def residual_after_statistics(predicate: Predicate, bounds: BoundsLookup, types: Mapping[str, ColumnType]) -> Predicate:
    """``predicate`` without the leaves that hold for every row within ``bounds``; TRUE if it always holds.

    A leaf always holds where its negation cannot match and no null can make it unknown. Of a long IN list the values beyond the
    bounds go.

    >>> from fileindex.base.column_type import Kind
    >>> from fileindex.predicate.tree import ColumnRef, Compare, Op
    >>> from manifest.stats.column_stats import ColumnBounds
    >>> terms = [Compare(ColumnRef("id"), Op.GT, value) for value in (9, 10)]
    >>> known = ColumnBounds(10, 20, 0, 100)
    >>> [residual_after_statistics(term, lambda _: known, {"id": ColumnType(Kind.INT)}) == TRUE for term in terms]
    [True, False]
    """
    return map_leaves(predicate, lambda leaf: TRUE if _always(leaf, bounds, types) else _shortened(leaf, bounds, types))


def _shortened(leaf: Leaf, bounds: BoundsLookup, types: Mapping[str, ColumnType]) -> Predicate:
    """``leaf``, or of a long IN the values that lie within the bounds, if they are half of them at most."""
    if not isinstance(leaf, In) or len(leaf.values) < thresholds().listed_values or leaf.negated:
        return leaf
    known, column_type = bounds(leaf.column), types.get(leaf.column.name)
    if known is None or known.min is None or known.max is None or column_type is None or column_type.kind in FLOATS:
        return leaf
    values = values_between(leaf.values, known.min, known.max)
    return leaf if 2 * len(values) > len(leaf.values) else replace(leaf, values=values) if values else FALSE


def _always(leaf: Leaf, bounds: BoundsLookup, types: Mapping[str, ColumnType]) -> bool:
    known = bounds(leaf.column)
    column_type = types.get(leaf.column.name)
    if known is not None and known.max is not None and column_type is not None and column_type.kind in FLOATS:
        known = replace(known, max=math.nan)  # some writers leave NaN, the greatest value, out of the maximum
    if known is None or may_match(negate(leaf), lambda _: known, types):
        return False
    return known.null_count == 0 or isinstance(leaf, IsNull)


_SYSTEM = (SEQUENCE_FIELD, KIND_FIELD)


@dataclass(frozen=True)
class FileFilter:
    """The rows that are wanted of a table's files. What files of one schema and partition have in common is worked out once.

    Args:
        store: the table.
        predicate: the filter, on the table's columns.
    """

    store: FileStore
    predicate: Predicate = TRUE
    _mappings: dict[int, SchemaMapping] = field(default_factory=dict, init=False, repr=False, compare=False)
    _inside: dict[tuple[bytes, int], FilterInside] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def types(self) -> Mapping[str, ColumnType]:
        """The table's columns and the system columns, as predicates know them."""
        return {**self.store.schema.column_types, **column_types(_SYSTEM)}

    def mapping(self, schema_id: int) -> SchemaMapping:
        """Where the table's columns and the system columns lie in files of a schema."""
        found = self._mappings.get(schema_id)
        if found is None:
            fields = self.store.schemas.get(schema_id).fields
            found = self._mappings[schema_id] = SchemaMapping.of((*self.store.schema.fields, *_SYSTEM), (*fields, *_SYSTEM), schema_id)
        return found

    def inside(self, partition: bytes, schema_id: int) -> FilterInside:
        """The filter in the files of a partition that have a schema."""
        found = self._inside.get((partition, schema_id))
        if found is None:
            columns = self.store.partition
            constants: dict[str, Plain] = {name: None for name, source in self.mapping(schema_id).sources.items() if source is None}
            constants.update(zip(columns.names, columns.decode(partition), strict=True))
            found = FilterInside(self, constants, bind_constants(self.predicate, constants, self.types))
            self._inside[partition, schema_id] = found
        return found


@dataclass(frozen=True)
class FilterInside:
    """A filter where ``constants`` (partition columns; null for columns added later) are the same in every row; ``residual`` knows them."""

    filter: FileFilter
    constants: Mapping[str, Plain]
    residual: Predicate

    @cached_property
    def _pruner(self) -> FilePruner:
        return FilePruner(self.filter.store, self.residual)

    def unproven(self, file: DataFileMeta) -> Predicate:
        """``residual`` without what the statistics of ``file`` prove of all its rows."""
        if self.residual in {TRUE, FALSE}:
            return self.residual
        return residual_after_statistics(self.residual, self._pruner.bounds(file), self.filter.types)


__all__ = ["FileFilter", "FilterInside", "residual_after_statistics"]
