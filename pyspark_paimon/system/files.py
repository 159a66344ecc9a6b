"""Rows of the system tables about files.

These are ``$files``, ``$file_key_ranges``, ``$manifests``, ``$partitions``, ``$buckets`` and ``$table_indexes``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta, FileSource, ManifestEntry
from manifest.io.paths import partition_text
from manifest.row.binary_row import decode_row
from manifest.snapshot.snapshot import Snapshot
from manifest.stats.column_stats import ColumnBounds, decode_bounds
from manifest.store import FileStore
from manifest.types.data_type import DataType
from pyspark_paimon.system.columns import A_BIG, A_TEXT, AN_INT, BIG, TEXT, WHEN, system_fields
from pyspark_paimon.system.texts import format_list, format_map, format_partition, java_text
from sparkexpr.values.arrays import Int64s
from sparkexpr.values.column_type import Kind, Plain

_FILE = {
    "partition": TEXT,
    "bucket": AN_INT,
    "file_path": A_TEXT,
    "file_format": A_TEXT,
    "schema_id": A_BIG,
    "level": AN_INT,
    "record_count": A_BIG,
    "file_size_in_bytes": A_BIG,
    "min_key": TEXT,
    "max_key": TEXT,
}
FILE_FIELDS = system_fields(
    {
        **_FILE,
        "null_value_counts": A_TEXT,
        "min_value_stats": A_TEXT,
        "max_value_stats": A_TEXT,
        "min_sequence_number": BIG,
        "max_sequence_number": BIG,
        "creation_time": WHEN,
        "deleteRowCount": BIG,
        "file_source": TEXT,
        "first_row_id": BIG,
        "write_cols": {"type": "ARRAY", "element": TEXT},
    }
)
KEY_RANGE_FIELDS = system_fields({**_FILE, "first_row_id": BIG})
MANIFEST_FIELDS = system_fields(
    {
        "file_name": A_TEXT,
        "file_size": A_BIG,
        "num_added_files": A_BIG,
        "num_deleted_files": A_BIG,
        "schema_id": A_BIG,
        "min_partition_stats": TEXT,
        "max_partition_stats": TEXT,
        "min_row_id": BIG,
        "max_row_id": BIG,
    }
)
_COUNTS = {"record_count": A_BIG, "file_size_in_bytes": A_BIG, "file_count": A_BIG, "last_update_time": WHEN}
PARTITION_FIELDS = system_fields(
    {"partition": TEXT, **_COUNTS, "created_at": WHEN, "created_by": TEXT, "updated_by": TEXT, "options": TEXT}
)
BUCKET_FIELDS = system_fields({"partition": TEXT, "bucket": AN_INT, **_COUNTS})
_RANGES = [("f0", A_TEXT), ("f1", AN_INT), ("f2", AN_INT), ("_CARDINALITY", BIG)]
INDEX_FIELDS = system_fields(
    {
        "partition": TEXT,
        "bucket": AN_INT,
        "index_type": A_TEXT,
        "file_name": A_TEXT,
        "file_size": A_BIG,
        "row_count": A_BIG,
        "dv_ranges": {
            "type": "ARRAY",
            "element": {"type": "ROW", "fields": [{"id": at, "name": name, "type": kind} for at, (name, kind) in enumerate(_RANGES)]},
        },
    }
)


def data_file_rows(store: FileStore, snapshot: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield live data files with their statistics.

    The statistics are mapped to the current columns of the table.
    """
    for entry in store.live_entries(snapshot).entries():
        file = entry.file
        bounds = _bounds(store, file)
        yield (
            *_file(store, entry),
            format_map(
                {
                    name: "null" if column_bounds.null_count is None else str(column_bounds.null_count)
                    for name, (column_bounds, _) in bounds.items()
                }
            ),
            format_map({name: java_text(column_bounds.min, kind) for name, (column_bounds, kind) in bounds.items()}),
            format_map({name: java_text(column_bounds.max, kind) for name, (column_bounds, kind) in bounds.items()}),
            file.min_sequence_number,
            file.max_sequence_number,
            file.creation_time,
            file.delete_row_count,
            None if file.file_source is None else FileSource(file.file_source).name,
            file.first_row_id,
            None if file.write_cols is None else list(file.write_cols),
        )


