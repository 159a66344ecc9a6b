"""What CREATE TABLE says of a table: columns, keys, options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fileindex.base.errors import InvalidArgument
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField
from pyspark_paimon.spark.client.binary_row_expr import quoted_name
from pyspark_paimon.statements.names import escaped_text
from pyspark_paimon.statements.words import NameParts, Words, WrittenValue

_MEANT = {"TIMESTAMP": "TIMESTAMP_LTZ", "BINARY": "BYTES", "BYTE": "TINYINT", "SHORT": "SMALLINT", "LONG": "BIGINT", "REAL": "FLOAT"}
_ENDS = (",", "DEFAULT", "COMMENT", "NOT", "NULL")


@dataclass
class NewTable:
    """What a CREATE TABLE says."""

    name: NameParts
    columns: list[str] = field(default_factory=list)
    defaults: dict[str, WrittenValue] = field(default_factory=dict)
    primary_keys: list[str] = field(default_factory=list)
    partition_keys: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    path: str | None = None
    query: str | None = None


def read_column_or_key(new: NewTable, words: Words) -> None:
    """Read a column, or the primary key."""
    if words.take("CONSTRAINT"):
        words.part()
    if words.take("PRIMARY", "KEY"):
        new.primary_keys += [words.part() for _ in words.listed()]
        words.take("NOT", "ENFORCED")
        return
    name = words.part()
    text = [quoted_name(name), spark_type_text(words.type(_ENDS))]
    while words.word() not in {",", ")"} and not words.done:
        if words.take("NOT", "NULL"):
            text.append("NOT NULL")
        elif words.take("NULL"):
            continue
        elif words.take("DEFAULT"):
            new.defaults[name] = words.literal()
        else:
            words.need("COMMENT")
            text.append(f"COMMENT {_doubled_text(str(words.literal()))}")
    new.columns.append(" ".join(text))


def copy_definition(new: NewTable, model: TableSchema) -> None:
    """Take columns, keys and options from another table."""
    new.columns = [column_text(replace(field, default_value=None), _doubled_text) for field in model.fields]
    new.defaults = {field.name: field.default_value for field in model.fields if field.default_value is not None}
    new.primary_keys, new.partition_keys = [*model.primary_keys], [*model.partition_keys]
    new.options = {key: value for key, value in model.options.items() if key != "path"}
    new.comment = model.comment


def column_text(field: DataField, literal: Callable[[str], str] = escaped_text) -> str:
    """Return a column as CREATE TABLE has it, its texts as ``literal`` writes them."""
    said = [quoted_name(field.name), str(field.type)]
    if field.default_value is not None:
        said.append(f"DEFAULT {literal(field.default_value)}")
    if field.description:
        said.append(f"COMMENT {literal(field.description)}")
    return " ".join(said)


def _doubled_text(text: str) -> str:
    """Return a text as a literal of a column list, where a backslash is a letter."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def spark_type_text(text: str) -> str:
    """A type as Spark means it: a TIMESTAMP alone is an instant, a BINARY alone any bytes, and numbers have Java's names, too.

    >>> spark_type_text("ARRAY<TIMESTAMP>"), spark_type_text("TIMESTAMP(3)"), spark_type_text("MAP<BINARY, LONG>")
    ('ARRAY<TIMESTAMP_LTZ>', 'TIMESTAMP(3)', 'MAP<BYTES, BIGINT>')
    """
    words = Words(text)
    parts, end = [""], 0
    for at, token in enumerate(words.tokens):
        behind = words.tokens[at + 1].text if at + 1 < len(words.tokens) else ""
        meant = _MEANT.get("" if token.kind.name == "IDENTIFIER" else token.text.upper())
        if meant is not None and behind not in {"(", ":", "WITH", "WITHOUT"}:
            parts += [text[end : token.start], meant]
            end = token.end + 1
    return "".join([*parts, text[end:]])


def read_clauses(new: NewTable, words: Words) -> None:
    """Read what follows the columns."""
    while not words.done:
        if words.take("USING"):
            words.part()
        elif words.take("PARTITIONED", "BY"):
            for _ in words.listed():
                _read_partition(new, words)
        elif words.take("TBLPROPERTIES") or words.take("OPTIONS"):
            new.options |= words.properties()
        elif words.take("COMMENT"):
            new.comment = str(words.literal())
        elif words.take("LOCATION"):
            new.path = str(words.literal())
        else:
            words.need("AS")
            new.query = words.rest()
    new.path = new.options.pop("path", new.path)
    for option, keys in (("primary-key", new.primary_keys), ("partition", new.partition_keys)):
        keys += [name.strip() for name in new.options.pop(option, "").split(",") if name.strip()]


def _read_partition(new: NewTable, words: Words) -> None:
    """A column of the table or, with its type, one more."""
    name = words.part()
    if words.word() == "(":
        raise InvalidArgument(f"PARTITIONED BY ({name}(...)): tables are partitioned by columns; add one that has the value")
    new.partition_keys.append(name)
    if words.word() not in {",", ")"}:
        new.columns.append(f"{quoted_name(name)} {spark_type_text(words.type(_ENDS))}")


__all__ = ["NewTable", "column_text", "copy_definition", "read_clauses", "read_column_or_key", "spark_type_text"]
