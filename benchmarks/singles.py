"""Benchmarks of one file each, run as they are; the tables that they print go into the report."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.figures import Figures, load

SINGLES: dict[str, dict[str, list[str]]] = {
    "quick": {
        "file_index": ["--rows", "200000"],
        "index_lookup": ["--rows", "200000"],
        "compaction_simulator": ["--flushes", "200"],
    },
    "full": {
        "file_index": ["--rows", "1000000"],
        "index_lookup": ["--rows", "3000000"],
        "compaction_simulator": ["--flushes", "200"],
        "spark_connect": ["--rows", "5000000"],
    },
}
"""By profile: modules and their arguments."""


def run_singles(profile: str, folder: Path, say: Callable[[str], None], *, deadline: float) -> None:
    """Those whose figures are not in the folder yet; one that fails is reported, and run again next time."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, arguments in SINGLES.get(profile, {}).items():
        target = folder / f"{name}.json"
        if target.exists():
            continue
        if time.monotonic() > deadline:
            say("the time is over; the same command goes on from here")
            return
        started = time.monotonic()
        line = [sys.executable, "-m", f"benchmarks.{name}", *arguments, "--json", str(target.with_suffix(".making"))]
        with (folder / f"{name}.log").open("w", encoding="utf-8") as log:
            done = subprocess.run(line, cwd=ROOT, stdout=log, stderr=log, check=False)
        if done.returncode:
            say(f"{time.strftime('%H:%M:%S')} {name} failed, see {log.name}")
            continue
        target.with_suffix(".making").rename(target)
        say(f"{time.strftime('%H:%M:%S')} {name}: {time.monotonic() - started:.0f} s")


def figures(profile: str, folder: Path) -> list[Figures]:
    """What there is."""
    return [each for name in SINGLES.get(profile, {}) if (folder / f"{name}.json").exists() for each in load(folder / f"{name}.json")]


__all__ = ["figures", "run_singles"]
