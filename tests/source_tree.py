"""The product's modules as text and syntax trees, for the tests of its structure."""

from __future__ import annotations

import ast
from functools import cache, lru_cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("sparkexpr", "paimon_base", "fileindex", "manifest", "lsm", "pyspark_paimon")
MODULES = sorted(path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py"))
"""Paths of the modules of our rooms, from the root of the repository."""
SHORT = [Path("pyspark_paimon_short/__init__.py")]
"""What is shipped besides."""


@cache
def source(path: Path) -> str:
    """Return a module's text."""
    return (ROOT / path).read_text()


def mentioning(*words: str) -> list[Path]:
    """Return the shipped modules whose text has one of the words. Parse only these: all trees take seconds."""
    return [path for path in [*MODULES, *SHORT] if any(word in source(path) for word in words)]


@lru_cache(maxsize=64)  # the trees of all modules are a million objects, which each collection of garbage would visit
def parsed(path: Path) -> ast.Module:
    """Return a module's syntax tree."""
    return ast.parse(source(path))
