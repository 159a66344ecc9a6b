"""A pytest plugin that remembers how long each test module took, in pytest's cache, so that ``make check`` can plan."""

from __future__ import annotations

from collections import defaultdict

import pytest

KEY = "check/seconds"


class Durations:
    """Adds up the seconds of each test module of a run."""

    def __init__(self, cache: pytest.Cache) -> None:
        self._cache = cache
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # A run that was cut short or restricted to some tests would make modules look quick.
        config = session.config
        if session.shouldfail or session.shouldstop or config.getoption("keyword") or any("::" in arg for arg in config.args):
            return
        measured = {path: round(seconds, 2) for path, seconds in self._seconds.items()}
        self._cache.set(KEY, {**self._cache.get(KEY, {}), **measured})


def pytest_configure(config: pytest.Config) -> None:
    """Measure in the process that sees all reports: not in the workers of xdist."""
    if not hasattr(config, "workerinput") and hasattr(config, "cache"):
        config.pluginmanager.register(Durations(config.cache), "check-durations")
