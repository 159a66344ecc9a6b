"""UPDATE, DELETE and TRUNCATE; each answers None for a table of Spark's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from fileindex.base.errors import InvalidArgument
from fileindex.expression.tree import ColumnValue, map_columns
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.filter.joined_sql import TARGET, joined_value
from pyspark_paimon.frames.spark_functions import functions_of
from pyspark_paimon.statements.answers import frame_of_result
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.words import NameParts, Words
from pyspark_paimon.table.table import Table

_VALUES = {TokenType.STRING, TokenType.NUMBER}


def update(names: KnownTables, words: Words) -> Any:
    """``UPDATE t [AS a] SET column = value, ... [WHERE condition]``."""
    name = words.name()
    table = names.find(name)
    if table is None:
        return None
    sides = dict.fromkeys(_called(words, name, table), "")
    words.need("SET")
    values = assignments(words, ("WHERE",), sides)
    condition = _condition(words, sides)
    made = {column: _value(table, renamed(text, sides), names.spark) for column, text in values.items()}
    return frame_of_result(names.spark, table.update(condition, set=made))


def delete(names: KnownTables, words: Words) -> Any:
    """``DELETE FROM t [AS a] [WHERE condition]``."""
    name = words.name()
    table = names.find(name)
    if table is None:
        return None
    sides = dict.fromkeys(_called(words, name, table), "")
    return frame_of_result(names.spark, table.delete(_condition(words, sides)))


def truncate(names: KnownTables, words: Words) -> Any:
    """``TRUNCATE TABLE t``."""
    table = names.find(words.name())
    if table is None:
        return None
    words.end()
    return frame_of_result(names.spark, table.delete("TRUE"))


def assignments(words: Words, stops: tuple[str, ...], target: Collection[NameParts]) -> dict[str, str]:
    """``column = value, ...`` up to one of ``stops``: the text of each value by its column, which may have a name of the ``target`` before it.

    Raises ``InvalidArgument`` for a part of a column, and for a column that is set twice.
    """
    found: dict[str, str] = {}
    while True:
        name = words.name()
        before = {tuple(part.lower() for part in name[:at]): name[at:] for at in range(1, len(name))}
        name = next((column for called, column in before.items() if called in target), name)
        if len(name) > 1:
            raise InvalidArgument(
                f"SET {'.'.join(name)}: a part of column '{name[0]}' is not set alone; set the column to its whole new value"
            )
        if name[0].lower() in map(str.lower, found):
            raise InvalidArgument(f"SET {name[0]}: the column is set twice")
        words.need("=")
        found[name[0]] = words.until((*stops, ","))
        if not words.take(","):
            return found


def qualifiers(name: NameParts) -> list[NameParts]:
    """What may stand before the columns of a table that has no alias, in small letters."""
    parts = tuple(part.lower() for part in name)
    return [parts[at:] for at in range(len(parts))]


def renamed(text: str, sides: Mapping[NameParts, str]) -> str:
    """SQL text with other names before its columns; the name '' takes them away.

    >>> renamed("x.n + db.Y.m - b.x.a", {("x",): "t", ("db", "y"): ""})
    't.n + m - b.x.a'
    """
    words, parts, end = Words(text), [""], 0
    tokens = words.tokens
    for at in range(len(tokens) - 1):
        if at and tokens[at - 1].text == ".":
            continue
        for called, new in sides.items():
            length = 2 * len(called)
            held = tokens[at : at + length]
            dotted = len(held) == length and all(token.text == "." for token in held[1::2]) and held[0].kind not in _VALUES
            if dotted and tuple(token.text.lower() for token in held[::2]) == called:
                parts += [text[end : held[0].start], new]
                end = held[-1].start if new else held[-1].end + 1
                break
    return "".join([*parts, text[end:]])


def _called(words: Words, name: NameParts, table: Table) -> list[NameParts]:
    """What may stand before the table's columns: the name that the statement gives it, or its own."""
    if words.take("AS") or not (words.done or words.word() in {"SET", "WHERE"}):
        return [(words.part().lower(),)]
    columns = {column.lower() for column in table.table_schema.names}
    return [called for called in qualifiers(name) if called[0] not in columns]


def _condition(words: Words, sides: Mapping[NameParts, str]) -> str:
    if words.done:
        return "TRUE"
    words.need("WHERE")
    return renamed(words.rest(), sides)


def _value(table: Table, text: str, spark: Any) -> Any:
    """What rows are set to: computed by Spark where it rewrites them, by the table's own tasks where they are changed in their files."""
    schema = table.table_schema
    if schema.is_primary_key_table:
        return functions_of(spark).expr(text)
    bound = joined_value(text, {TARGET: schema.column_types})
    return map_columns(
        bound, lambda column: ColumnValue(resolve(column.name.split(".", 1)[1], schema.column_types), column.key, column.type)
    )


__all__ = ["assignments", "delete", "qualifiers", "renamed", "truncate", "update"]
