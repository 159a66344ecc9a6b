"""Paimon's tables as a Hive metastore knows them: classes, properties, columns, location."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField, DataType
from pyspark_paimon.plugins.catalogs.hive.metastore import user_name
from pyspark_paimon.plugins.catalogs.hive.options import HiveOptions
from pyspark_paimon.plugins.catalogs.hive.wire import Struct, number, properties, record, records, text, value_of
from sparkexpr.values.column_type import Kind

# Fields of the metastore's Table, StorageDescriptor, SerDeInfo, FieldSchema and Database.
NAME, DATABASE, _OWNER, _CREATED, _ACCESSED, _RETENTION, STORAGE, _PARTITIONS, PARAMETERS, TYPE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
COLUMNS, _LOCATION, _INPUT, _OUTPUT, _SERDE = 1, 2, 3, 4, 7
_LIBRARY, _SERDE_PARAMETERS = 2, 3
COLUMN, COLUMN_TYPE, COLUMN_COMMENT = 1, 2, 3
DATABASE_DESCRIPTION, DATABASE_LOCATION, DATABASE_PARAMETERS, DATABASE_OWNER = 2, 3, 4, 6

_INPUT_FORMAT: Final = "org.apache.paimon.hive.mapred.PaimonInputFormat"
_OUTPUT_FORMAT: Final = "org.apache.paimon.hive.mapred.PaimonOutputFormat"
_SERDE_CLASS: Final = "org.apache.paimon.hive.PaimonSerDe"
_STORAGE_HANDLER: Final = "org.apache.paimon.hive.PaimonStorageHandler"
LOCATION_PROPERTY: Final = "paimon_location"
_EXTERNAL_TABLE, _MANAGED_TABLE = "EXTERNAL_TABLE", "MANAGED_TABLE"
_FOREVER: Final = 2**31 - 1
_LONGEST_COMMENT: Final = 255
_CUT: Final = "..."
_HIVE_PREFIX: Final = "hive."
_ALWAYS: Final = ("partition.expiration-time", "data-file.path-directory")
_LONGEST_CHAR, _LONGEST_VARCHAR = 255, 65535
_PLAIN: Final = {
    Kind.BOOLEAN: "boolean",
    Kind.TINYINT: "tinyint",
    Kind.SMALLINT: "smallint",
    Kind.INT: "int",
    Kind.BIGINT: "bigint",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.BINARY: "binary",
    Kind.VARBINARY: "binary",
    Kind.DATE: "date",
    Kind.TIME: "string",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMP_LTZ: "timestamp with local time zone",
    Kind.VARIANT: "struct<value:binary,metadata:binary>",
    Kind.BLOB: "binary",
}


def hive_type(data_type: DataType) -> str:
    """Return Hive's name of a type.

    >>> hive_type(DataType.from_json({"type": "MAP", "key": "STRING NOT NULL", "value": "DECIMAL(10, 2)"}))
    'map<string,decimal(10,2)>'
    """
    match data_type.kind:
        case Kind.DECIMAL:
            return f"decimal({data_type.precision},{data_type.scale})"
        case Kind.CHAR:
            return f"char({data_type.length})" if data_type.length <= _LONGEST_CHAR else "string"
        case Kind.VARCHAR:
            return f"varchar({data_type.length})" if data_type.length <= _LONGEST_VARCHAR else "string"
        case Kind.ARRAY | Kind.VECTOR if data_type.element is not None:
            return f"array<{hive_type(data_type.element)}>"
        case Kind.MULTISET if data_type.element is not None:
            return f"map<{hive_type(data_type.element)},int>"
        case Kind.MAP if data_type.key is not None and data_type.value is not None:
            return f"map<{hive_type(data_type.key)},{hive_type(data_type.value)}>"
        case Kind.ROW:
            return f"struct<{','.join(f'{field.name}:{hive_type(field.type)}' for field in data_type.fields)}>"
        case _:
            return _PLAIN.get(data_type.kind, "binary")


def registered(database: str, name: str, schema: TableSchema, location: str, options: HiveOptions) -> Struct:
    """Return the entry of a new table."""
    now = int(time.time())
    parameters = _properties(schema, options, {}) | {"table_type": "PAIMON", "storage_handler": _STORAGE_HANDLER}
    if options.external:
        parameters["EXTERNAL"] = "TRUE"
    table: Struct = {
        NAME: text(name),
        DATABASE: text(database),
        _OWNER: text(user_name()),
        _CREATED: number(now),
        _ACCESSED: number(now),
        _RETENTION: number(_FOREVER),
        _PARTITIONS: records([]),
        PARAMETERS: properties(parameters),
        TYPE: text(_EXTERNAL_TABLE if options.external else _MANAGED_TABLE),
    }
    return relocated(_described(table, schema), location, options)


def refreshed(table: Struct, schema: TableSchema, options: HiveOptions, removed: Mapping[str, str] | None = None) -> Struct:
    """Return the entry of a table with the columns and options of a schema.

    ``removed``: options that the table no longer has.
    """
    parameters = {name: value for name, value in value_of(table, PARAMETERS, {}).items() if name not in (removed or {})}
    return _described({**table, PARAMETERS: properties(_properties(schema, options, parameters))}, schema)


def relocated(table: Struct, location: str, options: HiveOptions) -> Struct:
    """Return the entry of a table with another location."""
    if options.location_in_properties:
        return {**table, PARAMETERS: properties({**value_of(table, PARAMETERS, {}), LOCATION_PROPERTY: location})}
    return {**table, STORAGE: record({**value_of(table, STORAGE, {}), _LOCATION: text(location)})}


def location_of(table: Struct) -> str | None:
    """Return where a table's files are."""
    location = value_of(table, PARAMETERS, {}).get(LOCATION_PROPERTY) or value_of(value_of(table, STORAGE, {}), _LOCATION)
    return None if location is None else str(location)


