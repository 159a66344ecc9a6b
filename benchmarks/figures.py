"""Tables of figures that a benchmark of one file hands to the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figures:
    """A table of texts; the first column is words, the others are numbers."""

    title: str
    columns: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """As a Markdown table under its title."""
        marks = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = [_row(self.columns), "|" + "|".join(marks) + "|", *map(_row, self.rows)]
        return f"**{self.title}**\n\n" + "\n".join(lines) + "\n"

    def show(self) -> None:
        """Print it."""
        from rich.console import Console
        from rich.table import Table

        table = Table(title=self.title)
        for at, name in enumerate(self.columns):
            table.add_column(name, justify="right" if at else "left")
        for row in self.rows:
            table.add_row(*row)
        Console(width=150).print(table)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"


def store(path: Path | None, figures: Sequence[Figures]) -> None:
    """Write them as JSON; nothing without a path."""
    if path is not None:
        path.write_text(json.dumps([asdict(each) for each in figures]), encoding="utf-8")


def load(path: Path) -> list[Figures]:
    """What ``store`` wrote."""
    return [Figures(**form) for form in json.loads(path.read_text(encoding="utf-8"))]


__all__ = ["Figures", "load", "store"]
