"""The commands ``alter add | drop | rename | move | type | set``: each is a new version of the schema."""

from __future__ import annotations

from typing import Annotated

import typer

from pyspark_paimon.cli.target import TableOption, destroys, on_table, options_of
from pyspark_paimon.table.table import Table

ColumnArgument = Annotated[
    str, typer.Argument(metavar="COLUMN", help="A column's name; dots lead into nested ones: address.city, tags.element.")
]
TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help='As in DDL: "DECIMAL(10, 2)".')]
After = Annotated[str | None, typer.Option("--after", help="The column to stand after.")]
First = Annotated[bool, typer.Option("--first", help="Stand before all others.")]
Comment = Annotated[str | None, typer.Option("--comment", help="What the column means.")]
Default = Annotated[str | None, typer.Option("--default", help="What writers put for null.")]

alter = typer.Typer(no_args_is_help=True, help="Change columns and options; no file is rewritten.")


@alter.command("add")
@on_table
def add_column(
    target: TableOption,
    column: ColumnArgument,
    data_type: TypeArgument,
    *,
    after: After = None,
    first: First = False,
    comment: Comment = None,
    default: Default = None,
) -> None:
    """Add a column, null in the rows that are there."""
    _tell(target, target.open().add_column(column.split("."), data_type, after=after, first=first, comment=comment, default=default))


@alter.command("drop")
@destroys
def drop_column(target: TableOption, column: ColumnArgument) -> None:
    """Drop a column."""
    table = target.open()
    if target.confirmed(f"drop column {column} of {table.path}"):
        _tell(target, table.drop_column(column.split(".")))
    else:
        target.tell({"dry_run": target.dry_run, "would_drop": column}, f"column {column} would go")


@alter.command("rename")
@on_table
def rename_column(target: TableOption, column: ColumnArgument, name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Rename a column, in options too."""
    _tell(target, target.open().rename_column(column.split("."), name))


@alter.command("move")
@on_table
def move_column(target: TableOption, column: ColumnArgument, *, after: After = None, first: First = False) -> None:
    """Give a column another place; last if none is named."""
    _tell(target, target.open().move_column(column.split("."), after=after, first=first))


@alter.command("type")
@on_table
def change_type(target: TableOption, column: ColumnArgument, data_type: TypeArgument) -> None:
    """Give a column another type."""
    _tell(target, target.open().change_type(column.split("."), data_type))


@alter.command("set")
@on_table
def set_options(
    target: TableOption, options: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="KEY= removes it.")]
) -> None:
    """Set and remove table options."""
    changes = options_of(options, "alter set", empty=True)
    _tell(target, target.open().alter_options({key: value or None for key, value in changes.items()}))


def _tell(target: TableOption, table: Table) -> None:
    schema = table.table_schema
    told = {"schema_id": schema.id, "columns": [field.to_json() for field in schema.fields], "options": schema.options}
    target.tell(told, f"schema {schema.id}: {', '.join(f'{field.name} {field.type}' for field in schema.fields)}")


__all__ = ["alter"]
