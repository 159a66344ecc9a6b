"""Tables in the states that steps start from, made once by each contender and copied before a step changes them.

A table lies in ``<state>/bench.db/t``, so that it can be opened by its path and through a catalog of ``<state>``.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.environments import ROOT

_NEVER_CHANGED = {".parquet", ".lance"}
"""Files that every contender writes once: a copy of a table shares them."""


def path_in(folder: Path) -> Path:
    """The table of a state's folder."""
    return folder / "bench.db" / "t"


def copied(source: Path, target: Path) -> None:
    """A copy that a step may change."""

    def copy(one: str, other: str) -> None:
        if Path(one).suffix in _NEVER_CHANGED:
            os.link(one, other)
        else:
            shutil.copy2(one, other)

    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=copy)


@dataclass
class Tables:
    """The folder of a profile's tables: ``<contender>/<state>``, complete ones only."""

    folder: Path
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def fresh(self, contender: str) -> Path:
        """An empty folder for a step."""
        folder = self.folder / contender / f"run-{os.getpid()}-{next(self._numbers)}"
        path_in(folder).parent.mkdir(parents=True)
        return folder

    def keep(self, folder: Path, contender: str, state: str) -> None:
        """Make a step's result the state; the first one stays."""
        target = self.folder / contender / state
        if not target.exists():
            folder.rename(target)

    def find(self, contender: str, state: str) -> Path | None:
        """The state's folder, if there is one."""
        folder = self.folder / contender / state
        return folder if folder.exists() else None

    def drop(self, contender: str) -> None:
        """Forget all tables of a contender."""
        shutil.rmtree(self.folder / contender, ignore_errors=True)

    @staticmethod
    def planned(work: Path) -> Path:
        """The Paimon table of 10,000 files that do not exist, for all contenders that plan one."""
        folder = work / "inputs" / "planned"
        if not folder.exists():
            making = folder.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            code = "import sys; from benchmarks.planning import make_table; make_table(sys.argv[1], 10, ordered=False)"
            subprocess.run([sys.executable, "-c", code, str(path_in(making))], cwd=ROOT, check=True)
            making.rename(folder)
        return folder


__all__ = ["Tables", "copied", "path_in"]
