"""Texts as dictionaries inside a read, and as plain texts where rows leave it.

Texts of few distinct values are decoded, filtered and merged several times faster as codes of their dictionary; expanding what is
left of them costs less than decoding all of them as plain texts.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa


def plain_text(array: Any) -> Any:
    """An array, expanded if it is a dictionary array.

    >>> plain_text(pa.array(["a", "b", "a"]).dictionary_encode()).type
    DataType(string)
    """
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def plain_texts(rows: Any, unless: Collection[str] = ()) -> Any:
    """A table or batch with its dictionaries expanded, ``unless`` they are of these columns; the same object if there are none to expand."""
    coded = {field.name for field in rows.schema if pa.types.is_dictionary(field.type)}.difference(unless)
    if not coded:
        return rows
    arrays = [plain_text(column) if name in coded else column for name, column in zip(rows.schema.names, rows.columns, strict=True)]
    schema = pa.schema(
        [field.with_type(array.type) for field, array in zip(rows.schema, arrays, strict=True)]
    )  # what is never null stays so
    return type(rows).from_arrays(arrays, schema=schema)


__all__ = ["plain_text", "plain_texts"]
