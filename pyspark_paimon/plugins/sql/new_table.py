"""Table definitions: parsed from CREATE TABLE, and shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField
from paimon_base.errors import InvalidArgument
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.frames.spark_types import spark_type
from pyspark_paimon.plugins.sql.answers import description, frame_of_rows
from pyspark_paimon.plugins.sql.names import KnownTables, text_literal
from pyspark_paimon.plugins.sql.text.words import NameParts, TokenCursor, WrittenValue
from pyspark_paimon.plugins.sql.views import view_statement
from pyspark_paimon.table.table import Table

_MEANT = {"TIMESTAMP": "TIMESTAMP_LTZ", "BINARY": "BYTES", "BYTE": "TINYINT", "SHORT": "SMALLINT", "LONG": "BIGINT", "REAL": "FLOAT"}
_ENDS = (",", "DEFAULT", "COMMENT", "NOT", "NULL", "PRIMARY")


@dataclass
class NewTable:
    """Parsed CREATE TABLE statement."""

    name: NameParts
    columns: list[str] = field(default_factory=list)
    defaults: dict[str, WrittenValue] = field(default_factory=dict)
    primary_keys: list[str] = field(default_factory=list)
    partition_keys: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    path: str | None = None
    query: str | None = None


def read_column_or_key(new: NewTable, words: TokenCursor) -> None:
    """Parse a column or the primary key into ``new``."""
    if words.take("CONSTRAINT"):
        words.part()
    if words.take("PRIMARY", "KEY"):
        new.primary_keys += [words.part() for _ in words.items()]
        words.take("NOT", "ENFORCED")
        return
    name = words.part()
    text = [quote_name(name), spark_type_text(words.type(_ENDS))]
    while words.peek() not in {",", ")"} and not words.done:
        if words.take("NOT", "NULL"):
            text.append("NOT NULL")
        elif words.take("PRIMARY", "KEY"):  # Flink's form
            new.primary_keys.append(name)
            words.take("NOT", "ENFORCED")
        elif words.take("NULL"):
            continue
        elif words.take("DEFAULT"):
            new.defaults[name] = words.literal()
        else:
            words.expect("COMMENT")
            text.append(f"COMMENT {_quote(str(words.literal()))}")
    new.columns.append(" ".join(text))


def copy_definition(new: NewTable, model: TableSchema) -> None:
    """Copy columns, keys, options and comment from another table."""
    new.columns = [column_text(replace(field, default_value=None), _quote) for field in model.fields]
    new.defaults = {field.name: field.default_value for field in model.fields if field.default_value is not None}
    new.primary_keys, new.partition_keys = [*model.primary_keys], [*model.partition_keys]
    new.options = {key: value for key, value in model.options.items() if key != "path"}
    new.comment = model.comment


def column_text(field: DataField, literal: Callable[[str], str] = text_literal) -> str:
    """Return a column definition of CREATE TABLE.

    literal: Formatter of text literals.
    """
    parts = [quote_name(field.name), str(field.type)]
    if field.default_value is not None:
        parts.append(f"DEFAULT {literal(field.default_value)}")
    if field.description:
        parts.append(f"COMMENT {literal(field.description)}")
    return " ".join(parts)


def _quote(text: str) -> str:
    """Return a text as a literal of a column list."""
    # A backslash is an ordinary character there.
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def spark_type_text(text: str) -> str:
    """Translate a type in Spark's SQL to Paimon's.

    TIMESTAMP without a precision becomes TIMESTAMP_LTZ, BINARY without a length becomes BYTES. Java's names (LONG) are accepted.

    >>> spark_type_text("ARRAY<TIMESTAMP>"), spark_type_text("TIMESTAMP(3)"), spark_type_text("MAP<BINARY, LONG>")
    ('ARRAY<TIMESTAMP_LTZ>', 'TIMESTAMP(3)', 'MAP<BYTES, BIGINT>')
    """
    words = TokenCursor(text)
    parts, end = [""], 0
    for index, token in enumerate(words.tokens):
        behind = words.tokens[index + 1].text if index + 1 < len(words.tokens) else ""
        meant = _MEANT.get("" if token.kind.name == "IDENTIFIER" else token.text.upper())
        if meant is not None and behind not in {"(", ":", "WITH", "WITHOUT"}:
            parts += [text[end : token.start], meant]
            end = token.end + 1
    return "".join([*parts, text[end:]])


def read_clauses(new: NewTable, words: TokenCursor) -> None:
    """Parse the clauses after the column list into ``new``."""
    while not words.done:
        if words.take("USING"):
            words.part()
        elif words.take("PARTITIONED", "BY"):
            for _ in words.items():
                _read_partition(new, words)
        elif words.take("TBLPROPERTIES") or words.take("OPTIONS") or words.take("WITH"):
            new.options |= words.properties()
        elif words.take("CLUSTERED", "BY"):
            new.options["bucket-key"] = ",".join([words.part() for _ in words.items()])
            words.expect("INTO")
            new.options["bucket"] = str(words.whole_number())
            words.expect("BUCKETS")
        elif words.take("COMMENT"):
            new.comment = str(words.literal())
        elif words.take("LOCATION"):
            new.path = str(words.literal())
        else:
            words.expect("AS")
            new.query = words.rest()
    new.path = new.options.pop("path", new.path)
    new.options.pop("connector", None)  # Flink's name of the format
    for option, keys in (("primary-key", new.primary_keys), ("partition", new.partition_keys)):
        keys += [name.strip() for name in new.options.pop(option, "").split(",") if name.strip()]


def _read_partition(new: NewTable, words: TokenCursor) -> None:
    """Parse a partition column, or define one by its type."""
    name = words.part()
    if words.peek() == "(":
        raise InvalidArgument(f"PARTITIONED BY ({name}(...)): partitions must be columns; add a column that has the value")
    new.partition_keys.append(name)
    if words.peek() not in {",", ")"}:
        new.columns.append(f"{quote_name(name)} {spark_type_text(words.type(_ENDS))}")


def show_create_table(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``SHOW CREATE TABLE t`` for a table or view; None if Spark should."""
    name = words.name()
    table = _find_table(names, name)
    if table is not None:
        text = statement(name, table.table_schema)
    elif (view := names.view(name)) is not None:
        text = view_statement(view)
    else:
        return None
    words.end()
    return frame_of_rows(names.spark, pa.table({"createtab_stmt": [text]}))


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
        lines.append(f"  PRIMARY KEY ({', '.join(map(quote_name, schema.primary_keys))}) NOT ENFORCED")
    parts = [f"CREATE TABLE {'.'.join(map(quote_name, name))} (", ",\n".join(lines) + ")", "USING paimon"]
    if schema.partition_keys:
        parts.append(f"PARTITIONED BY ({', '.join(map(quote_name, schema.partition_keys))})")
    if schema.comment:
        parts.append(f"COMMENT {text_literal(schema.comment)}")
    options = [f"  {text_literal(key)} = {text_literal(value)}" for key, value in sorted(schema.options.items()) if key != "path"]
    if options:
        parts += ["TBLPROPERTIES (", ",\n".join(options) + ")"]
    return "\n".join(parts) + "\n"


def description_rows(table: Table, *, extended: bool) -> pa.Table:
    """Return the rows of DESCRIBE.

    extended: Add location, keys and options, in Spark's layout.
    """
    schema = table.table_schema
    details: dict[str, str] = {}
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
    return description(schema.fields, "Table", details)


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
