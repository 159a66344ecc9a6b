"""SIGKILL at any moment: rows equal what was acknowledged, what was under way is there whole or not at all, and life goes on.

A process does random operations on a table and notes each, before and after, in a log outside of it. It is killed after a random time, at a
named fail point, or before, after or inside the N-th operation on its disk. Others then look at the table, some repeat what was cut off.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from manifest.io.failpoints import POINTS, VARIABLE
from tests.torture.check import Found, Wrong, examined, rows_are_one_of, tidied
from tests.torture.directory_store import url_of, watch
from tests.torture.disk import Kill
from tests.torture.forked import Ended, forked
from tests.torture.model import Model, Operation
from tests.torture.operations import Draw, carry_out, opened
from tests.torture.report import Outcome, case_of, leave_case
from tests.torture.tables import KINDS, configuration_of

PART = "kills"
TRIES_PER_TABLE = 12
OPERATIONS_PER_TRY = 8
MOST_DISK_OPERATIONS = 260
LONGEST_SECONDS = 0.5
REPLAYS = 12


@dataclass
class Try:
    """All that one kill needs: the table's model, what the process does, how it is killed, what is looked at afterwards."""

    configuration: str
    seed: int
    model: Model
    operations: list[Operation]
    how: dict[str, Any]
    repeats: bool
    following: Operation

    @property
    def what(self) -> str:
        return " ".join(map(str, self.how.values()))


def outcomes(seed: int, folder: Path) -> Iterator[Outcome]:
    """Kill for ever; the same seed kills in the same way, as far as the machine's scheduler allows."""
    names = list(KINDS)
    random.Random(seed).shuffle(names)
    for life in count():
        yield from _life(names[life % len(names)], seed * 1_000_003 + life, folder)


def replay(folder: Path) -> Outcome:
    """Kill as in the ``folder`` again; where the scheduler has a say, several times until it goes wrong."""
    case = case_of(folder)
    one: Try = pickle.loads((folder / "try.pickle").read_bytes())
    for _ in range(REPLAYS):
        with scratch_folder() as scratch:
            shutil.copytree(folder / "before", f"{scratch}/t")
            outcome, _, _ = _tried(f"{scratch}/t", one, scratch)
        if not outcome.good:
            break
    return replace(outcome, files=folder, seed=case["seed"])


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """In memory, where the machine has such a place: nobody pulls its plug."""
    fast = "/dev/shm"
    return tempfile.TemporaryDirectory(prefix="torture-", dir=fast if os.access(fast, os.W_OK) else None)


def _life(kind: str, seed: int, folder: Path) -> Iterator[Outcome]:
    """One table, killed again and again."""
    dice, configuration = random.Random(seed), configuration_of(kind)
    draw = Draw(dice, configuration, branching=dice.random() < 0.5)
    with scratch_folder() as scratch:
        path, before = f"{scratch}/t", f"{scratch}/before"
        url = url_of(path, kind)
        model = configuration.model()
        first: Operation = {"op": "write", "id": f"first-{seed}", "rows": draw.rows(model, 30, deletes=False)}
        made = forked(lambda: (configuration.create(url), carry_out(url, first))[1])
        if made.verdict:
            yield Outcome(PART, kind, seed, "create", made.verdict, made.error)
            return
        model = model.after(first)
        for _ in range(TRIES_PER_TABLE):
            one = _drawn(draw, kind, seed, model)
            shutil.rmtree(before, ignore_errors=True)
            shutil.copytree(path, before, copy_function=os.link)
            outcome, model, killed = _tried(path, one, scratch)
            if not outcome.good:
                yield replace(outcome, files=_left(folder, one, before))
                return
            if killed:
                yield outcome


def _drawn(draw: Draw, kind: str, seed: int, model: Model) -> Try:
    dice, future, operations = draw.dice, model, []
    for _ in range(OPERATIONS_PER_TRY):
        operations.append(draw.next(future))
        future = future.after(operations[-1])
    choice = dice.random()
    how: dict[str, Any]
    if choice < 0.25:
        how = {"by": "time", "seconds": round(dice.random() * LONGEST_SECONDS, 4)}
    elif choice < 0.35:
        how = {"by": "point", "name": dice.choice([*POINTS, "inside-rollback"]), "visit": dice.choice((1, 1, 2, 3))}
    else:
        how = {"by": "operation", "number": dice.randint(1, MOST_DISK_OPERATIONS), "when": dice.choice(("before", "inside", "after"))}
    following: Operation = {"op": "write", "id": f"{dice.getrandbits(64):016x}", "rows": draw.rows(model, 3, deletes=False)}
    for row in following["rows"]:
        for name in model.columns[4:]:
            row.pop(name, None)  # it may have been dropped
    return Try(kind, dice.getrandbits(32), model, operations, how, dice.random() < 0.5, following)


