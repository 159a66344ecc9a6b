"""Check the language of docstrings, comments, error texts, names and docs.

Prints file and line of each place, and a table of figures. Exits with 1 if a package exceeds a limit of ``LIMITS``.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import statistics
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("sparkexpr", "paimon_base", "fileindex", "manifest", "lsm", "pyspark_paimon")
DOCS = ("README.md", "DESIGN.md", "CONTRIBUTING.md", "docs")
LIMITS = {"idioms": 2.5, "median": 10, "long": 6, "errors": 3, "names": 0, "vague": 5}
"""Idioms per 1,000 words; median words of summaries; percent of summaries over 20 words and of errors with an idiom; names of functions;
vague names per 1,000 arguments and assigned variables."""
DOCS_LIMIT = 2.5
"""Idioms per 1,000 words of docs."""
LONG = 20
_WORDS = (
    "told tell tells telling whoever anew nobody somebody lest thereby sooner settle settles "
    "those|of of|which in|the|place|of so|many is|none are|none at|hand beside by|itself of|its|own of|ours if|any gives|out "
    "hears said looks|at looked|at stands|for goes|with as|far|as comes|to"
)
_IDIOM = re.compile(rf"\b({'|'.join(word.replace('|', ' ') for word in _WORDS.split())})\b", re.IGNORECASE)
_NAME = re.compile(r"(^|_)(told|said|begun|asked|taken|hears|stands|settles?)(_|$)")
_VAGUE_WORDS = (
    "found wanted known given kept made done chosen held at one some others whole place most here own both inside told taken asked "
    "seen such sort_of forms few many thing things stuff that this_one"
)
_VAGUE_NAMES = frozenset(_VAGUE_WORDS.split())
"""Names that say how a value came about, not what it is."""
_NOT_PROSE = re.compile(r"#\s*(noqa|type:|mypy:)")


@dataclass
class Prose:
    """Figures of one package, and the places that count against it."""

    words: int = 0
    idioms: int = 0
    summaries: list[int] = field(default_factory=list)
    errors: int = 0
    bad_errors: int = 0
    names: int = 0
    bindings: int = 0
    vague: int = 0
    places: list[str] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        """Return the figures that ``LIMITS`` names.

        >>> Prose(words=2000, idioms=1, summaries=[4, 8, 30], errors=1, bindings=200, vague=3).figures()
        {'idioms': 0.5, 'median': 8, 'long': 33, 'errors': 0, 'names': 0, 'vague': 15.0}
        """
        return {
            "idioms": round(1000 * self.idioms / max(self.words, 1), 1),
            "median": statistics.median(self.summaries or [0]),
            "long": round(100 * sum(words > LONG for words in self.summaries) / max(len(self.summaries), 1)),
            "errors": round(100 * self.bad_errors / max(self.errors, 1)),
            "names": self.names,
            "vague": round(1000 * self.vague / max(self.bindings, 1), 1),
        }

    def add_text(self, text: str, place: str) -> None:
        """Count the words and idioms of a docstring or comment."""
        self.words += len(text.split())
        for idiom in _IDIOM.finditer(text):
            self.idioms += 1
            self.places.append(f"{place}: '{idiom[0]}'")

    def add_names(self, tree: ast.AST, path: Path) -> None:
        r"""Count the arguments and assigned variables of a module, and the vague ones.

        >>> prose = Prose()
        >>> prose.add_names(ast.parse("def f(at, rows):\n    self.found = _known = rows[at]"), Path("m.py"))
        >>> prose.bindings, prose.places
        (3, ["m.py:1: vague name 'at'", "m.py:2: vague name '_known'"])
        """
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                name = node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            else:
                continue
            self.bindings += 1
            if name.strip("_") in _VAGUE_NAMES:
                self.vague += 1
                self.places.append(f"{path}:{node.lineno}: vague name '{name}'")

    def add_file(self, path: Path) -> None:
        """Count a module."""
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        tree = ast.parse(text)
        self.add_names(tree, name)
        for node in ast.walk(tree):
            place = f"{name}:{getattr(node, 'lineno', 1)}"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _NAME.search(node.name):
                self.names += 1
                self.places.append(f"{place}: name '{node.name}'")
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) and (doc := ast.get_docstring(node)):
                prose = doc.partition(">>>")[0]
                self.add_text(prose, place)
                self.summaries.append(len(prose.strip().partition("\n\n")[0].split()))
                if self.summaries[-1] > LONG:
                    self.places.append(f"{place}: summary of {self.summaries[-1]} words")
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                self._add_error(node.exc, place)
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and not _NOT_PROSE.match(token.string):
                self.add_text(token.string, f"{name}:{token.start[0]}")

    def _add_error(self, call: ast.Call, place: str) -> None:
        for part in ast.walk(call):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and len(part.value.split()) > 3:
                self.errors += 1
                if idiom := _IDIOM.search(part.value):
                    self.bad_errors += 1
                    self.places.append(f"{place}: error text with '{idiom[0]}'")


def modules(package: str) -> Iterator[Path]:
    """Yield the modules of a package."""
    yield from sorted((ROOT / package).rglob("*.py"))


def docs() -> Prose:
    """Return the figures of the documentation."""
    prose = Prose()
    for root in DOCS:
        path = ROOT / root
        for page in [path] if path.is_file() else sorted(path.rglob("*.md")):
            for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
                prose.add_text(line, f"{page.relative_to(ROOT)}:{number}")
    return prose


def main() -> int:
    """Print the figures and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", action="store_true", help="print all places, not only those of packages over a limit")
    arguments = parser.parse_args()
    failed = False
    for package in PACKAGES:
        prose = Prose()
        for path in modules(package):
            prose.add_file(path)
        figures = prose.figures()
        over = [name for name, limit in LIMITS.items() if figures[name] > limit]
        failed |= bool(over)
        if arguments.places or over:
            print(*prose.places, sep="\n")
            print(f"{package}: {', '.join(f'{name} {value:g}' for name, value in figures.items())}; over the limit: {over or 'nothing'}")
    pages = docs()
    rate = pages.figures()["idioms"]
    if arguments.places or rate > DOCS_LIMIT:
        print(*pages.places, sep="\n")
        print(f"docs: idioms {rate:g} of at most {DOCS_LIMIT:g}")
    return int(failed or rate > DOCS_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
