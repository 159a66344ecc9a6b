"""File pruning by key range, value statistics and embedded index.

Also pruning of manifests, which are read in parallel, and of files by ranges of row ids.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np

from fileindex.format.container import ContainerReader
from fileindex.predicate.projection import only_columns
from fileindex.predicate.tree import FALSE, TRUE, ColumnRef, Predicate, columns_of
from fileindex.query.evaluate import evaluate
from fileindex.query.metrics import IndexMetrics
from lsm.scan.predicates import bind_constants, bind_rows
from lsm.schema.evolution import SchemaMapping, column_types
from manifest.entry.bounds import BoundsColumn, BoundsColumnLookup, key_bounds, may_match_each, value_bounds
from manifest.entry.column_ranges import stats_groups
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.errors import UnsupportedTable
from manifest.row.binary_row import EMPTY_ROW
from manifest.schema.table_schema import TableSchema
from manifest.stats.column_stats import ColumnBounds, decode_bounds, may_match
from manifest.store import FileStore
from manifest.types.data_type import DataField
from paimon_base.errors import CorruptFile
from paimon_base.lazy import cached_property
from sparkexpr.values.arrays import Indices, Int64s, Mask
from sparkexpr.values.column_type import Plain


@dataclass(frozen=True)
class FilePruner:
    """Filter applied to file metadata.

    Files with unknown metadata are kept.

    Args:
        store: Store of the table.
        predicate: Filter on the table's columns.
        notes: Collects the results of embedded indexes.
    """

    store: FileStore
    predicate: Predicate
    notes: IndexMetrics = field(default_factory=IndexMetrics)
    _residuals: dict[bytes, Predicate] = field(default_factory=dict)
    _mappings: dict[int, SchemaMapping] = field(default_factory=dict)
    _sources: dict[int, frozenset[str]] = field(default_factory=dict)

    def residual(self, partition: bytes) -> Predicate:
        """Return the filter inside a partition.

        Partition columns are replaced by their values. FALSE if no row can match.
        """
        if partition not in self._residuals:
            self.residuals([partition])
        return self._residuals[partition]

    def residuals(self, partitions: Sequence[bytes]) -> list[Predicate]:
        """Return the filter inside each of ``partitions``.

        Partitions with equal results share one object.
        """
        new = [partition for partition in partitions if partition not in self._residuals]
        if new:
            columns, types = self.store.partition, self.store.schema.column_types
            values = [columns.decode(partition) for partition in new]
            self._residuals.update(zip(new, bind_rows(self.predicate, columns.names, values, types), strict=True))
        return [self._residuals[partition] for partition in partitions]

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(self.store.schema.trimmed_primary_keys)

    def key_predicate(self, partition: bytes) -> Predicate:
        """Return the conjuncts over key columns only.

        All versions of a key agree on them.
        """
        return only_columns(self.residual(partition), self._keys).inclusive

    def key_mask(self, entries: EntryColumns) -> Mask:
        """Return a mask of files that may hold matching keys.

        Uses the exact range of the first key column, and the statistics of the others.
        """
        may_match = np.ones(len(entries), np.bool_)
        schema = self.store.schema
        for residual, rows in self._by_residual(entries):
            predicate = only_columns(residual, self._keys).inclusive
            if predicate == TRUE:
                continue
            try:
                bounds_by_column = key_bounds(entries.select(rows), schema.trimmed_primary_keys, schema.key_types, columns_of(predicate))
            except ValueError as error:
                raise CorruptFile(entries.path_of(int(rows[0])), f"the key range of a file cannot be decoded: {error}") from error
            may_match[rows] = may_match_each(predicate, partial(_of_name, bounds_by_column), schema.column_types, rows.size)
        return may_match

    def needs_values(self, entries: EntryColumns) -> bool:
        """Return whether value statistics can prune beyond ``key_mask``."""
        conditions = {self.residual(partition) for partition in entries.partition_codes[1]}
        if not all(self._keys.issuperset(columns_of(condition)) for condition in conditions):
            return True
        low = entries.columns.spans["_FILE._KEY_STATS._MIN_VALUES"]
        return bool((low.end - low.start <= len(EMPTY_ROW)).any())

    def value_mask(self, entries: EntryColumns) -> Mask:
        """Return a mask of files that may match by statistics.

        Statistics are minima, maxima and null counts.
        """
        may_match = np.ones(len(entries), np.bool_)
        types = self.store.schema.column_types
        for schema_id, covered, rows in stats_groups(entries):
            group_entries = entries.select(rows)
            lookup = self._column_lookup(group_entries, schema_id, covered)
            for residual, group_rows in self._by_residual(group_entries):
                if residual != TRUE:
                    may_match[rows[group_rows]] = may_match_each(residual, partial(_of_rows, lookup, group_rows), types, group_rows.size)
        return may_match

    def index_mask(self, entries: EntryColumns) -> Mask:
        """Return a mask of files that may match by index.

        Embedded indexes are stored inside manifest entries.
        """
        may_match = np.ones(len(entries), np.bool_)
        rows = np.flatnonzero(entries.present("_FILE._EMBEDDED_FILE_INDEX"))
        if rows.size:
            indexed = entries.select(rows)
            indexes = zip(
                indexed.partition,
                indexed.content("_FILE._EMBEDDED_FILE_INDEX"),
                indexed.schema_id.tolist(),
                indexed.row_count.tolist(),
                strict=True,
            )
            may_match[rows] = [self._index_may_match(*index) for index in indexes]
        return may_match

    def _by_residual(self, entries: EntryColumns) -> list[tuple[Predicate, Indices]]:
        """Group entries by the filter of their partition."""
        codes, partitions = entries.partition_codes
        numbers: dict[Predicate, int] = {}
        of_partition = np.array([numbers.setdefault(residual, len(numbers)) for residual in self.residuals(partitions)], np.intp)
        if len(numbers) == 1:
            return [(residual, np.arange(len(entries))) for residual in numbers]
        residual_numbers = of_partition[codes]
        return [(residual, np.flatnonzero(residual_numbers == number)) for residual, number in numbers.items()]

    def _index_may_match(self, partition: bytes, index: bytes, schema_id: int, row_count: int) -> bool:
        mapping = self._mapping(schema_id)
        added_later: dict[str, Plain] = dict.fromkeys(name for name, source in mapping.sources.items() if source is None)
        residual = bind_constants(self.residual(partition), added_later, self.store.schema.column_types)
        if residual in {TRUE, FALSE}:
            return residual == TRUE
        types = column_types(self._fields(schema_id))
        return evaluate(mapping.to_file(residual).inclusive, ContainerReader.of(index), types, row_count, self.notes).remains

    def _column_lookup(self, entries: EntryColumns, schema_id: int, covered: tuple[str, ...] | None) -> BoundsColumnLookup:
        """Return the bounds of filter columns for one schema."""
        mapping = self._mapping(schema_id)
        schema = self.store.schemas.get(schema_id)
        names = schema.names if covered is None else covered
        if not schema.by_name.keys() >= set(names):
            return lambda _: None
        try:
            bounds_by_column = value_bounds(entries, names, schema.types_of(names), self._wanted_sources(schema_id))
        except ValueError as error:
            raise CorruptFile(entries.path_of(0), f"the statistics of a file cannot be decoded: {error}") from error

        @cache
        def bounds(column: ColumnRef) -> BoundsColumn | None:
            source = mapping.sources.get(column.name)
            if source is None:
                return BoundsColumn.all_null(entries.row_count)
            stored = bounds_by_column.get(source.name) if column.key is None else None
            return None if stored is None else mapping.bounds_of_each(column.name, stored)

        return bounds

    def _fields(self, schema_id: int) -> tuple[DataField, ...]:
        return self.store.schemas.get(schema_id).fields

    def _mapping(self, schema_id: int) -> SchemaMapping:
        mapping = self._mappings.get(schema_id)
        if mapping is None:
            mapping = self._mappings[schema_id] = SchemaMapping.of(self.store.schema.fields, self._fields(schema_id), schema_id)
        return mapping

    def _wanted_sources(self, schema_id: int) -> frozenset[str]:
        """Return the filter columns' names in files of a schema."""
        if schema_id not in self._sources:
            sources = map(self._mapping(schema_id).sources.get, columns_of(self.predicate))
            self._sources[schema_id] = frozenset([source.name for source in sources if source is not None])
        return self._sources[schema_id]

    def bounds(self, file: DataFileMeta) -> Callable[[ColumnRef], ColumnBounds | None]:
        """Return the bounds of the filter's columns in a file.

        Minima, maxima and null counts. None for a column without statistics.
        """
        mapping = self._mapping(file.schema_id)
        try:
            stored_bounds = self._value_bounds(file)
        except (ValueError, IndexError) as error:
            raise CorruptFile(file.file_name, f"its statistics cannot be decoded: {error}") from error

        def bounds(column: ColumnRef) -> ColumnBounds | None:
            source = mapping.sources.get(column.name)
            if source is None:
                return ColumnBounds(None, None, file.row_count, file.row_count)
            stored = stored_bounds.get(source.name) if column.key is None else None
            return None if stored is None else mapping.bounds(column.name, stored)

        return bounds

    def _value_bounds(self, file: DataFileMeta) -> dict[str, ColumnBounds]:
        """Return the bounds of the file's filter columns."""
        schema = self.store.schemas.get(file.schema_id)
        names = schema.names if file.value_stats_cols is None else file.value_stats_cols
        if not schema.by_name.keys() >= set(names):
            return {}
        source_columns = self._wanted_sources(file.schema_id)
        return decode_bounds(file.value_stats, names, schema.types_of(names), file.row_count, source_columns, unbounded=file.unbounded)


