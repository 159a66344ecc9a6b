"""Run the code blocks of the README and the docs as a reader would, and compare what they print with what the pages show.

The blocks of a page run one after the other, in an empty folder, with nothing but the page's text. ``python`` blocks share their names. ``bash``
blocks run their ``pyspark-paimon`` lines in this process; of ``make`` and ``pip`` lines the targets and extras must exist. An ``output`` block after a block shows what it prints, paths from the folder on;
``python -m tests.doc_blocks --write [PAGE ...]`` writes these blocks. Blocks of other languages show configuration.

``<!-- needs: MODULE -->`` before a block skips it if the module is not installed. A page that needs a server names ``python -m tests.stores KIND``,
and reads that command's environment variables; the tests set the same ones. ``spark_session()`` returns the session of the tests.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib.util
import io
import logging
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyspark_paimon.plugins.cli import main

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(
    r"^(?:<!-- needs: (?P<needs>\w+) -->\n+)?```(?P<language>\w*)\n(?P<code>.*?)^```$(?P<shown>\n\n```output\n(?P<output>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
_SERVER = re.compile(r"python -m tests\.stores (\w+)")
_SHELL = {"mkdir", "printf"}
RUN = {"python", "bash"}
SHOWN = {"", "text", "toml", "yaml", "ini", "properties", "mermaid", "markdown"}
_STAGES = "snapshot|manifest list|manifest ranges|partition|bucket|level|key range|value stats|embedded index|secondary index|splits|file index|index |row groups|key candidates|rows"
MASKS = (
    ("<uuid>", r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ("<time>", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d| UTC)?"),
    ("<time>", r"\b1[789]\d{11}\b"),
    ("<duration>", r"\b[\d.,]+ ?(ms|s|seconds)\b|(?<=seconds=)[\d.]+|(?<=millis=)\{[^}]*\}|(?<=│ )\d\.\d\d(?= +│)"),
    ("<size>", r"\b[\d.,]+ of [\d.,]+ bytes|\b[\d.,]+ ?(B|KB|MB|KiB|MiB|bytes)\b|(?<=bytes_read=)\d+|(?<=bytes_written=)\d+"),
    (r"\1<duration>", rf"(?m)^((?:{_STAGES}).*?) \d+\.\d(?= |$)"),  # the column "ms" of explain()
    ("<port>", r"(?<=127\.0\.0\.1:)\d+"),
    ("-", r"[-─━═]{2,}"),
    (" ", r" {2,}"),
)
"""What differs between runs, and the text that replaces it before outputs are compared."""


@dataclass(frozen=True)
class Block:
    """A block of a page. ``line`` is where it begins, ``end`` the position after its code, ``shown`` the text of its output block."""

    page: str
    line: int
    language: str
    code: str
    needs: str | None = None
    output: str = ""
    shown: str = ""
    end: int = 0

    @property
    def runs(self) -> bool:
        """Whether the block is run here."""
        return self.language in RUN and not (self.needs and importlib.util.find_spec(self.needs) is None)


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        shown = match["shown"] or ""
        blocks.append(
            Block(page, line, match["language"], match["code"], match["needs"], match["output"] or "", shown, match.end() - len(shown))
        )
    return blocks


def server_of(page: str) -> str | None:
    """Return the server of ``tests.stores`` that a page names first. None: it needs no server."""
    kind = _SERVER.search((ROOT / page).read_text(encoding="utf-8"))
    return kind[1] if kind else None


def wants_spark(page: str) -> bool:
    """Return whether a page needs Spark."""
    return any(re.search(r"\bspark\b", block.code) for block in blocks_of(page) if block.language == "python")


def run_page(page: str, folder: Path, names: dict[str, Any] | None = None) -> list[tuple[Block, str]]:
    """Run a page's blocks in ``folder``, which is the working directory, and return each with its output.

    ``names``: receives the globals of the blocks.
    """
    names = {} if names is None else names
    names["__name__"] = "page"
    ran = []
    with _terminal():
        for block in blocks_of(page):
            if not block.runs:
                continue
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                _run_block(block, names)
            output = printed.getvalue().replace(f"{folder}/", "")
            ran.append((block, "".join(f"{line.rstrip()}\n" for line in output.splitlines())))
    return ran


def _run_block(block: Block, names: dict[str, Any]) -> None:
    if block.language == "python":
        exec(compile("\n" * block.line + block.code, block.page, "exec"), names)
    else:
        _run_shell(block.code)


@contextlib.contextmanager
def _terminal() -> Iterator[None]:
    """Set a terminal of 100 columns without colours. Restores the environment and the package's logger."""
    environment, log = dict(os.environ), logging.getLogger("pyspark_paimon")
    handlers, level = list(log.handlers), log.level
    os.environ.update(COLUMNS="100", NO_COLOR="1", TERM="dumb")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
        log.handlers[:] = handlers
        log.setLevel(level)


