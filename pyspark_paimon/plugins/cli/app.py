"""Commands of ``pyspark-paimon``.

The module of a command is imported when it runs, so that help loads no storage engine.
A typed error prints one line to standard error; the exit code is 1 (``fsck``: 2).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

try:
    import rich  # noqa: F401  # check that it is installed; other modules use it
    import typer
    from typer.core import TyperCommand, TyperGroup
except ImportError:
    sys.exit("the command line needs typer and rich: pip install 'pyspark-paimon[cli]'")

from paimon_base.errors import PaimonError
from paimon_base.process import gc_paused, hide_pandas
from pyspark_paimon._version import __version__

COMMANDS = {
    "create": ("create.make_table", "Create a table from DDL, or from a file and with its rows."),
    "list": ("tables.list_tables", "Show the tables of a warehouse or of a database."),
    "drop": ("tables.drop_table", "Delete a table and all its files."),
    "inspect": ("inspect.inspect", "Show columns, options, snapshots and LSM levels of a table."),
    "scan": ("scan.scan_rows", "Show merged and filtered rows, or write a file."),
    "lookup": ("lookup.find_rows", "Show the rows with the given primary keys."),
    "changelog": ("scan.show_changes", "Show the changes of rows between two snapshots."),
    "explain": ("scan.explain_scan", "Run a filter and show what each pruning stage kept."),
    "write": ("write.write_files", "Write the rows of files in one commit."),
    "merge": ("merge.merge_files", "Merge rows of files into a primary-key table by key."),
    "update": ("write.run_update", "Set columns of the rows for which a filter is true."),
    "delete": ("write.run_delete", "Delete the rows for which a filter is true."),
    "purge": ("write.run_purge", "Delete rows, and every file of the table that stores them."),
    "compact": ("upkeep.run_compact", "Compact sorted runs, or small files of an append table."),
    "analyze": ("upkeep.analyze_columns", "Compute, store and show statistics of columns."),
    "indexes": ("indexes.show_indexes", "Show configured and existing file indexes."),
    "index-advice": ("indexes.advise_indexes", "Measure which file indexes would serve filters."),
    "rewrite-index": ("indexes.rewrite_index", "Build or drop file indexes of existing files."),
    "maintain": (
        "upkeep.maintain",
        "Run all maintenance steps that the table's options require.",
    ),
    "expire-snapshots": ("upkeep.expire_old_snapshots", "Delete old snapshots and the files that only they need."),
    "orphans": ("upkeep.show_orphans", "Show orphan files; with --remove delete them."),
    "copy": ("upkeep.copy_files", "Copy the newest rows, or the whole table with its history, to another directory."),
    "fsck": ("fsck.run_fsck", "Check the integrity of a table."),
    "alter": ("alter.alter", "Change columns and options without rewriting files."),
    "history": ("history.show_history", "Show commits, snapshots, tags, branches, schemas, partitions or consumers."),
    "tag": ("history.tag_snapshot", "Create or delete a tag."),
    "branch": ("history.branch_off", "Create, delete or fast-forward a branch."),
    "rollback": ("history.roll_back", "Roll back to an older state and delete newer snapshots."),
    "restore": ("history.run_restore", "Restore an older state as a new snapshot."),
    "drop-partitions": ("history.run_drop_partitions", "Delete all rows of the partitions with these values."),
    "expire-partitions": ("history.run_expire_partitions", "Delete partitions that have expired by the table's options."),
    "report": ("tree.write_report", "Write an HTML report of the LSM tree."),
    "serve": ("serve.serve", "Serve tables to Spark Connect clients."),
    "ui": ("tree.serve_tree", "Show the LSM tree in a browser on this machine."),
}
"""Module and function in this package, and the help line, which is the first line of the function's docstring."""


class LazyCommands(TyperGroup):
    """Command group that imports a command when it runs.

    It reports a typed error in one line.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a typed error gives exit code 1."""
        try:
            return super().invoke(ctx)
        except PaimonError as error:
            typer.echo(f"{type(error).__name__}: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(1) from error


def load_command(name: str) -> Any:
    """Import a command and return it."""
    module, function = COMMANDS[name][0].split(".")
    with gc_paused():
        member = getattr(import_module(f"pyspark_paimon.plugins.cli.{module}"), function)
    if isinstance(member, typer.Typer):
        return typer.main.get_command(member)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(member)
    return typer.main.get_command(alone)


app = typer.Typer(cls=LazyCommands, no_args_is_help=True, pretty_exceptions_enable=False)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"pyspark-paimon {__version__}")
        raise typer.Exit


@app.callback()
def _all_commands(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Manage Paimon tables.

    TABLE is the first argument of every command. --json prints JSON for programs. --help of a command explains its options.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; the entry point of ``pyspark-paimon``."""
    if arguments is None and sys.argv[1:2] != ["serve"]:  # the process is ours; only the client of a Spark server needs pandas
        hide_pandas()
    app(args=None if arguments is None else list(arguments), prog_name="pyspark-paimon")
