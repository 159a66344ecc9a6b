"""File indexes and their health as Arrow tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.build.options import parse_column
from fileindex.format.container import ContainerEntry
from fileindex.predicate.evaluate_rows import type_of
from fileindex.predicate.tree import ColumnRef
from fileindex.verify.health import payload_health
from lsm.data_file_format import open_data_file
from lsm.file_index.locate import IndexPlace, index_place
from manifest.entry.data_file import ManifestEntry
from manifest.io.threads import map_in_threads
from manifest.row.binary_row import decode_row
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, PaimonError
from pyspark_paimon.request.partition_spec import display_partition
from pyspark_paimon.request.requests import IndexView
from pyspark_paimon.views.secondary_index_view import secondary_index_rows
from sparkexpr.values.column_type import ColumnType

Row: TypeAlias = dict[str, Any]

FILE_INDEXES = pa.schema(
    [
        pa.field("partition", pa.string()),
        pa.field("bucket", pa.int32(), nullable=False),
        pa.field("file_path", pa.string(), nullable=False),
        pa.field("file_size_in_bytes", pa.int64(), nullable=False),
        pa.field("record_count", pa.int64(), nullable=False),
        pa.field("schema_id", pa.int64(), nullable=False),
        pa.field("column_name", pa.string(), nullable=False),
        pa.field("index_type", pa.string(), nullable=False),
        pa.field("storage_type", pa.string(), nullable=False),
        pa.field("index_file_path", pa.string()),
        pa.field("index_size_in_bytes", pa.int64(), nullable=False),
        pa.field("index_container_size_in_bytes", pa.int64(), nullable=False),
        pa.field("is_empty", pa.bool_(), nullable=False),
    ]
)
"""Columns of Paimon's system table ``$file_indexes``."""

INDEX_HEALTH = pa.schema(
    [
        pa.field("partition", pa.string()),
        pa.field("bucket", pa.int32(), nullable=False),
        pa.field("file_path", pa.string(), nullable=False),
        pa.field("record_count", pa.int64(), nullable=False),
        pa.field("column_name", pa.string()),
        pa.field("index_type", pa.string()),
        pa.field("index_size_in_bytes", pa.int64(), nullable=False),
        pa.field("column_size_in_bytes", pa.int64()),
        pa.field("distinct_values", pa.int64()),
        pa.field("bits_per_row", pa.float64(), nullable=False),
        pa.field("false_positive_rate", pa.float64()),
        pa.field("note", pa.string(), nullable=False),
    ]
)


def index_view(store: FileStore, view: IndexView, snapshot: Snapshot | None, threads: int) -> pa.Table:
    """Return a view of a snapshot.

    snapshot: None gives an empty table.
    """
    return (file_indexes_table if view == "file_indexes" else index_health_table)(store, snapshot, threads)


def file_indexes_table(store: FileStore, snapshot: Snapshot | None, threads: int) -> pa.Table:
    """Return every index of every live file.

    The columns are ``FILE_INDEXES``. Only headers of index files are read.
    Raises ``CorruptFile`` for a container whose header cannot be read.
    """
    rows = map_in_threads(partial(_index_rows, store), _entries_with_index(store, snapshot), threads)
    return pa.Table.from_pylist([row for file_rows in rows for row in file_rows], FILE_INDEXES)


def index_health_table(store: FileStore, snapshot: Snapshot | None, threads: int, *, most_files: int | None = None) -> pa.Table:
    """Return how well every index of every live file works.

    The columns are ``INDEX_HEALTH``. Index payloads and the footers of data files are read. Damage is reported in ``note``;
    ``column_name`` is null if the whole container is damaged. Secondary indexes have a row for each payload, and one for each level of a bucket
    with files outside of them.

    most_files: Largest number of files to check. If there are more, the largest files are checked.
    """
    entries = _entries_with_index(store, snapshot)
    if most_files is not None and len(entries) > most_files:
        entries = sorted(entries, key=lambda entry: -entry.file.file_size)[:most_files]
    rows = map_in_threads(partial(_health_rows, store), entries, threads)
    of_files = [row for file_rows in rows for row in file_rows]
    return pa.Table.from_pylist([*of_files, *secondary_index_rows(store, snapshot)], INDEX_HEALTH)


def built_indexes(indexes: pa.Table) -> list[Row]:
    """Sum up ``FILE_INDEXES`` by column, type and storage."""
    keys = ["column_name", "index_type", "storage_type"]
    grouped = indexes.group_by(keys).aggregate([("index_size_in_bytes", "count"), ("index_size_in_bytes", "sum")])
    named = grouped.rename_columns([*keys, "files", "bytes"])
    rows: list[Row] = named.sort_by([(key, "ascending") for key in keys]).to_pylist()
    return rows


def health_summary(health: pa.Table) -> list[Row]:
    """Sum up ``INDEX_HEALTH`` by column, type and note.

    Distinct values and false positive rates are maxima.
    """
    keys = ["column_name", "index_type", "note"]
    aggregations = [
        ("record_count", "sum"),
        ("index_size_in_bytes", "sum"),
        ("column_size_in_bytes", "sum"),
        ("distinct_values", "max"),
        ("false_positive_rate", "max"),
    ]
    plain = health.set_column(health.schema.get_field_index("note"), "note", pc.replace_substring_regex(health["note"], r" \(.*?\)", ""))
    grouped = plain.group_by(keys).aggregate([([], "count_all"), *aggregations])
    names = [*keys, "files", "rows", "index_bytes", "column_bytes", "distinct_values", "false_positive_rate"]
    rows: list[Row] = grouped.rename_columns(names).sort_by([(key, "ascending") for key in keys]).to_pylist()
    return rows


