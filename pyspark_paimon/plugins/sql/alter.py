"""Statements that change a table: ALTER TABLE, UPDATE, DELETE, TRUNCATE.

Each function returns None for a table that is not Paimon's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from operator import methodcaller
from typing import Any, TypeAlias

from paimon_base.errors import InvalidArgument
from pyspark_paimon.filter.columns import StatementText
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.plugins.sql.answers import frame_of_result
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.new_table import spark_type_text
from pyspark_paimon.plugins.sql.subqueries import Subqueries, has_subquery
from pyspark_paimon.plugins.sql.tags import alter_tag
from pyspark_paimon.plugins.sql.text.words import NameParts, TokenCursor, partition_spec, replace_qualifiers
from pyspark_paimon.results.results import MergeResult
from pyspark_paimon.table.table import Table

AlterCall: TypeAlias = Callable[[Any], object]
"""One schema change, passed to ``Table.alter``."""
_ENDS = (",", "NOT", "NULL", "DEFAULT", "COMMENT", "AFTER", "FIRST")


def alter_table(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``ALTER TABLE``.

    None: the table is not a Paimon table.
    """
    name = words.name()
    table = names.find(name)
    if table is None:
        return None
    if words.take("RENAME", "TO"):
        catalog, catalog_name = names.require_catalog_name(name, "ALTER TABLE")
        new = names.require_catalog_name(words.name(), "ALTER TABLE")[1]
        words.end()
        catalog.rename_table(catalog_name, new)
        return frame_of_result(names.spark, None)
    tagged = alter_tag(names, table, words)
    if tagged is not None:
        return tagged
    for action, parse in ACTIONS.items():
        if words.take(*action.split()):
            changes = list(parse(words, table))
            words.end()  # the whole statement must parse before the table changes
            if changes:
                table.alter(*changes)
                names.renew(name)
            return frame_of_result(names.spark, None)
    if words.take("DROP", "IF", "EXISTS", "PARTITION") or words.take("DROP", "PARTITION"):
        return _drop_partitions(names, table, words)
    raise words.error(f"one of {', '.join(ACTIONS)}, DROP PARTITION, RENAME TO, CREATE | REPLACE | RENAME | DELETE TAG")


def _add(words: TokenCursor, _: Table) -> Iterator[AlterCall]:
    bracketed = words.take("(")
    while True:
        column = words.name()
        kind = _type(words)
        options: dict[str, Any] = {}
        if words.take("NOT", "NULL"):
            raise InvalidArgument(f"column '{'.'.join(column)}' cannot be NOT NULL: existing rows have no value in it")
        while not words.done and words.peek() not in {",", ")"}:
            if words.take("FIRST"):
                options["first"] = True
            elif words.take("AFTER"):
                options["after"] = words.part()
            elif words.take("DEFAULT"):
                options["default"] = words.literal()
            else:
                words.expect("COMMENT")
                options["comment"] = words.literal()
        yield methodcaller("add_column", column, kind, **options)
        if not words.take(","):
            break
    if bracketed:
        words.expect(")")


def _type(words: TokenCursor) -> str:
    text = words.type(_ENDS)
    if not text.strip():
        raise words.error("a type")
    return spark_type_text(text)


def _drop(words: TokenCursor, table: Table) -> Iterator[AlterCall]:
    quiet = words.take("IF", "EXISTS")
    columns = [words.name() for _ in words.items()] if words.peek() == "(" else [words.name()]
    while words.take(","):
        columns.append(words.name())
    column_names = {name.lower() for name in table.table_schema.names}
    for column in columns:
        if quiet and len(column) == 1 and column[0].lower() not in column_names:
            continue
        yield methodcaller("drop_column", column)


def _rename(words: TokenCursor, _: Table) -> Iterator[AlterCall]:
    column = words.name()
    words.expect("TO")
    yield methodcaller("rename_column", column, words.part())


