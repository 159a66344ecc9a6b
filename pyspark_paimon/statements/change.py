"""UPDATE, DELETE and TRUNCATE; each answers None for a table of Spark's own."""

from __future__ import annotations

from typing import Any

from fileindex.expression.tree import ColumnValue, map_columns
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.filter.joined_sql import TARGET, joined_value
from pyspark_paimon.frames.spark_functions import functions_of
from pyspark_paimon.statements.answers import frame_of_result
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.words import Words
from pyspark_paimon.table.table import Table


def update(names: KnownTables, words: Words) -> Any:
    """``UPDATE t [AS a] SET column = value, ... [WHERE condition]``."""
    table = names.find(words.name())
    if table is None:
        return None
    alias = _alias(words)
    words.need("SET")
    values = assignments(words, ("WHERE",))
    condition = _condition(words, alias)
    made = {name: _value(table, unaliased(text, alias), names.spark) for name, text in values.items()}
    return frame_of_result(names.spark, table.update(condition, set=made))


def delete(names: KnownTables, words: Words) -> Any:
    """``DELETE FROM t [AS a] [WHERE condition]``."""
    table = names.find(words.name())
    if table is None:
        return None
    alias = _alias(words)
    return frame_of_result(names.spark, table.delete(_condition(words, alias)))


def truncate(names: KnownTables, words: Words) -> Any:
    """``TRUNCATE TABLE t``."""
    table = names.find(words.name())
    if table is None:
        return None
    words.end()
    return frame_of_result(names.spark, table.delete("TRUE"))


def assignments(words: Words, stops: tuple[str, ...]) -> dict[str, str]:
    """``column = value, ...`` up to one of ``stops``: the text of each value by the last part of its column's name."""
    found: dict[str, str] = {}
    while True:
        name = words.name()[-1]
        words.need("=")
        found[name] = words.until((*stops, ","))
        if not words.take(","):
            return found


def unaliased(text: str, alias: str | None) -> str:
    """SQL text without the name of the table before its columns.

    >>> unaliased("a.n + A.m - b.a", "a")
    'n + m - b.a'
    """
    return text if alias is None else renamed(text, {alias.lower(): ""})


def renamed(text: str, sides: dict[str, str]) -> str:
    """SQL text with other names before its columns; the name '' takes them away.

    >>> renamed("x.n + y.m", {"x": "t", "y": "s"})
    't.n + s.m'
    """
    words, parts, end = Words(text), [""], 0
    tokens = words.tokens
    for at in range(len(tokens) - 1):
        token, after = tokens[at], tokens[at + 1]
        inside = at and tokens[at - 1].text == "."
        if after.text == "." and not inside and token.text.lower() in sides and token.kind.name in {"VAR", "IDENTIFIER"}:
            new = sides[token.text.lower()]
            parts += [text[end : token.start], new]
            end = after.start if new else after.end + 1
    return "".join([*parts, text[end:]])


def _alias(words: Words) -> str | None:
    """The name that the statement gives the table."""
    if words.take("AS"):
        return words.part()
    return None if words.done or words.word() in {"SET", "WHERE"} else words.part()


def _condition(words: Words, alias: str | None) -> str:
    if words.done:
        return "TRUE"
    words.need("WHERE")
    return unaliased(words.rest(), alias)


def _value(table: Table, text: str, spark: Any) -> Any:
    """What rows are set to: computed by Spark where it rewrites them, by the table's own tasks where they are changed in their files."""
    schema = table.table_schema
    if schema.is_primary_key_table:
        return functions_of(spark).expr(text)
    bound = joined_value(text, {TARGET: schema.column_types})
    return map_columns(
        bound, lambda column: ColumnValue(resolve(column.name.split(".", 1)[1], schema.column_types), column.key, column.type)
    )


__all__ = ["assignments", "delete", "renamed", "truncate", "unaliased", "update"]
