"""Columns of system tables, in the words of a schema file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField, DataType, number_fields

TEXT, BIG, WHEN = "STRING", "BIGINT", "TIMESTAMP(3)"
A_TEXT, A_BIG, AN_INT, A_WHEN = (f"{kind} NOT NULL" for kind in (TEXT, BIG, "INT", WHEN))
"""The types of most columns, and the same without nulls."""


def system_fields(columns: Mapping[str, object]) -> tuple[DataField, ...]:
    """Numbered fields of names and types, which are text or, where nested, objects.

    >>> [str(field.type) for field in system_fields({"key": A_TEXT, "value": TEXT})]
    ['STRING NOT NULL', 'STRING']
    """
    return number_fields([DataField(-1, name, DataType.from_json(kind)) for name, kind in columns.items()])


def system_schema(fields: Sequence[DataField], schema_id: int = 0, **more: object) -> TableSchema:
    """A schema of these fields, without keys and options unless ``more`` has some."""
    return TableSchema.model_validate({"id": schema_id, "fields": tuple(fields), "highest_field_id": len(fields), **more})


__all__ = ["AN_INT", "A_BIG", "A_TEXT", "A_WHEN", "BIG", "TEXT", "WHEN", "system_fields", "system_schema"]
