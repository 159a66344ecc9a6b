"""Texts as dictionaries inside a read, and as plain texts where rows leave it.

Texts of few distinct values are decoded, filtered and merged several times faster as codes of their dictionary; expanding what is
left of them costs less than decoding all of them as plain texts.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def plain_text(array: Any) -> Any:
    """An array, expanded if it is a dictionary array.

    >>> plain_text(pa.array(["a", "b", "a"]).dictionary_encode()).type
    DataType(string)
    """
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def plain_texts(rows: Any) -> Any:
    """A table or batch with its dictionaries expanded; the same object if it has none."""
    if not any(pa.types.is_dictionary(kind) for kind in rows.schema.types):
        return rows
    arrays = [plain_text(column) for column in rows.columns]
    schema = pa.schema([field.with_type(array.type) for field, array in zip(rows.schema, arrays, strict=True)])
    return type(rows).from_arrays(arrays, schema=schema)


__all__ = ["plain_text", "plain_texts"]
