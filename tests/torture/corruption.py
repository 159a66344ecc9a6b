"""Files rot: one file of a table that is really read gets other bytes, and the table is asked everything.

Right is: the right rows, or one of the project's errors that names the file, and then ``fsck`` names it too. Indexes, hints and statistics
give the right rows in any case, for they are advice. The figures are by kind of file; at least a third of the tries are footers.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paimon_base.lazy import cached_property
from tests.damage import ALL_KINDS, damaged, footer_span, page_index_span
from tests.torture.report import Outcome, case_of, leave_case
from tests.torture.rotting_tables import kind_of, make, names

PART = "corruption"
ROOT = Path(__file__).parents[2]
_FOOTERS, _PAGE_INDEXES = 0.4, 0.1
"""Shares of the tries that damage a Parquet footer, and its page indexes."""
_FOOTER, _PAGE_INDEX, _PAGES = "footer", "page index", "pages"
_UNSEALED = frozenset(
    {
        *("schema", "snapshot", "tag", "manifest list", "manifest", "index manifest", "index", "hash index", "statistics"),
        *(f"{kind}: {part}" for kind in ("data file", "changelog file") for part in (_FOOTER, _PAGE_INDEX)),
    }
)
"""Kinds of files to which the engine in Java gives no checksum: damage may make another valid file of one."""


def excused(table: str, kind: str, verdict: str, detail: str = "") -> bool:
    """Whether wrong rows, or an error of ours that blames another file, and nothing worse, come of a file of Java's whose damage nothing can tell."""
    harmless = verdict in {"wrong rows", "broken table"} or (verdict == "untyped error" and ": names no file: " in detail)
    return harmless and table.startswith("java ") and kind.removeprefix("branch: ") in _UNSEALED


class Child:
    """The process that forks for every order; started anew if it dies."""

    def __init__(self, log: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
        command = [sys.executable, "-m", "tests.torture.corruption_child"]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def order(self, **order: Any) -> tuple[str, str]:
        """Verdict and details of an order."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(order, default=str) + "\n")
        stdin.flush()
        verdict, detail = json.loads(stdout.readline())
        return verdict, detail

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()


@dataclass(frozen=True)
class Target:
    """A table that rots, with what it answers while it is whole and the files that are read for that."""

    name: str
    folder: Path
    child: Child

    @property
    def table(self) -> Path:
        return self.folder / "t"

    @property
    def truth(self) -> Path:
        return self.folder / "truth.pickle"

    @cached_property
    def files(self) -> dict[str, list[str]]:
        """Files that are read, by kind."""
        if not self.table.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            make(self.name, self.table)
        verdict, said = self.child.order(do="truth", table=self.table, truth=self.truth)
        if verdict != "right":
            raise AssertionError(f"{self.name}: {verdict}: {said}")
        found = defaultdict(list)
        for file in json.loads(said):
            if (self.table / file).is_file() and (self.table / file).stat().st_size:
                found[kind_of(file, self.name)].append(file)
        return dict(found)

    def bytes_of(self, file: str) -> bytes:
        return (self.table / file).read_bytes()

    def rot(self, seed: int) -> tuple[str, str, bytes]:
        """Kind, name and damaged bytes of a file, by ``seed``."""
        rng = random.Random(seed)
        parquet = [kind for kind in self.files if any(file.endswith(".parquet") for file in self.files[kind])]
        share = rng.random()
        footer = share < _FOOTERS + _PAGE_INDEXES
        kind = rng.choice(parquet if footer else sorted(self.files))
        file = rng.choice(self.files[kind])
        whole = self.bytes_of(file)
        if not footer:
            others = [self.bytes_of(other) for other in self.files[kind] if other != file]
            bad = damaged(whole, seed, kinds=ALL_KINDS, others=others)
            return f"{kind}: {_part(whole, bad)}" if kind in parquet else kind, file, bad
        span = page_index_span(whole)
        if share < _FOOTERS or span[0] == span[1]:
            span = footer_span(whole)
        bad = damaged(whole, seed, kinds=[one for one in ALL_KINDS if one not in {"empty", "other"}], span=span)
        return f"{kind}: {_part(whole, bad)}", file, bad

    def ask(self, file: str, bad: bytes, seed: int) -> tuple[str, str]:
        """What becomes of it; the table is whole again afterwards."""
        whole = self.bytes_of(file)
        (self.table / file).write_bytes(bad)
        try:
            return self.child.order(do="try", table=self.table, truth=self.truth, file=file, seed=seed)
        finally:
            (self.table / file).write_bytes(whole)


def _part(whole: bytes, bad: bytes) -> str:
    """In which part of a Parquet file the damage begins."""
    at = next((at for at, (one, other) in enumerate(zip(whole, bad, strict=False)) if one != other), min(len(whole), len(bad)))
    return _FOOTER if at >= footer_span(whole)[0] else _PAGE_INDEX if at >= page_index_span(whole)[0] else _PAGES


def outcomes(seed: int, folder: Path, tables: Sequence[str] = ()) -> Iterator[Outcome]:
    """One try after the other, over all tables in turn."""
    home = folder / f"{PART}-{seed}"
    home.mkdir(parents=True, exist_ok=True)
    child = Child(home / "stderr")
    targets = [Target(name, home / name.replace(" ", "-").replace(",", ""), child) for name in tables or names()]
    try:
        for number, target in enumerate(itertools.cycle(targets)):
            yield _tried(target, seed * 1_000_000 + number)
    finally:
        child.close()
        for target in targets:
            shutil.rmtree(target.folder, ignore_errors=True)


def _tried(target: Target, seed: int) -> Outcome:
    kind, file, bad = target.rot(seed)
    verdict, detail = target.ask(file, bad, seed)
    verdict = "excused" if excused(target.name, kind, verdict, detail) else verdict
    outcome = Outcome(PART, kind, seed, f"{target.name}: {file}", verdict, detail)
    if outcome.good:
        return outcome
    case = leave_case(target.folder.parent / f"case-{seed}", PART, table=target.name, kind=kind, file=file, seed=seed, detail=detail)
    shutil.copytree(target.table, case / "t", dirs_exist_ok=True)
    (case / "bad").write_bytes(bad)
    return Outcome(PART, kind, seed, outcome.what, verdict, detail, case)


def replay(folder: Path) -> Outcome:
    """The try of a folder once more: its table whole, then with the damaged file."""
    case = case_of(folder)
    child = Child(folder / "stderr")
    try:
        target = Target(case["table"], folder, child)
        assert target.files
        verdict, detail = target.ask(case["file"], (folder / "bad").read_bytes(), case["seed"])
    finally:
        child.close()
    return Outcome(
        PART,
        case["kind"],
        case["seed"],
        f"{case['table']}: {case['file']}",
        verdict,
        detail,
        None if verdict in {"right", "typed error"} else folder,
    )


__all__ = ["PART", "outcomes", "replay"]
