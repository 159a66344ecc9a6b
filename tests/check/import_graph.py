"""Which module imports which, read from the source without running it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


def module_name(path: Path) -> str:
    """Return the dotted name of a module at a path relative to the root."""
    return ".".join(path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts)


@dataclass(frozen=True)
class ImportGraph:
    """The modules of a source tree and the imports between them.

    Attributes:
        paths: The file of each module, relative to the root.
        imports: The modules that each module imports, anywhere in its text.
    """

    paths: Mapping[str, Path]
    imports: Mapping[str, frozenset[str]]

    @classmethod
    def read(cls, root: Path, folders: Iterable[str]) -> ImportGraph:
        """Read all modules below ``folders`` of ``root``."""
        found = sorted(path.relative_to(root) for folder in folders for path in (root / folder).rglob("*.py"))
        paths = {module_name(path): path for path in found}
        trees = {name: ast.parse((root / path).read_text()) for name, path in paths.items()}
        homes = {name: _homes(trees[name]) for name, path in paths.items() if path.name == "__init__.py"}
        imports = {name: _imported(tree, paths, homes) - {name} for name, tree in trees.items()}
        for name, path in paths.items():
            if path.name.startswith("test_") or path.name == "conftest.py":
                imports[name] |= _conftests(path, paths) - {name}
        # Importers of a package's names lead to the homes of those names: the package itself leads nowhere.
        return cls(paths, {name: frozenset() if name in homes else frozenset(targets) for name, targets in imports.items()})

    def distances(self, changed: Iterable[str]) -> dict[str, int]:
        """Return for each module that reaches a changed one the number of imports between them; 0 for the changed ones."""
        importers: defaultdict[str, list[str]] = defaultdict(list)
        for name, targets in self.imports.items():
            for target in targets:
                importers[target].append(name)
        distances = {name: 0 for name in changed if name in self.paths}
        wave = list(distances)
        while wave:
            reached = {importer: distances[name] + 1 for name in wave for importer in importers[name] if importer not in distances}
            distances |= reached
            wave = list(reached)
        return distances


def _homes(tree: ast.Module) -> dict[str, str]:
    """Return the module that each name of a package comes from."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: str(node.module) for node in imports for alias in node.names}


def _imported(tree: ast.Module, paths: Mapping[str, Path], homes: Mapping[str, Mapping[str, str]]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found |= {alias.name, *homes.get(alias.name, {}).values()}
        elif isinstance(node, ast.ImportFrom):
            package = str(node.module)
            found.add(package)
            for alias in node.names:
                found |= {f"{package}.{alias.name}", homes.get(package, {}).get(alias.name, "")}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # modules that are imported late, by name
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            start = str(node.values[0].value)
            if start.endswith(".") and start[:-1] in homes:  # one of a package's modules, chosen when the code runs
                found |= {name for name in paths if name.startswith(start)}
    parents = {".".join(name.split(".")[:length]) for name in found & paths.keys() for length in range(1, name.count(".") + 1)}
    return (found | parents) & paths.keys()


def _conftests(path: Path, paths: Mapping[str, Path]) -> set[str]:
    return {name for folder in path.parents if (name := module_name(folder / "conftest.py")) in paths}
