"""Rows of the system tables that describe the table's history.

These are ``$snapshots``, ``$schemas``, ``$options``, ``$tags``, ``$branches``, ``$consumers``, ``$statistics`` and
``$aggregation_fields``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lsm.scan.table_statistics import statistics_of
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from pyspark_paimon.system.columns import A_BIG, A_TEXT, A_WHEN, BIG, TEXT, WHEN, system_fields
from pyspark_paimon.system.texts import duration_text, format_list, type_text, wall_clock

SNAPSHOT_FIELDS = system_fields(
    {
        "snapshot_id": A_BIG,
        "schema_id": A_BIG,
        "commit_user": A_TEXT,
        "commit_identifier": A_BIG,
        "commit_kind": A_TEXT,
        "commit_time": A_WHEN,
        "base_manifest_list": A_TEXT,
        "delta_manifest_list": A_TEXT,
        "changelog_manifest_list": TEXT,
        "total_record_count": BIG,
        "delta_record_count": BIG,
        "changelog_record_count": BIG,
        "watermark": BIG,
        "next_row_id": BIG,
    }
)
SCHEMA_FIELDS = system_fields(
    {
        "schema_id": A_BIG,
        "fields": A_TEXT,
        "partition_keys": A_TEXT,
        "primary_keys": A_TEXT,
        "options": A_TEXT,
        "comment": TEXT,
        "update_time": A_WHEN,
    }
)
OPTION_FIELDS = system_fields({"key": A_TEXT, "value": A_TEXT})
TAG_FIELDS = system_fields(
    {
        "tag_name": A_TEXT,
        "snapshot_id": A_BIG,
        "schema_id": A_BIG,
        "commit_time": A_WHEN,
        "record_count": BIG,
        "create_time": WHEN,
        "time_retained": TEXT,
    }
)
BRANCH_FIELDS = system_fields({"branch_name": A_TEXT, "create_time": A_WHEN})
CONSUMER_FIELDS = system_fields({"consumer_id": A_TEXT, "next_snapshot_id": A_BIG})
STATISTICS_FIELDS = system_fields(
    {"snapshot_id": A_BIG, "schema_id": A_BIG, "mergedRecordCount": BIG, "mergedRecordSize": BIG, "colstat": TEXT}
)
AGGREGATION_FIELDS = system_fields(
    {"field_name": A_TEXT, "field_type": A_TEXT, "function": TEXT, "function_options": TEXT, "comment": TEXT}
)
_OF_FIELD = "fields."


def snapshot_rows(store: FileStore, _: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield retained snapshots, oldest first."""
    for snapshot in list(store.snapshots.backwards())[::-1]:
        yield (
            snapshot.id,
            snapshot.schema_id,
            snapshot.commit_user,
            snapshot.commit_identifier,
            snapshot.commit_kind.value,
            wall_clock(snapshot.time_millis),
            snapshot.base_manifest_list,
            snapshot.delta_manifest_list,
            snapshot.changelog_manifest_list,
            snapshot.total_record_count,
            snapshot.delta_record_count,
            snapshot.changelog_record_count,
            snapshot.watermark,
            snapshot.next_row_id,
        )


def schema_rows(store: FileStore, _: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield versions of the schema, oldest first."""
    for schema_id in store.schemas.ids():
        schema = store.schemas.get(schema_id)
        texts = map(_json, ([field.to_json() for field in schema.fields], schema.partition_keys, schema.primary_keys, schema.options))
        yield schema.id, *texts, schema.comment, wall_clock(schema.time_millis)


def option_rows(store: FileStore, _: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield the stored options of the newest schema."""
    yield from store.schema.options.items()


def tag_rows(store: FileStore, _: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield tags, ordered by name."""
    for name, tag in sorted(store.snapshots.tags().items()):
        retained = None if tag.tag_time_retained is None else duration_text(tag.tag_time_retained)
        yield name, tag.id, tag.schema_id, wall_clock(tag.time_millis), tag.total_record_count, tag.tag_create_time, retained


def branch_rows(store: FileStore, _: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield branches except main."""
    from pyspark_paimon.views.history_views import history_view  # noqa: PLC0415  # see test_imports

    for row in history_view(store, "branches").to_pylist():
        yield row["branch_name"], row["create_time"].astimezone().replace(tzinfo=None)


def consumer_rows(store: FileStore, _: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield consumers, ordered by name."""
    yield from sorted(store.snapshots.consumers().items())


def statistics_rows(store: FileStore, snapshot: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield the statistics of the snapshot, or no row."""
    statistics = None if snapshot is None else statistics_of(store, snapshot)
    if statistics is not None:
        columns = {name: column.model_dump(by_alias=True, exclude_none=True) for name, column in statistics.col_stats.items()}
        text = json.dumps(columns, indent=2, separators=(",", " : "), ensure_ascii=False)
        yield statistics.snapshot_id, statistics.schema_id, statistics.merged_record_count, statistics.merged_record_size, text


def aggregation_rows(store: FileStore, _: Snapshot | None) -> Iterator[tuple[Any, ...]]:
    """Yield columns with the options ``fields.<name>.*``."""
    for field in store.schema.fields:
        field_options = {key: value for key, value in sorted(store.schema.options.items()) if key.startswith(f"{_OF_FIELD}{field.name}.")}
        yield field.name, type_text(field.type), format_list(field_options.values()), format_list(field_options), field.description


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
