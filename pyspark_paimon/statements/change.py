"""Statements UPDATE, DELETE and TRUNCATE.

Each function returns None for a table that is not Paimon's.
"""

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
from pyspark_paimon.statements.words import NameParts, TokenCursor
from pyspark_paimon.table.table import Table

_VALUES = {TokenType.STRING, TokenType.NUMBER}


def update(names: KnownTables, words: TokenCursor) -> Any:
    """Run UPDATE.

    Syntax: ``UPDATE t [AS a] SET column = value, ... [WHERE condition]``.
    """
    name = words.name()
    table = names.find(name)
    if table is None:
        return None
    sides = dict.fromkeys(_called(words, name, table), "")
    words.expect("SET")
    values = assignments(words, ("WHERE",), sides)
    condition = _condition(words, sides)
    made = {column: _value(table, replace_qualifiers(text, sides), names.spark) for column, text in values.items()}
    return frame_of_result(names.spark, table.update(condition, set=made))


def delete(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``DELETE FROM t [AS a] [WHERE condition]``."""
    name = words.name()
    table = names.find(name)
    if table is None:
        return None
    sides = dict.fromkeys(_called(words, name, table), "")
    return frame_of_result(names.spark, table.delete(_condition(words, sides)))


def truncate(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``TRUNCATE TABLE t``."""
    table = names.find(words.name())
    if table is None:
        return None
    words.end()
    return frame_of_result(names.spark, table.delete("TRUE"))


def assignments(words: TokenCursor, stops: tuple[str, ...], target: Collection[NameParts]) -> dict[str, str]:
    """Parse ``column = value, ...`` up to one of ``stops``.

    Returns the text of each value by column.
    target: Qualifiers that may precede a column name.
    Raises ``InvalidArgument`` for a nested field, and for a column that is set twice.
    """
    found: dict[str, str] = {}
    while True:
        name = words.name()
        before = {tuple(part.lower() for part in name[:at]): name[at:] for at in range(1, len(name))}
        name = next((column for called, column in before.items() if called in target), name)
        if len(name) > 1:
            raise InvalidArgument(
                f"SET {'.'.join(name)}: a field of column '{name[0]}' cannot be set alone; set the column to its whole new value"
            )
        if name[0].lower() in map(str.lower, found):
            raise InvalidArgument(f"SET {name[0]}: the column is set twice")
        words.expect("=")
        found[name[0]] = words.until((*stops, ","))
        if not words.take(","):
            return found


def qualifiers(name: NameParts) -> list[NameParts]:
    """Return the lower-case qualifiers of a table without an alias."""
    parts = tuple(part.lower() for part in name)
    return [parts[at:] for at in range(len(parts))]


def replace_qualifiers(text: str, sides: Mapping[NameParts, str]) -> str:
    """Replace the qualifiers of columns in SQL text.

    sides: New name of each qualifier; '' removes it.

    >>> replace_qualifiers("x.n + db.Y.m - b.x.a", {("x",): "t", ("db", "y"): ""})
    't.n + m - b.x.a'
    """
    words, parts, end = TokenCursor(text), [""], 0
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


def _called(words: TokenCursor, name: NameParts, table: Table) -> list[NameParts]:
    """Return the qualifiers of columns: the table's alias or name."""
    if words.take("AS") or not (words.done or words.peek() in {"SET", "WHERE"}):
        return [(words.part().lower(),)]
    columns = {column.lower() for column in table.table_schema.names}
    return [called for called in qualifiers(name) if called[0] not in columns]


def _condition(words: TokenCursor, sides: Mapping[NameParts, str]) -> str:
    if words.done:
        return "TRUE"
    words.expect("WHERE")
    return replace_qualifiers(words.rest(), sides)


def _value(table: Table, text: str, spark: Any) -> Any:
    """Return the new value of a column, for ``Table.update``."""
    schema = table.table_schema
    if schema.is_primary_key_table:  # Spark computes the new rows; other tables are changed in their files by our own tasks
        return functions_of(spark).expr(text)
    bound = joined_value(text, {TARGET: schema.column_types})
    return map_columns(
        bound, lambda column: ColumnValue(resolve(column.name.split(".", 1)[1], schema.column_types), column.key, column.type)
    )


__all__ = ["assignments", "delete", "qualifiers", "replace_qualifiers", "truncate", "update"]
