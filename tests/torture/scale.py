"""The part ``scale`` of the torture: tables of one to twenty row groups a file, beside a model of whole columns, for hours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from tests.scale.case import Found, run
from tests.torture.forked import forked
from tests.torture.kills import scratch_folder
from tests.torture.report import Outcome, case_of, leave_case

PART = "scale"
PATIENCE_SECONDS = 900.0
"""Of a case of twenty long groups, on cores that others use, too."""


def outcomes(seed: int, folder: Path) -> Iterator[Outcome]:
    """Run cases for ever, each of a seed of its own."""
    for number in count(seed * 1_000_003):
        outcome, steps = _tried(number)
        if not outcome.good:
            case = leave_case(folder / PART / str(number), PART, seed=number, verdict=outcome.verdict, detail=outcome.detail, steps=steps)
            outcome = replace(outcome, files=case)
        yield outcome


def replay(folder: Path) -> Outcome:
    """Run the case of a folder again."""
    return replace(_tried(case_of(folder)["seed"])[0], files=folder)


def _tried(number: int) -> tuple[Outcome, list[str]]:
    """The outcome of a case in a process of its own, and its steps."""
    with scratch_folder() as scratch:
        notes = Path(scratch, "steps")
        notes.touch()

        def work() -> Found:
            with notes.open("a") as file:
                return run(number, f"{scratch}/t", note=lambda step: file.write(f"{step}\n") and file.flush())

        ended = forked(work, seconds=PATIENCE_SECONDS)
        steps = notes.read_text().splitlines()
    if ended.verdict:
        return Outcome(PART, "ended", number, f"{len(steps)} steps", ended.verdict, ended.error or str(steps[-1:])), steps
    found: Found = ended.value
    return Outcome(PART, found.kind, number, f"{len(steps)} steps", found.verdict, found.detail), steps
