"""Files that Iceberg readers see, and their changes by snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta, FileKind, ManifestEntry
from manifest.io.errors import UnsupportedTable
from manifest.schema.iceberg_schema import first_unreadable, has_vectors
from manifest.schema.table_schema import TableSchema
from manifest.stats.column_stats import decode_bounds
from manifest.store import FileStore
from pyspark_paimon.plugins.iceberg.manifests import ADDED, DATA, Entry, partition_record
from pyspark_paimon.plugins.iceberg.values import to_bytes
from pyspark_paimon.plugins.iceberg.vectors import POSITION_DELETES, Blob


@dataclass(slots=True)
class FileChanges:
    """Difference of visible files between two snapshots, by path.

    Args:
        added: Files that became visible.
        deleted: Partitions of files that were deleted.
        moved: Paths of ``added`` that changed their level, so that they may have been visible before.
    """

    added: dict[str, ManifestEntry] = field(default_factory=dict)
    deleted: dict[str, bytes] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)

    def follow(self, store: FileStore, entries: EntryColumns) -> None:
        """Apply the entries of the next snapshot."""
        paths = {FileKind.ADD: dict[str, ManifestEntry](), FileKind.DELETE: dict[str, ManifestEntry]()}
        for entry in entries.entries():
            if entry.kind is FileKind.DELETE or is_visible(store, entry.file):
                path, *_ = store.physical_files(entry.partition, entry.bucket, entry.file)
                paths[entry.kind][path] = entry
        added, deleted = paths[FileKind.ADD], paths[FileKind.DELETE]
        for path, entry in deleted.items():
            if self.added.pop(path, None) is None or path in self.moved:
                self.deleted[path] = entry.partition
            self.moved.discard(path)
        for path, entry in added.items():
            if self.deleted.pop(path, None) is not None:
                self.moved.add(path)
            self.added[path] = entry


def is_visible(store: FileStore, file: DataFileMeta) -> bool:
    """Return whether Iceberg readers see a file.

    Without merging they see one version of each key: the files of the highest level, or with deletion vectors all above level 0.
    """
    lowest = store.schema.kind.top_level
    return file.level >= (min(lowest, 1) if has_vectors(store.options) else lowest)


@dataclass(slots=True)
class EntryBuilder:
    """Makes Iceberg entries of Paimon's files.

    Args:
        store: The table with its newest schema.
        prefix: What metadata has before a path.
        snapshot_id: Snapshot of the new entries.
    """

    store: FileStore
    prefix: str
    snapshot_id: int
    _checked: dict[int, TableSchema] = field(default_factory=dict)

    def build(self, files: Iterable[tuple[str, ManifestEntry]]) -> list[Entry]:
        """Return ADDED entries.

        Raises ``UnsupportedTable`` for a file that readers of Iceberg cannot read.
        """
        return [self._entry(path, entry) for path, entry in files]

    def _entry(self, path: str, entry: ManifestEntry) -> Entry:
        file, store = entry.file, self.store
        if file.format != "parquet":
            raise UnsupportedTable(
                f"{store.root}: option 'metadata.iceberg.storage' needs Parquet files, but {path} is {file.format}: compact the table fully"
            )
        schema = self._schema(file.schema_id, path)
        names = schema.names if file.value_stats_cols is None else file.value_stats_cols
        fields = [schema.field(name) for name in names if name in schema.names]
        types = [column.type for column in fields]
        bounds = decode_bounds(file.value_stats, names, types, file.row_count) if len(fields) == len(names) else {}
        nulls, low, high = list[dict[str, object]](), list[dict[str, object]](), list[dict[str, object]]()
        for column in fields:
            if (column_bounds := bounds.get(column.name)) is None:
                continue
            if column_bounds.null_count is not None:
                nulls.append({"key": column.id, "value": column_bounds.null_count})
            least, upper = to_bytes(column_bounds.min, column.type), to_bytes(column_bounds.max, column.type)
            if least is not None and upper is not None:
                low.append({"key": column.id, "value": least})
                high.append({"key": column.id, "value": upper})
        return {
            "status": ADDED,
            "snapshot_id": self.snapshot_id,
            "sequence_number": self.snapshot_id,
            "file_sequence_number": self.snapshot_id,
            "data_file": {
                "content": DATA,
                "file_path": self.prefix + path,
                "file_format": file.format,
                "partition": partition_record(store.partition, store.partition.decode(entry.partition)),
                "record_count": file.row_count,
                "file_size_in_bytes": file.file_size,
                "null_value_counts": nulls,
                "lower_bounds": low,
                "upper_bounds": high,
                "referenced_data_file": None,
                "content_offset": None,
                "content_size_in_bytes": None,
            },
        }

    def build_vector(self, partition: bytes, path: str, size: int, blob: Blob, offset: int) -> Entry:
        """Return the entry of a vector in a Puffin file.

        ``size`` is in bytes.
        """
        store = self.store
        return {
            "status": ADDED,
            "snapshot_id": self.snapshot_id,
            "sequence_number": self.snapshot_id,
            "file_sequence_number": self.snapshot_id,
            "data_file": {
                "content": POSITION_DELETES,
                "file_path": path,
                "file_format": "puffin",
                "partition": partition_record(store.partition, store.partition.decode(partition)),
                "record_count": blob.cardinality,
                "file_size_in_bytes": size,
                "null_value_counts": [],
                "lower_bounds": [],
                "upper_bounds": [],
                "referenced_data_file": blob.data_file,
                "content_offset": offset,
                "content_size_in_bytes": len(blob.data),
            },
        }

    def _schema(self, schema_id: int, path: str) -> TableSchema:
        """Return the schema of a file.

        Raises ``UnsupportedTable`` if readers cannot read its columns as those of the table.
        """
        schema = self._checked.get(schema_id)
        if schema is None:
            newest = self.store.schema
            schema = newest if schema_id == newest.id else self.store.schemas.get(schema_id)
            if schema is not newest and (column := first_unreadable(schema, newest)) is not None:
                raise UnsupportedTable(
                    f"{self.store.root}: column '{column.name}' of {path} has the type {column.type} of an older schema, which Iceberg "
                    "readers cannot read as the present one: compact the table fully"
                )
            self._checked[schema_id] = schema
        return schema