def _change(words: TokenCursor, _: Table) -> Iterator[AlterCall]:
    column = words.name()
    name = ".".join(column)
    if words.take("TYPE") or words.take("SET", "DATA", "TYPE"):
        yield methodcaller("change_type", column, _type(words))
    elif words.take("COMMENT"):
        yield methodcaller("set_comment", str(words.literal()), column)
    elif words.take("FIRST"):
        yield methodcaller("move_column", column, first=True)
    elif words.take("AFTER"):
        yield methodcaller("move_column", column, after=words.part())
    elif words.take("SET", "NOT", "NULL"):
        yield methodcaller("set_nullable", column, nullable=False)
    elif words.take("DROP", "NOT", "NULL"):
        yield methodcaller("set_nullable", column)
    elif words.take("SET", "DEFAULT"):
        yield methodcaller("set_default", name, words.literal())
    elif words.take("DROP", "DEFAULT"):
        yield methodcaller("set_default", name, None)
    else:
        raise words.error("TYPE, COMMENT, FIRST, AFTER, SET | DROP NOT NULL, or SET | DROP DEFAULT")


def _set(words: TokenCursor, _: Table) -> Iterator[AlterCall]:
    options: dict[str, object] = {**words.properties()}
    if "comment" in options:
        yield methodcaller("set_comment", str(options.pop("comment")))
    if options:
        yield methodcaller("alter_options", options)


def _unset(words: TokenCursor, _: Table) -> Iterator[AlterCall]:
    words.take("IF", "EXISTS")
    yield methodcaller("alter_options", {".".join(words.name()): None for _ in words.items()})


def _drop_partitions(names: KnownTables, table: Table, words: TokenCursor) -> Any:
    """Drop the partitions in ``(day = '2026-01-31', ...), PARTITION (...)``."""
    partitions: list[dict[str, object]] = []
    while not partitions or words.take("PARTITION") or words.take(",", "PARTITION"):
        partitions.append(partition_spec(words))
    words.take("PURGE")
    words.end()
    table.drop_partitions(partitions)
    return frame_of_result(names.spark, None)


ACTIONS: dict[str, Callable[[TokenCursor, Table], Iterator[AlterCall]]] = {
    "ADD COLUMNS": _add,
    "ADD COLUMN": _add,
    "DROP COLUMNS": _drop,
    "DROP COLUMN": _drop,
    "RENAME COLUMN": _rename,
    "ALTER COLUMN": _change,
    "CHANGE COLUMN": _change,
    "SET TBLPROPERTIES": _set,
    "UNSET TBLPROPERTIES": _unset,
    "SET": _set,
    "RESET": _unset,
}


