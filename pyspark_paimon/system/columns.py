"""Column definitions of system tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField, DataType, number_fields

TEXT, BIG, WHEN = "STRING", "BIGINT", "TIMESTAMP(3)"
A_TEXT, A_BIG, AN_INT, A_WHEN = (f"{kind} NOT NULL" for kind in (TEXT, BIG, "INT", WHEN))
"""Types of most columns, nullable and NOT NULL."""


def system_fields(columns: Mapping[str, object]) -> tuple[DataField, ...]:
    """Return numbered fields from names and types.

    A type is a text or, if nested, an object as in schema files.

    >>> [str(field.type) for field in system_fields({"key": A_TEXT, "value": TEXT})]
    ['STRING NOT NULL', 'STRING']
    """
    return number_fields([DataField(-1, name, DataType.from_json(kind)) for name, kind in columns.items()])


def system_schema(fields: Sequence[DataField], schema_id: int = 0, **more: object) -> TableSchema:
    """Return a schema of the fields.

    more: Other attributes of the schema, such as keys and options.
    """
    return TableSchema.model_validate({"id": schema_id, "fields": tuple(fields), "highest_field_id": len(fields), **more})
