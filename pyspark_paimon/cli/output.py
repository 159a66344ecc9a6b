"""How the command line prints: grids for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.table import Table as Grid

console = Console()


def print_grid(title: str | None, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Rows under a header; None is shown as nothing."""
    grid = Grid(*header, title=title, title_justify="left")
    for row in rows:
        grid.add_row(*map(_escaped, row))
    console.print(grid)


def print_json(value: object) -> None:
    """Indented; bytes as hexadecimal digits, times and decimals as text."""
    typer.echo(json.dumps(value, default=json_value, indent=2))


def json_value(value: object) -> object:
    """A value that JSON has no form for, as text."""
    return value.hex() if isinstance(value, bytes) else str(value)


def _escaped(cell: object) -> str:
    return "" if cell is None else str(cell).replace("[", r"\[")


__all__ = ["console", "json_value", "print_grid", "print_json"]
