"""Avro schemas of Iceberg manifests and manifest lists, with Iceberg's field ids.

The fields are those that Paimon's Java engine reads and writes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from manifest.avro.schemas import AvroSchema
from manifest.schema.iceberg_schema import FIRST_PARTITION_ID
from manifest.types.data_type import DataType
from sparkexpr.values.column_type import TIMESTAMPS, Kind

_PARTITION_TYPES: dict[Kind, AvroSchema] = {
    Kind.BOOLEAN: "boolean",
    **dict.fromkeys([Kind.TINYINT, Kind.SMALLINT, Kind.INT], "int"),
    Kind.BIGINT: "long",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.DATE: {"type": "int", "logicalType": "date"},
    **dict.fromkeys([Kind.CHAR, Kind.VARCHAR], "string"),
    **dict.fromkeys([Kind.BINARY, Kind.VARBINARY], "bytes"),
    **{kind: {"type": "long", "logicalType": "timestamp-micros"} for kind in TIMESTAMPS},
}
_RENAMED = ("added_files_count", "existing_files_count", "deleted_files_count")


def _field(name: str, kind: AvroSchema, field_id: int) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": field_id}


def _optional(name: str, kind: AvroSchema, field_id: int) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _map(name: str, value: str, field_id: int, key_id: int, value_id: int) -> dict[str, Any]:
    pair = _record(f"k{key_id}_v{value_id}", _field("key", "int", key_id), _field("value", value, value_id))
    return _optional(name, {"type": "array", "items": pair, "logicalType": "map"}, field_id)


def legacy_name(name: str) -> str:
    """Return the name of a manifest list's field in Iceberg 1.4.

    >>> legacy_name("added_files_count"), legacy_name("content")
    ('added_data_files_count', 'content')
    """
    return name.replace("_files_", "_data_files_") if name in _RENAMED else name


@lru_cache(maxsize=64)
def manifest_entry(names: tuple[str, ...], types: tuple[DataType, ...]) -> AvroSchema:
    """Return the schema of manifest entries of a table's partition columns."""
    columns = zip(names, types, strict=True)
    partition = [_optional(name, _PARTITION_TYPES[kind.kind], FIRST_PARTITION_ID + index) for index, (name, kind) in enumerate(columns)]
    data_file = _record(
        "r2",
        _field("content", "int", 134),
        _field("file_path", "string", 100),
        _field("file_format", "string", 101),
        _field("partition", _record("r102", *partition), 102),
        _field("record_count", "long", 103),
        _field("file_size_in_bytes", "long", 104),
        _map("null_value_counts", "long", 110, 121, 122),
        _map("lower_bounds", "bytes", 125, 126, 127),
        _map("upper_bounds", "bytes", 128, 129, 130),
        _optional("referenced_data_file", "string", 143),
        _optional("content_offset", "long", 144),
        _optional("content_size_in_bytes", "long", 145),
    )
    return _record(
        "manifest_entry",
        _field("status", "int", 0),
        _optional("snapshot_id", "long", 1),
        _optional("sequence_number", "long", 3),
        _optional("file_sequence_number", "long", 4),
        _field("data_file", data_file, 2),
    )


def manifest_list(*, legacy: bool, row_ids: bool = False) -> AvroSchema:
    """Return the schema of manifest lists.

    Args:
        legacy: Whether fields have the names of Iceberg 1.4.
        row_ids: Whether manifests have first row ids, as in format version 3.
    """
    summary = _record(
        "r508",
        _field("contains_null", "boolean", 509),
        _optional("contains_nan", "boolean", 518),
        _optional("lower_bound", "bytes", 510),
        _optional("upper_bound", "bytes", 511),
    )
    fields = [
        _field("manifest_path", "string", 500),
        _field("manifest_length", "long", 501),
        _field("partition_spec_id", "int", 502),
        _field("content", "int", 517),
        _field("sequence_number", "long", 515),
        _field("min_sequence_number", "long", 516),
        _optional("added_snapshot_id", "long", 503),
        _field("added_files_count", "int", 504),
        _field("existing_files_count", "int", 505),
        _field("deleted_files_count", "int", 506),
        _field("added_rows_count", "long", 512),
        _field("existing_rows_count", "long", 513),
        _field("deleted_rows_count", "long", 514),
        _optional("partitions", {"type": "array", "items": summary, "element-id": 508}, 507),
    ]
    if row_ids:
        fields.append(_optional("first_row_id", "long", 520))
    if legacy:
        fields = [{**field, "name": legacy_name(field["name"])} for field in fields]
    return _record("manifest_file", *fields)
