"""A filter as data files see it: bound to a partition's constants and to a file's schema, less what statistics prove.

This residual is made where a file is read, not at planning: making it costs about an eighth of a millisecond, a few percent of opening
the file, and tasks share that out. Made by the planner it would be the driver's alone, for files too that a limit or a count never
reaches, and every split would carry a tree for each file, a tenth of its size, although the bounds that tell it travel anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fileindex.base.column_type import ColumnType, Plain
from fileindex.base.lazy import cached_property
from fileindex.predicate.tree import FALSE, TRUE, Predicate
from lsm.read.residual import residual_after_statistics
from lsm.scan.file_pruner import FilePruner
from lsm.scan.predicates import bind_constants
from lsm.schema.evolution import SchemaMapping, column_types
from lsm.schema.parquet_schema import KIND_FIELD, SEQUENCE_FIELD
from manifest.entry.data_file import DataFileMeta
from manifest.store import FileStore

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


__all__ = ["FileFilter", "FilterInside"]
