"""Statements SHOW CREATE TABLE and SHOW COLUMNS; rows of DESCRIBE."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from manifest.schema.table_schema import TableSchema
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.frames.spark_types import spark_type
from pyspark_paimon.spark.client.binary_row_expr import quoted_name
from pyspark_paimon.statements.answers import frame_of_rows
from pyspark_paimon.statements.names import KnownTables, escaped_text
from pyspark_paimon.statements.new_table import column_text
from pyspark_paimon.statements.words import NameParts, TokenCursor
from pyspark_paimon.table.table import Table


def show_create_table(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``SHOW CREATE TABLE t``; None if Spark should."""
    name = words.name()
    table = _find_table(names, name)
    if table is None:
        return None
    words.end()
    return frame_of_rows(names.spark, pa.table({"createtab_stmt": [statement(name, table.table_schema)]}))


def show_columns(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``SHOW COLUMNS``; None if Spark should.

    Syntax: ``SHOW COLUMNS IN | FROM t [IN | FROM db]``.
    """
    if not words.take("IN"):
        words.expect("FROM")
    name = words.name()
    if words.take("IN") or words.take("FROM"):
        name = (*words.name(), name[-1])
    table = _find_table(names, name)
    if table is None:
        return None
    words.end()
    return frame_of_rows(names.spark, pa.table({"col_name": list(table.table_schema.names)}))


def statement(name: NameParts, schema: TableSchema) -> str:
    """Return the CREATE TABLE statement of a schema."""
    lines = [f"  {column_text(field)}" for field in schema.fields]
    if schema.primary_keys:
        lines.append(f"  PRIMARY KEY ({', '.join(map(quoted_name, schema.primary_keys))}) NOT ENFORCED")
    parts = [f"CREATE TABLE {'.'.join(map(quoted_name, name))} (", ",\n".join(lines) + ")", "USING paimon"]
    if schema.partition_keys:
        parts.append(f"PARTITIONED BY ({', '.join(map(quoted_name, schema.partition_keys))})")
    if schema.comment:
        parts.append(f"COMMENT {escaped_text(schema.comment)}")
    options = [f"  {escaped_text(key)} = {escaped_text(value)}" for key, value in sorted(schema.options.items()) if key != "path"]
    if options:
        parts += ["TBLPROPERTIES (", ",\n".join(options) + ")"]
    return "\n".join(parts) + "\n"


def description_rows(table: Table, *, extended: bool) -> pa.Table:
    """Return the rows of DESCRIBE.

    extended: Add location, keys and options, in Spark's layout.
    """
    schema = table.table_schema
    rows: list[tuple[str, str, str | None]] = [
        (field.name, spark_type(field.type).simpleString(), field.description) for field in schema.fields
    ]
    if extended:
        options = ",".join(f"{key}={value}" for key, value in sorted(schema.options.items()))
        details = {
            "Location": table.path,
            "Provider": "paimon",
            "Comment": schema.comment or "",
            "Primary Key": ", ".join(schema.primary_keys),
            "Partition Columns": ", ".join(schema.partition_keys),
            "Schema Id": str(schema.id),
            "Table Properties": f"[{options}]",
        }
        rows += [("", "", ""), ("# Detailed Table Information", "", ""), *((key, value, "") for key, value in details.items() if value)]
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(column, pa.string()) for column in columns], ["col_name", "data_type", "comment"])


def column_rows(table: Table, name: str) -> pa.Table:
    """Return the rows of DESCRIBE for one column.

    Raises ``UnknownColumn``.
    """
    field = table.table_schema.field(resolve(name, table.table_schema.column_types))
    facts = {"col_name": field.name, "data_type": spark_type(field.type).simpleString(), "comment": field.description or "NULL"}
    return pa.table({"info_name": list(facts), "info_value": list(facts.values())})


def _find_table(names: KnownTables, name: NameParts) -> Table | None:
    """Find a table by its path or in the catalog."""
    return names.find(name) if names.path(name) or names.of_catalog(name) else None


__all__ = ["column_rows", "description_rows", "show_columns", "show_create_table", "statement"]
