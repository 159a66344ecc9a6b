"""Run the code blocks of the README and the docs, and compare what they print with what the pages show.

The blocks of a page run one after the other. ``python`` blocks share their names. ``bash`` blocks run their ``pyspark-paimon`` lines in this
process; of ``make`` and ``pip`` lines the targets and extras must exist. ``sql`` blocks go to the page's Spark session and print their rows.
An ``output`` block after a block shows what it prints; ``python -m tests.doc_blocks --write [PAGE ...]`` writes these blocks. Blocks of other
languages show configuration.

A comment ``<!-- setup`` holds Python that prepares the page. ``<!-- needs: MODULE -->`` before a block skips it if the module is not installed.
Paths of the pages are folders of a temporary directory.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib.util
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from pyspark_paimon.plugins.cli import main

if TYPE_CHECKING:
    from tests.catalogs.server import CatalogServer
    from tests.stores.hdfs_server import HdfsServer
    from tests.stores.s3_server import S3Server

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
CATALOG_PAGE, STORE_PAGE, HDFS_PAGE = "docs/catalogs.md", "docs/object-stores.md", "docs/hdfs.md"
_BLOCK = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)^-->$"
    r"|^(?:<!-- needs: (?P<needs>\w+) -->\n+)?```(?P<language>\w*)\n(?P<code>.*?)^```$(?P<shown>\n\n```output\n(?P<output>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
_FOLDERS = ("/warehouse", "/landing", "/checkpoints", "/reports")
PLACES = (*(f"/tmp{folder}" for folder in _FOLDERS), *_FOLDERS)
RUN = {"python", "bash", "sql"}
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
    setup: bool = False
    output: str = ""
    shown: str = ""
    end: int = 0

    @property
    def runs(self) -> bool:
        """Whether the block is run here."""
        return self.language in RUN and not (self.needs and importlib.util.find_spec(self.needs) is None)


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page in order, setups as ``python``."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["setup"] is not None:
            found.append(Block(page, line, "python", match["setup"], setup=True))
        else:
            shown = match["shown"] or ""
            end = match.end() - len(shown)
            found.append(Block(page, line, match["language"], match["code"], match["needs"], False, match["output"] or "", shown, end))
    return found


def wants_spark(page: str) -> bool:
    """Return whether a page needs Spark."""
    return any(
        block.language == "sql" or re.search(r"\bspark\b", block.code) for block in blocks_of(page) if block.language in {"python", "sql"}
    )


def run_page(page: str, folder: Path, names: dict[str, Any], replaced: Mapping[str, str] | None = None) -> list[tuple[Block, str]]:
    """Run a page's blocks, and return each with its output.

    Args:
        page: Path of the page.
        folder: Directory of the page's paths.
        names: Globals of the blocks.
        replaced: Texts of the page, such as the address of a server, and what stands for them in this run.
    """
    ran = []
    stands = {place: str(folder / place.strip("/").replace("/", "-")) for place in PLACES}
    with _terminal():
        for block in blocks_of(page):
            if not block.runs:
                continue
            code = block.code
            for text, other in (replaced or {}).items():
                code = code.replace(text, other)
            code = re.sub(rf"(?<![\w/.])({'|'.join(PLACES)})(?=[/\"'`$) \n]|$)", lambda place: stands[place[1]], code)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                _run_block(block, code, names)
            output = printed.getvalue()
            for text, other in [*stands.items(), *(replaced or {}).items()]:
                output = output.replace(other, text)
            output = "".join(f"{line.rstrip()}\n" for line in output.replace(f"{folder}/", "").splitlines())
            ran.append((block, output))
    return ran


def _run_block(block: Block, code: str, names: dict[str, Any]) -> None:
    if block.language == "python":
        exec(compile("\n" * block.line + code, block.page, "exec"), names)
    elif block.language == "sql":
        for statement in filter(str.strip, code.split(";")):
            answer = names["spark"].sql(statement)
            if answer.columns:
                answer.show(truncate=False)
    else:
        _run_shell(code)


@contextlib.contextmanager
def _terminal() -> Iterator[None]:
    """Set a terminal of 100 columns without colours."""
    before = dict(os.environ)
    os.environ.update(COLUMNS="100", NO_COLOR="1", TERM="dumb")
    try:
        yield
    finally:
        for name in ("COLUMNS", "NO_COLOR", "TERM"):
            os.environ.pop(name)
            if name in before:
                os.environ[name] = before[name]


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
        if not block.setup and masked(block.output) != masked(output)
    ]


def write_outputs(ran: list[tuple[Block, str]], *, everything: bool = False) -> int:
    """Write the outputs of a page's blocks into the page, and return how many were written.

    Outputs that differ only in masked parts are left alone, unless ``everything`` is set.
    """
    wrong = [(block, output) for block, output in ran if not block.setup and (everything or masked(block.output) != masked(output))]
    for block, output in sorted(wrong, key=lambda one: -one[0].end):
        path = ROOT / block.page
        text = path.read_text(encoding="utf-8")
        shown = f"\n\n```output\n{output.strip(chr(10))}\n```" if output.strip() else ""
        path.write_text(text[: block.end] + shown + text[block.end + len(block.shown) :], encoding="utf-8")
    return len(wrong)


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
                extras = re.findall(r"(?:pyspark-paimon|\.)\[([\w,]+)\]", line)
                known = (ROOT / "pyproject.toml").read_text()
                assert all(f"\n{extra} = [" in known for group in extras for extra in group.split(",")), line
            case "pyspark-paimon":
                _run_command(words[1:])
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


def catalog_texts(server: CatalogServer) -> dict[str, str]:
    """Return the texts of the page on catalogs that stand for a server's address and token."""
    options = server.options()
    return {
        "https://catalog.example.com": options["uri"],
        '"token": "..."': f'"token": "{options["token"]}"',
        '"warehouse": "main"': f'"warehouse": "{options["warehouse"]}"',
    }