def comment(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``COMMENT ON TABLE t IS 'text'``, and on ``COLUMN t.c``."""
    of_column = words.take("COLUMN")
    if not of_column:
        words.expect("TABLE")
    name = words.name()
    column, name = (name[-1], name[:-1]) if of_column else (None, name)
    table = names.find(name) if name else None
    if table is None:
        return None
    words.expect("IS")
    text = words.literal()
    words.end()
    table.set_comment("" if text is None else str(text), column)
    names.renew(name)
    return frame_of_result(names.spark, None)


def update(names: KnownTables, words: TokenCursor) -> Any:
    """Run UPDATE.

    Syntax: ``UPDATE t [AS a] SET column = value, ... [WHERE condition]``. The condition may have subqueries.
    """
    start, name = words.here, words.name()
    table = names.find(name)
    if table is None:
        return None
    sides = dict.fromkeys(_called_names(words, name, table), "")
    source = words.text[start : words.here]
    words.expect("SET")
    values = assignments(words, ("WHERE",), sides)
    condition = _condition(words)
    subqueries = Subqueries(names, table, condition, source, partial(replace_qualifiers, sides=sides))
    expressions = {column: subqueries.value_text(column, text) for column, text in values.items()}
    direct_values = {column: StatementText(text) for column, text in expressions.items() if text is not None}
    filter_text = subqueries.literal_filter() if has_subquery(condition) else replace_qualifiers(condition, sides)
    if filter_text is not None and len(direct_values) == len(values):
        return frame_of_result(names.spark, table.update(filter_text, set=direct_values))
    return frame_of_result(names.spark, _update_by_keys(subqueries, values, direct_values))


def _update_by_keys(subqueries: Subqueries, values: Mapping[str, str], direct_values: Mapping[str, str]) -> MergeResult:
    """Update the rows that Spark finds.

    values: Text of each new value. direct_values: those that need no subquery. Spark computes the others.
    """
    if parts := [column for column in values if "." in column]:
        raise InvalidArgument(
            f"SET {parts[0]}: a field of a column cannot be set where Spark finds the rows by a subquery; set the column to "
            "its whole new value. Nothing was changed"
        )
    # In a merge, t and s are its sides: a struct column of these names needs its side before it.
    structs: dict[NameParts, str] = {
        (name.lower(),): f"t.{name}" for name in subqueries.table.table_schema.names if name.lower() in {"t", "s"}
    }
    computed = {column: f"__paimon_value_{position}" for position, column in enumerate(values) if column not in direct_values}
    keys, on = subqueries.matching_keys({name: values[column] for column, name in computed.items()})
    value_texts = {
        column: f"s.{computed[column]}" if column in computed else replace_qualifiers(direct_values[column], structs) for column in values
    }
    texts = {column: StatementText(text) for column, text in value_texts.items()}
    return subqueries.table.merge(keys, on).when_matched_update(texts).execute()


def delete(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``DELETE FROM t [AS a] [WHERE condition]``. The condition may have subqueries."""
    start, name = words.here, words.name()
    table = names.find(name)
    if table is None:
        return None
    sides = dict.fromkeys(_called_names(words, name, table), "")
    source = words.text[start : words.here]
    condition = _condition(words)
    if not has_subquery(condition):
        return frame_of_result(names.spark, table.delete(replace_qualifiers(condition, sides)))
    subqueries = Subqueries(names, table, condition, source, partial(replace_qualifiers, sides=sides))
    filter_text = subqueries.literal_filter()
    if filter_text is None:
        return frame_of_result(names.spark, table.merge(*subqueries.matching_keys()).when_matched_delete().execute())
    return frame_of_result(names.spark, table.delete(filter_text))


def truncate(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``TRUNCATE TABLE t [PARTITION (day = '2026-01-31')]``."""
    table = names.find(words.name())
    if table is None:
        return None
    if words.take("PARTITION"):
        spec = partition_spec(words)
        words.end()
        return frame_of_result(names.spark, table.drop_partitions([spec]))
    words.end()
    return frame_of_result(names.spark, table.delete("TRUE"))


def assignments(words: TokenCursor, stops: tuple[str, ...], target: Collection[NameParts]) -> dict[str, str]:
    """Parse ``column = value, ...`` up to one of ``stops``.

    Returns the text of each value by column.
    target: Qualifiers that may precede a column name.
    Raises ``InvalidArgument`` for a column that is set twice.
    """
    value_by_column: dict[str, str] = {}
    while True:
        name = words.name()
        before = {tuple(part.lower() for part in name[:length]): name[length:] for length in range(1, len(name))}
        name = next((column for called, column in before.items() if called in target), name)
        column = name[0] if len(name) == 1 else ".".join(map(quote_name, name))
        if column.lower() in map(str.lower, value_by_column):
            raise InvalidArgument(f"SET {column}: the column is set twice")
        words.expect("=")
        value_by_column[column] = assigned_value(words, (*stops, ","))
        if not words.take(","):
            return value_by_column


def assigned_value(words: TokenCursor, stops: Collection[str]) -> str:
    """Read the text of a value; NULL for DEFAULT.

    The writer gives null the default of its column.
    """
    text = words.until(stops)
    return "NULL" if text.upper() == "DEFAULT" else text


def qualifiers(name: NameParts) -> list[NameParts]:
    """Return the lower-case qualifiers of a table without an alias."""
    parts = tuple(part.lower() for part in name)
    return [parts[start:] for start in range(len(parts))]


def _called_names(words: TokenCursor, name: NameParts, table: Table) -> list[NameParts]:
    """Return the qualifiers of columns: the table's alias or name."""
    if words.take("AS") or not (words.done or words.peek() in {"SET", "WHERE"}):
        return [(words.part().lower(),)]
    columns = {column.lower() for column in table.table_schema.names}
    return [called for called in qualifiers(name) if called[0] not in columns]


def _condition(words: TokenCursor) -> str:
    if words.done:
        return "TRUE"
    words.expect("WHERE")
    return words.rest()
