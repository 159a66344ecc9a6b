"""What all commands share: the table first, how it is reached, JSON for programs, and a question before anything is destroyed."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Annotated, Any, TypeAlias

import typer

from fileindex.base.errors import InvalidArgument
from manifest.io.paths import MAIN_BRANCH, with_branch
from pyspark_paimon.cli.output import print_json, print_line
from pyspark_paimon.request.message import Message
from pyspark_paimon.table.catalog import Catalog
from pyspark_paimon.table.catalog_base import AnyCatalog
from pyspark_paimon.table.table import Table

CommandFunction: TypeAlias = Callable[..., None]


@dataclass(frozen=True)
class TableOption:
    """The table that a command is about, not yet opened; options of stores and catalogs are never shown."""

    name: str
    branch: str = MAIN_BRANCH
    catalog: Mapping[str, str] = field(default_factory=dict, repr=False)
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    as_json: bool = False
    dry_run: bool = False
    yes: bool = False

    def open(self) -> Table:
        """The table; what takes long shows a bar on a terminal. Raises what ``Table.open`` and ``Catalog.table`` do."""
        if self.catalog:
            return self.catalog_of().table(with_branch(self.name, self.branch))
        return Table.open(self.name, branch=self.branch, storage_options=self.storage or None, progress=not self.as_json)

    def create(self, ddl: str, options: Mapping[str, str], comment: str | None) -> Table:
        """A new table. Raises what ``Table.create`` does."""
        if self.catalog:
            return self.catalog_of().create_table(self.name, ddl, options=options, comment=comment)
        return Table.create(self.name, ddl, options=options, comment=comment, storage_options=self.storage or None)

    def catalog_of(self) -> AnyCatalog:
        """The catalog that the options name."""
        return Catalog.create({**self.storage, **self.catalog})

    def confirmed(self, what: str) -> bool:
        """Whether it is to be done: not in a dry run. Raises ``InvalidArgument`` where nobody can be asked."""
        if self.dry_run or self.yes:
            return self.yes and not self.dry_run
        if not sys.stdin.isatty():
            raise InvalidArgument(f"this would {what}, and nobody is there to ask: add --yes, or --dry-run")
        return typer.confirm(f"{what[0].upper()}{what[1:]}?", err=True)

    def tell(self, value: Mapping[str, Any] | Message, text: str) -> None:
        """What was done: ``value`` for programs, ``text`` for people."""
        if self.as_json:
            print_json(value.model_dump(mode="json") if isinstance(value, Message) else dict(value))
        else:
            print_line(text)


_TABLE = Annotated[str, typer.Argument(metavar="TABLE", help="Path or URI of a table's directory; with a catalog database.table.")]
_SHARED: dict[str, tuple[Any, Any]] = {
    "branch": (
        Annotated[str, typer.Option("--branch", help="A branch; TABLE$branch_NAME says the same.", rich_help_panel="Table")],
        MAIN_BRANCH,
    ),
    "warehouse": (
        Annotated[str | None, typer.Option("--warehouse", help="A catalog's directory, or a warehouse's name.", rich_help_panel="Table")],
        None,
    ),
    "catalog": (
        Annotated[str | None, typer.Option("--catalog", help="Address of a REST catalog.", rich_help_panel="Table")],
        None,
    ),
    "catalog_option": (
        Annotated[
            list[str] | None,
            typer.Option("--catalog-option", metavar="KEY=VALUE", help="As token=...; repeatable, never shown.", rich_help_panel="Table"),
        ],
        None,
    ),
    "storage_option": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--storage-option",
                metavar="KEY=VALUE",
                help="As s3.endpoint=...; repeatable, never shown. The environment counts, too.",
                rich_help_panel="Table",
            ),
        ],
        None,
    ),
    "as_json": (Annotated[bool, typer.Option("--json", help="Print JSON for programs.")], False),
}
_DESTROYS: dict[str, tuple[Any, Any]] = {
    "dry_run": (Annotated[bool, typer.Option("--dry-run", help="Tell what would be done, and change nothing.")], False),
    "yes": (Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")], False),
}


def on_table(command: CommandFunction) -> CommandFunction:
    """Give a command, whose first parameter is a ``TableOption``, the argument TABLE and the options that all share."""
    return _with_options(command, _SHARED)


def destroys(command: CommandFunction) -> CommandFunction:
    """As ``on_table``, for what asks ``TableOption.confirmed``: with ``--dry-run`` and ``--yes`` besides."""
    return _with_options(command, {**_DESTROYS, **_SHARED})


def _with_options(command: CommandFunction, shared: Mapping[str, tuple[Any, Any]]) -> CommandFunction:
    signature = inspect.signature(command, eval_str=True)
    own = list(signature.parameters.values())[1:]

    @wraps(command)
    def run(table: str, **given: Any) -> None:
        told = {name: given.pop(name) for name in shared}
        target = TableOption(
            table,
            told["branch"],
            _catalog_options(told["catalog"], told["warehouse"], told["catalog_option"]),
            options_of(told["storage_option"], "--storage-option", secret=True),
            told["as_json"],
            told.get("dry_run", False),
            told.get("yes", False),
        )
        command(target, **given)

    parameters = [inspect.Parameter("table", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=_TABLE), *own]
    for name, (annotation, default) in shared.items():
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def options_of(given: Sequence[str] | None, option: str, *, secret: bool = False, empty: bool = False) -> dict[str, str]:
    """``KEY=VALUE`` texts as options, values that are ``empty`` where that means something.

    Raises ``InvalidArgument``, which names a text that is none unless it may be ``secret``.

    >>> options_of(["bucket=4"], "--option")
    {'bucket': '4'}
    """
    found: dict[str, str] = {}
    for at, text in enumerate(given or (), 1):
        key, equals, value = text.partition("=")
        if not (key and equals and (value or empty)):
            shown = f"number {at}" if secret else f"'{text}'"
            raise InvalidArgument(f"{option} takes KEY=VALUE; {shown} is none")
        found[key] = value
    return found


def _catalog_options(address: str | None, warehouse: str | None, given: Sequence[str] | None) -> dict[str, str]:
    rest = {} if address is None else {"metastore": "rest", "uri": address}
    place = {} if warehouse is None else {"warehouse": warehouse}
    return {**rest, **place, **options_of(given, "--catalog-option", secret=True)}


__all__ = ["CommandFunction", "TableOption", "destroys", "on_table", "options_of"]
