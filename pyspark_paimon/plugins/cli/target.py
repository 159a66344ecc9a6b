"""Arguments and options that all commands share."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule
from pyspark_paimon.plugins.cli.output import print_json, print_line

if TYPE_CHECKING:
    import pyarrow as pa

    from manifest.io import paths
    from pyspark_paimon.catalog import catalog as catalogs
    from pyspark_paimon.catalog.catalog_base import AnyCatalog
    from pyspark_paimon.results import message
    from pyspark_paimon.results.message import Message
    from pyspark_paimon.table import table as tables
    from pyspark_paimon.table.table import Table
else:  # help needs none of them
    catalogs = LazyModule("pyspark_paimon.catalog.catalog")
    message = LazyModule("pyspark_paimon.results.message")
    paths = LazyModule("manifest.io.paths")
    tables = LazyModule("pyspark_paimon.table.table")

STANDARD_INPUT = "-"
"""Name of standard input among files."""
_MAIN = "main"

CommandFunction: TypeAlias = Callable[..., None]


@dataclass(frozen=True)
class TableOption:
    """Table and common options of a command.

    The table is opened by ``open``. Options of object stores and catalogs are never shown.
    """

    name: str
    branch: str = _MAIN
    catalog: Mapping[str, str] = field(default_factory=dict, repr=False)
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    as_json: bool = False
    dry_run: bool = False
    yes: bool = False

    def open(self) -> Table:
        """Open the table, with a progress bar on a terminal.

        Raises the errors of ``Table.open`` and ``Catalog.table``.
        """
        if self.catalog:
            return self.catalog_of().table(paths.with_branch(self.name, self.branch))
        return tables.Table.open(self.name, branch=self.branch, storage_options=self.storage or None, progress=not self.as_json)

    def create(
        self,
        schema: str | pa.Schema,
        options: Mapping[str, str],
        comment: str | None,
        *,
        keys: Sequence[str] = (),
        partitions: Sequence[str] = (),
    ) -> Table:
        """Create the table.

        Raises the errors of ``Table.create``.
        """
        if self.catalog:
            return self.catalog_of().create_table(self.name, schema, keys, partitions, options, comment=comment)
        return tables.Table.create(self.name, schema, keys, partitions, options, comment=comment, storage_options=self.storage or None)

    def catalog_of(self) -> AnyCatalog:
        """Return the catalog of the options."""
        return catalogs.Catalog.create({**self.storage, **self.catalog})

    def in_warehouse(self, directory: str) -> TableOption:
        """Return these options with the catalog of a directory."""
        return replace(self, catalog={"warehouse": directory})

    def in_catalog(self) -> tuple[TableOption, str]:
        """Return options with a catalog, and the table's name in it.

        Raises ``InvalidArgument`` for a path that is not in a catalog's layout.
        """
        if self.branch != _MAIN:
            raise InvalidArgument("a catalog does not list branches as tables: use branch TABLE NAME --delete")
        if self.catalog:
            return self, self.name
        warehouse, _, last = self.name.rstrip("/").rpartition("/")
        directory, _, database = warehouse.rpartition("/")
        if not database.endswith(".db") or not last:
            raise InvalidArgument(
                f"{self.name} does not end with DATABASE.db/TABLE, so it may have other files; delete the directory yourself"
            )
        return self.in_warehouse(directory or "."), f"{database.removesuffix('.db')}.{last}"

    def confirm(self, what: str) -> bool:
        """Ask the user to confirm a change.

        Returns False in a dry run, and True without a question if --yes is given.

        what: The change in words, after "this would".
        Raises ``InvalidArgument`` if standard input is not a terminal.
        """
        if self.dry_run or self.yes:
            return self.yes and not self.dry_run
        if not sys.stdin.isatty():
            raise InvalidArgument(f"this would {what}, and there is no terminal to ask for confirmation: add --yes or --dry-run")
        return typer.confirm(f"{what[0].upper()}{what[1:]}?", err=True)

    def report(self, value: Mapping[str, Any] | Message, text: str | None = None) -> None:
        """Print a result: ``value`` as JSON, or ``text`` (None: its own)."""
        if self.as_json:
            print_json(value.model_dump(mode="json") if isinstance(value, message.Message) else dict(value))
        else:
            print_line(str(value) if text is None else text)


_TABLE = Annotated[str, typer.Argument(metavar="TABLE", help="Path or URI of a table's directory; with a catalog: database.table.")]
_PLACE = Annotated[str, typer.Argument(metavar="[PLACE]", help="Directory of a warehouse; with a catalog: name of a database.")]
_SHARED: dict[str, tuple[Any, Any]] = {
    "branch": (
        Annotated[str, typer.Option("--branch", help="Branch; TABLE$branch_NAME has the same meaning.", rich_help_panel="Table")],
        _MAIN,
    ),
    "warehouse": (
        Annotated[
            str | None,
            typer.Option(
                "--warehouse", help="Directory of a file-system catalog, or name of a REST catalog's warehouse.", rich_help_panel="Table"
            ),
        ],
        None,
    ),
    "catalog": (
        Annotated[str | None, typer.Option("--catalog", help="Address of a REST catalog.", rich_help_panel="Table")],
        None,
    ),
    "catalog_option": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--catalog-option",
                metavar="KEY=VALUE",
                help="Catalog option such as token=...; repeatable, never shown.",
                rich_help_panel="Table",
            ),
        ],
        None,
    ),
    "storage_option": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--storage-option",
                metavar="KEY=VALUE",
                help="Storage option such as s3.endpoint=...; repeatable, never shown. The environment is used, too.",
                rich_help_panel="Table",
            ),
        ],
        None,
    ),
    "as_json": (Annotated[bool, typer.Option("--json", help="Print JSON for programs.")], False),
}
_DESTRUCTIVE: dict[str, tuple[Any, Any]] = {
    "dry_run": (Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")], False),
    "yes": (Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")], False),
}


def on_table(command: CommandFunction) -> CommandFunction:
    """Add the argument TABLE and common options to a command.

    The first parameter of the command is a ``TableOption``.
    """
    return _with_options(command, _SHARED)


def on_catalog(command: CommandFunction) -> CommandFunction:
    """Add an optional PLACE and the options of catalogs and storage.

    The first parameter of the command is a ``TableOption``, whose name is the place.
    """
    return _with_options(command, _SHARED, takes_warehouse=True)


def destructive(command: CommandFunction) -> CommandFunction:
    """Add TABLE, common options, ``--dry-run`` and ``--yes``.

    For commands that call ``TableOption.confirm``.
    """
    return _with_options(command, {**_DESTRUCTIVE, **_SHARED})


def _with_options(command: CommandFunction, shared: Mapping[str, tuple[Any, Any]], *, takes_warehouse: bool = False) -> CommandFunction:
    signature = inspect.signature(command, eval_str=True)
    command_parameters = list(signature.parameters.values())[1:]

    @wraps(command)
    def run(table: str, **arguments: Any) -> None:
        common = {name: arguments.pop(name) for name in shared}
        target = TableOption(
            table,
            common["branch"],
            _catalog_options(common["catalog"], common["warehouse"], common["catalog_option"]),
            options_of(common["storage_option"], "--storage-option", secret=True),
            common["as_json"],
            common.get("dry_run", False),
            common.get("yes", False),
        )
        command(target, **arguments)

    first = {"annotation": _PLACE, "default": ""} if takes_warehouse else {"annotation": _TABLE}
    parameters = [inspect.Parameter("table", inspect.Parameter.POSITIONAL_OR_KEYWORD, **first), *command_parameters]
    for name, (annotation, default) in shared.items():
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def options_of(texts: Sequence[str] | None, option: str, *, secret: bool = False, empty: bool = False) -> dict[str, str]:
    """Parse ``KEY=VALUE`` texts.

    secret: Do not show the text in errors.
    empty: Whether a value may be empty.
    Raises ``InvalidArgument`` for a text of another form.

    >>> options_of(["bucket=4"], "--option")
    {'bucket': '4'}
    """
    value_by_key: dict[str, str] = {}
    for number, text in enumerate(texts or (), 1):
        key, equals, value = text.partition("=")
        if not (key and equals and (value or empty)):
            shown = f"number {number}" if secret else f"'{text}'"
            raise InvalidArgument(f"{option} takes KEY=VALUE; {shown} has another form")
        value_by_key[key] = value
    return value_by_key


def _catalog_options(address: str | None, warehouse: str | None, texts: Sequence[str] | None) -> dict[str, str]:
    rest = {} if address is None else {"metastore": "rest", "uri": address}
    warehouse_option = {} if warehouse is None else {"warehouse": warehouse}
    return {**rest, **warehouse_option, **options_of(texts, "--catalog-option", secret=True)}
