"""Pytest hooks that collect what each marked test proved, and compare or renew ``outcomes.json``, from which the docs' table is made.

``PYSPARK_PAIMON_INTEROP=check`` (``make interop``) fails a run that does not prove every recorded cell, or proves one that is not recorded;
``=record`` takes what this run proves over into the file, so a run of some tests renews their cells. Import the hooks into a ``conftest.py``.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.interop.features import DIRECTIONS, FEATURES, PEERS

__all__ = ["pytest_configure", "pytest_runtest_logreport", "pytest_runtest_setup", "pytest_sessionfinish"]

OUTCOMES = Path(__file__).with_name("outcomes.json")
PROPERTY = "interop_feature"
Cell = tuple[str, str, str]
_proofs: dict[Cell, set[tuple[str, str]]] = defaultdict(set)


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", "interop_feature(name, peer, direction, outcome): the cell of the docs' table that a test proves")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the marks travel with the report, also from the workers of a parallel run."""
    for mark in item.iter_markers("interop_feature"):
        item.user_properties.append((PROPERTY, [mark.args[0], mark.kwargs["peer"], mark.kwargs["direction"], mark.kwargs["outcome"]]))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember how each cell came out; a test that never came to its call proves nothing."""
    if report.when == "call" or not report.passed:
        for name, value in report.user_properties:
            if name == PROPERTY:
                feature, peer, direction, outcome, *withdrawn = value
                _proofs[feature, peer, direction].add((outcome, withdrawn[0] if withdrawn else report.outcome))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Compare with the recording or renew it, once, in the process that sees all reports."""
    mode = os.environ.get("PYSPARK_PAIMON_INTEROP")
    if mode not in {"check", "record"} or hasattr(session.config, "workerinput"):
        return
    ran = {cell: results for cell, results in _proofs.items() if "skipped" not in {result for _, result in results}}
    proven, troubles = proven_cells(ran)
    if mode == "record":
        kept = {cell: outcome for cell, outcome in recorded_cells().items() if cell not in ran}
        OUTCOMES.write_text(json.dumps(as_table({**kept, **proven}), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        skipped = {*_proofs} - {*ran}
        troubles += differences({cell: outcome for cell, outcome in recorded_cells().items() if cell not in skipped}, proven)
    if troubles:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        for line in troubles:
            reporter.write_line(f"interop: {line}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def withdraw(item: pytest.Item, peer: str) -> None:
    """Let a test claim nothing of a peer that is not there to be tested."""
    for name, value in list(item.user_properties):
        if name == PROPERTY and isinstance(value, list) and value[1] == peer:
            item.user_properties.remove((name, value))
            item.user_properties.append((PROPERTY, [*value, "skipped"]))


def proven_cells(proofs: dict[Cell, set[tuple[str, str]]]) -> tuple[dict[Cell, str], list[str]]:
    """The outcome of each cell whose tests all passed, and a line for every other one."""
    proven, troubles = {}, []
    for cell, results in proofs.items():
        claims = {outcome for outcome, _ in results}
        if {result for _, result in results} == {"passed"} and len(claims - {"yes"}) <= 1:
            proven[cell] = min(claims, key=lambda claim: claim == "yes")
        else:
            troubles.append(f"{' / '.join(cell)} is not proven: {sorted(results)}")
    return proven, troubles


def differences(recorded: dict[Cell, str], proven: dict[Cell, str]) -> list[str]:
    """A line for every cell in which the recording and this run differ."""
    return [
        f"{' / '.join(cell)}: recorded {recorded.get(cell, 'nothing')!r}, proven {proven.get(cell, 'nothing')!r}"
        for cell in sorted({*recorded, *proven})
        if recorded.get(cell) != proven.get(cell)
    ]


def recorded_cells() -> dict[Cell, str]:
    """The committed recording."""
    table = json.loads(OUTCOMES.read_text(encoding="utf-8")) if OUTCOMES.exists() else {}
    return {
        (feature, peer, direction): outcome
        for feature, by_peer in table.items()
        for peer, by_direction in by_peer.items()
        for direction, outcome in by_direction.items()
    }


def as_table(cells: dict[Cell, str]) -> dict[str, Any]:
    """Cells as nested objects in the order of the registry."""
    table: dict[str, Any] = {}
    for feature in FEATURES:
        for peer in PEERS:
            found = {direction: cells[feature, peer, direction] for direction in DIRECTIONS if (feature, peer, direction) in cells}
            if found:
                table.setdefault(feature, {})[peer] = found
    return table
