"""Which test modules to run after a change: the nearest by imports, as many as fit into the time."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.check.import_graph import ImportGraph, module_name

FOLDERS = ("sparkexpr", "paimon_base", "fileindex", "manifest", "lsm", "pyspark_paimon", "pyspark_paimon_short", "tests", "benchmarks")
PACKAGES = FOLDERS[:-2]
ELSEWHERE = ("tests/spark/", "tests/interop/", "tests/torture/")
"""Folders whose tests are for other targets, or look at everything at once."""
STRUCTURE = ("tests/test_import_direction.py", "tests/test_one_place.py")
"""Tests that read the source of all modules."""
UNKNOWN_SECONDS = 4.0
"""Estimate of a test module that no run has measured yet."""


@dataclass(frozen=True)
class Selection:
    """Test modules to run, nearest first, and those that a change reaches but the time does not."""

    chosen: Sequence[str]
    left_out: Sequence[str]
    seconds: float


def changed_files(root: Path, base: str) -> list[str]:
    """Return files that differ from the merge base with ``base``, and untracked ones. Without the base: from the last commit."""

    def git(*arguments: str) -> list[str]:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.splitlines() if done.returncode == 0 else []

    start = git("merge-base", base, "HEAD")
    changed = git("diff", "--name-only", "--no-renames", start[0] if start else "HEAD")
    return sorted({*changed, *git("ls-files", "--others", "--exclude-standard")})


def distances_of_tests(root: Path, changed: Collection[str]) -> dict[str, int]:
    """Return the distance of each test module that a change of these files may break.

    A file that is no module counts as the modules beside it, and as the test modules that mention its name. A page counts as ``test_docs``.
    """
    graph = ImportGraph.read(root, FOLDERS)
    paths = {path.as_posix(): name for name, path in graph.paths.items()}
    tests = {path for path in paths if is_test_module(root, path)}
    others = [path for path in changed if not path.endswith(".py")]
    starts = {paths[path] for path in changed if path in paths}
    starts |= {name for name, path in graph.paths.items() if path.parent.as_posix() in {str(Path(other).parent) for other in others}}
    starts |= _importers_of_deleted(root, graph, [path for path in changed if path.endswith(".py") and path not in paths])
    found = {path: distance for name, distance in graph.distances(starts).items() if (path := graph.paths[name].as_posix()) in tests}
    if others:
        texts = {path: (root / path).read_text() for path in tests}
        found |= {path: min(found.get(path, 1), 1) for other in others for path in tests if Path(other).name in texts[path]}
    if any(path.endswith(".md") for path in others):
        found["tests/test_docs.py"] = 1
    if any(path.endswith(".py") for path in changed):
        found |= {path: min(found.get(path, 1), 1) for path in STRUCTURE if path in tests}
    return {path: distance for path, distance in found.items() if not path.startswith(ELSEWHERE)}


def is_test_module(root: Path, path: str) -> bool:
    """Return whether pytest finds tests in this module: a test module, or examples in a module of the product."""
    if path.startswith("tests/"):
        return Path(path).name.startswith("test_")
    return path.startswith(PACKAGES) and ">>> " in (root / path).read_text()


def _importers_of_deleted(root: Path, graph: ImportGraph, deleted: Iterable[str]) -> set[str]:
    """Return modules whose text still mentions a module that is gone."""
    names = [module_name(Path(path)) for path in deleted]
    return {name for name, path in graph.paths.items() if names and any(gone in (root / path).read_text() for gone in names)}


def select(distances: Mapping[str, int], seconds_of: Mapping[str, float], changed: Iterable[str], budget: float) -> Selection:
    """Choose the nearest test modules within ``budget`` seconds of test time; the nearest one always.

    Among equally near modules those that mirror a changed file's folder come first, then the quick ones.
    """
    folders = {f"tests/{Path(path).parent}" for path in changed} | {str(Path(path).parent) for path in changed}
    estimates = {path: seconds_of.get(path, UNKNOWN_SECONDS) for path in distances}
    ordered = sorted(distances, key=lambda path: (distances[path], str(Path(path).parent) not in folders, estimates[path], path))
    chosen: list[str] = []
    spent = 0.0
    for path in ordered:
        if not chosen or spent + estimates[path] <= budget:
            chosen.append(path)
            spent += estimates[path]
    return Selection(chosen, [path for path in ordered if path not in set(chosen)], spent)