def _left(folder: Path, one: Try, before: str) -> Path:
    case = leave_case(folder / PART / f"{one.configuration.replace(', ', '-').replace(' ', '-')}-{one.seed}", PART, seed=one.seed)
    shutil.copytree(before, case / "before", dirs_exist_ok=True)
    (case / "try.pickle").write_bytes(pickle.dumps(one))
    leave_case(case, PART, seed=one.seed, configuration=one.configuration, how=one.how, operations=one.operations, repeats=one.repeats)
    return case


def _tried(path: str, one: Try, scratch: str) -> tuple[Outcome, Model, bool]:
    """The outcome of a try, the model after it, and whether the process was killed."""
    log, url = f"{scratch}/log", url_of(path, one.configuration)
    Path(log).write_text("")
    how = one.how
    ended = forked(lambda: _worked(path, url, one, log), kill_after=how["seconds"] if how["by"] == "time" else None)
    done = Path(log).read_text().split()
    acknowledged, started = done.count("done"), done.count("start")
    before = one.model
    for operation in one.operations[:acknowledged]:
        before = before.after(operation)
    cut = one.operations[acknowledged] if started > acknowledged else None
    what = f"{one.what} in {cut['op'] if cut else 'none'}, {acknowledged} before"

    def judged(verdict: str, detail: str = "") -> Outcome:
        return Outcome(PART, one.configuration, one.seed, what, verdict, detail)

    if ended.error or ended.hung or ended.signal not in {0, signal.SIGKILL}:
        return judged(ended.verdict or "abort", ended.error), before, False
    states = [before] if cut is None else [before, before.after(cut)]
    looked: Ended = forked(lambda: _looked(url, states, cut, one))
    if looked.verdict:
        return judged(looked.verdict, looked.error), before, True
    if isinstance(looked.value, Wrong):
        return judged(looked.value.verdict, looked.value.detail), before, True
    return judged("right"), _resumed(states, looked.value, one.following), ended.signal != 0


def _worked(path: str, url: str, one: Try, log: str) -> None:
    """In the process that is killed."""
    descriptor, write = os.open(log, os.O_WRONLY | os.O_APPEND), os.write
    if one.how["by"] == "point":
        os.environ[VARIABLE] = f"{one.how['name']}:{one.how['visit']}"
    if one.how["by"] == "operation":
        watch(Kill(one.how["number"], one.how["when"]), path, url)
    for operation in one.operations:
        write(descriptor, b"start\n")
        carry_out(url, operation)
        write(descriptor, b"done\n")


def _looked(path: str, states: list[Model], cut: Operation | None, one: Try) -> Found | Wrong:
    """In a process of its own: what is there, after the kill, a repetition of what was cut off, the removal of orphans, another write."""
    dice = random.Random(one.seed)
    try:
        found = examined(path, states, dice)
        now = states[found.state]
        dropped = {*states[0].dropped, *states[-1].dropped, *(set(states[0].columns) ^ set(states[-1].columns))}
        if one.repeats and cut is not None and "id" in cut:
            carry_out(path, cut)
            now = states[1]
            found.state = rows_are_one_of(opened(path), [now.rows], dropped, f"after {cut['op']} was repeated") + 1
        if dice.random() < 0.4:
            tidied(path, now.rows, dropped)
        carry_out(path, one.following)
        rows_are_one_of(opened(path), [now.after(one.following).rows], dropped, "after the next write")
    except Wrong as wrong:
        return wrong
    return found


def _resumed(states: list[Model], found: Found, following: Operation) -> Model:
    """The model that goes on: the state that was found, with what else is there."""
    now = replace(states[found.state])
    known = {name: rows for model in states for tags in (model.maybe_tags, model.tags) for name, rows in tags.items()}
    sure = states[found.state].tags
    now.tags = {name: known[name] for name in found.tags if name in sure}
    now.maybe_tags = {name: known[name] for name in found.tags if name not in sure}  # who finishes a rollback deletes them
    now.branches = {name: states[number].branches[name] for name, number in found.branches.items()}
    bases = {name: base for model in states for name, base in model.bases.items()}
    now.bases = {name: bases[name] for name in now.branches}
    every = list(dict.fromkeys(name for model in states for name in (*model.columns, *model.dropped)))
    now.columns = [name for name in every if name in found.columns]
    now.dropped = [name for name in every if name not in found.columns]
    return now.after(following)
