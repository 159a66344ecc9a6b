"""Snapshots, data files, statistics and clustering as Arrow tables.

Measures of clustering are computed from the value ranges in the files' metadata.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from manifest.entry.data_file import DataFileMeta, ManifestEntry
from manifest.row.binary_row import decode_row
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.commit_info import CommitInfo
from manifest.snapshot.snapshot import BATCH_IDENTIFIER, Snapshot
from manifest.stats.column_stats import decode_bounds
from manifest.stats.table_stats import Statistics
from paimon_base.errors import InvalidArgument
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.request.partition_spec import display_partition, display_value
from pyspark_paimon.request.requests import ScanRequest, TravelRequest
from pyspark_paimon.request.scan_questions import PlanScan
from pyspark_paimon.request.state import Pin, SchemaOf
from sparkexpr.values.column_type import FLOATS, Plain
from sparkexpr.values.float_order import spark_order_key

SNAPSHOTS = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("commit_time", pa.timestamp("ms", tz="UTC")),
        ("operation", pa.string()),
        ("metrics", pa.map_(pa.string(), pa.int64())),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("commit_kind", pa.string()),
        ("commit_user", pa.string()),
        ("commit_identifier", pa.int64()),
        ("schema_id", pa.int64()),
        ("delta_record_count", pa.int64()),
        ("total_record_count", pa.int64()),
    ]
)
HISTORY = ["snapshot_id", "commit_time", "operation", "metrics", "properties", "commit_user"]
"""Columns of ``SNAPSHOTS`` that say what a commit did."""
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
STATISTICS = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("schema_id", pa.int64()),
        ("record_count", pa.int64()),
        ("record_size", pa.int64()),
        ("column", pa.string()),
        ("distinct_count", pa.int64()),
        ("min", pa.string()),
        ("max", pa.string()),
        ("null_count", pa.int64()),
        ("avg_len", pa.int64()),
        ("max_len", pa.int64()),
    ]
)
CLUSTERING = pa.schema(
    [
        ("partition", pa.string()),
        ("column", pa.string()),
        ("file_count", pa.int64()),
        ("constant_file_count", pa.int64()),
        ("unknown_file_count", pa.int64()),
        ("average_overlaps", pa.float64()),
        ("average_depth", pa.float64()),
        ("max_depth", pa.int64()),
    ]
)
_Range = tuple[Plain, Plain]


def snapshots_table(snapshots: Iterable[Snapshot]) -> pa.Table:
    """Return snapshots in the columns of ``SNAPSHOTS``.

    ``commit_identifier`` is null unless the commit is a numbered batch.
    """
    return pa.Table.from_pylist([_snapshot_row(snapshot) for snapshot in snapshots], SNAPSHOTS)


def _snapshot_row(snapshot: Snapshot) -> dict[str, object]:
    info = CommitInfo.of(snapshot)
    return {
        "snapshot_id": snapshot.id,
        "commit_time": datetime.fromtimestamp(snapshot.time_millis / 1000, UTC),
        "operation": info.operation,
        "metrics": list(info.metrics.items()),
        "properties": list(info.properties.items()),
        "commit_kind": snapshot.commit_kind.value,
        "commit_user": snapshot.commit_user,
        "commit_identifier": None if snapshot.commit_identifier == BATCH_IDENTIFIER else snapshot.commit_identifier,
        "schema_id": snapshot.schema_id,
        "delta_record_count": snapshot.delta_record_count,
        "total_record_count": snapshot.total_record_count,
    }


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
        "file_index": "embedded" if file.embedded_index is not None else file.index_file,
        "embedded_index_size": None if file.embedded_index is None else len(file.embedded_index),
        "creation_time": file.creation_time,
    }


def _key_text(key: bytes, schema: TableSchema) -> str | None:
    if not schema.trimmed_primary_keys:
        return None
    values = decode_row(key, schema.key_types)
    return ", ".join(display_value(value, type_) for value, type_ in zip(values, schema.key_types, strict=True))


def statistics_table(statistics: Statistics | None) -> pa.Table:
    """Return a row of statistics for each column.

    If only rows were counted, there is one row without a column. The columns are ``STATISTICS``.
    """
    if statistics is None:
        return STATISTICS.empty_table()
    table = {
        "snapshot_id": statistics.snapshot_id,
        "schema_id": statistics.schema_id,
        "record_count": statistics.merged_record_count,
        "record_size": statistics.merged_record_size,
    }
    rows = [{**table, "column": name, **column.model_dump(exclude={"col_id"})} for name, column in statistics.col_stats.items()]
    return pa.Table.from_pylist(rows or [table], STATISTICS)


def clustering_information(engine: Engine, columns: Sequence[str] | str | None, snapshot: int | None) -> pa.Table:
    """Return the result of ``Table.clustering_information``."""
    schema = engine.ask(SchemaOf())
    column_names = [columns] if isinstance(columns, str) else list(schema.core.clustering_columns if columns is None else columns)
    if not column_names:
        raise InvalidArgument("clustering_information: give columns, or set the table's option 'clustering.columns'")
    names = [resolve(name, schema.column_types) for name in column_names]
    pinned = engine.ask(Pin(travel=TravelRequest(snapshot_id=snapshot)))
    plan = engine.ask(PlanScan(request=ScanRequest.of(None, columns=(), snapshot=pinned)))
    files = [(split.partition, file) for split in plan.splits for file in split.files]
    return clustering_table(schema, cache(lambda schema_id: engine.ask(SchemaOf(id=schema_id))), names, files)


def clustering_table(
    schema: TableSchema, schema_of: Callable[[int], TableSchema], columns: Sequence[str], files: Iterable[tuple[bytes, DataFileMeta]]
) -> pa.Table:
    """Return a row for each partition and column.

    The columns are ``CLUSTERING``. Files overlap if their ranges share a value. The depth of a file is the largest number of
    files that share one of its values, including itself: 1 for a file without overlaps. Files without a known range are only
    counted.

    files: Data files with their partitions.
    """
    ranges: dict[tuple[bytes, str], list[_Range | None]] = defaultdict(list)
    for partition, file in files:
        file_ranges = _ranges(schema, schema_of(file.schema_id), columns, file)
        for name in columns:
            ranges[partition, name].append(file_ranges.get(name))
    rows = []
    for (partition, name), column_ranges in sorted(ranges.items()):
        kind = schema.column_types[name].kind
        key: Callable[[Any], Any] = spark_order_key if kind in FLOATS else lambda value: value
        bounds = [(key(low), key(high)) for low, high in (each for each in column_ranges if each is not None)]
        overlaps, depth = _depths(bounds)
        rows.append(
            {
                "partition": display_partition(decode_row(partition, schema.partition_types), schema),
                "column": name,
                "file_count": len(column_ranges),
                "constant_file_count": sum(low == high for low, high in bounds),
                "unknown_file_count": len(column_ranges) - len(bounds),
                "average_overlaps": float(overlaps.mean()) if bounds else None,
                "average_depth": float(depth.mean()) if bounds else None,
                "max_depth": int(depth.max()) if bounds else None,
            }
        )
    return pa.Table.from_pylist(rows, CLUSTERING)


def _ranges(schema: TableSchema, of_file: TableSchema, columns: Sequence[str], file: DataFileMeta) -> dict[str, _Range]:
    """Return minimum and maximum of columns that have both.

    Columns with another type in the file are left out.
    """
    by_id = {field.id: field for field in of_file.fields}
    stored = {name: by_id.get(schema.field(name).id) for name in columns}
    names = of_file.names if file.value_stats_cols is None else file.value_stats_cols
    types = [of_file.field(name).type for name in names]
    stored_names = {field.name for field in stored.values() if field is not None}
    bounds = decode_bounds(file.value_stats, names, types, file.row_count, stored_names, unbounded=file.unbounded)
    range_by_name: dict[str, _Range] = {}
    for name, field in stored.items():
        column_bounds = bounds.get(field.name) if field is not None and field.type.kind is schema.field(name).type.kind else None
        if column_bounds is not None and column_bounds.min is not None and column_bounds.max is not None:
            range_by_name[name] = (column_bounds.min, column_bounds.max)
    return range_by_name


def _depths(ranges: Sequence[tuple[Any, Any]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return overlaps and greatest depth of each range."""
    places = {value: rank for rank, value in enumerate(sorted({value for pair in ranges for value in pair}))}
    low = np.array([places[first] for first, _ in ranges], np.int64)
    high = np.array([places[last] for _, last in ranges], np.int64)
    before = np.searchsorted(np.sort(high), low)
    after = len(ranges) - np.searchsorted(np.sort(low), high, side="right")
    starts, ends = (np.bincount(edge, minlength=len(places) + 1) for edge in (low, high + 1))
    depth = np.cumsum(starts - ends[: len(starts)])
    deepest = np.maximum.reduceat(depth, np.stack([low, high + 1], axis=1).ravel())[::2] if len(ranges) else low
    return len(ranges) - 1 - before - after, deepest.astype(np.int64)
