"""Columns that say where a row is stored (Paimon's ``PaimonMetadataColumn``).

They are read only if they are named. A column of the table with such a name hides them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField, DataType
from sparkexpr.values.column_type import Kind

FILE_PATH: Final = "__paimon_file_path"
ROW_INDEX: Final = "__paimon_row_index"
PARTITION: Final = "__paimon_partition"
BUCKET: Final = "__paimon_bucket"
ROW_ID: Final = "_ROW_ID"
ROW_SEQUENCE: Final = "_SEQUENCE_NUMBER"
IN_FILES: Final = frozenset({FILE_PATH, ROW_INDEX})
"""Columns of rows that are in one file."""
OF_ROWS: Final = frozenset({ROW_ID, ROW_SEQUENCE})
"""Columns of tables with row tracking."""

_BIG = DataType(Kind.BIGINT)
_TYPES: Final = {
    FILE_PATH: DataType(Kind.VARCHAR, length=2**31 - 1),
    ROW_INDEX: _BIG,
    BUCKET: DataType(Kind.INT),
    ROW_ID: _BIG,
    ROW_SEQUENCE: _BIG,
}


METADATA_NAMES: Final = frozenset({*_TYPES, PARTITION})


def metadata_fields(schema: TableSchema) -> dict[str, DataField]:
    """Return the metadata columns of a table by name.

    >>> from manifest.schema.validation import build_schema
    >>> list(metadata_fields(build_schema("id INT, day DATE", partition_keys=["day"])))
    ['__paimon_file_path', '__paimon_row_index', '__paimon_bucket', '__paimon_partition']
    """
    types = {name: type_ for name, type_ in _TYPES.items() if name not in OF_ROWS or schema.core.row_tracking_enabled}
    if schema.partition_keys:  # a struct without fields has no place in Arrow files and frames
        types[PARTITION] = DataType(Kind.ROW, fields=tuple(map(schema.field, schema.partition_keys)))
    return {name: DataField(-1, name, type_) for name, type_ in types.items() if name not in schema.column_types}


def metadata_names(columns: Collection[str], schema: TableSchema) -> list[str]:
    """Return those of ``columns`` that are metadata columns."""
    if METADATA_NAMES.isdisjoint(columns):
        return []
    metadata = metadata_fields(schema)
    return [name for name in columns if name in metadata]