def is_paimon(table: Struct) -> bool:
    """Return whether an entry is one of a Paimon table."""
    storage = value_of(table, STORAGE, {})
    return (value_of(storage, _INPUT), value_of(storage, _OUTPUT)) == (_INPUT_FORMAT, _OUTPUT_FORMAT)


def is_external(table: Struct) -> bool:
    """Return whether dropping the table keeps its files."""
    return bool(value_of(table, TYPE) == _EXTERNAL_TABLE)


def is_same(table: Struct, other: Struct) -> bool:
    """Return whether two entries have the same columns and properties."""

    def content(entry: Struct) -> object:
        return value_of(value_of(entry, STORAGE, {}), COLUMNS), value_of(entry, _PARTITIONS, []), value_of(entry, PARAMETERS)

    return content(table) == content(other)


def _properties(schema: TableSchema, options: HiveOptions, before: Mapping[str, str]) -> dict[str, str]:
    if options.sync_properties:
        keys = {"primary-key": schema.primary_keys, "partition": schema.partition_keys, "bucket-key": schema.bucket_keys}
        table_properties = {**schema.options, **{key: ",".join(columns) for key, columns in keys.items() if columns}}
    else:
        table_properties = {
            name.removeprefix(_HIVE_PREFIX): value for name, value in schema.options.items() if name.startswith(_HIVE_PREFIX)
        }
        table_properties |= {name: schema.options[name] for name in _ALWAYS if name in schema.options}
    return {**before, **table_properties, **({"comment": schema.comment} if schema.comment else {})}


def _described(table: Struct, schema: TableSchema) -> Struct:
    # Partition keys of an entry, which another engine may have registered, are no columns. A new entry has none.
    names = [value_of(column, COLUMN) for column in value_of(table, _PARTITIONS, [])]
    keys = {name for name in names if name in schema.partition_keys}
    fields = {field.name: field for field in schema.fields}
    storage: Struct = value_of(table, STORAGE, {})
    serde = {**value_of(storage, _SERDE, {}), _LIBRARY: text(_SERDE_CLASS), _SERDE_PARAMETERS: properties({})}
    described = {
        **storage,
        COLUMNS: records(column_entry(field, longest=_LONGEST_COMMENT) for field in schema.fields if field.name not in keys),
        _INPUT: text(_INPUT_FORMAT),
        _OUTPUT: text(_OUTPUT_FORMAT),
        _SERDE: record(serde),
    }
    partitions = {_PARTITIONS: records(column_entry(fields[name]) for name in names)} if keys and len(keys) == len(names) else {}
    return {**table, **partitions, STORAGE: record(described)}


def column_entry(field: DataField, longest: int | None = None) -> Struct:
    """Return the entry of a column. ``longest``: maximum length of its comment."""
    column = {COLUMN: text(field.name), COLUMN_TYPE: text(hive_type(field.type))}
    comment = field.description
    if comment is not None:
        if longest is not None:
            comment = comment.replace("\n", " ").replace("\r", " ")
            comment = comment if len(comment) <= longest else comment[: longest - len(_CUT)] + _CUT
        column[COLUMN_COMMENT] = text(comment)
    return column
