"""Statement ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import methodcaller
from typing import Any, TypeAlias

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.statements.answers import frame_of_result
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.new_table import spark_type_text
from pyspark_paimon.statements.words import TokenCursor, partition_spec
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
        catalog, known = names.require_catalog_name(name, "ALTER TABLE")
        new = names.require_catalog_name(words.name(), "ALTER TABLE")[1]
        words.end()
        catalog.rename_table(known, new)
        return frame_of_result(names.spark, None)
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
    raise words.error(f"one of {', '.join(ACTIONS)}, DROP PARTITION, RENAME TO")


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
    known = {name.lower() for name in table.table_schema.names}
    for column in columns:
        if quiet and len(column) == 1 and column[0].lower() not in known:
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
}


__all__ = ["ACTIONS", "alter_table"]
