"""ALTER TABLE: columns, options, the name, and partitions to drop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import methodcaller
from typing import Any, TypeAlias

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.statements.answers import frame_of_result
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.new_table import spark_type_text
from pyspark_paimon.statements.words import Words, partition_spec
from pyspark_paimon.table.table import Table

AlterCall: TypeAlias = Callable[[Any], object]
"""A call of one of the methods that change a table's schema."""

_ENDS = (",", "NOT", "NULL", "DEFAULT", "COMMENT", "AFTER", "FIRST")


def alter_table(names: KnownTables, words: Words) -> Any:
    """``ALTER TABLE t ...``, one of ``ACTIONS``; None for a table of Spark's own."""
    name = words.name()
    table = names.find(name)
    if table is None:
        return None
    if words.take("RENAME", "TO"):
        catalog, known = names.needed_name(name, "ALTER TABLE")
        new = names.needed_name(words.name(), "ALTER TABLE")[1]
        words.end()
        catalog.rename_table(known, new)
        return frame_of_result(names.spark, None)
    for said, act in ACTIONS.items():
        if words.take(*said.split()):
            changes = list(act(words, table))
            words.end()  # before anything is changed
            if changes:
                table.alter(*changes)
                names.renew(name)
            return frame_of_result(names.spark, None)
    if words.take("DROP", "IF", "EXISTS", "PARTITION") or words.take("DROP", "PARTITION"):
        return _drop_partitions(names, table, words)
    raise words.wrong(f"one of {', '.join(ACTIONS)}, DROP PARTITION, RENAME TO")


def _add(words: Words, _: Table) -> Iterator[AlterCall]:
    bracketed = words.take("(")
    while True:
        column = words.name()
        kind = _type(words)
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
        yield methodcaller("add_column", column, kind, **options)
        if not words.take(","):
            break
    if bracketed:
        words.need(")")


def _type(words: Words) -> str:
    text = words.type(_ENDS)
    if not text.strip():
        raise words.wrong("a type")
    return spark_type_text(text)


def _drop(words: Words, table: Table) -> Iterator[AlterCall]:
    quiet = words.take("IF", "EXISTS")
    columns = [words.name() for _ in words.listed()] if words.word() == "(" else [words.name()]
    while words.take(","):
        columns.append(words.name())
    known = {name.lower() for name in table.table_schema.names}
    for column in columns:
        if quiet and len(column) == 1 and column[0].lower() not in known:
            continue
        yield methodcaller("drop_column", column)


def _rename(words: Words, _: Table) -> Iterator[AlterCall]:
    column = words.name()
    words.need("TO")
    yield methodcaller("rename_column", column, words.part())


def _change(words: Words, _: Table) -> Iterator[AlterCall]:
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
        raise words.wrong("TYPE, COMMENT, FIRST, AFTER, SET | DROP NOT NULL, or SET | DROP DEFAULT")


def _set(words: Words, _: Table) -> Iterator[AlterCall]:
    options: dict[str, object] = {**words.properties()}
    if "comment" in options:
        yield methodcaller("set_comment", str(options.pop("comment")))
    if options:
        yield methodcaller("alter_options", options)


def _unset(words: Words, _: Table) -> Iterator[AlterCall]:
    words.take("IF", "EXISTS")
    yield methodcaller("alter_options", {".".join(words.name()): None for _ in words.listed()})


def _drop_partitions(names: KnownTables, table: Table, words: Words) -> Any:
    """``(day = '2026-01-31', ...), PARTITION (...)``."""
    partitions: list[dict[str, object]] = []
    while not partitions or words.take("PARTITION") or words.take(",", "PARTITION"):
        partitions.append(partition_spec(words))
    words.take("PURGE")
    words.end()
    table.drop_partitions(partitions)
    return frame_of_result(names.spark, None)


ACTIONS: dict[str, Callable[[Words, Table], Iterator[AlterCall]]] = {
    "ADD COLUMNS": _add,
    "ADD COLUMN": _add,
    "DROP COLUMNS": _drop,
    "DROP COLUMN": _drop,
    "RENAME COLUMN": _rename,
    "ALTER COLUMN": _change,
    "CHANGE COLUMN": _change,
    "SET TBLPROPERTIES": _set,
    "UNSET TBLPROPERTIES": _unset,
}


__all__ = ["ACTIONS", "alter_table"]
