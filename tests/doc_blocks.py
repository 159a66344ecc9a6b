"""The code blocks of the README and of the docs, and how each is run: page by page, the blocks of one page after the other.

``python`` blocks share their page's names. ``bash`` blocks run their ``pyspark-paimon`` lines in this process; of ``make`` and ``pip`` lines the
targets and extras must exist. ``sql`` blocks go to the page's Spark session. Blocks of other languages show output or configuration.
A comment ``<!-- setup`` holds Python that makes what the page takes for granted; ``<!-- needs: MODULE -->`` before a block leaves it out where
the module is not installed. Paths of the pages are places under a temporary directory.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyspark_paimon.cli import main

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)^-->$|^(?:<!-- needs: (?P<needs>\w+) -->\n+)?```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
PLACES = ("/tmp/warehouse", "/warehouse", "/landing", "/checkpoints", "/reports")
RUN = {"python", "bash", "sql"}
SHOWN = {"", "text", "toml", "yaml", "ini", "properties", "mermaid", "markdown"}


@dataclass(frozen=True)
class Block:
    """A block of a page; ``line`` is where it begins."""

    page: str
    line: int
    language: str
    code: str
    needs: str | None = None


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page in order, setups among them as ``python``."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["setup"] is not None:
            found.append(Block(page, line, "python", match["setup"]))
        else:
            found.append(Block(page, line, match["language"], match["code"], match["needs"]))
    return found


def wants_spark(page: str) -> bool:
    """Whether a page speaks to Spark."""
    return any(
        block.language == "sql" or re.search(r"\bspark\b", block.code) for block in blocks_of(page) if block.language in {"python", "sql"}
    )


def run_page(page: str, folder: Path, names: dict[str, Any], replaced: dict[str, str] | None = None) -> int:
    """Run a page's blocks with ``names``; returns how many ran. ``replaced`` are texts that stand for others, such as a server's address."""
    ran = 0
    for block in blocks_of(page):
        if block.language not in RUN or (block.needs and importlib.util.find_spec(block.needs) is None):
            continue
        code = block.code
        for text, other in (replaced or {}).items():
            code = code.replace(text, other)
        code = re.sub(
            rf"(?<![\w/.])({'|'.join(PLACES)})(?=[/\"' )$\n]|$)", lambda place: str(folder / place[1].strip("/").replace("/", "-")), code
        )
        if block.language == "python":
            exec(compile("\n" * block.line + code, block.page, "exec"), names)
        elif block.language == "sql":
            for statement in filter(str.strip, code.split(";")):
                names["spark"].sql(statement).collect()
        else:
            _run_shell(code)
        ran += 1
    return ran


def _run_shell(code: str) -> None:
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line.strip(), comments=True)
        while words and re.fullmatch(r"[\d*/,-]+|[A-Z_]+=\S*|\$", words[0]):
            words = words[1:]  # the fields of cron, variables, prompts
        if not words:
            continue
        match words[0]:
            case "make":
                assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(), line
            case "pip":
                extras = re.findall(r"pyspark-paimon\[([\w,]+)\]", line)
                known = (ROOT / "pyproject.toml").read_text()
                assert all(f"\n{extra} = [" in known for group in extras for extra in group.split(",")), line
            case "pyspark-paimon":
                _run_command(words[1:])
            case _:
                raise AssertionError(f"nobody knows how to run this line of a page: {line}")


def _run_command(arguments: list[str]) -> None:
    arguments = arguments[: arguments.index(">")] if ">" in arguments else arguments
    if arguments[0] in {"serve", "ui"}:  # serve until they are stopped
        arguments = [arguments[0], "--help"]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code in (0, None), f"pyspark-paimon {' '.join(arguments)}: {ended.value.code}"


__all__ = ["PAGES", "ROOT", "RUN", "SHOWN", "Block", "blocks_of", "run_page", "wants_spark"]
