"""Every code block of the README and the docs runs, links lead somewhere, and the README stays a page."""

from __future__ import annotations

import importlib
import os
import re
import runpy
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

from tests.doc_blocks import PAGES, ROOT, RUN, SHOWN, Block, blocks_of, run_page, served, server_of, wants_spark, wrong_outputs

MOST_LINES = 150
JAVA_SERVED = [page for page in PAGES if server_of(page) not in {None, "rest"}]
"""Pages whose server needs Java."""


@pytest.mark.slow("docs/tutorial.md")
@pytest.mark.parametrize("page", [page for page in PAGES if page not in JAVA_SERVED and not wants_spark(page)])
def test_blocks_print_what_the_page_shows(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with served(page):
        assert not wrong_outputs(run_page(page, tmp_path)), f"run python -m tests.doc_blocks --write {page}"


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in JAVA_SERVED if not wants_spark(page)])
def test_blocks_print_what_the_page_shows_beside_a_server(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with served(page):
        assert not wrong_outputs(run_page(page, tmp_path)), f"run python -m tests.doc_blocks --write {page}"


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_offline_installation_works(tmp_path: Path) -> None:
    prepare, install = (block.code for block in blocks_of("docs/install.md") if "wheelhouse" in block.code and block.runs)
    tree = tmp_path / "checkout"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "build", "tests"))
    venv.create(tmp_path / "env", with_pip=True)
    path = f"{tmp_path / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    online = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": path}
    offline = {name: value for name, value in online.items() if not name.startswith("PIP_")}
    subprocess.run(["bash", "-ec", prepare], cwd=tree, env=online, check=True)
    shutil.move(tree / "wheelhouse", tmp_path)
    subprocess.run(["bash", "-ec", f"{install}\npyspark-paimon --help"], cwd=tmp_path, env=offline, check=True)


def test_the_readmes_example_prints_what_it_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    ran = run_page("README.md", tmp_path, names)
    assert names["s"].to_arrow().to_pydict() == {"id": [1], "amount": [9.5]}
    assert any("bitmap" in output for _, output in ran)


_COMMENT = re.compile(r"<!-- (needs: \w+|/?\w+|\w+:(begin|end)) -->")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_hides_nothing_that_its_blocks_need(page: str) -> None:
    text = (ROOT / page).read_text()
    assert text.count("<!--") == len(_COMMENT.findall(text)), "show the block: readers do not see comments"
    absolute = re.compile(r"""(?<![\w:/.}])/(tmp|warehouse|home|srv)\b""")
    assert not [block.line for block in blocks_of(page) if block.runs and absolute.search(block.code)], "write into the reader's folder"


def test_outputs_are_compared_but_for_what_differs_between_runs() -> None:
    block = Block("page.md", 1, "python", "print(...)", output="3 rows in 0.1 s\n")
    assert not wrong_outputs([(block, "3 rows  in 27 ms\n")])
    assert "-3 rows in <duration>" in wrong_outputs([(block, "4 rows in 0.1 s\n")])[0]
    assert wrong_outputs([(Block("page.md", 1, "python", "print(1)"), "1\n")])


def test_every_block_is_run_or_shows_something() -> None:
    assert {block.language for page in PAGES for block in blocks_of(page)} <= RUN | SHOWN
    for page in PAGES:
        text = (ROOT / page).read_text()
        found = [block for block in blocks_of(page) if block.language]
        outputs = sum(bool(block.shown) for block in found)
        assert len(re.findall(r"^```\w+$", text, re.MULTILINE)) == len(found) + outputs, page
        assert not [block.line for block in found if block.shown and block.language not in RUN], page


def test_the_readme_is_short_and_names_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < MOST_LINES
    assert re.findall(r"^make (\S+)", text, re.MULTILINE) == ["demo", "test"]


def test_the_readmes_pictures_and_links_hold_where_packages_are_shown() -> None:
    text = (ROOT / "README.md").read_text()
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert pictures
    assert all((ROOT / target).is_file() for target in pictures)


@pytest.mark.parametrize("page", [*PAGES, "DESIGN.md", "CONTRIBUTING.md"])
def test_links_lead_to_files(page: str) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_the_site_names_every_page_once() -> None:
    named = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text())
    assert sorted(f"docs/{name}" for name in named if (ROOT / "docs" / name).exists()) == [page for page in PAGES if page != "README.md"]


_PATH = re.compile(r"`((?:fileindex|manifest|lsm|pyspark_paimon|tests|benchmarks|scripts|examples|docs)/[\w./*-]+)`")


@pytest.mark.parametrize("page", [*PAGES, "DESIGN.md", "CONTRIBUTING.md"])
def test_named_paths_exist(page: str) -> None:
    missing = [path for path in _PATH.findall((ROOT / page).read_text()) if not any(ROOT.glob(path.rstrip("/")))]
    assert not missing


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/reference/")])
def test_names_of_the_reference_exist(page: str) -> None:
    for name in re.findall(r"^::: ([\w.]+)$", (ROOT / page).read_text(), re.MULTILINE):
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute) or importlib.import_module(name), name


def test_pictures_are_those_of_the_script() -> None:
    pictures = runpy.run_path(str(ROOT / "scripts/docs_pictures.py"))["PICTURES"]
    folder = ROOT / "docs/pictures"
    assert {path.stem for path in folder.glob("*.svg")} == set(pictures)
    for name, draw in pictures.items():
        assert (folder / f"{name}.svg").read_text() == draw().svg(), "run python scripts/docs_pictures.py"


_NOT_PROSE = re.compile(r"```.*?^```$|<!-- benchmark:begin -->.*?<!-- benchmark:end -->", re.DOTALL | re.MULTILINE)
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*[*-] )|\n(?=\d+\. )")
MOST_WORDS = 25


@pytest.mark.parametrize("page", PAGES)
def test_sentences_are_short(page: str) -> None:
    text = _NOT_PROSE.sub("", (ROOT / page).read_text())
    paragraphs = [" ".join(part.split()) for part in _PARAGRAPH.split(text) if not part.strip().startswith(("|", "#", ":::", "<!--"))]
    sentences = [sentence for part in paragraphs for sentence in re.split(r"(?<=[.!?])[\"')*]*\s+", re.sub(r"\]\([^)]*\)", "]", part))]
    assert not [sentence for sentence in sentences if len(sentence.split()) > MOST_WORDS]
