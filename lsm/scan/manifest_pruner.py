"""Manifest pruning by the column ranges of the manifest list."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

import numpy as np

from fileindex.predicate.tree import TRUE, ColumnRef, Predicate, columns_of
from lsm.scan.predicates import only_columns
from lsm.schema.evolution import SchemaMapping
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.schema.table_schema import TableSchema
from manifest.stats.column_stats import ColumnBounds, may_match
from manifest.store import FileStore


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
        self._by_key = only_columns(self.predicate, {*schema.trimmed_primary_keys, *schema.partition_keys}) or TRUE
        if schema.is_primary_key_table and not self.store.has_single_version:
            self.predicate = self._by_key

    def wanted(self, metas: Sequence[ManifestFileMeta]) -> list[ManifestFileMeta]:
        """Return the manifests that may hold a matching file.

        Includes manifests that may hold other versions of its keys. Raises the errors of reading manifests.
        """
        columns = [name for name in columns_of(self.predicate) if name not in self.store.schema.partition_keys]
        if self.predicate == TRUE or not columns:
            self.note = "" if self.predicate == TRUE else "no condition on columns with ranges"
            return list(metas)
        ranged = [meta for meta in metas if meta.column_ranges is not None]
        dropped = {id(meta) for meta in ranged if not self._may_hold(meta, self.predicate)}
        if dropped and self.store.has_single_version and not self.store.skips_level0 and self._by_key != self.predicate:
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
        inside = self.store.partition.spanning(waiting.partition_codes[1])

        def holds(meta: ManifestFileMeta) -> bool:
            if meta.min_bucket is None or meta.max_bucket is None:
                return True
            at = int(np.searchsorted(buckets, meta.min_bucket))
            return at < len(buckets) and int(buckets[at]) <= meta.max_bucket

        if not len(waiting):
            return set()
        path = self.store.paths.manifest
        return {id(meta) for meta in by_key if holds(meta) and inside(meta.partition_stats, path(meta.file_name))}

    def _may_hold(self, meta: ManifestFileMeta, predicate: Predicate) -> bool:
        return may_match(predicate, self._lookup(meta), self.store.schema.column_types)

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
                return ColumnBounds(None, None, rows, rows)  # column added later: null in every file of this manifest
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
