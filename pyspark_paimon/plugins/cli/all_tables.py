"""Option ``--all``: a command for every table of a warehouse, database or catalog.

Lines have at most 80 columns, as mail of cron shows them. ``--json`` prints one object a line.
Exit codes: 0 if every table is ok, 1 if there are problems, 2 if the work on a table did not end.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paimon_base.errors import InvalidArgument
from pyspark_paimon.plugins.cli.output import print_line, text_to_file
from pyspark_paimon.plugins.cli.target import TableOption

if TYPE_CHECKING:
    from pyspark_paimon.catalog.catalog_base import AnyCatalog
    from pyspark_paimon.results.tables_result import TableOutcome, TablesResult

EVERY = "*"
_WIDTH = 80
_PROBLEMS, _FAILED = 1, 2

All = Annotated[
    bool,
    typer.Option("--all", help="Every table: TABLE is a warehouse's directory, its DATABASE.db, or with a catalog a database or '*'."),
]
Threads = Annotated[int, typer.Option("--threads", help="With --all: number of tables at a time.")]
Prometheus = Annotated[
    Path | None, typer.Option("--prometheus", help="With --all: also write this file in Prometheus' text format, for alerts.")
]


@dataclass(frozen=True)
class AllTables:
    """Tables of the options, and how to report them."""

    target: TableOption
    threads: int
    prometheus: Path | None

    def run(self, operation: Callable[..., TablesResult], *, changes: str = "", **arguments: Any) -> None:
        """Run a method of ``AnyCatalog`` and print its outcomes as they come.

        changes: What it does to tables, to be confirmed. "": nothing.
        Raises ``Exit`` with 1 or 2 unless every table is ok.
        """
        catalog, database = self._place()
        if changes:
            what = f"{changes} of every table of {self.target.name if database is None else f'database {database}'}"
            arguments["dry_run"] = self.target.dry_run or not self.target.confirm(what)
        result = operation(catalog, database, threads=self.threads, on_outcome=self._print, **arguments)
        if self.target.as_json:
            summary = {"operation": result.operation, "tables": len(result.tables), "clean": result.clean, "seconds": result.seconds}
            typer.echo(json.dumps(summary))
        else:
            print_line(str(result))
        if self.prometheus is not None:
            text_to_file(result.to_prometheus(), self.prometheus)
        if not result.clean:
            raise typer.Exit(_FAILED if any(outcome.status == "failed" for outcome in result.tables) else _PROBLEMS)

    def _place(self) -> tuple[AnyCatalog, str | None]:
        """Return the catalog and the database. None: all databases."""
        name = self.target.name.rstrip("/")
        if self.target.catalog:
            return self.target.catalog_of(), None if name == EVERY else name
        if name.endswith(".db"):
            directory, _, database = name.rpartition("/")
            return self.target.in_warehouse(directory or ".").catalog_of(), database.removesuffix(".db")
        return self.target.in_warehouse(self.target.name).catalog_of(), None

    def _print(self, outcome: TableOutcome) -> None:
        if self.target.as_json:
            typer.echo(outcome.model_dump_json())
        else:
            typer.echo(textwrap.fill(str(outcome), _WIDTH, subsequent_indent="         "))


def refuse_without_all(prometheus: Path | None) -> None:
    """Raise ``InvalidArgument`` for an option that only ``--all`` has."""
    if prometheus is not None:
        raise InvalidArgument("--prometheus is written with --all only")
