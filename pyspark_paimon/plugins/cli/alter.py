"""Command group ``alter``: schema changes.

Each command writes a new version of the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from pyspark_paimon.plugins.cli.target import TableOption, destructive, on_table, options_of

if TYPE_CHECKING:
    from pyspark_paimon.table.table import Table

ColumnArgument = Annotated[
    str, typer.Argument(metavar="COLUMN", help="Column name. Dots separate nested fields: address.city, tags.element.")
]
TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help='Type as in DDL: "DECIMAL(10, 2)".')]
After = Annotated[str | None, typer.Option("--after", help="Column before the new position.")]
First = Annotated[bool, typer.Option("--first", help="Make it the first column.")]
Comment = Annotated[str | None, typer.Option("--comment", help="Comment of the column.")]
Default = Annotated[str | None, typer.Option("--default", help="Value that writers store for null.")]

_TABLE = "TABLE"


class TableFirst(TyperGroup):
    """Command group whose first argument is the table: ``alter TABLE add ...``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move the table behind the name of the command, which takes it as its first argument."""
        if args and not args[0].startswith("-"):
            table, *rest = args
            name = ctx.info_name
            ctx.info_name = f"{name} {_TABLE}"
            args = [rest[0], table, *rest[1:]] if rest and not rest[0].startswith("-") else ["--help"]
        return list(super().parse_args(ctx, args))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line."""
        return [*([] if str(ctx.info_name).endswith(_TABLE) else [_TABLE]), "COMMAND", "[ARGS]..."]


class AfterTable(TyperCommand):
    """Command of a group that has the table."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line without the table, which stands before the command."""
        return [piece for piece in super().collect_usage_pieces(ctx) if piece.strip("{}") != _TABLE]


alter = typer.Typer(cls=TableFirst, no_args_is_help=True, help="Change columns and options without rewriting files.")


@alter.command("add", cls=AfterTable)
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
    """Add a column; it is null in existing rows."""
    _report(target, target.open().add_column(column.split("."), data_type, after=after, first=first, comment=comment, default=default))


@alter.command("drop", cls=AfterTable)
@destructive
def drop_column(target: TableOption, column: ColumnArgument) -> None:
    """Drop a column."""
    table = target.open()
    if target.confirm(f"drop column {column} of {table.path}"):
        _report(target, table.drop_column(column.split(".")))
    else:
        target.report({"dry_run": target.dry_run, "would_drop": column}, f"column {column} would be dropped")


@alter.command("rename", cls=AfterTable)
@on_table
def rename_column(target: TableOption, column: ColumnArgument, name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Rename a column, also in options."""
    _report(target, target.open().rename_column(column.split("."), name))


@alter.command("move", cls=AfterTable)
@on_table
def move_column(target: TableOption, column: ColumnArgument, *, after: After = None, first: First = False) -> None:
    """Move a column; without a position it becomes the last."""
    _report(target, target.open().move_column(column.split("."), after=after, first=first))


@alter.command("type", cls=AfterTable)
@destructive
def change_type(
    target: TableOption,
    column: ColumnArgument,
    data_type: TypeArgument,
    *,
    force: Annotated[bool, typer.Option("--force", help="Also to a type that does not keep every value.")] = False,
) -> None:
    """Change the type of a column; --dry-run counts the values that would change."""
    table = target.open()
    if not target.dry_run and (not force or target.confirm(f"change column {column} of {table.path} to {data_type}, whatever its values")):
        _report(target, table.change_type(column.split("."), data_type, force=force))
    else:
        target.report(table.change_type(column.split("."), data_type, dry_run=True))


@alter.command("set", cls=AfterTable)
@on_table
def set_options(
    target: TableOption, options: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="KEY= removes it.")]
) -> None:
    """Set or remove table options."""
    changes = options_of(options, "alter set", empty=True)
    _report(target, target.open().alter_options({key: value or None for key, value in changes.items()}))


def _report(target: TableOption, table: Table) -> None:
    schema = table.table_schema
    result = {"schema_id": schema.id, "columns": [field.to_json() for field in schema.fields], "options": schema.options}
    target.report(result, f"schema {schema.id}: {', '.join(f'{field.name} {field.type}' for field in schema.fields)}")
