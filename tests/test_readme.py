"""The README's first example does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_first_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    assert "/tmp/warehouse" in example
    names: dict[str, object] = {}
    exec(example.replace("/tmp/warehouse", str(tmp_path)), names)
    printed = capsys.readouterr().out
    assert names["s"].to_arrow().to_pydict() == {"id": [1], "amount": [9.5]}
    assert "bitmap" in printed


def test_it_names_two_commands_that_the_makefile_has() -> None:
    commands = re.findall(r"^make (\S+)", README.read_text(), re.MULTILINE)
    assert commands == ["demo", "test"]
    assert all(f"\n{command}: " in (README.parent / "Makefile").read_text() for command in commands)
