"""How the command line prints: grids for people, JSON for programs. What is piped is whole: no width cuts a cell."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.table import Table as Grid

_WIDE = 1 << 20


def print_grid(title: str | None, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Rows under a header; None is shown as nothing. On a terminal long cells are folded, elsewhere lines are as long as they must be."""
    grid = Grid(title=title, title_justify="left")
    for name in header:
        grid.add_column(_escaped(name), overflow="fold")
    for row in rows:
        grid.add_row(*map(_escaped, row))
    _console().print(grid)


def print_line(text: str) -> None:
    """A line as it is, never broken."""
    _console().print(text, highlight=False, markup=False, soft_wrap=True)


def print_json(value: object) -> None:
    """Indented; bytes as hexadecimal digits, times and decimals as text."""
    typer.echo(json.dumps(value, default=json_value, indent=2))


def json_value(value: object) -> object:
    """A value that JSON has no form for, as text."""
    return value.hex() if isinstance(value, bytes) else str(value)


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=_WIDE)


def _escaped(cell: object) -> str:
    return "" if cell is None else str(cell).replace("[", r"\[")


__all__ = ["json_value", "print_grid", "print_json", "print_line"]
