"""Hypothesis chooses a table and its steps, and shrinks them to the fewest that still go wrong."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from typing import ClassVar

from hypothesis import HealthCheck, Phase, reject, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from paimon_base.errors import PaimonError
from tests.model import drawing
from tests.model.tables import TableKind, table_kinds
from tests.model.world import MAIN, Step, World

FAST = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
SIDES = st.sampled_from([0, 0, 0, 1])


class TableModel(RuleBasedStateMachine):
    """A table of any kind."""

    totals: ClassVar[Counter[str]] = Counter()
    """Steps that were done, by their names."""
    whole: ClassVar[list[World]] = []
    """Worlds that held to their end."""
    last: ClassVar[World | None] = None
    """The world of the last try: after an error, the one that shrinking ended with."""

    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.mkdtemp(prefix="paimon-model-", dir=FAST)
        self.world: World | None = None
        self.failed = False

    @initialize(kind=table_kinds())
    def create(self, kind: TableKind) -> None:
        try:
            self.world = World(kind, f"{self.home}/t")
            TableModel.last = self.world
        except PaimonError as error:
            self.totals[f"create refused: {error}"[:160]] += 1
            reject()

    def _do(self, step: Step | None) -> None:
        if step is not None and self.world is not None:
            self.failed = True
            self.world.perform(step)
            self.failed = False

    def _side(self, chosen: int) -> str:
        assert self.world is not None
        return sorted(self.world.sides, key=lambda name: name != MAIN)[chosen % len(self.world.sides)]

    @precondition(lambda self: self.world)
    @rule(data=st.data(), side=SIDES)
    def write(self, data: st.DataObject, side: int) -> None:
        self._do(data.draw(drawing.writing(self.world, self._side(side))))

    @precondition(lambda self: self.world)
    @rule(data=st.data(), side=SIDES)
    def write_again(self, data: st.DataObject, side: int) -> None:
        self._do(data.draw(drawing.writing(self.world, self._side(side))))

    @precondition(lambda self: self.world)
    @rule(data=st.data(), side=SIDES)
    def write_many(self, data: st.DataObject, side: int) -> None:
        self._do(data.draw(drawing.bulk(self.world, self._side(side))))

    @precondition(lambda self: self.world)
    @rule(data=st.data(), side=SIDES)
    def write_late(self, data: st.DataObject, side: int) -> None:
        self._do(data.draw(drawing.late(self.world, self._side(side))))

    @precondition(lambda self: self.world)
    @rule(data=st.data(), side=SIDES)
    def overwrite(self, data: st.DataObject, side: int) -> None:
        self._do(data.draw(drawing.overwriting(self.world, self._side(side))))

    @precondition(lambda self: self.world)
    @rule(data=st.data(), side=SIDES)
    def change(self, data: st.DataObject, side: int) -> None:
        self._do(data.draw(drawing.changing(self.world, self._side(side))))

    @precondition(
        lambda self: (
            self.world
            and self.world.kind.engine == "deduplicate"
            and not self.world.kind.fixed - {*self.world.kind.keys, *self.world.kind.partitions}
        )
    )
    @rule(data=st.data(), side=SIDES)
    def merge(self, data: st.DataObject, side: int) -> None:
        self._do(data.draw(drawing.merging(self.world, self._side(side))))

    @precondition(lambda self: self.world)
    @rule(data=st.data(), side=SIDES)
    def maintain(self, data: st.DataObject, side: int) -> None:
        self._do(data.draw(drawing.maintaining(self.world, self._side(side))))

    @precondition(lambda self: self.world)
    @rule(data=st.data(), side=SIDES)
    def alter(self, data: st.DataObject, side: int) -> None:
        self._do(data.draw(drawing.altering(self.world, self._side(side))))

    @precondition(lambda self: self.world)
    @rule(data=st.data(), side=SIDES)
    def ask(self, data: st.DataObject, side: int) -> None:
        self._do(data.draw(drawing.asking(self.world, self._side(side))))

    @precondition(lambda self: self.world)
    @rule(data=st.data(), side=SIDES)
    def remember(self, data: st.DataObject, side: int) -> None:
        self._do(data.draw(drawing.remembering(self.world, self._side(side))))

    @precondition(lambda self: self.world and self.world.sides[MAIN].tags)
    @rule(data=st.data())
    def branch(self, data: st.DataObject) -> None:
        self._do(data.draw(drawing.branching(self.world)))

    def teardown(self) -> None:
        try:
            if self.world is not None:
                self.totals.update({name: times for name, times in self.world.counts.items() if name != "names"})
                if not self.failed:
                    self.world.check_whole()
                    self.whole.append(self.world)
        finally:
            shutil.rmtree(self.home)


def run(number: int, examples: int, steps: int, *, shrinks: bool = True) -> None:
    """Try so many tables with so many steps each, chosen by a seed. Raise ``Wrong``, with a script of the shortest way to it."""
    phases = [Phase.generate, *([Phase.shrink] if shrinks else [])]
    wanted = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=phases,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    seeded = seed(number)(type("TableModel", (TableModel,), {}))
    run_state_machine_as_test(seeded, settings=wanted)
