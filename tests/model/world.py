"""A table and its branches beside their states; every step is done on both, and then they are compared."""

from __future__ import annotations

import traceback
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from paimon_base.errors import PaimonError
from paimon_base.thresholds import use_thresholds
from pyspark_paimon import Table
from tests.model.state import State, Unpredictable
from tests.model.tables import TableKind
from tests.model.values import Row, arrow_rows, bag, plain_rows

MAIN = "main"
HELPERS = """\
from decimal import Decimal
from math import inf, nan

import pyarrow as pa
from pyspark_paimon import Table
from tests.model.containers import contained
from tests.model.values import arrow_rows

def rows(*found, names=None, kinds=None, container="table"):
    schema = table.schema if names is None else pa.schema([table.schema.field(name) for name in names])
    made = arrow_rows(found, schema)
    return contained(made if kinds is None else made.append_column("_row_kind", pa.array(kinds)), container)
"""


class Wrong(AssertionError):
    """The table and the model differ. ``verdict`` is one of the torture's."""

    verdict = "wrong rows"


class Broken(Wrong):
    """A check of the whole table finds problems."""

    verdict = "broken table"


class Failed(Wrong):
    """A step raised what it must not."""

    verdict = "untyped error"


@dataclass
class Shown:
    """What a snapshot shows: names of columns, rows, and the whole state."""

    names: list[str]
    rows: list[Row]
    state: State


@dataclass
class Side:
    """A branch of the table: its handle, what it must hold, and what its snapshots must show."""

    table: Table
    state: State
    snapshots: dict[int, Shown] = field(default_factory=dict)
    tags: dict[str, tuple[int, Shown]] = field(default_factory=dict)
    steps: int = 0
    offset: str | None = None
    """Where a stream goes on, after the rows in ``followed``."""
    followed: dict[Any, Row] = field(default_factory=dict)
    overwritten: bool = False
    """Whether an overwrite came since the stream stopped."""
    lags: bool = False
    """Whether rows may wait for a compaction that its changelog waits for."""

    def shown(self) -> Shown:
        return Shown(self.state.names, self.state.rows(), self.state)

    def ids(self) -> list[int]:
        found: list[int] = self.table.snapshots()["snapshot_id"].to_pylist()
        return found

    def note(self) -> None:
        """Take the snapshots that came and went since the step before."""
        ids = self.ids()
        newest = max(self.snapshots, default=0)
        known = {number: self.snapshots.get(number) for number in ids}
        now = self.shown()
        self.snapshots = {
            number: found if found is not None else now for number, found in known.items() if found is not None or number > newest
        }

    def arrow(self, rows: list[Row], names: list[str] | None = None, kinds: list[str] | None = None) -> pa.Table:
        schema = self.table.schema
        made = arrow_rows(rows, schema if names is None else pa.schema([schema.field(name) for name in names]))
        return made if kinds is None else made.append_column("_row_kind", pa.array(kinds, pa.string()))


class Step:
    """One operation on one side."""

    side: str = MAIN
    refusals: tuple[type[PaimonError], ...] = ()
    """Errors that the product documents for it: then nothing may have changed."""

    @abstractmethod
    def run(self, world: World, side: Side) -> None:
        """Do it on the table, then on the state. Raise ``Unpredictable`` before either."""

    @abstractmethod
    def code(self, world: World, side: Side) -> list[str]:
        """Python statements that do it; ``table`` is the side's handle."""


class World:
    """A table under test."""

    def __init__(self, kind: TableKind, path: str) -> None:
        self.kind, self.path = kind, path
        with use_thresholds(kind.thresholds):
            self.sides = {MAIN: Side(kind.create(path), State(kind, list(kind.columns)))}
        self.script = [HELPERS, kind.code()]
        self.steps: list[Step] = []
        self.counts: dict[str, int] = {}
        self.freed: set[str] = set()
        """Names that columns had once."""
        self._at = MAIN

    def perform(self, step: Step) -> None:
        """Do a step and compare. An error has the whole script."""
        with use_thresholds(self.kind.thresholds):
            self._perform(step)

    def _perform(self, step: Step) -> None:
        self.steps.append(step)
        side = self.sides[step.side]
        lines = [] if step.side == self._at else [f"table = Table.open(path, branch={step.side!r})"]
        try:
            lines += step.code(self, side)
            step.run(self, side)
        except Unpredictable:
            return
        except PaimonError as error:
            if not isinstance(error, step.refusals):
                raise self._wrong(lines, error) from error
            lines.append(f"# refused: {type(error).__name__}: {str(error)[:150]}")
            self._count(f"{type(step).__name__} refused")
        except Exception as error:
            raise self._wrong(lines, error) from error
        self._at = step.side
        self.script += lines
        self._count(type(step).__name__)
        try:
            for name, each in self.sides.items():
                each.note()
                if name == step.side or side.steps % 3 == 0 or (step.side == MAIN and type(step).__name__ == "Branch"):
                    self._compare(each)
            side.steps += 1
            if side.steps % 3 == 0:
                self.check_whole()
        except Exception as error:
            raise self._wrong([], error) from error

    def _count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    def _compare(self, side: Side) -> None:
        scan = side.table.scan()
        same(scan.to_arrow(), side.state.names, side.state.rows(), "scan")
        expected = len(side.state.rows())
        if scan.count() != expected:
            raise Wrong(f"count() is {scan.count()}, not {expected}")

    def check_whole(self) -> None:
        for side in self.sides.values():
            with use_thresholds(self.kind.thresholds):
                problems = side.table.fsck("deep").problems
            if problems:
                raise Broken(f"fsck deep: {problems}")

    def _wrong(self, lines: list[str], error: Exception) -> Wrong:
        script = "\n".join([*self.script, *lines])
        told = "".join(traceback.format_exception(error)[-3:])
        kind = type(error) if isinstance(error, Wrong) else Failed
        return kind(f"{type(error).__name__}: {error}\n\n{script}\n\n{told[-3000:]}")


def same(found: pa.Table, names: list[str], rows: list[Row], what: str) -> None:
    """Raise unless the rows are those, in any order."""
    if found.column_names != names:
        raise Wrong(f"{what} has columns {found.column_names}, not {names}")
    there, wanted = bag(plain_rows(found), names), bag(rows, names)
    if there != wanted:
        raise Wrong(
            f"{what}: missing {list((wanted - there).elements())[:5]}, unexpected {list((there - wanted).elements())[:5]}; columns {names}"
        )
