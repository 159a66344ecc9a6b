"""A pytest plugin that records which test runs which lines of the product.

It is loaded by ``-p tests.mutants.recorder`` and writes where the environment says: a database of coverage.py with one context per test, and
a text file with one JSON line per test: its id, outcome and seconds. Lines that run in another process are not recorded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

ROOT = Path(__file__).parents[2]
DATABASE = "MUTANTS_COVERAGE"
"""Of the environment: the path of the database to write; the text file stands beside it."""
PACKAGES = ("sparkexpr", "paimon_base", "fileindex", "manifest", "lsm", "pyspark_paimon")
SHARED = "::shared"
"""Ends the context of a test module's fixtures that several tests share: each of its tests depends on those lines."""


class Recorder:
    """Switches the context of the measurement at each test, and between shared fixtures and tests."""

    def __init__(self, database: Path) -> None:
        files = [f"{ROOT / package}/*" for package in PACKAGES]
        self._coverage = coverage.Coverage(data_file=database, include=files, config_file=False, messages=False)
        self._tests = database.with_suffix(".jsonl").open("w")
        self._context = ""
        self._seconds = 0.0
        self._outcome = "passed"

    def _switch(self, context: str) -> None:
        self._context = context
        self._coverage.switch_context(context)

    def pytest_sessionstart(self) -> None:
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._seconds, self._outcome = 0.0, "passed"
        self._switch(item.nodeid)
        try:
            return (yield)
        finally:
            self._switch("")
            line = {"test": item.nodeid, "seconds": round(self._seconds, 3), "outcome": self._outcome}
            print(json.dumps(line), file=self._tests, flush=True)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[Any]:
        if fixturedef.scope == "function":
            return (yield)
        test = self._context
        self._switch(f"{test.partition('::')[0]}{SHARED}")
        try:
            return (yield)
        finally:
            self._switch(test)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds += report.duration
        if report.outcome != "passed":
            self._outcome = report.outcome

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        self._tests.close()


def pytest_configure(config: pytest.Config) -> None:
    """Record if the environment names a database."""
    if path := os.environ.get(DATABASE):
        config.pluginmanager.register(Recorder(Path(path)), "mutants-recorder")
