"""The scripts of ``examples`` run and print what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PRINTED = {
    "change_events.py": "{'item': 'bolt', 'price': 12, '_row_kind': '+U'}",
    "indexed_filters.py": "key candidates                       1  100,000",
    "partial_update.py": "[{'id': 1, 'amount': 9.5, 'address': 'Oslo'}, {'id': 2, 'amount': 20.0, 'address': None}]",
    "quickstart.py": "[{'id': 2, 'name': 'Grace', 'city': 'Arlington'}]",
    "time_travel.py": "[{'item': 'bolt', 'count': 10}, {'item': 'nut', 'count': 20}]",
}


def test_each_example_is_tested() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == PRINTED.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PRINTED))
def test_example_prints_its_answer(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    assert PRINTED[name] in done.stdout