def key_range_rows(store: FileStore, snapshot: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield live data files without statistics."""
    for entry in store.live_entries(snapshot).entries():
        yield *_file(store, entry), entry.file.first_row_id


def manifest_rows(store: FileStore, snapshot: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield the manifests of the snapshot."""
    types = store.partition.types
    for meta in [] if snapshot is None else store.manifest_metas(snapshot):
        stats = meta.partition_stats
        bounds = (format_partition(decode_row(row, types), types) for row in (stats.min_values, stats.max_values))
        yield (
            meta.file_name,
            meta.file_size,
            meta.num_added_files,
            meta.num_deleted_files,
            meta.schema_id,
            *bounds,
            meta.min_row_id,
            meta.max_row_id,
        )


def partition_rows(store: FileStore, snapshot: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield partitions with files.

    Rows are physical rows. The time is that of the newest file.
    """
    entries = store.live_entries(snapshot)
    codes, partitions = entries.partition_codes
    for partition, *counts in zip(partitions, *_totals(entries, codes, len(partitions)), strict=True):
        yield _path_text(store, partition), *counts, None, None, None, None


def bucket_rows(store: FileStore, snapshot: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield buckets with files, as ``partition_rows``."""
    entries = store.live_entries(snapshot)
    codes, partitions = entries.partition_codes
    types = store.partition.types
    pairs, groups = np.unique(np.stack([codes, entries.bucket]), axis=1, return_inverse=True)
    groups = groups.reshape(-1)
    for code, bucket, *counts in zip(*pairs.tolist(), *_totals(entries, groups, pairs.shape[1]), strict=True):
        yield format_partition(store.partition.decode(partitions[code]), types), bucket, *counts


def index_rows(store: FileStore, snapshot: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield index files: hash indexes and deletion vectors."""
    names = [name for name, _ in _RANGES]
    for entry in store.index_entries(snapshot):
        ranges = None
        if entry.vectors is not None:
            ranges = [dict(zip(names, (v.data_file, v.offset, v.length, v.cardinality), strict=True)) for v in entry.vectors]
        partition = format_partition(store.partition.decode(entry.partition), store.partition.types)
        yield partition, entry.bucket, entry.index_type, entry.file_name, entry.file_size, entry.row_count, ranges


def _file(store: FileStore, entry: ManifestEntry) -> tuple[Any, ...]:
    file = entry.file
    return (
        format_partition(store.partition.decode(entry.partition), store.partition.types),
        entry.bucket,
        store.physical_files(entry.partition, entry.bucket, file)[0],
        file.format,
        file.schema_id,
        file.level,
        file.row_count,
        file.file_size,
        _key(store, file.min_key),
        _key(store, file.max_key),
    )


def _key(store: FileStore, key: bytes) -> str | None:
    if store.key is None:
        return None
    return format_list(java_text(value, kind) for value, kind in zip(store.key.decode(key), store.key.types, strict=True))


def _bounds(store: FileStore, file: DataFileMeta) -> dict[str, tuple[ColumnBounds, DataType]]:
    """Return bounds and their types for each table column.

    Columns are matched with the file's columns by id.
    """
    written = store.schemas.get(file.schema_id)
    names = written.names if file.value_stats_cols is None else file.value_stats_cols
    stored = decode_bounds(file.value_stats, names, written.types_of(names), file.row_count)
    sources = {field.id: field for field in written.fields}
    unknown = ColumnBounds(None, None, None, file.row_count)
    bounds_by_name = {}
    for field in store.schema.fields:
        source = sources.get(field.id)
        if source is None:
            bounds_by_name[field.name] = ColumnBounds(None, None, file.row_count, file.row_count), field.type
            continue
        source_bounds = stored.get(source.name, unknown)
        bounds_by_name[field.name] = source_bounds, source.type
        if source.type.kind is Kind.DECIMAL is field.type.kind:
            shift = 10 ** max(0, field.type.scale - source.type.scale)
            bounds_by_name[field.name] = (
                ColumnBounds(
                    _scale(source_bounds.min, shift), _scale(source_bounds.max, shift), source_bounds.null_count, source_bounds.row_count
                ),
                field.type,
            )
    return bounds_by_name


def _scale(value: Plain, by: int) -> Plain:
    return value * by if isinstance(value, int) else value


def _path_text(store: FileStore, partition: bytes) -> str:
    """Return a partition as a path: ``day=2024-01-31/hour=7``.

    Nulls and empty texts have the default partition name.
    """
    values = zip(store.partition.names, store.partition.decode(partition), store.partition.types, strict=True)
    default = store.options.partition_default_name
    return "/".join(f"{name}={partition_text(value, kind.column_type, default, legacy=False)}" for name, value, kind in values)


def _totals(entries: EntryColumns, groups: Int64s, size: int) -> tuple[list[Any], ...]:
    """Return rows, bytes, files and newest creation time by group."""
    summed = []
    for values in (entries.row_count, entries.file_size, np.ones(len(entries), np.int64)):
        totals = np.zeros(size, np.int64)
        np.add.at(totals, groups, values)
        summed.append(totals.tolist())
    newest = np.zeros(size, np.int64)
    np.maximum.at(newest, groups, entries.numbers("_FILE._CREATION_TIME"))
    return *summed, newest.tolist()
