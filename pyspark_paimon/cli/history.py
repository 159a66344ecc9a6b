"""Commands that change a table's schema and history: ``alter``, ``history``, ``tag``, ``branch``, ``rollback``, partitions."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.cli.output import console, print_grid, print_json
from pyspark_paimon.request.backend import View
from pyspark_paimon.request.results import TableChangeResult
from pyspark_paimon.table.table import Table

HistoryPath = Annotated[str, typer.Argument(metavar="TABLE", help="Path of a table's directory; TABLE$branch_NAME for a branch.")]
ColumnArgument = Annotated[
    str, typer.Argument(metavar="COLUMN", help="A column's name; dots lead into nested ones: address.city, tags.element.")
]
TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help='As in DDL: "DECIMAL(10, 2)".')]
After = Annotated[str | None, typer.Option("--after", help="The column to stand after.")]
First = Annotated[bool, typer.Option("--first", help="Stand before all others.")]
Comment = Annotated[str | None, typer.Option("--comment", help="What the column means.")]
Default = Annotated[str | None, typer.Option("--default", help="What writers put for null.")]
Name = Annotated[str, typer.Argument(metavar="NAME")]
Delete = Annotated[bool, typer.Option("--delete", help="Delete it, with the files that only it uses.")]
HistoryJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
SnapshotArgument = Annotated[int | None, typer.Option("--snapshot", help="Id of a snapshot.")]
TagName = Annotated[str | None, typer.Option("--tag", help="Name of a tag.")]
Forward = Annotated[bool, typer.Option("--fast-forward", help="Make the branch's history the table's.")]

_VIEWS = ("snapshots", *get_args(View))
alter = typer.Typer(no_args_is_help=True, help="Change columns and options; no file is rewritten.")


@alter.command("add")
def add_column(
    table: HistoryPath,
    column: ColumnArgument,
    data_type: TypeArgument,
    after: After = None,
    *,
    first: First = False,
    comment: Comment = None,
    default: Default = None,
) -> None:
    """Add a column, null in the rows that are there."""
    Table.open(table).add_column(_path(column), data_type, after=after, first=first, comment=comment, default=default)


@alter.command("drop")
def drop_column(table: HistoryPath, column: ColumnArgument) -> None:
    """Drop a column."""
    Table.open(table).drop_column(_path(column))


@alter.command("rename")
def rename_column(table: HistoryPath, column: ColumnArgument, name: Name) -> None:
    """Rename a column, in options too."""
    Table.open(table).rename_column(_path(column), name)


@alter.command("move")
def move_column(table: HistoryPath, column: ColumnArgument, after: After = None, *, first: First = False) -> None:
    """Give a column another place; last if none is named."""
    Table.open(table).move_column(_path(column), after=after, first=first)


@alter.command("type")
def change_type(table: HistoryPath, column: ColumnArgument, data_type: TypeArgument) -> None:
    """Give a column another type."""
    Table.open(table).change_type(_path(column), data_type)


@alter.command("set")
def set_options(table: HistoryPath, options: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="KEY= removes it.")]) -> None:
    """Set and remove table options."""
    changes: dict[str, str | None] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise InvalidArgument(f"'{option}' is no option: write KEY=VALUE")
        changes[key] = value or None
    Table.open(table).alter_options(changes)


def history(table: HistoryPath, view: Annotated[str, typer.Argument(help=", ".join(_VIEWS))], as_json: HistoryJson = False) -> None:
    """Show snapshots, tags, branches, schemas, partitions or consumers."""
    if view not in _VIEWS:
        raise InvalidArgument(f"'{view}' is no view; there are: {', '.join(_VIEWS)}")
    rows = getattr(Table.open(table), view)()
    if as_json:
        print_json(rows.to_pylist(maps_as_pydicts="lossy"))
        return
    print_grid(None, rows.column_names, [tuple(row.values()) for row in rows.to_pylist(maps_as_pydicts="lossy")])


def tag(table: HistoryPath, name: Name, snapshot: SnapshotArgument = None, *, delete: Delete = False) -> None:
    """Name a snapshot, so that it can be read after it has expired; or forget the name."""
    opened = Table.open(table)
    _tell(opened.delete_tag(name) if delete else opened.create_tag(name, snapshot))


def branch(table: HistoryPath, name: Name, tag: TagName = None, *, delete: Delete = False, fast_forward: Forward = False) -> None:
    """Branch off at a tag; or forget a branch, or make it the table."""
    opened = Table.open(table)
    if delete:
        _tell(opened.delete_branch(name))
    elif fast_forward:
        _tell(opened.fast_forward(name))
    else:
        opened.create_branch(name, tag)


def rollback(table: HistoryPath, snapshot: SnapshotArgument = None, tag: TagName = None) -> None:
    """Make an older snapshot or a tag the newest state; what is newer is deleted for good."""
    _tell(Table.open(table).rollback_to(snapshot, tag=tag))


def drop_partitions(table: HistoryPath, columns: Annotated[list[str], typer.Argument(metavar="COLUMN=VALUE...")]) -> None:
    """Remove all rows of the partitions with these values."""
    spec = dict(text.split("=", 1) for text in columns if "=" in text)
    if len(spec) < len(columns):
        raise InvalidArgument(f"write COLUMN=VALUE, each column once: {' '.join(columns)}")
    _tell(Table.open(table).drop_partitions([spec]))


def expire_partitions(table: HistoryPath) -> None:
    """Remove the partitions that the table's options call too old."""
    _tell(Table.open(table).expire_partitions())


def _tell(done: TableChangeResult) -> None:
    told = {name: value for name, value in done.model_dump().items() if value}
    console.print(", ".join(f"{name}: {value}" for name, value in told.items()) or "nothing to do", highlight=False, markup=False)


def _path(column: str) -> list[str]:
    return column.split(".")


def add_commands(app: typer.Typer) -> None:
    """Make these commands of ``app``."""
    app.add_typer(alter, name="alter")
    for command in (history, tag, branch, rollback, drop_partitions, expire_partitions):
        app.command()(command)


__all__ = ["add_commands"]
