"""ALTER TABLE: columns, options, the name, and partitions to drop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.statements.answers import frame_of_result
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.new_table import spark_type_text
from pyspark_paimon.statements.words import Words
from pyspark_paimon.table.table import Table

_ENDS = (",", "NOT", "NULL", "DEFAULT", "COMMENT", "AFTER", "FIRST")


def alter_table(names: KnownTables, words: Words) -> Any:
    """``ALTER TABLE t ...``, one of ``ACTIONS``; None for a table of Spark's own."""
    name = words.name()
    table = names.find(name)
    if table is None:
        return None
    if words.take("RENAME", "TO"):
        catalog, known = names.needed_name(name, "ALTER TABLE")
        catalog.rename_table(known, names.needed_name(words.name(), "ALTER TABLE")[1])
        return frame_of_result(names.spark, None)
    for said, act in ACTIONS.items():
        if words.take(*said.split()):
            act(table, words)
            words.end()
            names.renew(name)
            return frame_of_result(names.spark, None)
    raise words.wrong(f"one of {', '.join(ACTIONS)}")


def _add(table: Table, words: Words) -> None:
    bracketed = words.take("(")
    while True:
        column = words.name()
        kind = spark_type_text(words.until(_ENDS))
        options: dict[str, Any] = {}
        if words.take("NOT", "NULL"):
            raise InvalidArgument(f"column '{'.'.join(column)}' cannot be NOT NULL: rows that are there have no value in it")
        while not words.done and words.word() not in {",", ")"}:
            if words.take("FIRST"):
                options["first"] = True
            elif words.take("AFTER"):
                options["after"] = words.part()
            elif words.take("DEFAULT"):
                options["default"] = words.literal()
            else:
                words.need("COMMENT")
                options["comment"] = words.literal()
        table.add_column(column, kind, **options)
        if not words.take(","):
            break
    if bracketed:
        words.need(")")


def _drop(table: Table, words: Words) -> None:
    words.take("IF", "EXISTS")
    columns = [words.name() for _ in words.listed()] if words.word() == "(" else [words.name()]
    while words.take(","):
        columns.append(words.name())
    for column in columns:
        table.drop_column(column)


def _rename(table: Table, words: Words) -> None:
    column = words.name()
    words.need("TO")
    table.rename_column(column, words.part())


def _change(table: Table, words: Words) -> None:
    column = words.name()
    name = ".".join(column)
    if words.take("TYPE") or words.take("SET", "DATA", "TYPE"):
        table.change_type(column, spark_type_text(words.until(_ENDS)))
    elif words.take("COMMENT"):
        table.set_comment(str(words.literal()), column)
    elif words.take("FIRST"):
        table.move_column(column, first=True)
    elif words.take("AFTER"):
        table.move_column(column, after=words.part())
    elif words.take("SET", "NOT", "NULL"):
        table.set_nullable(column, nullable=False)
    elif words.take("DROP", "NOT", "NULL"):
        table.set_nullable(column)
    elif words.take("SET", "DEFAULT"):
        table.set_default(name, words.literal())
    elif words.take("DROP", "DEFAULT"):
        table.set_default(name, None)
    else:
        raise words.wrong("TYPE, COMMENT, FIRST, AFTER, SET | DROP NOT NULL, or SET | DROP DEFAULT")


def _set(table: Table, words: Words) -> None:
    options: dict[str, object] = {**words.properties()}
    if "comment" in options:
        table.set_comment(str(options.pop("comment")))
    if options:
        table.alter_options(options)


def _unset(table: Table, words: Words) -> None:
    words.take("IF", "EXISTS")
    table.alter_options({".".join(words.name()): None for _ in words.listed()})


def _drop_partition(table: Table, words: Words) -> None:
    words.take("IF", "EXISTS")
    partitions = []
    while words.take("PARTITION"):
        spec: dict[str, object] = {}
        for _ in words.listed():
            name = words.part()
            words.need("=")
            words.take("DATE")
            spec[name] = words.literal()
        partitions.append(spec)
        words.take(",")
    table.drop_partitions(partitions)


ACTIONS: dict[str, Callable[[Table, Words], None]] = {
    "ADD COLUMNS": _add,
    "ADD COLUMN": _add,
    "DROP IF EXISTS PARTITION": lambda table, words: _drop_partition(table, _back(words)),
    "DROP COLUMNS": _drop,
    "DROP COLUMN": _drop,
    "RENAME COLUMN": _rename,
    "ALTER COLUMN": _change,
    "CHANGE COLUMN": _change,
    "SET TBLPROPERTIES": _set,
    "UNSET TBLPROPERTIES": _unset,
    "DROP PARTITION": lambda table, words: _drop_partition(table, _back(words)),
}


def _back(words: Words) -> Words:
    """One word earlier, at PARTITION."""
    words.at -= 1
    return words


__all__ = ["ACTIONS", "alter_table"]
