"""Every code block of the README and the docs runs, links lead somewhere, and the README stays a page."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.catalogs.server import CatalogServer
from tests.doc_blocks import PAGES, ROOT, RUN, SHOWN, blocks_of, run_page, wants_spark

MOST_LINES = 150
SERVED = {"docs/catalogs.md", "docs/object-stores.md"}
"""Pages whose blocks need a server of their own."""


@pytest.mark.parametrize("page", [page for page in PAGES if page not in SERVED and not wants_spark(page)])
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [block for block in blocks_of(page) if block.language in RUN]
    assert run_page(page, tmp_path, {"__name__": "page"}) >= sum(not block.needs for block in runs)


def test_the_page_on_catalogs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with CatalogServer(tmp_path / "served") as server:
        told = server.options()
        replaced = {
            "https://catalog.example.com": told["uri"],
            '"token": "..."': f'"token": "{told["token"]}"',
            '"warehouse": "main"': f'"warehouse": "{told["warehouse"]}"',
        }
        names: dict[str, Any] = {"server": server}
        assert run_page("docs/catalogs.md", tmp_path, names, replaced) == 1
        assert names["trial"].count() == 1


def test_the_readmes_example_prints_what_it_promises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    run_page("README.md", tmp_path, names)
    assert names["s"].to_arrow().to_pydict() == {"id": [1], "amount": [9.5]}
    assert "bitmap" in capsys.readouterr().out


def test_every_block_is_run_or_shows_something() -> None:
    assert {block.language for page in PAGES for block in blocks_of(page)} <= RUN | SHOWN
    for page in PAGES:
        text = (ROOT / page).read_text()
        found = [block for block in blocks_of(page) if block.language]
        assert len(re.findall(r"^```\w+$", text, re.MULTILINE)) == len(found) - text.count("<!-- setup\n"), page


def test_the_readme_is_short_and_names_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < MOST_LINES
    assert re.findall(r"^make (\S+)", text, re.MULTILINE) == ["demo", "test"]


def test_the_readmes_pictures_and_links_hold_where_packages_are_shown() -> None:
    text = (ROOT / "README.md").read_text()
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert pictures
    assert all(target.startswith("https://") for target in pictures)


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


def test_pictures_are_those_of_the_script() -> None:
    pictures = runpy.run_path(str(ROOT / "scripts/docs_pictures.py"))["PICTURES"]
    folder = ROOT / "docs/pictures"
    assert {path.stem for path in folder.glob("*.svg")} == set(pictures)
    for name, draw in pictures.items():
        assert (folder / f"{name}.svg").read_text() == draw().svg(), "run python scripts/docs_pictures.py"
