"""Iceberg's table metadata: the JSON file of one version."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from manifest.io.paths import local_form
from manifest.schema.iceberg_schema import FIRST_PARTITION_ID, WITH_VECTORS, partition_spec, schema_json, unsupported_part
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot

IDENTITY: Final = "paimon-commit-identity"
"""Property of a snapshot's summary that identifies Paimon's commit."""
_VERSIONS = (2, WITH_VECTORS)
_MAX_LONG = 2**63 - 1
Json = dict[str, Any]


def commit_identity(snapshot: Snapshot) -> str:
    """Return what distinguishes commits with the same snapshot id."""
    return snapshot.uuid or f"{snapshot.commit_user}:{snapshot.commit_identifier}:{snapshot.time_millis}"


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """Parsed metadata of one version."""

    json: Json

    @classmethod
    def parse(cls, data: bytes) -> Self | None:
        """Parse a file.

        None: it is not complete metadata of a known format version.
        """
        try:
            json_ = json.loads(data)
            complete = _is_complete(json_)
        except (ValueError, LookupError, TypeError, RecursionError, MemoryError):
            return None
        return cls(json_) if complete else None

    @property
    def snapshots(self) -> list[Json]:
        """Snapshots, oldest first."""
        snapshots: list[Json] = self.json["snapshots"]
        return snapshots

    @property
    def current(self) -> Json:
        """The current snapshot."""
        return next(snapshot for snapshot in self.snapshots if snapshot["snapshot-id"] == self.json["current-snapshot-id"])

    @property
    def prefix(self) -> str:
        """Scheme before the path of the location: "" or ``file:``."""
        location: str = self.json["location"]
        return location.removesuffix(local_form(location))

    def is_native(self, directory: str, root: str) -> bool:
        """Return whether a table of Iceberg itself has its metadata in ``directory``.

        The location of a Paimon table is its own directory ``root``, or an older one if the table was moved.
        """
        home = directory.rpartition("/")[0]
        return home != root and local_form(str(self.json["location"])).rstrip("/") == home

    def has(self, snapshot: Snapshot) -> bool:
        """Return whether a Paimon snapshot is among the snapshots."""
        identity = commit_identity(snapshot)
        return any(entry["snapshot-id"] == snapshot.id and entry.get("summary", {}).get(IDENTITY) == identity for entry in self.snapshots)

    @property
    def next_row_id(self) -> int:
        """First row id that no manifest has, in format version 3."""
        return int(self.json.get("next-row-id", 0))

    def describes(self, root: str, schema: TableSchema, snapshot: Snapshot, format_version: int) -> bool:
        """Return whether this is the metadata of a table's snapshot."""
        current = self.current
        noted = current.get("summary", {}).get(IDENTITY)
        # Java 1.4 notes no identity. It writes after its commit, so an earlier time belongs to a snapshot that a rollback removed.
        same = current["timestamp-ms"] >= snapshot.time_millis if noted is None else noted == commit_identity(snapshot)
        return (
            current["snapshot-id"] == snapshot.id
            and self.json["format-version"] == format_version
            and same
            and local_form(self.json["location"]) == root
            and self.json["partition-specs"] == [partition_spec(schema)]
        )


def _is_complete(json_: Json) -> bool:
    """Return whether each member that this package reads has its type."""
    snapshots, schemas = json_["snapshots"], json_["schemas"]
    return (
        type(json_["format-version"]) is int
        and json_["format-version"] in _VERSIONS
        and all(isinstance(json_[key], str) for key in ("location", "table-uuid"))
        and all(isinstance(part, list) for part in (snapshots, schemas, json_["partition-specs"]))
        and all(map(_is_snapshot, snapshots))
        and any(snapshot["snapshot-id"] == json_["current-snapshot-id"] for snapshot in snapshots)
        and all(_is_long(schema["schema-id"]) for schema in schemas)
        and _is_long(json_.get("next-row-id", 0))
    )


def _is_snapshot(snapshot: Json) -> bool:
    return (
        all(_is_long(snapshot[key]) for key in ("snapshot-id", "timestamp-ms"))
        and isinstance(snapshot["manifest-list"], str)
        and isinstance(snapshot.get("summary", {}), dict)
    )


def _is_long(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_LONG


def snapshot_json(snapshot: Snapshot, parent: int | None, summary: Mapping[str, str], manifest_list: str, schema_id: int) -> Json:
    """Return the Iceberg snapshot of a Paimon snapshot.

    Both have the same id, which is the sequence number, too.
    """
    json_: Json = {"sequence-number": snapshot.id, "snapshot-id": snapshot.id}
    if parent is not None:
        json_["parent-snapshot-id"] = parent
    return json_ | {
        "timestamp-ms": snapshot.time_millis,
        "summary": {**summary, IDENTITY: commit_identity(snapshot)},
        "manifest-list": manifest_list,
        "schema-id": schema_id,
    }


def table_metadata(
    format_version: int,
    location: str,
    schema: TableSchema,
    snapshots: Sequence[Json],
    *,
    known_schemas: Sequence[Json],
    schema_of: Callable[[int], TableSchema],
    tags: Mapping[str, int],
    table_uuid: str | None,
    next_row_id: int,
) -> bytes:
    """Return the file of a new version.

    Its current snapshot is the last one.

    Args:
        format_version: Format version of Iceberg.
        location: The table's path as metadata has it.
        schema: Newest schema of the table.
        snapshots: Iceberg snapshots, oldest first.
        known_schemas: Iceberg schemas of the version before.
        schema_of: Returns an older schema of the table.
        tags: Snapshot ids by tag name.
        table_uuid: Id of the table. None: a new one.
        next_row_id: First row id that no manifest has, in format version 3.
    """
    current = snapshots[-1]
    spec = partition_spec(schema)
    json_ = {
        "format-version": format_version,
        "table-uuid": table_uuid or str(uuid.uuid4()),
        "location": location,
        "last-sequence-number": current["sequence-number"],
        "last-updated-ms": max(snapshot["timestamp-ms"] for snapshot in snapshots),
        "last-column-id": max(field.id for field in schema.fields),
        "schemas": _schemas(schema, known_schemas, schema_of),
        "current-schema-id": schema.id,
        "partition-specs": [spec],
        "default-spec-id": 0,
        "last-partition-id": FIRST_PARTITION_ID + len(spec["fields"]) - 1,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "snapshots": list(snapshots),
        "current-snapshot-id": current["snapshot-id"],
        "snapshot-log": [{"timestamp-ms": entry["timestamp-ms"], "snapshot-id": entry["snapshot-id"]} for entry in snapshots],
        "properties": {},
        "refs": {name: {"snapshot-id": snapshot_id, "type": "tag", "max-ref-age-ms": _MAX_LONG} for name, snapshot_id in tags.items()},
    }
    if format_version >= WITH_VECTORS:
        json_["next-row-id"] = next_row_id
    return json.dumps(json_, ensure_ascii=False).encode()


def _schemas(newest: TableSchema, published: Sequence[Json], schema_of: Callable[[int], TableSchema]) -> list[Json]:
    """Return the schemas up to ``newest``, without those that Iceberg cannot have."""
    schema_by_id = {schema["schema-id"]: schema for schema in published if schema["schema-id"] < newest.id}
    for schema_id in range(max(schema_by_id, default=-1) + 1, newest.id):
        older = schema_of(schema_id)
        if all(unsupported_part(field.type) is None for field in older.fields):
            schema_by_id[schema_id] = schema_json(older)
    return [*(schema_by_id[schema_id] for schema_id in sorted(schema_by_id)), schema_json(newest)]