def masked(output: str) -> list[str]:
    """Return the lines of an output without what differs between runs.

    >>> masked("wrote 3 rows in 0.12 s,   1.5 KB\\n") == masked("wrote 3 rows in 3 s, 17 bytes\\n")
    True
    """
    for text, pattern in MASKS:
        output = re.sub(pattern, text, output)
    return [line.strip() for line in output.strip().splitlines()]


def wrong_outputs(ran: list[tuple[Block, str]]) -> list[str]:
    """Return a difference for each block whose page does not show what it prints."""
    return [
        "\n".join(
            [
                f"{block.page}:{block.line}",
                *difflib.unified_diff(masked(block.output), masked(output), "shown", "printed", lineterm="", n=1),
            ]
        )
        for block, output in ran
        if masked(block.output) != masked(output)
    ]


def write_outputs(ran: list[tuple[Block, str]], *, everything: bool = False) -> int:
    """Write the outputs of a page's blocks into the page, and return how many were written.

    Outputs that differ only in masked parts are left alone, unless ``everything`` is set.
    """
    wrong = [(block, output) for block, output in ran if everything or masked(block.output) != masked(output)]
    for block, output in sorted(wrong, key=lambda one: -one[0].end):
        path = ROOT / block.page
        text = path.read_text(encoding="utf-8")
        shown = f"\n\n```output\n{output.strip(chr(10))}\n```" if output.strip() else ""
        path.write_text(text[: block.end] + shown + text[block.end + len(block.shown) :], encoding="utf-8")
    return len(wrong)


def _run_shell(code: str) -> None:
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line.strip(), comments=True)
        if not words:
            continue
        match words[0]:
            case "make":
                assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(), line
            case "pip":
                extras = re.findall(r"(?:pyspark-paimon|\.)\[([\w,]+)\]", line)
                known = (ROOT / "pyproject.toml").read_text()
                assert all(f"\n{extra} = [" in known for group in extras for extra in group.split(",")), line
            case "pyspark-paimon":
                _run_command(words[1:])
            case "export":
                os.environ.update(word.split("=", 1) for word in words[1:])
            case command if command in _SHELL:
                subprocess.run(line, shell=True, check=True)
            case _:
                raise AssertionError(f"a page has a line that cannot be run here: {line}")


def _run_command(arguments: list[str]) -> None:
    hidden = ">" in arguments or not {"serve", "ui"}.isdisjoint(arguments[:1])
    arguments = arguments[: arguments.index(">")] if ">" in arguments else arguments
    if arguments[0] in {"serve", "ui"}:  # they run until they are stopped
        arguments = [arguments[0], "--help"]
    with contextlib.redirect_stdout(io.StringIO()) if hidden else contextlib.nullcontext(), pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code in (0, None), f"pyspark-paimon {' '.join(arguments)}: {ended.value.code}"


@contextlib.contextmanager
def served(page: str) -> Iterator[None]:
    """Run the server that a page names, and set its environment variables. Skips the test where the server cannot run."""
    kind = server_of(page)
    if kind is None:
        yield
        return
    from tests.stores.__main__ import SERVERS, UNAVAILABLE

    before = dict(os.environ)
    with contextlib.ExitStack() as stack:
        try:
            os.environ.update(stack.enter_context(SERVERS[kind]()).environment())
        except UNAVAILABLE as missing:
            pytest.skip(str(missing))
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _write_pages(pages: list[str], *, spark: bool, everything: bool) -> None:
    with contextlib.ExitStack() as session:
        for page in pages:
            if spark or not wants_spark(page):
                sys.stderr.write(f"{page}: {write_outputs(_run_alone(page, session), everything=everything)} outputs written\n")


def _run_alone(page: str, session: contextlib.ExitStack) -> list[tuple[Block, str]]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if wants_spark(page):
            _spark(session)
        stack.enter_context(served(page))
        stack.enter_context(contextlib.chdir(folder))
        return run_page(page, folder)


def _spark(session: contextlib.ExitStack) -> None:
    """Start a session of the process, which ``spark_session()`` in the pages returns."""
    from pyspark_paimon import spark_session

    if "SPARK_TESTING" not in os.environ:
        os.environ["SPARK_TESTING"] = "1"  # a free port
        with contextlib.chdir(session.enter_context(tempfile.TemporaryDirectory())):  # the server leaves a directory where it starts
            shared = spark_session(app_name="pyspark-paimon docs", master="local[2]", conf={"spark.sql.shuffle.partitions": "2"})
        session.callback(shared.stop)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="pages, such as docs/tutorial.md; all if none is given")
    parser.add_argument("--write", action="store_true", required=True, help="write the outputs that differ into the pages")
    parser.add_argument("--no-spark", action="store_true", help="leave out the pages that need Spark")
    parser.add_argument("--everything", action="store_true", help="write also outputs that differ only in times, sizes and the like")
    given = parser.parse_args()
    _write_pages(given.pages or PAGES, spark=not given.no_spark, everything=given.everything)


__all__ = [
    "PAGES",
    "ROOT",
    "RUN",
    "SHOWN",
    "Block",
    "blocks_of",
    "masked",
    "run_page",
    "served",
    "server_of",
    "wants_spark",
    "write_outputs",
    "wrong_outputs",
]
