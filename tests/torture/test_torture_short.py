"""A little of the kills, the fault plan and the interleavings is part of every test run, with a seed that is fixed; ``make torture`` is the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torture.runner import ROOT

FEW = {"kills": 1, "faults": 1, "interleavings": 2}
MORE = {"kills": 12, "faults": 12, "interleavings": 40}


@pytest.mark.slow
@pytest.mark.parametrize(("part", "tries"), [*FEW.items(), *(pytest.param(*one, marks=pytest.mark.long) for one in MORE.items())])
def test_a_short_torture_finds_nothing_wrong(tmp_path: Path, part: str, tries: int) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.torture",
        "--worker",
        part,
        "--tries",
        str(tries),
        "--seed",
        "1",
        "--folder",
        str(tmp_path),
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(outcomes) == tries
    assert [outcome for outcome in outcomes if outcome["verdict"] not in {"right", "typed error"}] == []
