"""Avro schemas of manifests, manifest lists and index manifests.

Field for field as Paimon writes them, plus ``_COLUMN_RANGES``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from paimon_base.lazy import LazyModule

if TYPE_CHECKING:
    import fastavro
else:
    fastavro = LazyModule("fastavro")

AvroSchema: TypeAlias = Any

_ROOT = "org.apache.paimon.avro.generated.record"
_NULLABLE_LONGS = {"type": "array", "items": ["null", "long"]}


def _optional(name: str, kind: AvroSchema) -> AvroSchema:
    return {"name": name, "type": ["null", kind], "default": None}


def _record(name: str, *fields: AvroSchema) -> AvroSchema:
    return {"type": "record", "name": f"{_ROOT}{name}", "fields": list(fields)}


def _fields(kind: str, *names: str) -> list[AvroSchema]:
    return [{"name": name, "type": kind} for name in names]


def _stats(owner: str, name: str) -> AvroSchema:
    record = _record(f"{owner}_{name}", *_fields("bytes", "_MIN_VALUES", "_MAX_VALUES"), _optional("_NULL_COUNTS", _NULLABLE_LONGS))
    return {"name": name, "type": record}


_FILE = _record(
    "__FILE",
    *_fields("string", "_FILE_NAME"),
    *_fields("long", "_FILE_SIZE", "_ROW_COUNT"),
    *_fields("bytes", "_MIN_KEY", "_MAX_KEY"),
    _stats("__FILE", "_KEY_STATS"),
    _stats("__FILE", "_VALUE_STATS"),
    *_fields("long", "_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER", "_SCHEMA_ID"),
    *_fields("int", "_LEVEL"),
    {"name": "_EXTRA_FILES", "type": {"type": "array", "items": "string"}},
    _optional("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
    _optional("_DELETE_ROW_COUNT", "long"),
    _optional("_EMBEDDED_FILE_INDEX", "bytes"),
    _optional("_FILE_SOURCE", "int"),
    _optional("_VALUE_STATS_COLS", {"type": "array", "items": "string"}),
    _optional("_EXTERNAL_PATH", "string"),
    _optional("_FIRST_ROW_ID", "long"),
    _optional("_WRITE_COLS", {"type": "array", "items": "string"}),
    _optional("_WRITE_COLS_SEQUENCES", {"type": "array", "items": "long"}),
)

MANIFEST_ENTRY: AvroSchema = _record(
    "",
    *_fields("int", "_VERSION", "_KIND"),
    *_fields("bytes", "_PARTITION"),
    *_fields("int", "_BUCKET", "_TOTAL_BUCKETS"),
    {"name": "_FILE", "type": _FILE},
)

_COLUMN_RANGES = _record(
    "__COLUMN_RANGES",
    {"name": "_FIELD_IDS", "type": {"type": "array", "items": "int"}},
    *_fields("long", "_ROW_COUNT"),
    *_fields("bytes", "_MIN_VALUES", "_MAX_VALUES"),
    {"name": "_NULL_COUNTS", "type": _NULLABLE_LONGS},
)
"""Not in Paimon. Other readers resolve fields by name and ignore it."""

MANIFEST_LIST: AvroSchema = _record(
    "",
    *_fields("int", "_VERSION"),
    *_fields("string", "_FILE_NAME"),
    *_fields("long", "_FILE_SIZE", "_NUM_ADDED_FILES", "_NUM_DELETED_FILES"),
    _stats("", "_PARTITION_STATS"),
    *_fields("long", "_SCHEMA_ID"),
    *(_optional(name, "int") for name in ("_MIN_BUCKET", "_MAX_BUCKET", "_MIN_LEVEL", "_MAX_LEVEL")),
    *(_optional(name, "long") for name in ("_MIN_ROW_ID", "_MAX_ROW_ID")),
    _optional("_COLUMN_RANGES", _COLUMN_RANGES),
)

_VECTOR_RANGE = _record(
    "__DELETIONS_VECTORS_RANGES", *_fields("string", "f0"), *_fields("int", "f1", "f2"), _optional("_CARDINALITY", "long")
)
_GLOBAL_INDEX = _record(
    "__GLOBAL_INDEX",
    *_fields("long", "_ROW_RANGE_START", "_ROW_RANGE_END"),
    *_fields("int", "_INDEX_FIELD_ID"),
    _optional("_EXTRA_FIELD_IDS", {"type": "array", "items": "int"}),
    _optional("_INDEX_META", "bytes"),
    _optional("_SOURCE_META", "bytes"),
)

INDEX_MANIFEST: AvroSchema = _record(
    "",
    *_fields("int", "_VERSION", "_KIND"),
    *_fields("bytes", "_PARTITION"),
    *_fields("int", "_BUCKET"),
    *_fields("string", "_INDEX_TYPE", "_FILE_NAME"),
    *_fields("long", "_FILE_SIZE", "_ROW_COUNT"),
    _optional("_DELETIONS_VECTORS_RANGES", {"type": "array", "items": ["null", _VECTOR_RANGE]}),
    _optional("_EXTERNAL_PATH", "string"),
    _optional("_GLOBAL_INDEX", _GLOBAL_INDEX),
)


def layout(schema: AvroSchema) -> AvroSchema:
    """Return field names and types, which decide the binary form.

    Omits record names and annotations.

    >>> layout({"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "long", "logicalType": "x"}}]})
    (('a', 'long'),)
    """
    if isinstance(schema, list):
        return ("union", *(layout(branch) for branch in schema))
    if not isinstance(schema, dict):
        return schema
    match schema.get("type"):
        case "record":
            return tuple((field["name"], layout(field["type"])) for field in schema["fields"])
        case "array":
            return ("array", layout(schema["items"]))
        case kind:
            return layout(kind)


def prepare_schema(schema: AvroSchema) -> AvroSchema:
    """Return ``schema`` prepared for fastavro."""
    # Without the timestamp annotation epoch milliseconds stay integers, as in the rest of the metadata.
    return fastavro.parse_schema(_plain(schema))


def _plain(schema: AvroSchema) -> AvroSchema:
    if isinstance(schema, list):
        return [_plain(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned = {key: value for key, value in schema.items() if not key.startswith("__") and key != "logicalType"}
    if cleaned.get("type") == "record":
        return cleaned | {"fields": [field | {"type": _plain(field["type"])} for field in cleaned["fields"]]}
    if "items" in cleaned:
        return cleaned | {"items": _plain(cleaned["items"])}
    return cleaned | {"type": _plain(cleaned["type"])} if isinstance(cleaned.get("type"), dict | list) else cleaned
