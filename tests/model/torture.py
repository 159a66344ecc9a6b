"""The part ``model`` of the torture: tables of every kind beside their model, a few at a time, for hours."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import hypothesis.internal.conjecture.engine as hypothesis_engine

from tests.model.machine import TableModel, run
from tests.model.tables import TableKind
from tests.model.world import Step, World, Wrong
from tests.torture.kills import scratch_folder
from tests.torture.report import Outcome, leave_case

PART = "model"
TABLES, STEPS = 10, 25
SHRINK_SECONDS = 120
"""Less than the grace that the runner gives a part after its time."""


def outcomes(seed: int, folder: Path) -> Iterator[Outcome]:
    """Try tables for ever, ``TABLES`` of each seed."""
    hypothesis_engine.MAX_SHRINKING_SECONDS = SHRINK_SECONDS
    for number in count(seed * 1_000_003):
        TableModel.whole.clear()
        try:
            run(number, TABLES, STEPS)
        except Wrong as wrong:
            assert TableModel.last is not None
            yield _left(folder, number, TableModel.last, wrong)
        for world in TableModel.whole:
            yield Outcome(PART, world.kind.engine, number, f"{len(world.steps)} steps", "right")


def replay(folder: Path) -> Outcome:
    """Do the steps of a case again."""
    kind, steps, number = pickle.loads((folder / "steps.pickle").read_bytes())
    return replace(replayed(kind, steps, number), files=folder)


def replayed(kind: TableKind, steps: list[Step], number: int) -> Outcome:
    """The outcome of steps on a new table."""
    with scratch_folder() as scratch:
        world = World(kind, f"{scratch}/t")
        try:
            for step in steps:
                world.perform(step)
            world.check_whole()
        except Wrong as wrong:
            return Outcome(PART, kind.engine, number, f"{len(world.steps)} steps", wrong.verdict, str(wrong))
    return Outcome(PART, kind.engine, number, f"{len(steps)} steps", "right")


def _left(folder: Path, number: int, world: World, wrong: Wrong) -> Outcome:
    case = leave_case(folder / PART / str(number), PART, seed=number, kind=repr(world.kind), script=str(wrong))
    (case / "steps.pickle").write_bytes(pickle.dumps((world.kind, world.steps, number)))
    return Outcome(PART, world.kind.engine, number, f"{len(world.steps)} steps", wrong.verdict, str(wrong), case)
