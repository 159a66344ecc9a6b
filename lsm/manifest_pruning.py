"""Whether a manifest can hold a file that a filter wants, by the column ranges that its list gives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fileindex.predicate import TRUE, ColumnRef, Predicate, columns_of
from lsm.evolution import SchemaMapping
from lsm.scan_filters import only_columns
from manifest.manifest_list import ManifestFileMeta
from manifest.schema import TableSchema
from manifest.stats import ColumnBounds, may_match
from manifest.store import FileStore


@dataclass
class ManifestPruner:
    """Prunes manifests; one without ranges stays. ``note`` says afterwards what it went by.

    Of a primary-key table only conditions on keys and partitions act, for all versions of a row agree on those, unless no row
    has two visible versions.
    """

    store: FileStore
    predicate: Predicate
    note: str = ""
    _mappings: dict[int, tuple[TableSchema, SchemaMapping]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        schema = self.store.schema
        if schema.is_primary_key_table and not self.store.hides_level_0:
            self.predicate = only_columns(self.predicate, {*schema.trimmed_primary_keys, *schema.partition_keys}) or TRUE

    def wanted(self, metas: Sequence[ManifestFileMeta]) -> list[ManifestFileMeta]:
        """The manifests that may hold a wanted file."""
        columns = [name for name in columns_of(self.predicate) if name not in self.store.schema.partition_keys]
        if self.predicate == TRUE or not columns:
            self.note = "" if self.predicate == TRUE else "no condition on columns with ranges"
            return list(metas)
        ranged = [meta for meta in metas if meta.column_ranges is not None]
        dropped = {id(meta) for meta in ranged if not self._may_hold(meta)}
        self.note = f"{', '.join(columns)}: {len(ranged)} of {len(metas)} manifests have ranges"
        return [meta for meta in metas if id(meta) not in dropped]

    def _may_hold(self, meta: ManifestFileMeta) -> bool:
        return may_match(self.predicate, self._lookup(meta), self.store.schema.column_types)

    def _lookup(self, meta: ManifestFileMeta) -> Callable[[ColumnRef], ColumnBounds | None]:
        partition = self.store.partition.bounds(meta.partition_stats, meta.num_entries, self.store.paths.manifest(meta.file_name))
        schema, mapping = self._mapping(meta.schema_id)
        ranges = meta.column_ranges
        known = {} if ranges is None else ranges.bounds(schema.fields)
        rows = 0 if ranges is None else ranges.row_count

        def bounds(column: ColumnRef) -> ColumnBounds | None:
            if column.key is not None:
                return None
            if column.name in partition:
                return partition[column.name]
            wanted = self.store.schema.field(column.name)
            if wanted.id > schema.highest_field_id:
                return ColumnBounds(None, None, rows, rows)  # added since: null in every file of this manifest
            found = known.get(wanted.id)
            return None if found is None else mapping.bounds(column.name, found)

        return bounds

    def _mapping(self, schema_id: int) -> tuple[TableSchema, SchemaMapping]:
        found = self._mappings.get(schema_id)
        if found is None:
            schema = self.store.schema if schema_id == self.store.schema.id else self.store.schemas.get(schema_id)
            found = self._mappings[schema_id] = schema, SchemaMapping.of(self.store.schema.fields, schema.fields, schema_id)
        return found


__all__ = ["ManifestPruner"]
