"""Adapt the repository's pages to the site.

Files outside ``docs`` become pages, links on disk become links of the site, and nothing is fetched from elsewhere.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
OUTSIDE = ("DESIGN.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "benchmarks/results/*.svg", "benchmarks/results/*.md")
DRAWN = {"flowchart TD": "layers", "Table.write": "write-path", "ScanPlanner": "scan"}
"""Pictures that replace diagrams, whose renderer would be fetched, by a text of the diagram."""
_LINK = re.compile(r"\]\(((?:\.\./)*)([^)#:\s]+)((?:#[^)]*)?)\)")
_SETUP = re.compile(r"^<!-- (?:setup\n.*?^-->|needs: \w+ -->)$\n?", re.DOTALL | re.MULTILINE)
_DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHIM = re.compile(r'<script src="https://[^"]*iframe-worker[^"]*"></script>')


def on_config(config: Any) -> Any:
    """Link to the repository in the footer if ``pyproject.toml`` names it."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    if link := urls.get("Repository", urls.get("Homepage")):
        config.extra["social"] = [{"icon": "fontawesome/brands/git-alt", "link": link, "name": "Repository"}]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the files outside ``docs``."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:  # noqa: ARG001  # MkDocs' signature
    """Rewrite links and diagrams, and remove what only tests need."""
    source = Path(page.file.src_uri)
    inside = (ROOT / "docs" / source).exists()
    folder = (ROOT / "docs" / source).parent if inside else (ROOT / source).parent
    steps = "../" * len(source.parent.parts)

    def link(match: re.Match[str]) -> str:
        target = (folder / (match[1] + match[2])).resolve()
        if not target.is_relative_to(ROOT) or not target.exists():
            return match[0]
        home = ROOT / "docs" if target.is_relative_to(ROOT / "docs") else ROOT
        return f"]({steps}{target.relative_to(home).as_posix()}{match[3]})"

    def picture(match: re.Match[str]) -> str:
        name = next(name for text, name in DRAWN.items() if text in match[1])
        return f"![{name.replace('-', ' ')}]({steps}pictures/{name}.svg)"

    return _DIAGRAM.sub(picture, _LINK.sub(link, _SETUP.sub("", markdown)))


def on_post_page(output: str, page: Any, config: Any) -> str:  # noqa: ARG001  # MkDocs' signature
    """Load the script for search in files from the site."""
    return _SHIM.sub(f'<script src="{"../" * page.url.count("/")}offline-search.js"></script>', output)
