"""Command ``create``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fileindex.base.errors import InvalidArgument
from manifest.io.errors import TableExists
from pyspark_paimon.cli.target import TableOption, on_table, options_of

Ddl = Annotated[
    str,
    typer.Argument(
        metavar="DDL", help='"id BIGINT, day STRING, PRIMARY KEY (id, day)" PARTITIONED BY (day); - reads it from standard input.'
    ),
]


@on_table
def make_table(
    target: TableOption,
    ddl: Ddl,
    *,
    option: Annotated[list[str] | None, typer.Option("--option", "-O", metavar="KEY=VALUE", help="A table option; repeatable.")] = None,
    table_comment: Annotated[str | None, typer.Option("--comment", help="Comment of the table.")] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Keep an existing table as it is.")] = False,
) -> None:
    """Create an empty table."""
    text = sys.stdin.read() if ddl == "-" else ddl
    if not text.strip():
        raise InvalidArgument('the DDL is empty; write columns as in "id BIGINT, name STRING, PRIMARY KEY (id)"')
    try:
        table, made = target.create(text, options_of(option, "--option"), table_comment), True
    except TableExists:
        if not if_not_exists:
            raise
        table, made = target.open(), False
    columns = [f"{field.name} {field.type}" for field in table.table_schema.fields]
    result = {
        "path": table.path,
        "created": made,
        "columns": columns,
        "primary_keys": list(table.primary_keys),
        "partition_keys": list(table.partition_keys),
        "options": table.options,
    }
    target.report(result, repr(table) if made else f"{table.path} exists already: {table!r}")


__all__ = ["make_table"]
