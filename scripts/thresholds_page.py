"""Write the tables of docs/thresholds.md from ``paimon_base/thresholds.py``."""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from paimon_base import thresholds  # noqa: E402  # the script runs from any folder

PAGE = ROOT / "docs" / "thresholds.md"
MARK = "<!-- thresholds -->"
PACKAGES = ("sparkexpr", "paimon_base", "fileindex", "manifest", "lsm", "pyspark_paimon")


def page(text: str) -> str:
    """Return the page with its tables made again: all that follows the mark."""
    return text[: text.index(MARK) + len(MARK)] + "\n" + tables()


def tables() -> str:
    """Return a table for each group of thresholds, in the order of the class."""
    source = Path(str(thresholds.__file__)).read_text()
    homes = readers()
    lines: list[str] = []
    known = {one.name: one for one in fields(thresholds.Thresholds)}
    for heading, name in re.findall(r"(?m)^\n    # (.+)\.$|^    (\w+): int = _limit", source):
        if heading:
            lines += ["", f"## {heading}", "", "| threshold | default | tiny | what crosses it | read by |", "|---|---|---|---|---|"]
            continue
        one = known[name]
        home = ", ".join(f"`{path}`" for path in homes[name])
        lines.append(f"| `{name}` | {one.default:,} | {one.metadata['tiny']:,} | {one.metadata['crossing']} | {home} |")
    return "\n".join(lines) + "\n"


@cache
def readers() -> dict[str, list[str]]:
    """Return the modules that read each threshold."""
    found: dict[str, list[str]] = {one.name: [] for one in fields(thresholds.Thresholds)}
    for top in PACKAGES:
        for path in sorted((ROOT / top).rglob("*.py")):
            text = path.read_text()
            if "import thresholds\n" in text:
                for name in sorted(set(re.findall(r"\bthresholds\.(\w+)", text)) & found.keys()):
                    found[name].append(path.relative_to(ROOT).as_posix())
    return found


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
