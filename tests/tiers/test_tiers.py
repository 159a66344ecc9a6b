"""The tiers of tests, on a small module of tests in a child process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers.plugin import FAST_CASES, FAST_EXAMPLES
from tests.tiers.rotation import ROOT, rotated

TESTS = """
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("number", range(10))
def test_many(number):
    print(f"case {number}")


@pytest.mark.slow
def test_slow():
    pass


@pytest.mark.slow("dear")
@pytest.mark.parametrize("word", ["cheap", "dear"])
def test_part(word):
    pass


def test_busy():
    started = time.process_time()
    while time.process_time() - started < 0.4:
        pass


IMPORTED = []


def test_busy_at_first():
    if not IMPORTED:
        IMPORTED.append(1)
        test_busy()


def test_java(tmp_path):
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\\n")
    java.chmod(0o755)
    subprocess.run([str(java)], check=True)


@given(st.integers())
def test_property(number):
    print("example", number)
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiers")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    long: of the night\n    interop: with the engine\n")
    (folder / "test_tiered.py").write_text(TESTS)
    return folder


def _run(module: Path, *arguments: str) -> str:
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-s",
        "-p",
        "tests.tiers.plugin",
        "-p",
        "no:xdist",
        "--rootdir",
        str(module),
        str(module),
    )
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    return subprocess.run([*command, *arguments], cwd=module, env=environment, capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="module")
def fast(module: Path) -> str:
    return _run(module, "--tier", "fast", "--rotation", "7", "--cpu-limit", "0.2")


def test_two_cases_of_a_function_run(fast: str) -> None:
    assert [number for number in range(10) if f"case {number}\n" in fast] == rotated(10, 7, FAST_CASES)


def test_a_selection_by_words_does_not_change_the_cases_of_a_rotation(module: Path) -> None:
    run = _run(module, "--tier", "fast", "--rotation", "7", "-k", "many and (2 or 4)")
    assert rotated(10, 7, FAST_CASES) == [2, 7]
    assert "case 2\n" in run
    assert "case 4\n" not in run


def test_slow_tests_and_slow_cases_wait(fast: str) -> None:
    assert "test_slow" not in fast
    assert "test_part[cheap] PASSED" in fast
    assert "test_part[dear]" not in fast


def test_a_dear_test_fails_by_name_and_figure(fast: str) -> None:
    assert re.search(r"test_tiered.py::test_busy uses \d+\.\d+ CPU seconds of 0.2: make it cheaper or mark it slow", fast)
    assert "test_busy_at_first uses" not in fast


def test_a_test_that_starts_a_jvm_fails(fast: str) -> None:
    assert "test_tiered.py::test_java starts a JVM" in fast


@pytest.fixture(scope="module")
def again_and_other(module: Path) -> list[str]:
    return [_run(module, "--tier", "fast", "--rotation", number, "-k", "property") for number in ("7", "8")]


def test_the_run_says_what_repeats_it(fast: str, again_and_other: list[str]) -> None:
    assert "the same tests and examples again: --tier fast --rotation 7" in fast
    examples = [[line for line in run.splitlines() if line.startswith("example")] for run in (fast, *again_and_other)]
    assert 0 < len(examples[0]) <= FAST_EXAMPLES
    assert examples[0] == examples[1] != examples[2]


def test_all_tests_run_before_a_release(module: Path) -> None:
    run = _run(module, "--tier", "all", "--cpu-limit", "10", "-k", "many or slow or part")
    assert "13 passed" in run


@pytest.mark.parametrize("number_of_cases", [1, 3, 4, 5, 17, 100])
def test_rotations_in_a_row_choose_each_case_once(number_of_cases: int) -> None:
    rotations = range(40, 40 + -(-number_of_cases // 4))
    chosen = [rotated(number_of_cases, rotation, 4) for rotation in rotations]
    assert sorted(case for cases in chosen for case in cases) == list(range(number_of_cases))
    assert all(len(cases) <= 4 for cases in chosen)
