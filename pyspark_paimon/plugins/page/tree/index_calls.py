"""Calls that change the file indexes of a table, as text to copy."""

from __future__ import annotations

from collections.abc import Mapping

from fileindex.build.options import option_key
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.operations.maintenance import without_index
from pyspark_paimon.results.tree_report import TreeIndex

BITMAP, BLOOM, ITEMS = "bitmap", "bloom-filter", "items"
"""Index types and an option of them."""


def index_call(schema: TableSchema, *, add: Mapping[str, str] | None = None, remove: Mapping[str, str] | None = None) -> str:
    """Return the call that adds and removes indexes, and rewrites the files' indexes.

    add, remove: Index type by column (``name`` or ``map[key]``).

    >>> from manifest.schema.validation import build_schema
    >>> schema = build_schema("a INT, b INT", options={"file-index.bitmap.columns": "a"})
    >>> index_call(schema, add={"b": "bitmap"})
    "table.alter_options({'file-index.bitmap.columns': 'a,b'}).rewrite_file_index()"
    >>> index_call(schema, remove={"a": "bitmap"})
    "table.alter_options({'file-index.bitmap.columns': None}).rewrite_file_index()"
    """
    changes: dict[str, str | None] = {}
    for column, index_type in (remove or {}).items():
        changes |= without_index(schema, column, index_type)
    for column, index_type in (add or {}).items():
        key = option_key(index_type, "columns")
        declared = changes.get(key, schema.options.get(key))
        changes[key] = f"{declared},{column}" if declared else column
    return f"table.alter_options({changes!r}).rewrite_file_index()"


def mending_call(schema: TableSchema, index: TreeIndex) -> str:
    """Return the call that mends what the note of an index says. "": there is none."""
    if "unusable" in index.note:
        return "table.rewrite_file_index()"
    declared = {(str(spec.column), spec.index_type) for spec in schema.file_index.specs}
    if (index.column, index.index_type) not in declared:
        return ""
    if "bloom filter would be smaller" in index.note and (index.column, BLOOM) not in declared:
        return index_call(schema, remove={index.column: BITMAP}, add={index.column: BLOOM}) if index.index_type == BITMAP else ""
    if index.index_type == BLOOM and f"'{ITEMS}'" in index.note and index.distinct_values:
        changes = {option_key(BLOOM, index.column, ITEMS): str(index.distinct_values)}
        return f"table.alter_options({changes!r}).rewrite_file_index()"
    return index_call(schema, remove={index.column: index.index_type}) if "larger than the column" in index.note else ""
