"""A room imports only rooms below it: fileindex, then manifest, then lsm, then pyspark_paimon."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = {"fileindex": 0, "manifest": 1, "lsm": 2, "pyspark_paimon": 3}
MODULES = sorted(path for room in FLOORS for path in (ROOT / room).rglob("*.py"))


def imported_packages(source: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_no_room_above_its_own(path: Path) -> None:
    own = FLOORS[path.relative_to(ROOT).parts[0]]
    above = {name for name in imported_packages(path.read_text()) if FLOORS.get(name, -1) > own}
    assert not above


@pytest.mark.parametrize(
    "path", [p for p in MODULES if p.relative_to(ROOT).parts[0] != "pyspark_paimon"], ids=lambda p: str(p.relative_to(ROOT))
)
def test_only_the_front_room_knows_spark(path: Path) -> None:
    assert "pyspark" not in imported_packages(path.read_text())


@pytest.mark.parametrize("room", FLOORS)
def test_importing_a_room_imports_no_spark(room: str) -> None:
    code = f"import sys, {room}; print([name for name in sys.modules if name == 'pyspark' or name.startswith('pyspark.')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_shadowed_sibling_is_named(tmp_path: Path) -> None:
    (tmp_path / "manifest").mkdir()
    (tmp_path / "manifest" / "__init__.py").write_text("")
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import fileindex"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "'manifest'" in done.stderr
    assert "shadows" in done.stderr