def _of_name(bounds_by_column: Mapping[str, BoundsColumn], column: ColumnRef) -> BoundsColumn | None:
    return bounds_by_column.get(column.name) if column.key is None else None


def _of_rows(lookup: BoundsColumnLookup, rows: Indices, column: ColumnRef) -> BoundsColumn | None:
    bounds = lookup(column)
    return bounds if bounds is None or rows.size == bounds.rows.size else bounds.take(rows)


def row_ranges(entries: EntryColumns) -> tuple[Int64s, Int64s]:
    """Return the first and last row id of each entry.

    Raises:
        CorruptFile: An entry has no row ids.
    """
    has_row_ids = entries.present("_FILE._FIRST_ROW_ID")
    if not has_row_ids.all():
        row = int(np.flatnonzero(~has_row_ids)[0])
        raise CorruptFile(entries.path_of(row), f"data file {entries.file_name[row]} has no row ids, which data evolution requires")
    first = entries.numbers("_FILE._FIRST_ROW_ID")
    return first, first + np.maximum(entries.row_count, 1) - 1


def check_rows_only(table: str, *, evolves: bool) -> None:
    """Raise ``UnsupportedTable`` for reads of single files.

    With data evolution, a file may hold only some columns of rows of another file.
    """
    if evolves:
        raise UnsupportedTable(
            f"{table}: option 'data-evolution.enabled': changes between snapshots cannot be read, "
            "because new files may add columns to existing rows. Read the snapshots instead"
        )


