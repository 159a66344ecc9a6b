"""The commands of ``pyspark-paimon``, by name: each module is imported when one of its commands runs, so that help costs no engine.

A typed error is one line on standard error and exit code 1 (of ``fsck`` 2).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

try:
    import rich  # noqa: F401  # asked for here, used where things are printed
    import typer
    from typer.core import TyperCommand, TyperGroup
except ImportError:
    sys.exit("the command line needs typer and rich: pip install 'pyspark-paimon[cli]'")

from fileindex.base.errors import PaimonError
from pyspark_paimon._version import __version__

COMMANDS = {
    "create": ("create.make_table", "Create an empty table."),
    "inspect": ("inspect.inspect", "Show a table's columns, options, snapshots and LSM levels, as far as they can be read."),
    "scan": ("scan.scan_rows", "Show rows, merged and filtered, or write them to a file."),
    "explain": ("scan.explain_scan", "Read what a filter asks for and show what every pruning stage kept and dropped."),
    "write": ("write.write_files", "Write the rows of files in one commit."),
    "merge": ("merge.merge_files", "Merge the rows of files into a primary-key table by its key, in one commit."),
    "delete": ("write.run_delete", "Delete the rows for which a filter is true."),
    "compact": ("upkeep.run_compact", "Merge sorted runs, or the small files of an append table."),
    "analyze": ("upkeep.analyze_columns", "Count rows, distinct values, extremes and nulls, keep them with the table, and show them."),
    "indexes": ("indexes.show_indexes", "Show which file indexes the options ask for, and what the live files have."),
    "rewrite-index": ("indexes.rewrite_index", "Give the files that exist the indexes that the table's options ask for."),
    "maintain": (
        "upkeep.maintain",
        "One round of upkeep by the table's options, for cron: partitions, compaction, indexes, tags, snapshots, orphans.",
    ),
    "expire-snapshots": ("upkeep.expire_old_snapshots", "Remove old snapshots and the files that only they reach."),
    "orphans": ("upkeep.show_orphans", "Show the files that nothing refers to, older than a day; with --remove delete them."),
    "fsck": ("fsck.run_fsck", "Check that a table is whole: snapshots, manifests, data files, indexes."),
    "alter": ("alter.alter", "Change columns and options; no file is rewritten."),
    "history": ("history.show_history", "Show snapshots, tags, branches, schemas, partitions or consumers."),
    "tag": ("history.tag_snapshot", "Name a snapshot, so that it can be read after it has expired; or forget the name."),
    "branch": ("history.branch_off", "Branch off at a tag; or forget a branch, or make it the table."),
    "rollback": ("history.roll_back", "Make an older state the newest one; what is newer is deleted for good."),
    "restore": ("history.run_restore", "Make an older state the newest one, by a new snapshot: nothing is deleted."),
    "drop-partitions": ("history.run_drop_partitions", "Remove all rows of the partitions with these values."),
    "expire-partitions": ("history.run_expire_partitions", "Remove the partitions that the table's options call too old."),
    "report": ("tree.write_report", "Write a page that shows the tree: levels, key ranges, what a filter keeps, history, advice."),
    "serve": ("serve.serve", "Serve tables to Spark Connect clients, until SIGTERM or Ctrl-C."),
    "ui": ("tree.serve_tree", "Serve that page to a browser on this machine: filters are planned while they are typed."),
}
"""Module and function below this folder, and the line that help shows: the first of the function's docstring."""


class LazyCommands(TyperGroup):
    """The commands of ``COMMANDS``: listed by their line, imported when they are run. What goes wrong is told in one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself, and its arguments."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else loaded(name), rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit code 1 for a typed error."""
        try:
            return super().invoke(ctx)
        except PaimonError as error:
            typer.echo(f"{type(error).__name__}: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(1) from error


def loaded(name: str) -> Any:
    """A command with its arguments and options."""
    module, function = COMMANDS[name][0].split(".")
    member = getattr(import_module(f"pyspark_paimon.cli.{module}"), function)
    if isinstance(member, typer.Typer):
        return typer.main.get_command(member)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(member)
    return typer.main.get_command(alone)


app = typer.Typer(cls=LazyCommands, no_args_is_help=True, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"pyspark-paimon {__version__}")
        raise typer.Exit


@app.callback()
def _all_commands(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Commands for Paimon tables: the table first, ``--json`` for programs, ``--help`` of each for the rest."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; the entry point of the script ``pyspark-paimon``."""
    app(args=None if arguments is None else list(arguments), prog_name="pyspark-paimon")


__all__ = ["COMMANDS", "LazyCommands", "app", "loaded", "main"]
