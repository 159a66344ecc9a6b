"""A pytest plugin: ``--tier fast|all|nightly`` chooses the tests, and holds the quick ones to a second of CPU.

| tier | tests | properties |
|---|---|---|
| ``fast`` | not ``slow``, at most two cases of a function, over Spark one | a few examples, seeded by the rotation |
| ``all`` | all but ``long`` and ``interop`` | 40 examples or as many as the test says, always the same |
| ``nightly`` | all but ``interop`` | several times as many, from a new seed |

The rotation chooses the cases of the fast tier. It is the number of commits, so that each case runs within some commits.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from typing import Any

import hypothesis
import pytest
from _pytest.runner import runtestprotocol

from tests.examples import TIMES
from tests.tiers.cpu import LIMIT_SECONDS, JavaStarts, cpu_seconds
from tests.tiers.rotation import cases_by_function, rotated, rotation_of_commit

FAST_CASES = 2
FAST_EXAMPLES = 6
CROWDED = 1.5
"""A test may use this much more than its limit: on shared or slow cores a second of CPU does less."""
FAST_STEPS = 12
PROPERTY_TIMES = 5
NIGHTLY_TIMES = 5

# The same examples each time: a newcomer's run must not depend on luck.
hypothesis.settings.register_profile("quick", max_examples=40, deadline=None, derandomize=True)
hypothesis.settings.register_profile("fast", max_examples=FAST_EXAMPLES, deadline=None, database=None)
hypothesis.settings.register_profile("thorough", max_examples=1000, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption(
        "--tier", choices=("fast", "all", "nightly"), help="run the tests of this tier; without it, all that -m and paths choose"
    )
    group.addoption("--cpu-limit", type=float, default=LIMIT_SECONDS, help="most CPU seconds of a test that is not marked slow")
    group.addoption("--rotation", type=int, help="choose cases and seeds as another run did, which printed this number")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Settle the rotation before workers are started: they receive it with the options."""
    config.addinivalue_line(
        "markers", "slow(*ids): more than a second of CPU, or a JVM; of a parametrized test only the cases with these ids"
    )
    tier = config.getoption("tier")
    hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast" if tier == "fast" else "quick"))
    if tier in {"fast", "all"}:
        config.pluginmanager.register(Gate(), "cpu-gate")
    if tier in {None, "all"}:
        return
    if config.option.rotation is None:
        config.option.rotation = rotation_of_commit() if tier == "fast" else secrets.randbelow(2**31)
    if config.getoption("hypothesis_seed", None) is None:
        hypothesis.core.global_force_seed = config.option.rotation
    if tier == "nightly":
        os.environ.setdefault(TIMES, str(NIGHTLY_TIMES))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what repeats this choice of tests."""
    if config.option.rotation is not None:
        terminalreporter.write_line(f"the same tests and examples again: --tier {config.option.tier} --rotation {config.option.rotation}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are not of the tier.

    Plugins of pytest come later, so ``-m`` and ``-k`` do not change the cases that a rotation chooses.
    """
    for item in items:
        if {"s3", "hdfs", "cluster", "engine"} & set(getattr(item, "fixturenames", ())):  # each starts JVMs of its own
            item.add_marker("slow")
    tier = config.getoption("tier")
    if tier is None:
        return
    left_out = {"fast": ("slow", "long", "interop"), "all": ("long", "interop"), "nightly": ("interop",)}[tier]
    chosen = [item for item in items if not any(_has(item, name) for name in left_out)]
    if tier == "fast":
        chosen = _rotated(chosen, config.option.rotation)
        for item in chosen:
            _limit_examples(item)
    keep = set(map(id, chosen))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in keep])
    items[:] = chosen


def _has(item: pytest.Item, name: str) -> bool:
    """Tell whether a case has a mark. Marks with ids are for these cases only."""
    return any(not mark.args or name != "slow" or _case_id(item) in mark.args for mark in item.iter_markers(name))


def _case_id(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[2].removesuffix("]")


def _rotated(items: list[pytest.Item], rotation: int) -> list[pytest.Item]:
    positions: set[int] = set()
    for cases in cases_by_function([item.nodeid for item in items]).values():
        limit = 1 if items[cases[0]].get_closest_marker("spark") else FAST_CASES
        positions.update(cases[case] for case in rotated(len(cases), rotation, limit))
    return [items[position] for position in sorted(positions)]


def _limit_examples(item: pytest.Item) -> None:
    """Give a property a few examples, also one that asks for more: settings can be applied once only, so they are exchanged."""
    if machine := _machine(item):
        machine.settings = _few(machine.settings)
    elif _is_property(item):
        function = getattr(item.obj, "__func__", item.obj)
        applied = getattr(function, "_hypothesis_internal_use_settings", None)
        function._hypothesis_internal_use_settings = _few(applied or hypothesis.settings.default)


def _machine(item: pytest.Item) -> Any:
    """Return the class of a state machine's test, or None."""
    machine = getattr(item, "cls", None)
    return machine if isinstance(getattr(machine, "settings", None), hypothesis.settings) else None


def _is_property(item: pytest.Item) -> bool:
    return _machine(item) is not None or bool(hypothesis.is_hypothesis_test(getattr(item, "obj", None)))


def _few(settings: hypothesis.settings) -> hypothesis.settings:
    examples = min(FAST_EXAMPLES, settings.max_examples)
    steps = min(FAST_STEPS, settings.stateful_step_count)
    return hypothesis.settings(settings, max_examples=examples, stateful_step_count=steps, database=None, derandomize=False)


class Gate:
    """Fails quick tests in process that use more CPU than they may, or start a JVM."""

    def __init__(self) -> None:
        self.java = JavaStarts()
        self.shared_seconds = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Charge what many tests share to none of them."""
        started, before = cpu_seconds(), self.shared_seconds
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self.shared_seconds = before + cpu_seconds() - started

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, None, None]:
        """Charge the end of what many tests share to none of them: it comes with the teardown of the last."""
        started = cpu_seconds()
        yield
        self.shared_seconds += cpu_seconds() - started

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if any(_has(item, name) for name in ("slow", "long", "spark", "interop")):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        java = self.java.count
        seconds, reports = self._run(item, nextitem)
        for _ in range(2):
            # The first run may have imported libraries and filled caches, and other processes disturb any run.
            if seconds > item.config.option.cpu_limit * CROWDED and all(report.passed for report in reports):
                seconds, reports = self._run(item, nextitem)
        if complaint := self._complaint(item, seconds, self.java.count - java):
            reports[-1].outcome, reports[-1].longrepr = "failed", f"{item.nodeid} {complaint}: make it cheaper or mark it slow"
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _run(self, item: pytest.Item, nextitem: pytest.Item | None) -> tuple[float, list[pytest.TestReport]]:
        self.shared_seconds, started = 0.0, cpu_seconds()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        return cpu_seconds() - started - self.shared_seconds, reports

    def _complaint(self, item: pytest.Item, seconds: float, java: int) -> str | None:
        if java:
            return "starts a JVM"
        limit = item.config.option.cpu_limit
        if _is_property(item):
            limit *= PROPERTY_TIMES  # other examples cost more, and there are more of them in the tier of all tests
        return f"uses {seconds:.2f} CPU seconds of {limit:g}" if seconds > limit * CROWDED else None
