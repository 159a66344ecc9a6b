"""Snapshots and data files as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pyarrow as pa

from manifest.entry.data_file import DataFileMeta
from manifest.entry.manifest_entry import ManifestEntry
from manifest.row.binary_row import decode_row
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot
from pyspark_paimon.request.partition_spec import display_partition, display_value

SNAPSHOTS = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("commit_kind", pa.string()),
        ("commit_user", pa.string()),
        ("commit_identifier", pa.int64()),
        ("commit_time", pa.timestamp("ms", tz="UTC")),
        ("schema_id", pa.int64()),
        ("total_record_count", pa.int64()),
        ("delta_record_count", pa.int64()),
    ]
)
FILES = pa.schema(
    [
        ("partition", pa.string()),
        ("bucket", pa.int32()),
        ("file_name", pa.string()),
        ("level", pa.int32()),
        ("row_count", pa.int64()),
        ("delete_row_count", pa.int64()),
        ("file_size", pa.int64()),
        ("min_key", pa.string()),
        ("max_key", pa.string()),
        ("min_sequence_number", pa.int64()),
        ("max_sequence_number", pa.int64()),
        ("schema_id", pa.int64()),
        ("file_index", pa.string()),
        ("embedded_index_size", pa.int64()),
        ("creation_time", pa.timestamp("ms")),
    ]
)


def snapshots_table(snapshots: Iterable[Snapshot]) -> pa.Table:
    """Return snapshots in the columns of ``SNAPSHOTS``."""
    rows = [
        {
            "snapshot_id": snapshot.id,
            "commit_kind": snapshot.commit_kind.value,
            "commit_user": snapshot.commit_user,
            "commit_identifier": snapshot.commit_identifier,
            "commit_time": datetime.fromtimestamp(snapshot.time_millis / 1000, UTC),
            "schema_id": snapshot.schema_id,
            "total_record_count": snapshot.total_record_count,
            "delta_record_count": snapshot.delta_record_count,
        }
        for snapshot in snapshots
    ]
    return pa.Table.from_pylist(rows, SNAPSHOTS)


def files_table(entries: Iterable[ManifestEntry], schema: TableSchema) -> pa.Table:
    """Return live files in the columns of ``FILES``.

    The rows are ordered by partition, bucket and level. ``file_index`` is the location of the index.
    """
    rows = [_file_row(entry, schema) for entry in entries]
    rows.sort(key=lambda row: (str(row["partition"]), row["bucket"], row["level"], row["min_sequence_number"]))
    return pa.Table.from_pylist(rows, FILES)


def _file_row(entry: ManifestEntry, schema: TableSchema) -> dict[str, object]:
    file = entry.file
    return {
        "partition": display_partition(decode_row(entry.partition, schema.partition_types), schema),
        "bucket": entry.bucket,
        "file_name": file.file_name,
        "level": file.level,
        "row_count": file.row_count,
        "delete_row_count": file.delete_row_count,
        "file_size": file.file_size,
        "min_key": _key_text(file.min_key, schema),
        "max_key": _key_text(file.max_key, schema),
        "min_sequence_number": file.min_sequence_number,
        "max_sequence_number": file.max_sequence_number,
        "schema_id": file.schema_id,
        "file_index": _index_place(file),
        "embedded_index_size": None if file.embedded_index is None else len(file.embedded_index),
        "creation_time": file.creation_time,
    }


def _index_place(file: DataFileMeta) -> str | None:
    return "embedded" if file.embedded_index is not None else file.index_file


def _key_text(key: bytes, schema: TableSchema) -> str | None:
    if not schema.trimmed_primary_keys:
        return None
    values = decode_row(key, schema.key_types)
    return ", ".join(display_value(value, type_) for value, type_ in zip(values, schema.key_types, strict=True))


__all__ = ["FILES", "SNAPSHOTS", "files_table", "snapshots_table"]
