"""Output of the command line: grids and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.table import Table as Grid

_WIDE = 1 << 20


def print_grid(title: str | None, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under a header.

    None prints as an empty cell.

    A terminal folds long cells. Other outputs get lines of any length, so that no cell is cut.
    """
    grid = Grid(title=title, title_justify="left")
    for name in header:
        grid.add_column(_escaped(name), overflow="fold")
    for row in rows:
        grid.add_row(*map(_escaped, row))
    _console().print(grid)


def print_line(text: str) -> None:
    """Print a line without breaking it."""
    _console().print(text, highlight=False, markup=False, soft_wrap=True)


def print_json(value: object) -> None:
    """Print indented JSON.

    Bytes are hexadecimal digits; times and decimals are texts.
    """
    typer.echo(json.dumps(value, default=json_value, indent=2))


def json_value(value: object) -> object:
    """Convert a value that JSON does not support to text."""
    return value.hex() if isinstance(value, bytes) else str(value)


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=_WIDE)


def _escaped(cell: object) -> str:
    return "" if cell is None else str(cell).replace("[", r"\[")


__all__ = ["json_value", "print_grid", "print_json", "print_line"]
