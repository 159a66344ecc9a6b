"""Tags, branches, schemas, partitions and consumers as Arrow tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from manifest.expire.orphans import branches_of
from manifest.expire.partitions import newest_files
from manifest.io.paths import BRANCH
from manifest.schema.manager import SchemaManager
from manifest.store import FileStore
from pyspark_paimon.request.partition_spec import display_partition
from pyspark_paimon.request.requests import View

_UTC = pa.timestamp("ms", tz="UTC")
TAGS = pa.schema(
    [
        ("tag_name", pa.string()),
        ("snapshot_id", pa.int64()),
        ("schema_id", pa.int64()),
        ("commit_time", _UTC),
        ("record_count", pa.int64()),
        ("create_time", pa.timestamp("us")),
        ("time_retained", pa.duration("ms")),
    ]
)
BRANCHES = pa.schema(
    [
        ("branch_name", pa.string()),
        ("create_time", _UTC),
        ("schema_id", pa.int64()),
        ("earliest_snapshot_id", pa.int64()),
        ("latest_snapshot_id", pa.int64()),
    ]
)
SCHEMAS = pa.schema(
    [
        ("schema_id", pa.int64()),
        ("fields", pa.string()),
        ("partition_keys", pa.list_(pa.string())),
        ("primary_keys", pa.list_(pa.string())),
        ("options", pa.map_(pa.string(), pa.string())),
        ("comment", pa.string()),
        ("update_time", _UTC),
    ]
)
PARTITIONS = pa.schema(
    [
        ("partition", pa.string()),
        ("row_count", pa.int64()),
        ("file_count", pa.int64()),
        ("file_size", pa.int64()),
        ("last_update_time", pa.timestamp("ms")),
    ]
)
CONSUMERS = pa.schema([("consumer_id", pa.string()), ("next_snapshot_id", pa.int64())])


def history_view(store: FileStore, view: View) -> pa.Table:
    """Return a view by name."""
    return _VIEWS[view](store)


def _tags(store: FileStore) -> pa.Table:
    rows = [
        {
            "tag_name": name,
            "snapshot_id": tag.id,
            "schema_id": tag.schema_id,
            "commit_time": _instant(tag.time_millis),
            "record_count": tag.total_record_count,
            "create_time": tag.tag_create_time,
            "time_retained": tag.tag_time_retained,
        }
        for name, tag in sorted(store.snapshots.tags().items())
    ]
    return pa.Table.from_pylist(rows, TAGS)


def _branches(store: FileStore) -> pa.Table:
    creation_times = {status.name: status.mtime_ms for status in store.file_io.list(store.paths.branches)}
    rows = []
    for manager in branches_of(store):
        name = manager.paths.branch
        if f"{BRANCH}{name}" in creation_times:
            schemas = store.file_io.list(manager.paths.schemas)
            newest = max(SchemaManager(store.file_io, store.root, name).ids(), default=None)
            if newest is not None:  # None: the branch is being created
                since = creation_times[f"{BRANCH}{name}"] or min(
                    status.mtime_ms for status in schemas
                )  # object stores have no times of directories
                rows.append((name, _instant(since), newest, manager.earliest_id(), manager.latest_id()))
    return pa.Table.from_pylist([dict(zip(BRANCHES.names, row, strict=True)) for row in rows], BRANCHES)


def _schemas(store: FileStore) -> pa.Table:
    schemas = [store.schemas.get(schema_id) for schema_id in store.schemas.ids()]
    rows = [
        {
            "schema_id": schema.id,
            "fields": json.dumps([field.to_json() for field in schema.fields], ensure_ascii=False),
            "partition_keys": list(schema.partition_keys),
            "primary_keys": list(schema.primary_keys),
            "options": sorted(schema.options.items()),
            "comment": schema.comment,
            "update_time": _instant(schema.time_millis),
        }
        for schema in schemas
    ]
    return pa.Table.from_pylist(rows, SCHEMAS)


def _partitions(store: FileStore) -> pa.Table:
    entries = store.live_entries(store.snapshots.latest())
    codes, partitions = entries.partition_codes
    size = len(partitions)

    def summed(values: npt.ArrayLike) -> pa.Array:
        totals = np.zeros(size, np.int64)
        np.add.at(totals, codes, values)
        return pa.array(totals)

    names = [display_partition(store.partition.decode(partition), store.schema) for partition in partitions]
    columns = [
        pa.array(names, pa.string()),
        summed(entries.row_count),
        summed(1),
        summed(entries.file_size),
        pa.array(newest_files(entries)).cast(pa.timestamp("ms")),
    ]
    return pa.Table.from_arrays(columns, schema=PARTITIONS).sort_by("partition")


def _consumers(store: FileStore) -> pa.Table:
    rows = [{"consumer_id": name, "next_snapshot_id": following} for name, following in sorted(store.snapshots.consumers().items())]
    return pa.Table.from_pylist(rows, CONSUMERS)


def _instant(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, UTC)


_VIEWS: dict[View, Callable[[FileStore], pa.Table]] = {
    "tags": _tags,
    "branches": _branches,
    "schemas": _schemas,
    "partitions": _partitions,
    "consumers": _consumers,
}
