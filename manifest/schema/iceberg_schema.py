"""Iceberg's view of a table's columns and options (``metadata.iceberg.*``).

Field ids are Paimon's. Parquet files have the same ids, also for elements, map keys and map values.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from manifest.io.errors import UnsupportedTable
from manifest.options.core_options import CoreOptions
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField, DataType
from paimon_base.errors import UnsupportedOption
from sparkexpr.values.column_type import Kind

WITH_VECTORS: Final = 3
"""Format version of Iceberg that has deletion vectors."""
FIRST_PARTITION_ID: Final = 1000
_DATABASE = ".db"
_STORAGE = "metadata.iceberg.storage"
_LOCATION = "metadata.iceberg.storage-location"
_STRUCTURED_ID_OFFSET = 536_870_911
_STRUCTURED_ID_FACTOR = 1024
_MIN_PRECISION, _MAX_PRECISION = 3, 6
_NAMES = {
    Kind.BOOLEAN: "boolean",
    **dict.fromkeys([Kind.TINYINT, Kind.SMALLINT, Kind.INT], "int"),
    Kind.BIGINT: "long",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.DATE: "date",
    **dict.fromkeys([Kind.CHAR, Kind.VARCHAR], "string"),
    **dict.fromkeys([Kind.BINARY, Kind.VARBINARY], "binary"),
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMP_LTZ: "timestamptz",
}
_WIDENED = {("int", "long"), ("float", "double")}


@dataclass(frozen=True, slots=True)
class IcebergOptions:
    """Options of a table that has Iceberg metadata.

    Args:
        format_version: Format version of the metadata, 2 or 3.
        in_catalog: Whether the metadata is in ``<warehouse>/iceberg/<database>/<table>``. False: below the table.
        previous_versions_max: Metadata files kept before the current one.
        delete_after_commit: Whether older metadata files are deleted.
        compact_min: Number of small manifests from which they may be merged.
        compact_max: Number of small manifests from which they are always merged.
        compression: Avro codec of manifests and lists. The default is the one that every reader must have, unlike Java's ``snappy``.
        legacy_names: Whether manifest lists have the field names of Iceberg 1.4.
    """

    format_version: int
    in_catalog: bool
    previous_versions_max: int
    delete_after_commit: bool
    compact_min: int
    compact_max: int
    compression: str
    legacy_names: bool

    @classmethod
    def of(cls, options: CoreOptions) -> IcebergOptions:
        """Parse the options. Raises ``UnsupportedOption``.

        >>> IcebergOptions.of(CoreOptions.of({"metadata.iceberg.storage": "hadoop-catalog"})).in_catalog
        True
        """
        raw = options.raw
        location = (
            raw.get(_LOCATION, "catalog-location" if options.iceberg_storage == "hadoop-catalog" else "table-location").strip().lower()
        )
        return cls(
            _count(raw, "metadata.iceberg.format-version", 2),
            location == "catalog-location",
            _count(raw, "metadata.iceberg.previous-versions-max", 0),
            _flag(raw, "metadata.iceberg.delete-after-commit.enabled", default=True),
            _count(raw, "metadata.iceberg.compaction.min.file-num", 10),
            _count(raw, "metadata.iceberg.compaction.max.file-num", 50),
            raw.get("metadata.iceberg.manifest-compression", "deflate").strip().lower(),
            _flag(raw, "metadata.iceberg.manifest-legacy-version", default=False),
        )


def has_vectors(options: CoreOptions) -> bool:
    """Return whether readers of Iceberg apply the deletion vectors of the table."""
    return options.deletion_vectors_enabled and IcebergOptions.of(options).format_version >= WITH_VECTORS


def shows_compacted_rows_only(schema: TableSchema) -> bool:
    """Return whether readers of Iceberg wait for full compactions, as no write compacts fully."""
    options = schema.core
    waits = options.has_iceberg_metadata and schema.is_primary_key_table and not has_vectors(options)
    return waits and not options.compacts_fully_at_commit


def metadata_directory(options: CoreOptions, root: str) -> str:
    """Return the directory of the Iceberg metadata of the table at ``root``.

    Raises ``UnsupportedTable`` where a database names it and the table is in none.

    >>> metadata_directory(CoreOptions.of({"metadata.iceberg.storage": "hadoop-catalog"}), "/warehouse/sales.db/orders")
    '/warehouse/iceberg/sales/orders/metadata'
    """
    if not IcebergOptions.of(options).in_catalog:
        return f"{root}/metadata"
    database, name = posixpath.split(root)
    if not database.endswith(_DATABASE):
        raise UnsupportedTable(
            f"{root}: option '{_STORAGE}': hadoop-catalog needs a table of a database, <warehouse>/<name>{_DATABASE}/<table>; "
            "use table-location"
        )
    return f"{posixpath.dirname(database)}/iceberg/{posixpath.basename(database).removesuffix(_DATABASE)}/{name}/metadata"


def _count(raw: Mapping[str, str], key: str, default: int) -> int:
    text = raw.get(key, "").strip()
    if text and not (text.isascii() and text.isdecimal()):
        raise UnsupportedOption(key, f"'{text}' must be a whole number from 0")
    return int(text) if text else default


def _flag(raw: Mapping[str, str], key: str, *, default: bool) -> bool:
    text = raw.get(key, str(default)).strip().lower()
    if text not in {"true", "false"}:
        raise UnsupportedOption(key, f"'{text}' is neither true nor false")
    return text == "true"


def check_iceberg(schema: TableSchema) -> None:
    """Raise ``UnsupportedOption`` for a table that Iceberg cannot show.

    >>> from manifest.schema.validation import build_schema
    >>> build_schema("id BIGINT, at TIME", options={"metadata.iceberg.storage": "table-location"})
    Traceback (most recent call last):
    ...
    pyspark_paimon.UnsupportedOption: option 'metadata.iceberg.storage': column 'at' is TIME(0), which Iceberg readers cannot read; ...
    """
    options = schema.core
    iceberg = IcebergOptions.of(options)
    formats = {options.file_format, *options.file_format_per_level.values()}
    if formats != {"parquet"}:
        raise UnsupportedOption(_STORAGE, f"needs Parquet files, not {', '.join(sorted(formats))}: set 'file.format' to parquet")
    if schema.kind.changes_files and options.deletion_vectors_enabled and iceberg.format_version < WITH_VECTORS:
        raise UnsupportedOption(
            _STORAGE,
            "in an append table with 'deletion-vectors.enabled' needs 'metadata.iceberg.format-version' 3: in version 2 readers see deleted rows",
        )
    if has_vectors(options) and not options.deletion_vectors_bitmap64:
        raise UnsupportedOption(
            "metadata.iceberg.format-version",
            "3 with 'deletion-vectors.enabled' needs 'deletion-vectors.bitmap64', as Iceberg's vectors do",
        )
    if options.data_evolution_enabled:
        raise UnsupportedOption(
            _STORAGE, "cannot be combined with 'data-evolution.enabled': the columns of a row are in several files there"
        )
    if options.delete_time_retained:
        raise UnsupportedOption(
            _STORAGE, "cannot be combined with 'delete.time-retained': Iceberg readers would see the retained deletes as rows"
        )
    for name in schema.partition_keys:
        if schema.field(name).type.kind is Kind.DECIMAL:
            # Paimon's Java engine writes them as Avro bytes, and Iceberg reads Avro fixed.
            raise UnsupportedOption(
                _STORAGE,
                f"partition column '{name}' is {schema.field(name).type}, which Iceberg and Paimon encode differently; set 'disabled'",
            )
    for field in schema.fields:
        unknown = unsupported_part(field.type)
        if unknown is not None:
            raise UnsupportedOption(
                _STORAGE,
                f"column '{field.name}' is {unknown}, which Iceberg readers cannot read; choose another type, or set 'disabled'",
            )


def check_iceberg_change(before: TableSchema, after: TableSchema) -> None:
    """Raise ``UnsupportedOption`` for a change of type that Iceberg forbids.

    Files of the old type stay, and Iceberg readers only widen numbers.
    """
    column = first_unreadable(before, after)
    if column is not None:
        present = next(field for field in after.fields if field.id == column.id)
        raise UnsupportedOption(
            _STORAGE,
            f"column '{present.name}' cannot change from {column.type} to {present.type}: Iceberg readers widen INT to BIGINT, FLOAT to "
            "DOUBLE and the precision of DECIMAL only; add a column instead, or set 'disabled'",
        )


def first_unreadable(before: TableSchema, after: TableSchema) -> DataField | None:
    """Return the first column whose old files Iceberg cannot read.

    ``before`` is the schema of the files.
    """
    types = {field.id: field.type for field in after.fields}
    return next((field for field in before.fields if field.id in types and not _is_widened(field.type, types[field.id])), None)


def _is_widened(before: DataType, after: DataType) -> bool:
    if before.with_nullable(nullable=True) == after.with_nullable(nullable=True):
        return True
    if before.kind is Kind.DECIMAL and after.kind is Kind.DECIMAL:
        return before.scale == after.scale and before.precision <= after.precision
    if before.kind in _NAMES and after.kind in _NAMES:
        pair = _NAMES[before.kind], _NAMES[after.kind]
        return pair[0] == pair[1] or pair in _WIDENED
    if before.kind is not after.kind:
        return False
    if before.kind is Kind.ROW:
        type_by_id = {field.id: field.type for field in before.fields}
        return all(field.id not in type_by_id or _is_widened(type_by_id[field.id], field.type) for field in after.fields)
    return all(_is_widened(old, new) for old, new in zip(before.children, after.children, strict=True))


def unsupported_part(data_type: DataType) -> DataType | None:
    """Return the part of a type that Iceberg lacks, or None."""
    match data_type.kind:
        case Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ:
            return None if _MIN_PRECISION <= data_type.precision <= _MAX_PRECISION else data_type
        case Kind.DECIMAL | Kind.ARRAY | Kind.MAP | Kind.ROW:
            return next(filter(None, map(unsupported_part, data_type.children)), None)
        case kind:
            return None if kind in _NAMES else data_type


def schema_json(schema: TableSchema) -> dict[str, Any]:
    """Return the Iceberg schema of a table schema.

    >>> from manifest.schema.validation import build_schema
    >>> schema_json(build_schema("id BIGINT NOT NULL"))
    {'type': 'struct', 'schema-id': 0, 'fields': [{'id': 0, 'name': 'id', 'required': True, 'type': 'long'}]}
    """
    return {"type": "struct", "schema-id": schema.id, "fields": [_field_json(field) for field in schema.fields]}


def _field_json(field: DataField) -> dict[str, Any]:
    json = {"id": field.id, "name": field.name, "required": not field.type.nullable, "type": _type_json(field.type, field.id, 0)}
    return json if field.description is None else json | {"doc": field.description}


def _type_json(data_type: DataType, field_id: int, depth: int) -> str | dict[str, Any]:
    step = _STRUCTURED_ID_FACTOR * field_id + depth + 1
    match data_type.kind:
        case Kind.DECIMAL:
            return f"decimal({data_type.precision}, {data_type.scale})"
        case Kind.ARRAY:
            element = data_type.part("element")
            return {
                "type": "list",
                "element-id": _STRUCTURED_ID_OFFSET + step,
                "element-required": not element.nullable,
                "element": _type_json(element, field_id, depth + 1),
            }
        case Kind.MAP:
            value = data_type.part("value")
            return {
                "type": "map",
                "key-id": _STRUCTURED_ID_OFFSET - step,
                "key": _type_json(data_type.part("key"), field_id, depth + 1),
                "value-id": _STRUCTURED_ID_OFFSET + step,
                "value-required": not value.nullable,
                "value": _type_json(value, field_id, depth + 1),
            }
        case Kind.ROW:
            return {"type": "struct", "fields": [_field_json(field) for field in data_type.fields]}
        case kind:
            return _NAMES[kind]


def partition_spec(schema: TableSchema) -> dict[str, Any]:
    """Return the partition spec: the partition columns themselves."""
    fields = [
        {"name": name, "transform": "identity", "source-id": schema.field(name).id, "field-id": FIRST_PARTITION_ID + index}
        for index, name in enumerate(schema.partition_keys)
    ]
    return {"spec-id": 0, "fields": fields}
