"""Tests of the core in a tree without ``pyspark_paimon/plugins``: those that ask for a plugin are skipped, and counted."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from typing import Any

import pytest

HOME = "pyspark_paimon.plugins"
MOST_SKIPPED = 0.1
IS_CORE_ALONE = find_spec("pyspark_paimon") is not None and find_spec(HOME) is None
_asked: Counter[str] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> pytest.CollectReport:
    """Skip a module of tests that imports a plugin."""
    report: pytest.CollectReport = yield
    return _skipped(report, str(report.longrepr), collector.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
    """Skip a test whose error says that a plugin is not there."""
    report: pytest.TestReport = yield
    return report if call.excinfo is None else _skipped(report, f"{call.excinfo.value} {report.longrepr}", item.nodeid)


def _skipped(report: Any, text: str, name: str) -> Any:
    if IS_CORE_ALONE and report.failed and HOME in text:
        _asked[name.partition("::")[0]] += 1
        report.outcome = "skipped"
        report.longrepr = (name, 0, f"Skipped: asks for {HOME}")
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that skipped many: the core would not work by itself."""
    if _asked.total() > MOST_SKIPPED * max(session.testscollected, 1):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests asked for plugins."""
    if IS_CORE_ALONE:
        skipped = len(terminalreporter.stats.get("skipped", ()))
        terminalreporter.write_line(f"{skipped} tests or modules are skipped, most of them for plugins, which this tree does not have")
