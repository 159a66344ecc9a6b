"""The house's walls: rooms, the floors of their sub-packages, and what every folder owes a reader.

A module imports only floors below its own, inside its room and in the rooms below; lazy and type-checking imports count.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.children import run_python

ROOT = Path(__file__).parent.parent
ROOMS = ("fileindex", "manifest", "lsm", "pyspark_paimon")
FLOORS = {
    "fileindex": ("base siblings", "variant", "expression", "keys rowset", "predicate .", "format", "build query", "verify"),
    "manifest": (
        "io .",
        "avro snapshot types",
        "options row",
        "schema stats storage",
        "entry rest",
        "hive jdbc store",
        "iceberg",
        "expire lost_snapshots",
        "commit fsck",
    ),
    "lsm": (
        "deletion_vectors keys levels .",
        "arrow bucket schema",
        "merge parquet python_values scan",
        "formats parquet/write",
        "avro orc",
        "data_file_format",
        "data_files read",
        "file_index incremental write_buffer",
        "aggregate compaction cross_partition fsck",
        "write",
        "commit",
    ),
    "pyspark_paimon": (
        "_version typing",
        "filter frames html scheduling",
        "request",
        "jobs views",
        "operations spark/wire tree",
        "spark/client",
        "local report",
        "system",
        "spark/driver stream",
        "spark/read table",
        "ui",
        "cli example pandas spark/write",
        "spark statements",
        ".",
        "__main__ demo",
    ),
}
"""From the ground up: folders, modules that stand beside them, and ``.`` for the face of the room itself."""

FLOOR_OF = {
    room if name == "." else f"{room}/{name}": (at, floor)
    for at, room in enumerate(ROOMS)
    for floor, names in enumerate(FLOORS[room])
    for name in names.split()
}
MODULES = {
    (".".join(path.parts[:-1]) if path.name == "__init__.py" else ".".join(path.with_suffix("").parts)): path
    for path in sorted(found.relative_to(ROOT) for room in ROOMS for found in (ROOT / room).rglob("*.py"))
}
FOLDERS = sorted({path.parent for path in MODULES.values()})
NAMES = sorted(MODULES)


def unit_of(path: Path) -> str:
    """The folder that a module is in; modules that stand beside the folders of a room are units of their own."""
    return path.parent.as_posix() if len(path.parts) > 2 or path.name == "__init__.py" else path.with_suffix("").as_posix()


def imported(name: str) -> set[str]:
    """The product's modules that a module names in an import, wherever it stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / MODULES[name]).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    packages = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    named = {target for target in found if target in MODULES and target != name}
    return {target for target in named if target not in packages or not any(other.startswith(f"{target}.") for other in named)}


EDGES = {name: imported(name) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_module_imports_only_floors_below_its_own(name: str) -> None:
    own = unit_of(MODULES[name])
    above = {target for target in EDGES[name] if (unit := unit_of(MODULES[target])) != own and FLOOR_OF[unit] >= FLOOR_OF[own]}
    assert not above


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = {name: set(targets) for name, targets in EDGES.items()}
    while True:
        free = {name for name, targets in left.items() if not targets & left.keys()}
        if not free:
            break
        left = {name: targets for name, targets in left.items() if name not in free}
    assert not left, "these modules wait for each other"


def test_the_floors_name_every_folder_once() -> None:
    named = [f"{room}/{name}" for room in ROOMS for floor in FLOORS[room] for name in floor.split()]
    assert not [name for name, times in Counter(named).items() if times > 1]
    assert set(FLOOR_OF) == {unit_of(path) for path in MODULES.values()}


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_folder_says_what_it_contains(folder: Path) -> None:
    inside = [path for path in MODULES.values() if path.parent == folder and path.name != "__init__.py"]
    text = (ROOT / folder / "__init__.py").read_text()
    doc = ast.get_docstring(ast.parse(text))
    assert doc
    if len(folder.parts) > 1:
        stems = {path.stem for path in inside}
        code = "\n".join((ROOT / path).read_text() for path in inside) + text
        public = re.findall(r"``(\w+)``", doc.rpartition("Public:")[2])
        assert public, "the paragraph ends with the folder's public names"
        missing = [name for name in public if name not in stems and not re.search(rf"(?m)^(class|def) {name}\b|^{name}\b", code)]
        assert not missing


@pytest.mark.parametrize("name", [name for name in NAMES if MODULES[name].name not in {"__init__.py", "__main__.py"}])
def test_a_module_lists_its_public_names_and_no_others(name: str) -> None:
    tree = ast.parse((ROOT / MODULES[name]).read_text())
    lists = [node for node in tree.body if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]]
    assert len(lists) == 1
    assert set(ast.literal_eval(lists[0].value)) <= defined(tree)


def defined(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.col_offset == 0:
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.col_offset == 0:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)}
    return found


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("pyspark_paimon")])
def test_only_the_front_room_knows_spark(name: str) -> None:
    tree = ast.parse((ROOT / MODULES[name]).read_text())
    found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    found |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [target for target in found if target.split(".")[0] == "pyspark"]


@pytest.mark.parametrize("room", ROOMS)
def test_importing_a_room_imports_no_spark(room: str) -> None:
    code = f"import sys, {room}; print([name for name in sys.modules if name == 'pyspark' or name.startswith('pyspark.')])"
    done = run_python(code)
    assert done.stdout.strip() == "[]"


def test_no_folder_with_tests_is_passed_over(pytestconfig: pytest.Config) -> None:
    """Examples and tests are looked for in every folder, whatever its name: by itself pytest leaves ``build`` and others out."""
    patterns = pytestconfig.getini("norecursedirs")
    folders = {path.parent.relative_to(ROOT) for top in (*ROOMS, "tests") for path in (ROOT / top).rglob("*.py")}
    seen = {folder for folder in folders if "__pycache__" not in folder.parts}
    assert not [folder for folder in seen for part in folder.parts if any(fnmatch(part, pattern) for pattern in patterns)]


@pytest.mark.parametrize("room", ROOMS)
def test_tests_mirror_the_tree(room: str) -> None:
    folders = {path.parent.relative_to(ROOT / "tests" / room).as_posix() for path in (ROOT / "tests" / room).rglob("test_*.py")}
    assert {folder for folder in folders - {"."} if room + "/" + folder not in FLOOR_OF} == set()


@pytest.mark.parametrize("form", ["{name}.py", "{name}/__init__.py"])
@pytest.mark.parametrize("name", ["fileindex", "manifest", "lsm"])
def test_what_shadows_us_is_named_with_the_way_out(tmp_path: Path, name: str, form: str) -> None:
    shadow = tmp_path / form.format(name=name)
    shadow.parent.mkdir(exist_ok=True)
    shadow.write_text("")
    (tmp_path / "script.py").write_text(f"import sys\nsys.path.insert(1, {str(ROOT)!r})\nimport pyspark_paimon\n")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError")
    assert str(shadow) in last
    assert "rename" in last


def test_test_modules_have_names_of_their_own() -> None:
    """pytest takes two modules of one name for one."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert not [name for name, times in names.items() if times > 1]
