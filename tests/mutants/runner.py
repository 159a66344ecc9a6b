"""Tries mutants: which tests to run, in which order, and what their end means."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.check.import_graph import module_name
from tests.mutants.child import FAILURE, RUNNING, MutantFinder, run_tests
from tests.mutants.coverage_map import CoverageMap, module_of
from tests.mutants.operators import Mutation
from tests.mutants.recorder import ROOT

KILLED, SURVIVED, TIMEOUT, UNCOVERED, BROKEN = "killed", "survived", "timeout", "not covered", "broken"
FIRST_SECONDS = 6.0
"""Test time of the first round: most mutants end in it, and it imports few test modules."""
_CONFTEST = "while loading conftest"
"""Of pytest's output: a conftest imports the mutant, which fails."""
DOCTEST_SECONDS = 1.0
"""Counted for the examples in a module's docstrings, which are not recorded."""
TEST_SECONDS = 20
"""Least timeout of a test: a mutant may loop for ever."""


@dataclass(frozen=True)
class Result:
    """What became of a mutant.

    Attributes:
        status: One of the constants of this module.
        test: The test that noticed it.
        reason: The end of that test's report.
        tests: Number of tests that run the changed lines.
        left_out: Number of these that the time did not allow.
        seconds: Wall time.
    """

    mutation: Mutation
    status: str
    test: str = ""
    reason: str = ""
    tests: int = 0
    left_out: int = 0
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "mutation": vars(self.mutation)}


@dataclass(frozen=True)
class Plan:
    """The rounds of tests for a mutant, and how many tests were left out."""

    rounds: Sequence[Sequence[str]]
    left_out: int
    seconds: float


def plan(module: str, tests: Iterable[str], seconds: dict[str, float], budget: float) -> Plan:
    """Choose tests within the budget: half of it the nearest by folder, the rest from all test modules alike, the quickest of each first.

    The nearest ones make the first round, up to ``FIRST_SECONDS``.
    """
    by_module: defaultdict[str, list[str]] = defaultdict(list)
    for test in tests:
        by_module[module_of(test)].append(test)
    folder = Path(module).parent.parts

    def nearness(path: str) -> int:
        if path == module:  # the examples in its docstrings
            return -len(folder) - 1
        own = Path(path).parent.parts[1:]
        return -next((length for length in range(len(folder), 0, -1) if own[:length] == folder[:length]), 0)

    ordered = sorted(by_module, key=lambda path: (nearness(path), sum(seconds[test] for test in by_module[path])))
    tests_of = {path: sorted(by_module[path], key=lambda test: (seconds[test], test)) for path in ordered}
    nearest = [test for path in ordered for test in tests_of[path]]
    broad = sorted(nearest, key=lambda test: tests_of[module_of(test)].index(test))  # stable: the nearest of each rank first
    chosen: dict[str, None] = {}
    spent = 0.0
    for some, limit in ((nearest, budget / 2), (broad, budget)):
        for test in some:
            if test not in chosen and (not chosen or spent + seconds[test] <= limit):
                chosen[test] = None
                spent += seconds[test]
    first: list[str] = []
    rest: list[str] = []
    used = 0.0
    for test in (test for test in nearest if test in chosen):
        used += seconds[test]
        (first if used <= FIRST_SECONDS or not first else rest).append(test)
    rounds = [found for found in (first, rest) if found]
    return Plan(rounds, sum(map(len, by_module.values())) - len(first) - len(rest), spent)


