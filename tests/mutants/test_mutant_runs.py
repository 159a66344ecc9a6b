"""Mutants run in processes of their own, and the tree stays as it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import run_python
from tests.mutants.coverage_map import CoverageMap
from tests.mutants.recorder import DATABASE, ROOT

TEST = "tests/lsm/keys/test_order_by.py::test_a_row_outside_the_bound_is_not_among_the_first"
MODULE = "lsm/keys/order_by.py"
PROGRAM = """
import json, sys, threading
from pathlib import Path
from tests.mutants import child
from tests.mutants.coverage_map import CoverageMap, Recording
from tests.mutants.operators import Mutation
from tests.mutants.runner import Runner

class Lines(Recording):
    def lines(self, file):
        return {line: [TEST] for line in range(1, 200)} if file == MODULE else {}

TEST, MODULE, folder = sys.argv[1:]
child.preload()
assert threading.active_count() == 1
source = Path(MODULE).read_text()

def change(before, after):
    start = len(source[:source.index(before)].encode())
    return Mutation(MODULE, "TopRows._cut", "test", 117, 117, start, before, after, after)

tests = CoverageMap([Lines(Path(), {TEST.partition("::")[0]: "1"}, {TEST: 0.2})])
changes = [
    change("if self._is_cut:", "if self._is_cut and True:"),
    change("if self._is_cut:", "if not self._is_cut:"),
    change("self._count = first.num_rows", "while True: pass"),
    change("self._is_cut = True", "self._is_cut = True; import os; os.abort()"),
    change("descending=not column.ascending", "descending=column.ascending"),  # an example in a docstring says how it is
]
for result in Runner(tests, Path(folder), workers=2, budget=30, test_seconds=2).run(changes):
    print(json.dumps({"after": result.mutation.after, "status": result.status, "test": result.test}))
other = Mutation("lsm/keys/__init__.py", "", "test", 1, 1, 0, "", "", "none")
print(json.dumps({"after": "none", "status": next(Runner(tests, Path(folder), workers=1, budget=30).run([other])).status, "test": ""}))
"""


@pytest.mark.slow
def test_survivors_failures_loops_and_crashes_are_known_apart(tmp_path: Path) -> None:
    before = (ROOT / MODULE).read_bytes()
    done = run_python(PROGRAM, TEST, MODULE, str(tmp_path))
    found = {line["after"]: (line["status"], line["test"]) for line in map(json.loads, done.stdout.splitlines())}
    assert found == {
        "if self._is_cut and True:": ("survived", ""),
        "if not self._is_cut:": ("killed", TEST),
        "while True: pass": ("timeout", TEST),
        "self._is_cut = True; import os; os.abort()": ("killed", TEST),
        "descending=column.ascending": ("killed", f"{MODULE}::lsm.keys.order_by.RowOrder"),
        "none": ("not covered", ""),
    }
    assert (ROOT / MODULE).read_bytes() == before
    assert not list(tmp_path.iterdir()), "an ended mutant leaves nothing"


@pytest.mark.slow
def test_a_recording_knows_the_lines_of_each_test(tmp_path: Path) -> None:
    database = tmp_path / "map-1.coverage"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.recorder", "-p", "no:cacheprovider", TEST]
    subprocess.run(command, cwd=ROOT, env={"PATH": "/usr/bin:/bin", DATABASE: str(database)}, capture_output=True, check=True)
    database.with_suffix(".digests").write_text(json.dumps({TEST.partition("::")[0]: "1"}))
    lines = CoverageMap.load(tmp_path).tests_by_line(MODULE)
    source = (ROOT / MODULE).read_text().splitlines()
    assert {TEST} == lines[1 + next(at for at, line in enumerate(source) if "self._is_cut = True" in line)]
