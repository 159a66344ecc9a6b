"""What CREATE TABLE says of a table: columns, keys, options."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark_paimon.spark.client.binary_row_expr import quoted_name
from pyspark_paimon.statements.words import NameParts, Words, WrittenValue

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
    text = [quoted_name(name), spark_type_text(words.until(_ENDS))]
    while words.word() not in {",", ")"} and not words.done:
        if words.take("NOT", "NULL"):
            text.append("NOT NULL")
        elif words.take("NULL"):
            continue
        elif words.take("DEFAULT"):
            new.defaults[name] = words.literal()
        else:
            words.need("COMMENT")
            text.append("COMMENT '" + str(words.literal()).replace("'", "''") + "'")
    new.columns.append(" ".join(text))


def spark_type_text(text: str) -> str:
    """A type as Spark means it: a TIMESTAMP alone is an instant.

    >>> spark_type_text("ARRAY<TIMESTAMP>"), spark_type_text("TIMESTAMP(3)")
    ('ARRAY<TIMESTAMP_LTZ>', 'TIMESTAMP(3)')
    """
    words = Words(text)
    parts, end = [""], 0
    for at, token in enumerate(words.tokens):
        behind = words.tokens[at + 1].text if at + 1 < len(words.tokens) else ""
        if token.text.upper() == "TIMESTAMP" and behind not in {"(", ":", "WITH", "WITHOUT"}:
            parts += [text[end : token.start], "TIMESTAMP_LTZ"]
            end = token.end + 1
    return "".join([*parts, text[end:]])


def read_clauses(new: NewTable, words: Words) -> None:
    """Read what follows the columns."""
    while not words.done:
        if words.take("USING"):
            words.part()
        elif words.take("PARTITIONED", "BY"):
            new.partition_keys += [words.part() for _ in words.listed()]
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


__all__ = ["NewTable", "read_clauses", "read_column_or_key", "spark_type_text"]
