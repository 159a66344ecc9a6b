"""Whether a data file can hold a row that a filter wants: by its key range, its value statistics, its embedded index."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fileindex.column_type import Plain
from fileindex.container import ContainerReader
from fileindex.evaluate import IndexNotes, evaluate
from fileindex.predicate import FALSE, TRUE, ColumnRef, Predicate, columns_of
from lsm.evolution import SchemaMapping, column_types
from lsm.scan_filters import bind_constants, only_columns
from manifest.binary_row import EMPTY_ROW, decode_row
from manifest.data_file import DataFileMeta
from manifest.entry_columns import EntryColumns
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

    def key_mask(self, entries: EntryColumns) -> npt.NDArray[np.bool_]:
        """Which files can hold a wanted key: by the exact range of the first key column, and the statistics of the others."""
        wanted = np.ones(len(entries), np.bool_)
        codes, partitions = entries.partition_codes
        types = self.store.schema.column_types
        for code, partition in enumerate(partitions):
            predicate = self.key_predicate(partition)
            if predicate == TRUE:
                continue
            rows = np.flatnonzero(codes == code)
            some = entries.select(rows)
            lookups = _key_lookups(self.store, some, columns_of(predicate))
            wanted[rows] = [may_match(predicate, lookup, types) for lookup in lookups]
        return wanted

    def may_match_values(self, entry: ManifestEntry) -> bool:
        """Whether a row of the file can satisfy the filter, by minima, maxima and null counts."""
        return may_match(self.residual(entry.partition), self.bounds(entry.file), self.store.schema.column_types)

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

    def bounds(self, file: DataFileMeta) -> Callable[[ColumnRef], ColumnBounds | None]:
        """Minima, maxima and null counts of the filter's columns in a file; None for a column of which nothing is known."""
        mapping = self._mapping(file)
        try:
            known = self._value_bounds(file, mapping)
        except (ValueError, IndexError) as error:
            raise CorruptFile(file.file_name, f"its statistics cannot be decoded ({error})") from error

        def bounds(column: ColumnRef) -> ColumnBounds | None:
            source = mapping.sources.get(column.name)
            if source is None:
                return ColumnBounds(None, None, file.row_count, file.row_count)
            stored = known.get(source.name) if column.key is None else None
            return None if stored is None else mapping.bounds(column.name, stored)

        return bounds

    def _value_bounds(self, file: DataFileMeta, mapping: SchemaMapping) -> dict[str, ColumnBounds]:
        """Bounds of the file's columns that the filter asks for."""
        sources = (mapping.sources.get(column) for column in columns_of(self.predicate))
        wanted = {source.name for source in sources if source is not None}
        by_name = {column.name: column for column in self._file_fields(file)}
        names = tuple(by_name) if file.value_stats_cols is None else file.value_stats_cols
        if not all(name in by_name for name in names):
            return {}
        return decode_bounds(file.value_stats, names, [by_name[name].type for name in names], file.row_count, wanted)


def _key_lookups(store: FileStore, entries: EntryColumns, columns: Collection[str]) -> Iterator[Callable[[ColumnRef], ColumnBounds | None]]:
    """For each file the bounds of its key columns; of those not in ``columns`` nothing is looked up."""
    schema = store.schema
    keys, types = schema.trimmed_primary_keys, schema.key_types
    needs_stats = any(name in columns for name in keys[1:])
    names = ("_FILE._KEY_STATS._MIN_VALUES", "_FILE._KEY_STATS._MAX_VALUES")
    low_stats, high_stats = (entries.content(name) for name in names) if needs_stats else (entries.min_key, entries.max_key)
    rows = zip(entries.min_key, entries.max_key, low_stats, high_stats, entries.row_count.tolist(), strict=True)
    for number, (first, last, low, high, count) in enumerate(rows):
        try:
            minima, maxima = decode_row(first, types), decode_row(last, types)
            known = {keys[0]: ColumnBounds(minima[0], maxima[0], 0, count)}
            if needs_stats and low != EMPTY_ROW:
                inner = zip(keys[1:], decode_row(low, types)[1:], decode_row(high, types)[1:], strict=True)
                known |= {name: ColumnBounds(least, most, 0, count) for name, least, most in inner}
        except (ValueError, IndexError) as error:
            raise CorruptFile(entries.file_name[number], f"its key range cannot be decoded ({error})") from error
        yield lambda column, known=known: known.get(column.name)  # type: ignore[misc]  # mypy has no type for bound defaults


__all__ = ["FilePruner"]