def function_lines(source: str, function: str) -> range:
    """Return the lines of a function by its qualified name; all lines for a class and the module, whose bodies run on import."""
    node: ast.AST = ast.parse(source)
    for name in filter(None, function.split(".")):
        node = next(found for found in _inside(node) if getattr(found, "name", None) == name)
    if isinstance(node, ast.Module | ast.ClassDef):
        return range(1, source.count("\n") + 2)
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below another, the nearest first, with those inside functions and classes last."""
    wave = list(ast.iter_child_nodes(node))
    while wave:
        yield from wave
        wave = [below for found in wave for below in ast.iter_child_nodes(found)]


@dataclass
class _Attempt:
    mutation: Mutation
    text: str
    plan: Plan
    folder: Path
    tests: int
    started: float
    round: int = 0
    pid: int = 0
    deadline: float = 0.0


class Runner:
    """Runs mutants in forked processes, some at a time."""

    def __init__(self, tests: CoverageMap, folder: Path, *, workers: int, budget: float, test_seconds: int = TEST_SECONDS) -> None:
        self._tests = tests
        self._folder = folder
        self._workers = workers
        self._budget = budget
        self._test_seconds = test_seconds
        self._running: list[_Attempt] = []

    def run(self, chosen: Iterable[Mutation]) -> Iterator[Result]:
        """Yield the result of each mutant as it ends. Children die with the caller."""
        waiting = iter(enumerate(chosen))
        more = True
        try:
            while more or self._running:
                while more and len(self._running) < self._workers:
                    number, mutation = next(waiting, (0, None))
                    if mutation is None:
                        more = False
                    elif (result := self._begin(number, mutation)) is not None:
                        yield result
                ended = [attempt for attempt in self._running if self._has_ended(attempt)]
                for attempt in ended:
                    result = self._end(attempt)
                    if result is not None:
                        self._running.remove(attempt)
                        shutil.rmtree(attempt.folder, ignore_errors=True)
                        yield result
                if not ended:
                    time.sleep(0.05)
        finally:
            for attempt in self._running:
                _kill(attempt.pid)
                os.waitpid(attempt.pid, 0)  # so that it writes nothing while its folder is removed

    def _begin(self, number: int, mutation: Mutation) -> Result | None:
        source = (ROOT / mutation.module).read_text()
        tests = self._tests.tests_of(mutation, function_lines(source, mutation.function))
        if ">>> " in source:
            tests.add(mutation.module)
        if not tests:
            return Result(mutation, UNCOVERED)
        made = plan(mutation.module, tests, {test: self._seconds(test) for test in tests}, self._budget)
        attempt = _Attempt(mutation, mutation.apply(source), made, self._folder / str(number), len(tests), time.monotonic())
        self._start(attempt)
        self._running.append(attempt)
        return None

    def _seconds(self, test: str) -> float:
        return self._tests.seconds.get(test, DOCTEST_SECONDS)

    def _start(self, attempt: _Attempt) -> None:
        shutil.rmtree(attempt.folder, ignore_errors=True)
        attempt.folder.mkdir(parents=True)
        tests = attempt.plan.rounds[attempt.round]
        longest = max(map(self._seconds, tests))
        limit = self._test_seconds + int(10 * longest)
        attempt.deadline = time.monotonic() + limit + 60 + 10 * sum(map(self._seconds, tests))
        attempt.pid = os.fork()
        if attempt.pid == 0:
            _child(attempt, tests, limit)

    def _has_ended(self, attempt: _Attempt) -> bool:
        info = os.waitid(os.P_PID, attempt.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        return info is not None or time.monotonic() > attempt.deadline

    def _end(self, attempt: _Attempt) -> Result | None:
        late = os.waitid(os.P_PID, attempt.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None
        _kill(attempt.pid)  # and the servers that its tests have started
        code = os.waitstatus_to_exitcode(os.waitpid(attempt.pid, 0)[1])
        if code == 0 and not late and attempt.round + 1 < len(attempt.plan.rounds):
            attempt.round += 1
            self._start(attempt)
            return None
        failure = _failure(attempt.folder, code)
        # An import error of a test module (2) is a notice, too. 3: error of pytest or of ours, 4: no such test, 5: no tests.
        status = SURVIVED if code == 0 else KILLED
        if code in {3, 4, 5} and not failure["test"] and _CONFTEST not in failure["reason"]:
            status = BROKEN
        if late or "++ Timeout ++" in failure["reason"]:
            status = TIMEOUT
        took = round(time.monotonic() - attempt.started, 2)
        return Result(attempt.mutation, status, failure["test"], failure["reason"], attempt.tests, attempt.plan.left_out, took)


def _child(attempt: _Attempt, tests: Sequence[str], limit: int) -> None:
    code = 3
    try:
        os.setsid()
        output = os.open(attempt.folder / "output.txt", os.O_CREAT | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.nice(5)
        path = Path(attempt.mutation.module)
        code = run_tests(MutantFinder(module_name(path), ROOT / path, attempt.text), tests, limit, attempt.folder)
    except BaseException:  # noqa: BLE001 -- the child ends here, whatever it is
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _failure(folder: Path, code: int) -> dict[str, str]:
    """Return the test that failed and why, also if the process ended in it."""
    if (folder / FAILURE).exists():
        return dict(json.loads((folder / FAILURE).read_text()))
    running = folder / RUNNING
    output = (folder / "output.txt").read_text(errors="replace")
    reason = f"the process ended with {code}\n{output[:1000]}\n...\n{output[-1000:]}"
    return {"test": running.read_text() if running.exists() else "", "reason": reason}


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
