"""Puts files that lie outside ``docs`` on the site, and lets the links that lead to them on disk lead to them there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
OUTSIDE = ("DESIGN.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "benchmarks/results/*.svg", "benchmarks/results/*.md")
_LINK = re.compile(r"\]\(((?:\.\./)*)([^)#:\s]+)((?:#[^)]*)?)\)")
_SETUP = re.compile(r"^<!-- setup\n.*?^-->$\n?", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the files outside."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:  # noqa: ARG001  # MkDocs' signature
    """Links of the repository become links of the site; what tests set up is not shown."""
    source = Path(page.file.src_uri)
    inside = (ROOT / "docs" / source).exists()
    folder = (ROOT / "docs" / source).parent if inside else (ROOT / source).parent

    def led(match: re.Match[str]) -> str:
        target = (folder / (match[1] + match[2])).resolve()
        if not target.is_relative_to(ROOT) or not target.exists():
            return match[0]
        home = ROOT / "docs" if target.is_relative_to(ROOT / "docs") else ROOT
        steps = "../" * len(source.parent.parts)
        return f"]({steps}{target.relative_to(home).as_posix()}{match[3]})"

    return _LINK.sub(led, _SETUP.sub("", markdown))
