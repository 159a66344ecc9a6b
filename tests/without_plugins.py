"""Tests of the core in a tree without ``pyspark_paimon/plugins``: those that ask for a plugin are skipped, and counted."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

HOME = "pyspark_paimon.plugins"
MOST_SKIPPED = 0.1
IS_CORE_ALONE = find_spec("pyspark_paimon") is not None and find_spec(HOME) is None
_REASON = f"Skipped: asks for {HOME}"


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
        report.outcome = "skipped"
        report.longrepr = (name, 0, _REASON)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that skipped many: the core would not work by itself."""
    # The process that reports counts: processes of tests (xdist) have no reporter, and their exit status is not asked for.
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if IS_CORE_ALONE and reporter is not None:
        skipped, passed = _number_skipped(reporter), len(reporter.stats.get("passed", ()))
        if skipped > MOST_SKIPPED * (skipped + passed):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests asked for plugins."""
    if IS_CORE_ALONE:
        skipped = _number_skipped(terminalreporter)
        terminalreporter.write_line(
            f"{skipped} tests or modules ask for plugins, which this tree does not have (at most {MOST_SKIPPED:.0%} may)"
        )


def _number_skipped(reporter: pytest.TerminalReporter) -> int:
    return sum(_REASON in report.longrepr for report in reporter.stats.get("skipped", ()))