def _entries_with_index(store: FileStore, snapshot: Snapshot | None) -> list[ManifestEntry]:
    entries = [entry for entry in store.live_entries(snapshot).entries() if _has_index(entry)]
    return sorted(entries, key=lambda entry: (entry.partition, entry.bucket, entry.file.level, entry.file.file_name))


def _has_index(entry: ManifestEntry) -> bool:
    return entry.file.embedded_index is not None or entry.file.index_file is not None


def _file_of(store: FileStore, entry: ManifestEntry) -> Row:
    return {
        "partition": display_partition(decode_row(entry.partition, store.schema.partition_types), store.schema),
        "bucket": entry.bucket,
        "file_path": store.physical_files(entry.partition, entry.bucket, entry.file)[0],
        "record_count": entry.file.row_count,
    }


def _index_rows(store: FileStore, entry: ManifestEntry) -> list[Row]:
    file = _file_of(store, entry)
    index_file, indexes = _open_container(store, entry, file["file_path"])
    container = {
        "file_size_in_bytes": entry.file.file_size,
        "schema_id": entry.file.schema_id,
        "storage_type": "EMBEDDED" if index_file.path is None else "FILE",
        "index_file_path": index_file.path,
        "index_container_size_in_bytes": index_file.container.size,
    }
    return [
        {
            **file,
            **container,
            "column_name": index.column,
            "index_type": index.index_type,
            "index_size_in_bytes": index.length,
            "is_empty": index.is_empty,
        }
        for index in indexes
    ]


def _open_container(store: FileStore, entry: ManifestEntry, data_path: str) -> tuple[IndexPlace, tuple[ContainerEntry, ...]]:
    """Return the index container of an entry, and its content."""
    name = entry.file.index_file
    path = data_path if entry.file.embedded_index is not None or name is None else store.paths.extra_file(data_path, name)
    try:
        index_file = index_place(store, entry)
        assert index_file is not None
        return index_file, index_file.container.entries()
    except FileNotFoundError as error:
        raise CorruptFile(path, "the index file of a data file is missing; rewrite_file_index builds it again") from error
    except CorruptFile:
        raise
    except PaimonError as error:
        raise CorruptFile(path, f"its file index cannot be read: {error}; rewrite_file_index builds it again") from error


def _health_rows(store: FileStore, entry: ManifestEntry) -> list[Row]:
    file = _file_of(store, entry)
    try:
        index_file, indexes = _open_container(store, entry, file["file_path"])
    except CorruptFile as error:
        return [{**file, **_NO_INDEX, "note": f"unusable: {error}"}]
    types = store.schemas.get(entry.file.schema_id).column_types
    references = [_column_of(index, types) for index in indexes]
    names = {reference.name for reference in references if reference is not None}
    sizes = _column_sizes(store, file["file_path"], names)
    indexed = _IndexedFile(index_file, types, entry.file.row_count, sizes)
    return [{**file, **indexed.health(index, reference)} for index, reference in zip(indexes, references, strict=True)]


_NO_INDEX: Mapping[str, Any] = {"column_name": None, "index_type": None, "index_size_in_bytes": 0, "bits_per_row": 0.0}


def _column_of(index: ContainerEntry, types: Mapping[str, ColumnType]) -> ColumnRef | None:
    """Return the column or map entry of an index.

    None: the file's schema does not have it.
    """
    reference = parse_column(index.column)
    try:
        type_of(reference, types)
    except PaimonError:
        return None
    return reference


@dataclass(frozen=True, slots=True)
class _IndexedFile:
    """Index container and columns of a data file.

    sizes: Compressed bytes of columns.
    """

    place: IndexPlace
    types: Mapping[str, ColumnType]
    row_count: int
    sizes: Mapping[str, int]

    def health(self, index: ContainerEntry, reference: ColumnRef | None) -> Row:
        """Return the health of one index, for ``INDEX_HEALTH``."""
        row: Row = {"column_name": index.column, "index_type": index.index_type, "index_size_in_bytes": index.length}
        if reference is None:
            return {**row, "bits_per_row": 0.0, "note": "unusable: the file has no such column"}
        size = self.sizes.get(reference.name)
        try:
            payload = None if index.is_empty else self.place.container.payload(index)
        except PaimonError as error:
            return {**row, "bits_per_row": 0.0, "note": f"unusable: {error}"}
        health = payload_health(index.index_type, payload, type_of(reference, self.types), self.row_count, size)
        return {
            **row,
            "column_size_in_bytes": size,
            "distinct_values": health.distinct,
            "bits_per_row": health.bits_per_row,
            "false_positive_rate": health.false_positive_rate,
            "note": health.note,
        }


def _column_sizes(store: FileStore, path: str, columns: Collection[str]) -> dict[str, int]:
    """Return the compressed bytes of columns.

    {} if the footer cannot be read.
    """
    try:
        with open_data_file(store.file_io, path) as data:
            present = [name for name in columns if name in data.schema.names]
            return {name: data.compressed_size([name], data.row_groups) for name in present}
    except PaimonError:
        return {}
