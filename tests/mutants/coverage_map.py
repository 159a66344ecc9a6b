"""Which tests run which lines: recorded once, kept below ``artifacts``, and recorded again for what has changed since."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from coverage import CoverageData

from tests.mutants.operators import Mutation
from tests.mutants.recorder import DATABASE, PACKAGES, ROOT, SHARED

QUICK = "not long and not spark and not interop"
IGNORED = ("tests/spark", "tests/interop", "tests/torture", "tests/check", "tests/mutants", "tests/benchmarks", "pyspark_paimon/spark")
LONGEST_SECONDS = 30


@dataclass
class Recording:
    """One run of tests with the lines of each.

    Attributes:
        path: The database of coverage.py.
        digests: The content of each test module and each file of the product at that time.
        seconds: The seconds of each test that passed.
    """

    path: Path
    digests: dict[str, str]
    seconds: dict[str, float]

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Read the recording whose database is at ``path``."""
        lines = [json.loads(line) for line in path.with_suffix(".jsonl").read_text().splitlines()]
        digests = json.loads(path.with_suffix(".digests").read_text())
        return cls(path, digests, {line["test"]: line["seconds"] for line in lines if line["outcome"] == "passed"})

    @cached_property
    def data(self) -> CoverageData:
        found = CoverageData(str(self.path))
        found.read()
        return found

    def lines(self, file: str) -> dict[int, list[str]]:
        """Return the contexts of each line of a file of the product."""
        return self.data.contexts_by_lineno(str(ROOT / file))


@dataclass
class CoverageMap:
    """The tests that run each line, by the newest recording of each test module.

    Attributes:
        recordings: The newest last.
    """

    recordings: Sequence[Recording]
    _files: dict[str, dict[int, set[str]]] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> CoverageMap:
        """Load all finished recordings of a folder."""
        paths = sorted(folder.glob("map-*.digests"), key=lambda path: path.stat().st_mtime)
        return cls([Recording.read(path.with_suffix(".coverage")) for path in paths])

    @cached_property
    def newest(self) -> dict[str, Recording]:
        """The newest recording of each test module."""
        return {path: recording for recording in self.recordings for path in recording.digests if path.startswith("tests/")}

    @cached_property
    def seconds(self) -> dict[str, float]:
        """The seconds of each test."""
        return {
            test: recording.seconds[test]
            for module, recording in self.newest.items()
            for test in recording.seconds
            if module_of(test) == module
        }

    @cached_property
    def _tests_of(self) -> dict[str, list[str]]:
        tests: defaultdict[str, list[str]] = defaultdict(list)
        for test in self.seconds:
            tests[module_of(test)].append(test)
        return tests

    def tests_by_line(self, file: str) -> dict[int, set[str]]:
        """Return the tests that run each line of a file."""
        if file not in self._files:
            found: defaultdict[int, set[str]] = defaultdict(set)
            for recording in self.recordings:
                for line, contexts in recording.lines(file).items():
                    for context in contexts:
                        module = module_of(context)
                        if self.newest.get(module) is recording:
                            found[line] |= set(self._tests_of[module]) if context.endswith(SHARED) else {context} & self.seconds.keys()
            self._files[file] = dict(found)
        return self._files[file]

    def tests_of(self, mutation: Mutation, function_lines: range) -> set[str]:
        """Return the tests that may notice a mutation.

        Lines that no test runs may have run on import, as defaults do: all tests of ``function_lines`` are returned.
        """
        lines = self.tests_by_line(mutation.module)
        exact: set[str] = set().union(*(lines.get(line, ()) for line in range(mutation.first, mutation.last + 1)))
        return exact or set().union(*(lines.get(line, ()) for line in function_lines))

    def outdated(self, tests: Iterable[str], digests: dict[str, str]) -> list[str]:
        """Return the test modules to record: new, changed, or running a file of the product that has changed since."""
        changed_files = {
            id(recording): [f for f, digest in recording.digests.items() if digests.get(f) != digest] for recording in self.recordings
        }
        stale: set[str] = set()
        for recording in self.recordings:
            for file in changed_files[id(recording)]:
                if file.startswith(PACKAGES):
                    contexts = {context for found in recording.lines(file).values() for context in found}
                    stale |= {module for context in contexts if self.newest.get(module := module_of(context)) is recording}
        known = self.newest
        return sorted(test for test in tests if test not in known or test in stale or known[test].digests.get(test) != digests[test])


def module_of(context: str) -> str:
    """Return the test module of a test's id or a context."""
    return context.partition("::")[0]


def file_digests() -> dict[str, str]:
    """Return a hash of each module of the product and of each test module."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")] + list((ROOT / "tests").rglob("test_*.py"))
    return {path.relative_to(ROOT).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in paths}


def recordable(digests: Iterable[str]) -> list[str]:
    """Return the test modules whose tests run quickly and in this process."""
    return [path for path in digests if path.startswith("tests/") and not path.startswith(IGNORED)]


def record(folder: Path, modules: Sequence[str], digests: dict[str, str]) -> None:
    """Run test modules once and keep which lines each test runs."""
    number = 1 + max((int(path.stem.partition("-")[2]) for path in folder.glob("map-*")), default=0)
    database = folder / f"map-{number}.coverage"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.recorder", "-p", "no:cacheprovider", "-m", QUICK]
    command += ["--timeout", str(LONGEST_SECONDS), *modules]
    # Failed tests, as those above the timeout, stay out of the map: they cannot notice anything.
    subprocess.run(["nice", *command], cwd=ROOT, env={**os.environ, DATABASE: str(database)}, stdout=subprocess.DEVNULL, check=False)
    if not database.exists():
        raise RuntimeError(f"recording the tests' lines failed: run `{' '.join(command)}` with {DATABASE}={database} to see why")
    tests = [module_of(json.loads(line)["test"]) for line in database.with_suffix(".jsonl").read_text().splitlines()]
    kept = {path: digest for path, digest in digests.items() if path.startswith(PACKAGES) or path in set(tests) | set(modules)}
    database.with_suffix(".digests").write_text(json.dumps(kept))