def store_texts(server: S3Server) -> dict[str, str]:
    """Return the texts of the page on object stores that stand for a server's address and keys."""
    from tests.stores.s3_server import BUCKET

    options = server.options()
    return {
        "https://s3.example.com": f"http://127.0.0.1:{server.port}",
        '"s3.access-key": "..."': f'"s3.access-key": "{options["s3.access-key"]}"',
        '"s3.secret-key": "..."': f'"s3.secret-key": "{options["s3.secret-key"]}"',
        "s3://bucket/": f"s3://{BUCKET}/docs/",
    }


def hdfs_texts(server: HdfsServer) -> dict[str, str]:
    """Return the text of the page on HDFS that stands for a cluster's address."""
    return {"hdfs://namenode:8020": server.uri()}


def _write_pages(pages: list[str], *, spark: bool, everything: bool) -> None:
    with contextlib.ExitStack() as session:
        for page in pages:
            if spark or not wants_spark(page):
                sys.stderr.write(f"{page}: {write_outputs(_run_alone(page, session), everything=everything)} outputs written\n")


def _run_alone(page: str, session: contextlib.ExitStack) -> list[tuple[Block, str]]:
    names: dict[str, Any] = {"__name__": "page"}
    replaced: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if wants_spark(page):
            names["spark"] = shared = _spark(session)
            stack.enter_context(patch("pyspark_paimon.spark_session", lambda *_, **__: shared, create=True))
            stack.callback(lambda: [query.stop() for query in shared.streams.active])
        if page == CATALOG_PAGE:
            from tests.catalogs.server import CatalogServer

            names["server"] = stack.enter_context(CatalogServer(folder / "served"))
            replaced = catalog_texts(names["server"])
        elif page == STORE_PAGE:
            from tests.stores.s3_server import S3Server

            replaced = store_texts(stack.enter_context(S3Server()))
        elif page == HDFS_PAGE:
            from tests.stores.hdfs_server import HdfsServer

            replaced = hdfs_texts(stack.enter_context(HdfsServer()))
        stack.enter_context(contextlib.chdir(folder))
        return run_page(page, folder, names, replaced)


def _spark(session: contextlib.ExitStack) -> Any:
    from pyspark_paimon.spark.client.session import spark_session

    if not hasattr(_spark, "shared"):
        os.environ["SPARK_TESTING"] = "1"  # a free port
        with contextlib.chdir(session.enter_context(tempfile.TemporaryDirectory())):  # the server leaves a directory where it starts
            shared = spark_session(app_name="pyspark-paimon docs", master="local[2]", conf={"spark.sql.shuffle.partitions": "2"})
        session.callback(shared.stop)
        _spark.shared = shared  # type: ignore[attr-defined]
    return _spark.shared  # type: ignore[attr-defined]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="pages, such as docs/tutorial.md; all if none is given")
    parser.add_argument("--write", action="store_true", required=True, help="write the outputs that differ into the pages")
    parser.add_argument("--no-spark", action="store_true", help="leave out the pages that need Spark")
    parser.add_argument("--everything", action="store_true", help="write also outputs that differ only in times, sizes and the like")
    given = parser.parse_args()
    _write_pages(given.pages or PAGES, spark=not given.no_spark, everything=given.everything)


__all__ = [
    "CATALOG_PAGE",
    "HDFS_PAGE",
    "PAGES",
    "ROOT",
    "RUN",
    "SHOWN",
    "STORE_PAGE",
    "Block",
    "blocks_of",
    "catalog_texts",
    "hdfs_texts",
    "masked",
    "run_page",
    "store_texts",
    "wants_spark",
    "write_outputs",
    "wrong_outputs",
]
