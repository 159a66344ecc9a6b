"""Puts the figures of a run into the docs' page on performance, between its markers, and the picture beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.figures import Figures
from benchmarks.report import Report

BEGIN, END = "<!-- benchmark:begin -->", "<!-- benchmark:end -->"
KEPT = ROOT / "benchmarks" / "results"
DROPPED = {"spread", "ours: at most", "met"}


def between(text: str, part: str) -> str:
    """A text with ``part`` between its markers; at its end under a heading where it has none.

    >>> between(f"a {BEGIN} old {END} b", "new").split()
    ['a', '<!--', 'benchmark:begin', '-->', 'new', '<!--', 'benchmark:end', '-->', 'b']
    """
    if BEGIN not in text:
        text = f"{text.rstrip()}\n\n## Speed\n\n{BEGIN}{END}\n"
    head, rest = text.split(BEGIN, 1)
    return f"{head}{BEGIN}\n{part.strip()}\n{END}{rest.split(END, 1)[1]}"


def part_of(report: Report) -> str:
    """What the page shows: figures without spread and targets, a sentence on what they are, the picture."""
    table = report.main_table()
    kept = [at for at, name in enumerate(table.columns) if name not in DROPPED]
    narrow = Figures(table.title, [table.columns[at] for at in kept], [[row[at] for at in kept] for row in table.rows])
    picture = "![Ratio to the floor](../benchmarks/results/ratios.svg)"
    notes = "\n".join(f"* {note}" for note in report.notes())
    return f"{narrow.markdown()}\n{report.about()}\n\n{picture}\n\n{notes}\n\nAll measurements: [report](../benchmarks/results/report.md)."


def publish(report: Report, folder: Path) -> None:
    """Copy the report of a run into the repository and write the page."""
    KEPT.mkdir(exist_ok=True)
    for name in ("report.md", "results.json", "ratios.svg"):
        shutil.copy(folder / name, KEPT / name)
    path = ROOT / "docs" / "performance.md"
    path.write_text(between(path.read_text(encoding="utf-8"), part_of(report)), encoding="utf-8")


__all__ = ["publish"]
