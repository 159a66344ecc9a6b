"""Cost as the work grows: tables of 1, 6 and 24 million rows, and 10, 100 and 1,000 commits.

    python -m benchmarks.scaling                       # everything; what is done stays done, the same command goes on
    python -m benchmarks.scaling --sizes 1,6           # without the largest: it wants 5 GB of memory and 10 GB of disk
    python -m benchmarks.scaling --quick               # a hundredth of everything
    python -m benchmarks.scaling --only report         # table and pictures of what is there

A size is a table's life: write, upsert of a sixth, merged read, full compaction, read, key lookups, plan, each in a fresh process, ours and
the pyarrow floor; inputs are streamed from files, reads are streams too. The commits replace 5,000 rows each of a table of a million, so the
table does not grow: compacting by itself (nothing expires within the hour), compacting and keeping 20 snapshots, and write-only.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.environments import ROOT
from benchmarks.machine import machine_class
from benchmarks.running import Measured, run
from benchmarks.scaling.data import Data, Sums, after_commits, lineitem
from benchmarks.scaling.report import publish
from benchmarks.scaling.step import Step
from benchmarks.workloads import TABLE

COMMAND = [sys.executable, "-m", "benchmarks.scaling.step"]
TIMEOUT = 1800
MILLION = 1_000_000
ROUNDS = {1: 3, 6: 2}
"""Lives of a table, by millions of rows; larger ones live once."""
COMMITTING = {
    "compacting": {"write-only": "false"},
    "expiring": {"write-only": "false", "snapshot.num-retained.min": "5", "snapshot.num-retained.max": "20"},
    "write-only": {"write-only": "true"},
}
_FLOOR_BYTES = 400
"""Of memory that the floor wants for each row of the table: two buckets, unsorted and sorted."""


class Scaling:
    """A run: results by point, in a file that is written after each."""

    def __init__(self, folder: Path, *, quick: bool) -> None:
        self.folder, self.shrink = folder, 100 if quick else 1
        self.file = folder / "scaling.json"
        self.started = time.monotonic()
        self.results: dict[str, Any] = {"machine": machine_class(), "quick": quick, "rows": {}, "commits": {}}
        if self.file.exists():
            self.results = json.loads(self.file.read_text(encoding="utf-8"))

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.started:6.0f} s] {text}", flush=True)

    def point(self, kind: str, name: str, make: Callable[[Path], Any]) -> None:
        """One point, unless it is there; it begins with an empty folder, and what it leaves is removed."""
        if name in self.results[kind]:
            self.say(f"{kind} {name}: done before")
            return
        folder = self.folder / "tables" / kind / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.results[kind][name] = make(folder)
        self.file.write_text(json.dumps(self.results, indent=1), encoding="utf-8")
        shutil.rmtree(folder)

    def data(self, millions: float) -> Data:
        """The inputs of a size."""
        rows = round(millions * MILLION / self.shrink)
        if not (self.folder / "inputs" / str(rows) / "data.json").exists():
            self.say(f"making {rows:,} rows")
        return lineitem(self.folder / "inputs" / str(rows), rows)

    def measure(self, step: Step, *, expected: Sums | None = None) -> Measured:
        """One step; an answer that is not the expected one stops everything."""
        found = run(COMMAND, step, timeout=TIMEOUT)
        if expected is not None and found.answer != vars(expected):
            raise SystemExit(f"{step.op} of {step.path} answers {found.answer}, not {expected}")
        return found


class Size:
    """The lives of tables of one size."""

    def __init__(self, scaling: Scaling, millions: float) -> None:
        self.scaling, self.data, self.millions = scaling, scaling.data(millions), millions
        self.found: dict[str, Any] = {"rows": self.data.written.rows, "ours": {}, "floor": {}}

    def run(self, folder: Path) -> dict[str, Any]:
        with_floor = psutil.virtual_memory().available > _FLOOR_BYTES * self.data.written.rows
        if not with_floor:
            self.scaling.say("the floor is left out: it wants more memory than there is")
        for _ in range(1 if self.scaling.shrink > 1 else ROUNDS.get(round(self.millions), 1)):
            self._note("floor", "decode inputs", Step("decode", "", self.data.base), self.data.written)
            self._ours(str(folder / "ours"))
            shutil.rmtree(folder / "ours")
            if with_floor:
                self._floor(str(folder / "floor"))
                shutil.rmtree(folder / "floor")
        return self.found

    def _ours(self, path: str) -> None:
        data = self.data
        self._note("ours", "write", Step("write", path, data.base, create=True, options=TABLE))
        self._note("ours", "upsert", Step("write", path, data.upsert))
        self._note("ours", "merged read", Step("read", path), data.upserted)
        self._note("ours", "full compaction", Step("compact", path))
        self._note("ours", "read, compacted", Step("read", path), data.upserted)
        found = self.scaling.measure(Step("look", path, data.base))
        for name, each in found.queries.items():
            self._keep("ours", name, each)
        self._tell("ours", "lookups and plan", sum(sum(each["seconds"]) for each in found.queries.values() if "seconds" in each))

    def _floor(self, path: str) -> None:
        data = self.data
        self._note("floor", "write", Step("floor_write", path, data.base, name="base"))
        self._note("floor", "upsert", Step("floor_write", path, data.upsert, name="upsert"))
        self._note("floor", "merged read", Step("floor_read", path, name="base+upsert"), data.upserted)
        self._note("floor", "full compaction", Step("floor_compact", path, name="base+upsert"))
        self._note("floor", "read, compacted", Step("floor_read", path, name="compacted"), data.upserted)

    def _note(self, who: str, name: str, step: Step, expected: Sums | None = None) -> None:
        found = self.scaling.measure(step, expected=expected)
        noted = {"seconds": found.seconds, "cpu": found.cpu, "growth": [found.peak - found.before], "foreign": [found.foreign]}
        self._keep(who, name, noted)
        self._tell(who, name, found.seconds[0])

    def _keep(self, who: str, name: str, noted: dict[str, Any]) -> None:
        kept = self.found[who].setdefault(name, {})
        for what, values in noted.items():
            kept[what] = kept.get(what, []) + values if isinstance(values, list) else values

    def _tell(self, who: str, name: str, seconds: float) -> None:
        self.scaling.say(f"{self.data.written.rows:>11,} rows  {who:5}  {name:16}  {seconds:7.2f} s")


def life(scaling: Scaling, millions: int, folder: Path) -> dict[str, Any]:
    """A size."""
    return Size(scaling, millions).run(folder)


def committing(scaling: Scaling, name: str, counts: list[int], folder: Path) -> dict[str, Any]:
    """Commits up to the greatest count, with a look at the table at each count."""
    data = scaling.data(1)
    size, path = max(1, 5000 // scaling.shrink), str(folder / "t")
    base = pa.concat_tables(pq.read_table(each, columns=["l_orderkey", "l_partkey"]) for each in data.base)
    scaling.measure(Step("write", path, data.base, create=True, options={**TABLE, **COMMITTING[name]}))
    found: dict[str, Any] = {"size": size, "rows": base.num_rows, "seconds": [], "cpu": [], "resident": [], "points": {}}
    done = 0
    for count in [0, *counts]:
        step = Step("commits", path, data.base, first=done, last=count, size=size)
        if count:
            segment = scaling.measure(step)
            found["resident"] += segment.queries["resident"]
            found["seconds"] += segment.seconds
            found["cpu"] += segment.cpu
        read = scaling.measure(Step("read", path), expected=after_commits(base, count, size))
        seen = scaling.measure(Step("look", path, data.base)).queries
        found["points"][str(count)] = {
            **seen,
            "merged read": {"seconds": read.seconds, "cpu": read.cpu, "growth": [read.peak - read.before]},
        }
        last = found["seconds"][done:count]
        mean = sum(last) / len(last) if last else 0.0
        scaling.say(f"{name:10}  {count:>5} commits  {mean * 1000:6.0f} ms each since the last look  read {read.seconds[0]:.2f} s")
        done = count
    return found


def numbers(text: str) -> list[int]:
    return sorted({int(each) for each in text.split(",") if each})


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=numbers, default=[1, 6, 24], help="millions of rows, with commas")
    parser.add_argument("--commits", type=numbers, default=[10, 100, 1000], help="counts of commits to look at, with commas")
    parser.add_argument("--only", choices=("rows", "commits", "report"))
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows, a tenth of the commits")
    parser.add_argument("--again", action="store_true", help="forget the results first")
    parser.add_argument("--work", type=Path, default=ROOT / "bench-work")
    given = parser.parse_args()
    folder = given.work.resolve() / ("scaling-quick" if given.quick else "scaling")
    folder.mkdir(parents=True, exist_ok=True)
    if given.again:
        (folder / "scaling.json").unlink(missing_ok=True)
    scaling = Scaling(folder, quick=given.quick)
    if given.only in {None, "rows"}:
        for millions in given.sizes:
            scaling.point("rows", str(millions), partial(life, scaling, millions))
    if given.only in {None, "commits"}:
        counts = [max(1, count // 10) for count in given.commits] if given.quick else given.commits
        for name in COMMITTING:
            scaling.point("commits", name, partial(committing, scaling, name, counts))
    print("\n" + publish(scaling.results, folder))
    scaling.say(f"results, tables and pictures: {folder}")


if __name__ == "__main__":
    main()
