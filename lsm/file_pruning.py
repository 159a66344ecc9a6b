"""Whether a data file can hold a row that a filter wants: by its key range, its value statistics, its embedded index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from fileindex.column_type import Plain
from fileindex.container import ContainerReader
from fileindex.evaluate import IndexNotes, evaluate
from fileindex.predicate import FALSE, TRUE, ColumnRef, Predicate
from lsm.evolution import SchemaMapping, column_types
from lsm.scan_filters import bind_constants, only_columns
from manifest.data_file import DataFileMeta
from manifest.errors import CorruptFile
from manifest.manifest_entry import ManifestEntry
from manifest.stats import ColumnBounds, decode_bounds, may_match
from manifest.store import FileStore
from manifest.types import DataField


@dataclass(frozen=True)
class FilePruner:
    """A filter, held against the metadata of one file after the other; what is not known keeps the file.

    Args:
        store: the table.
        predicate: the filter, on the table's columns.
        notes: gets what the embedded indexes said.
    """

    store: FileStore
    predicate: Predicate
    notes: IndexNotes = field(default_factory=IndexNotes)
    _residuals: dict[bytes, Predicate] = field(default_factory=dict)
    _mappings: dict[int, SchemaMapping] = field(default_factory=dict)

    def residual(self, partition: bytes) -> Predicate:
        """The filter inside a partition, whose columns are constant; FALSE if no row of it is wanted."""
        found = self._residuals.get(partition)
        if found is None:
            columns = self.store.partition
            constants = dict(zip(columns.names, columns.decode(partition), strict=True))
            found = self._residuals[partition] = bind_constants(self.predicate, constants, self.store.schema.column_types)
        return found

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(self.store.schema.trimmed_primary_keys)

    def key_predicate(self, partition: bytes) -> Predicate:
        """The conjuncts over nothing but key columns: all versions of a key agree on them."""
        return only_columns(self.residual(partition), self._keys) or TRUE

    def may_match_key(self, entry: ManifestEntry) -> bool:
        """Whether a wanted key can be in the file."""
        predicate = self.key_predicate(entry.partition)
        return predicate == TRUE or may_match(predicate, self._lookup(entry.file, keys_only=True), self.store.schema.column_types)

    def may_match_values(self, entry: ManifestEntry) -> bool:
        """Whether a row of the file can satisfy the filter, by minima, maxima and null counts."""
        return may_match(self.residual(entry.partition), self._lookup(entry.file), self.store.schema.column_types)

    def may_match_index(self, entry: ManifestEntry) -> bool:
        """Whether a row of the file can satisfy the filter, by the index inside the manifest entry."""
        if entry.file.embedded_index is None:
            return True
        mapping = self._mapping(entry.file)
        added_later: dict[str, Plain] = dict.fromkeys(name for name, source in mapping.sources.items() if source is None)
        residual = bind_constants(self.residual(entry.partition), added_later, self.store.schema.column_types)
        if residual in {TRUE, FALSE}:
            return residual == TRUE
        types = column_types(self._file_fields(entry.file))
        container = ContainerReader.of(entry.file.embedded_index)
        return evaluate(mapping.to_file(residual), container, types, entry.file.row_count, self.notes).remains

    def _file_fields(self, file: DataFileMeta) -> tuple[DataField, ...]:
        return self.store.schemas.get(file.schema_id).fields

    def _mapping(self, file: DataFileMeta) -> SchemaMapping:
        found = self._mappings.get(file.schema_id)
        if found is None:
            found = SchemaMapping.of(self.store.schema.fields, self._file_fields(file), file.schema_id)
            self._mappings[file.schema_id] = found
        return found

    def _lookup(self, file: DataFileMeta, *, keys_only: bool = False) -> Callable[[ColumnRef], ColumnBounds | None]:
        mapping = self._mapping(file)
        try:
            known = {} if keys_only else self._value_bounds(file)
            if self._keys:
                known |= {name: bounds for name, bounds in self._key_bounds(file).items() if bounds.min is not None}
        except (ValueError, IndexError) as error:
            raise CorruptFile(file.file_name, f"its statistics cannot be decoded ({error})") from error

        def bounds(column: ColumnRef) -> ColumnBounds | None:
            source = mapping.sources.get(column.name)
            if source is None:
                return ColumnBounds(None, None, file.row_count, file.row_count)
            stored = known.get(source.name) if column.key is None else None
            return None if stored is None else mapping.bounds(column.name, stored)

        return bounds

    def _value_bounds(self, file: DataFileMeta) -> dict[str, ColumnBounds]:
        by_name = {column.name: column for column in self._file_fields(file)}
        names = tuple(by_name) if file.value_stats_cols is None else file.value_stats_cols
        if not all(name in by_name for name in names):
            return {}
        return decode_bounds(file.value_stats, names, [by_name[name].type for name in names], file.row_count)

    def _key_bounds(self, file: DataFileMeta) -> dict[str, ColumnBounds]:
        """By the key statistics; the first key column by the exact smallest and greatest key."""
        by_id = {column.id: column for column in self._file_fields(file)}
        keys = [by_id[self.store.schema.field(name).id] for name in self.store.schema.trimmed_primary_keys]
        types = [key.type for key in keys]
        known = decode_bounds(file.key_stats, [key.name for key in keys], types, file.row_count)
        assert self.store.key is not None
        low, high = (self.store.key.decode(key, file.file_name)[0] for key in (file.min_key, file.max_key))
        known[keys[0].name] = ColumnBounds(low, high, 0, file.row_count)
        return known


__all__ = ["FilePruner"]