@dataclass
class ManifestPruner:
    """Pruning of manifests.

    Manifests without ranges are kept. ``note`` describes the last pruning. For a primary-key table only conditions on keys and partitions
    are used, because all versions of a row agree on them. If no row has two visible versions above level 0, other conditions are used too,
    except for manifests of buckets with a file on level 0.
    """

    store: FileStore
    predicate: Predicate
    note: str = ""
    waiting: frozenset[str] | None = None
    """Live level-0 files, set by ``wanted``. None: no manifest that may delete one was skipped, so entries are complete."""
    _by_key: Predicate = field(init=False, default=TRUE)
    _mappings: dict[int, tuple[TableSchema, SchemaMapping]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        schema = self.store.schema
        self._by_key = only_columns(self.predicate, {*schema.trimmed_primary_keys, *schema.partition_keys}).inclusive
        if not schema.kind.prunes_by_value:
            self.predicate = self._by_key

    def select(self, metas: Sequence[ManifestFileMeta]) -> list[ManifestFileMeta]:
        """Return the manifests that may hold a matching file.

        Includes manifests that may hold other versions of its keys. Raises the errors of reading manifests.
        """
        columns = [name for name in columns_of(self.predicate) if name not in self.store.schema.partition_keys]
        if self.predicate == TRUE or not columns:
            self.note = "" if self.predicate == TRUE else "no condition on columns with ranges"
            return list(metas)
        ranged = [meta for meta in metas if meta.column_ranges is not None]
        dropped = {id(meta) for meta in ranged if not self._may_hold(meta, self.predicate)}
        if dropped and self.store.schema.kind.has_single_version and not self.store.skips_level0 and self._by_key != self.predicate:
            dropped -= self._merging(metas, dropped)
        self.note = f"{', '.join(columns)}: {len(ranged)} of {len(metas)} manifests have ranges"
        return [meta for meta in metas if id(meta) not in dropped]

    def _merging(self, metas: Sequence[ManifestFileMeta], dropped: Container[int]) -> set[int]:
        """Return the dropped manifests with files of merging buckets.

        Manifests are identified by ``id``. All versions of a merging bucket are needed, whatever their values.
        """
        by_key = [meta for meta in metas if id(meta) not in dropped or self._may_hold(meta, self._by_key)]
        shallow = [meta for meta in by_key if meta.min_level is None or meta.min_level <= 0]
        entries = self.store.manifests.read_metas(shallow).not_deleted  # extra entries of deleted files are harmless here
        waiting = entries.select(entries.level <= 0)
        self.waiting = frozenset(waiting.file_name)
        buckets = np.unique(waiting.bucket)
        spans_partition = self.store.partition.spanning(waiting.partition_codes[1])

        def holds(meta: ManifestFileMeta) -> bool:
            if meta.min_bucket is None or meta.max_bucket is None:
                return True
            bucket_index = int(np.searchsorted(buckets, meta.min_bucket))
            return bucket_index < len(buckets) and int(buckets[bucket_index]) <= meta.max_bucket

        if not len(waiting):
            return set()
        path = self.store.paths.manifest
        return {id(meta) for meta in by_key if holds(meta) and spans_partition(meta.partition_stats, path(meta.file_name))}

    def _may_hold(self, meta: ManifestFileMeta, predicate: Predicate) -> bool:
        return may_match(predicate, self._lookup(meta), self.store.schema.column_types)

    def _lookup(self, meta: ManifestFileMeta) -> Callable[[ColumnRef], ColumnBounds | None]:
        partition = self.store.partition.bounds(meta.partition_stats, meta.num_entries, self.store.paths.manifest(meta.file_name))
        schema, mapping = self._mapping(meta.schema_id)
        ranges = meta.column_ranges
        bounds_by_field = {} if ranges is None else ranges.bounds(schema.fields)
        rows = 0 if ranges is None else ranges.row_count

        def bounds(column: ColumnRef) -> ColumnBounds | None:
            if column.key is not None:
                return None
            if column.name in partition:
                return partition[column.name]
            field = self.store.schema.field(column.name)
            if field.id > schema.highest_field_id:
                return ColumnBounds(None, None, rows, rows)  # column added later: null in every file of this manifest
            stored = bounds_by_field.get(field.id)
            return None if stored is None else mapping.bounds(column.name, stored)

        return bounds

    def _mapping(self, schema_id: int) -> tuple[TableSchema, SchemaMapping]:
        schema_and_mapping = self._mappings.get(schema_id)
        if schema_and_mapping is None:
            schema = self.store.schema if schema_id == self.store.schema.id else self.store.schemas.get(schema_id)
            schema_and_mapping = self._mappings[schema_id] = schema, SchemaMapping.of(self.store.schema.fields, schema.fields, schema_id)
        return schema_and_mapping
