"""A script whose N-th disk operation fails, for every N: the error is typed and true, rows are whole, a repeat does it once.

After the fault the disk is well again. What was under way is repeated with its id, then the script goes on to its end. Kinds of faults:
``disk.FAULTS``; and a real file system that is too small, where one may be mounted.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import subprocess
import tempfile
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, zip_longest
from pathlib import Path

from paimon_base.errors import PaimonError
from tests.torture.check import Wrong, examined, tidied
from tests.torture.disk import FAULTS, Count, Disk, Fault, Operation
from tests.torture.forked import forked
from tests.torture.kills import scratch_folder
from tests.torture.model import Model
from tests.torture.model import Operation as Step
from tests.torture.operations import carry_out
from tests.torture.report import Outcome, case_of, leave_case
from tests.torture.scripts import SCRIPTS, Script

PART = "faults"
TMPFS_KIB = (64, 96, 128, 192, 256, 384, 512, 768, 1024)
IN_TURNS = 6


@dataclass(frozen=True)
class Case:
    """One fault: operation ``number`` of so many of ``script`` fails as ``kind`` says; ``tmpfs``: the disk has so many KiB."""

    script: str
    number: int
    kind: str
    operations: int = 0

    @property
    def what(self) -> str:
        return f"{self.kind} of {self.number} KiB" if self.kind == "tmpfs" else f"{self.kind} at operation {self.number}"


def outcomes(seed: int, folder: Path) -> Iterator[Outcome]:
    """Every operation of every script fails once, then again in another way, and so on; half of it for an even seed, half for an odd one.

    The shortest scripts come first, in turns, so that these are done whole; then the others, one after the other.
    """
    plans = sorted((_turns(name, seed) for name in SCRIPTS), key=lambda turns: len(turns[0]))
    while True:
        for turn in range(max(map(len, plans))):
            mine = [[case for case in turns[turn] if case.number % 2 == seed % 2] if turn < len(turns) else [] for turns in plans]
            side_by_side = [case for cases in zip_longest(*mine[:IN_TURNS]) for case in cases if case is not None]
            for case in chain(side_by_side, *mine[IN_TURNS:]):
                outcome = replace(_tried(case, seed), place=(case.number, case.operations) if case.operations else None)
                yield outcome if outcome.good else replace(outcome, files=_left(case, seed, folder))


def _turns(name: str, seed: int) -> list[list[Case]]:
    """The plan of a script, in random order: each operation with one kind of fault, then each with another, and so on."""
    plan = _plan(name)
    random.Random(seed >> 1).shuffle(plan)
    before: Counter[tuple[int, bool]] = Counter()
    turns: defaultdict[int, list[Case]] = defaultdict(list)
    for case in plan:
        operation = (case.number, case.kind == "tmpfs")
        turns[before[operation]].append(case)
        before[operation] += 1
    return [turns[turn] for turn in sorted(turns)]


def _left(case: Case, seed: int, folder: Path) -> Path:
    name = f"{case.script}-{case.kind}-{case.number}".replace(" ", "-").replace(",", "")
    return leave_case(folder / PART / name, PART, seed=seed, script=case.script, number=case.number, kind=case.kind)


def replay(folder: Path) -> Outcome:
    case = case_of(folder)
    return replace(_tried(Case(case["script"], case["number"], case["kind"]), case["seed"]), files=folder)


@lru_cache
def _prepared(name: str) -> tuple[bytes, Model]:
    """The files of the table on which a script starts, and its model."""
    script = SCRIPTS[name]
    model = script.configuration.model()
    with scratch_folder() as scratch:
        path = f"{scratch}/t"

        def make() -> None:
            script.configuration.create(path)
            for step in script.before:
                carry_out(path, step)

        made = forked(make)
        assert not made.verdict, made.error
        for step in script.before:
            model = model.after(step)
        return pickle.dumps({found.relative_to(path): found.read_bytes() for found in Path(path).rglob("*") if found.is_file()}), model


def _placed(name: str, path: str) -> Model:
    content, model = _prepared(name)
    for relative, data in pickle.loads(content).items():
        target = Path(path) / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return model


def _plan(name: str) -> list[Case]:
    """Every operation of a script with every kind of fault that it can meet."""
    script = SCRIPTS[name]

    def counted(path: str) -> list[Operation]:
        count = Count([])
        Disk(path, count).install()
        for step in script.steps:
            carry_out(path, step)
        return list(count.seen)

    with scratch_folder() as scratch:
        _placed(name, f"{scratch}/t")
        seen = forked(lambda: counted(f"{scratch}/t"))
        assert not seen.verdict, seen.error
    faults = [
        Case(name, found.number, kind, len(seen.value))
        for found in seen.value
        for kind, (_, names) in FAULTS.items()
        if found.name in names
    ]
    return faults + ([Case(name, size, "tmpfs") for size in TMPFS_KIB] if may_mount() else [])


def _tried(case: Case, seed: int) -> Outcome:
    script = SCRIPTS[case.script]
    with scratch_folder() as scratch, _place(case, scratch) as path:
        model = _placed(case.script, path)
        ended = forked(lambda: _struck(path, case, script, model))
    if ended.verdict:
        return Outcome(PART, case.script, seed, case.what, ended.verdict, ended.error)
    if isinstance(ended.value, Wrong):
        return Outcome(PART, case.script, seed, case.what, ended.value.verdict, ended.value.detail)
    return Outcome(PART, case.script, seed, f"{case.what}: {ended.value}", "typed error" if ended.value else "right")


def _struck(path: str, case: Case, script: Script, model: Model) -> str | Wrong:
    """In a process of its own: the script with its fault, and what is there after; the error that it gave, "" if it gave none."""
    fault = Fault(case.number, case.kind)
    if case.kind != "tmpfs":
        Disk(path, fault).install()
    told = untyped = way = ""
    try:
        for step in script.steps:
            after = model.after(step)
            try:
                carry_out(path, step)
            except Exception as error:  # noqa: BLE001 -- what kind it is, is the question
                fault.healed = True
                _heal(path, case)
                told = f"{step['op']}: {type(error).__name__}: {error}"
                frames = traceback.extract_tb(error.__traceback__)[2:]
                way = " > ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-9:])
                untyped = untyped or _untyped(path, error)
                _is_true(path, error, [model, after])
                _repeated(path, step, [model, after])
            model = after
        fault.healed = True
        _heal(path, case)
        examined(path, [model], random.Random(case.number))
        tidied(path, model.rows, model.dropped)
    except Wrong as wrong:
        return Wrong(wrong.verdict, f"{wrong.detail} [struck {fault.struck}; told {told}; way {way}]")
    return Wrong("untyped error", f"{untyped} [struck {fault.struck}; told {told}; way {way}]") if untyped else told


def _untyped(path: str, error: Exception) -> str:
    """What keeps an error from being ours: its type, or that it names neither file nor table."""
    if not isinstance(error, PaimonError):
        return f"no PaimonError: {type(error).__name__}"
    return "" if path in str(error) else "names no file and no table"


def _is_true(path: str, error: Exception, states: Sequence[Model]) -> None:
    """Rows are as the error says: nothing was committed, unless it tells so."""
    found = examined(path, states, random.Random(1))
    if found.state and states[0].rows != states[1].rows and not any(truth in str(error) for truth in TRUTHS):
        raise Wrong("wrong rows", "the change stands, but the error does not say so")


TRUTHS = ("committed as snapshot", "partly or completely done")
"""What an error says of a change that stands."""
ONCE = frozenset({"tag", "branch", "add-column", "drop-column", "rollback", "untag", "unbranch"})
"""Operations without an id: one that was done after all is refused when it is repeated."""


def _repeated(path: str, step: Step, states: Sequence[Model]) -> None:
    """A repetition on a disk that is well does it exactly once."""
    try:
        carry_out(path, step)
    except PaimonError as error:
        if step["op"] not in ONCE:
            raise Wrong("lost", f"the repetition of {step['op']} fails: {type(error).__name__}: {error}") from error
    examined(path, [states[1]], random.Random(1))


@lru_cache(maxsize=1)
def may_mount() -> bool:
    """Whether this process may mount a small file system, to fill it."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False)
        if done.returncode == 0:
            subprocess.run(["umount", folder], capture_output=True, check=True)
        return done.returncode == 0


@contextmanager
def _place(case: Case, scratch: str) -> Iterator[str]:
    """Where the table stands: on a small file system of its own, or anywhere."""
    if case.kind != "tmpfs":
        yield f"{scratch}/t"
        return
    disk = f"{scratch}/disk"
    Path(disk).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk], capture_output=True, check=True)
    try:
        _placed(case.script, f"{disk}/t")
        used = os.statvfs(disk)
        size = (used.f_blocks - used.f_bfree) * used.f_frsize // 1024 + case.number
        subprocess.run(["mount", "-o", f"remount,size={size}k", disk], capture_output=True, check=True)
        shutil.rmtree(f"{disk}/t")
        yield f"{disk}/t"
    finally:
        subprocess.run(["umount", disk], capture_output=True, check=True)


def _heal(path: str, case: Case) -> None:
    if case.kind == "tmpfs":
        subprocess.run(["mount", "-o", "remount,size=64m", str(Path(path).parent)], capture_output=True, check=True)
