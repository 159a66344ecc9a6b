"""Runs tests on a mutant in a forked process: the changed text replaces one module on import, no file is touched."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import CodeType, ModuleType

import hypothesis
import pytest

from tests.mutants.recorder import ROOT

PROFILE = "mutants"
FAILURE, RUNNING = "failure.json", "running.txt"
"""Files that a child leaves: the first failure, and the test that runs."""
MEMORY = 6 << 30
"""Most bytes of data of a child: a mutant may never stop allocating."""


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec", dont_inherit=True)  # and leave the bytecode cache alone


@dataclass
class MutantFinder(MetaPathFinder):
    """Gives one module another text.

    Attributes:
        name: The module.
        path: Its file.
        text: The text to run instead.
    """

    name: str
    path: Path
    text: str

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=_Loader(fullname, str(self.path), self.text))


class FirstFailure:
    """A pytest plugin that keeps the first test that fails, and why."""

    def __init__(self, running: Path, finder: MutantFinder | None) -> None:
        self.test = ""
        self.reason = ""
        self._running = running
        self._finder = finder

    def pytest_collection(self) -> None:
        if self._finder is not None:  # pytest has put a finder of its own in front, for files of its command line
            sys.meta_path.remove(self._finder)
            sys.meta_path.insert(0, self._finder)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running.write_text(nodeid)  # for when the process ends in this test

    def _keep(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid
            self.reason = str(report.longrepr)[-2000:]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._keep(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._keep(report)


def preload() -> None:
    """Import the libraries that the product uses, but nothing of the product, so that each child starts at once."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a fork copies no threads
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    for name in ("pyarrow.parquet", "pyarrow.compute", "pyarrow.orc", "numpy", "pandas", "pydantic", "sqlglot", "pyroaring", "fastavro"):
        importlib.import_module(name)
    for name in ("zstandard", "xxhash", "jinja2", "rich.console", "typer.testing", "coverage", "_pytest.doctest"):
        importlib.import_module(name)


def run_tests(finder: MutantFinder | None, tests: Sequence[str], timeout: int, folder: Path) -> int:
    """Run tests until one fails; return pytest's exit code and leave ``failure.json`` in ``folder``."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    if finder is not None:
        sys.meta_path.insert(0, finder)
    # No shrinking: a failure is enough. The same examples each time: a survivor stays one.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(PROFILE, max_examples=40, deadline=None, derandomize=True, database=None, phases=phases)
    os.environ["HYPOTHESIS_PROFILE"] = PROFILE
    os.chdir(ROOT)
    failure = FirstFailure(folder / RUNNING, finder)
    arguments = ["-q", "-x", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout", str(timeout)]
    arguments += ["--timeout-method", "thread"]  # ends the process: hypothesis would catch an error and loop again
    arguments += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]  # by preload(), before pytest starts
    code = int(pytest.main([*arguments, "--basetemp", str(folder / "tests"), *tests], plugins=[failure]))
    (folder / FAILURE).write_text(json.dumps({"test": failure.test, "reason": failure.reason}))
    return code
