"""Drive the compaction picker through random flushes, without data, and show what it costs in writes, reads and space.

    python -m benchmarks.compaction_simulator --flushes 10000 --svg compaction.svg

A file is a sorted array of keys with sequence numbers and delete marks; everything that decides is the product's own: levels,
universal compaction, the plan of what is rewritten and what only moves. One compaction runs at a time and takes time by its
bytes while flushes go on; a flush waits once there are more runs than ``num-sorted-run.stop-trigger``, as Paimon's writers do.

* write amplification: bytes written by flushes and compactions, by bytes flushed
* read amplification: sorted runs that a full scan has to merge, after each flush
* space amplification: rows in files, by rows that a reader sees
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.figures import Figures, store
from benchmarks.line_charts import Chart, svg
from lsm.compaction.compactor import BucketCompactor, CompactionContext
from lsm.compaction.policy import CompactionPolicy
from lsm.compaction.rewriter import CompactResult, Merge
from lsm.levels.sorted_runs import Levels
from lsm.levels.universal import UniversalCompaction, trivial_move
from manifest.entry.data_file import DataFileMeta

Rows = npt.NDArray[np.int64]

ROW_BYTES = 64 << 10
"""A simulated row stands for about a thousand small ones, so that 2,048 of them fill a file of 128 MB."""
TARGET_BYTES = 128 << 20
MIN_FILE_BYTES = int(TARGET_BYTES * 0.7)
SCATTERED = 0.5
"""The share of flushes that touch keys everywhere; the others stay within a fiftieth of the keys, so that large files can stay as they are."""


@dataclass(frozen=True)
class Setting:
    """A table's compaction options, by the names that the table of results shows."""

    name: str
    trigger: int = 5
    amplification: int = 200
    ratio: int = 1

    @property
    def stop_trigger(self) -> int:
        """More runs than this stop the writer."""
        return self.trigger + 3

    @property
    def strategy(self) -> UniversalCompaction:
        """The picker."""
        return UniversalCompaction(self.amplification, self.ratio, self.trigger)


SETTINGS = (
    Setting("defaults"),
    Setting("write-optimised", trigger=10, amplification=400),
    Setting("read-optimised", trigger=3, amplification=50),
)


@dataclass(frozen=True)
class Versions:
    """Rows of a file: keys ascending, each once; ``deleted`` marks tombstones."""

    keys: Rows
    sequence: Rows
    deleted: npt.NDArray[np.bool_]

    @classmethod
    def merged(cls, parts: Sequence[Versions]) -> Versions:
        """Of each key the version with the greatest sequence number."""
        keys, sequence = (np.concatenate([getattr(part, name) for part in parts]) for name in ("keys", "sequence"))
        deleted = np.concatenate([part.deleted for part in parts])
        order = np.lexsort((sequence, keys))
        last = order[np.append(np.flatnonzero(np.diff(keys[order])), len(order) - 1)] if len(order) else order
        return cls(keys[last], sequence[last], deleted[last])

    def take(self, rows: slice | npt.NDArray[np.bool_]) -> Versions:
        """Some of the rows."""
        return Versions(self.keys[rows], self.sequence[rows], self.deleted[rows])


def key_of(data: bytes) -> bytes:
    """Keys are big-endian, so their bytes compare as they do."""
    return data


@dataclass
class Simulation:
    """One bucket under a stream of flushes. ``bandwidth`` is what a compaction gets through between two flushes, in bytes."""

    setting: Setting
    key_space: int = 40_000
    flush_rows: int = 200
    delete_share: float = 0.1
    bandwidth: float = 32 * 200 * ROW_BYTES
    seed: int = 7
    levels: Levels = field(init=False)
    content: dict[str, Versions] = field(default_factory=dict)
    flushed: int = 0
    rewritten: int = 0
    spared: int = 0
    compactions: int = 0
    waited: float = 0.0
    most_runs: int = 0
    series: dict[str, list[float]] = field(default_factory=lambda: {"write": [], "read": [], "space": []})
    _sequence: int = 0
    _files: int = 0
    _running: tuple[CompactResult, float] | None = None

    def __post_init__(self) -> None:
        self.levels = Levels(key_of, [], self.setting.trigger + 1)
        self._random = np.random.default_rng(self.seed)
        self.newest = np.full(self.key_space, -1, np.int64)  # the model: what a reader must find
        self.alive = np.zeros(self.key_space, np.bool_)

    def flush(self) -> None:
        """One flush, and as much of the running compaction as its time allows."""
        if len(self.levels.runs) > self.setting.stop_trigger:
            self._wait()
        self._advance(self.bandwidth)
        count = int(self._random.integers(self.flush_rows // 2, self.flush_rows * 3 // 2))
        window = self.key_space if self._random.random() < SCATTERED else self.key_space // 50
        start = self._random.integers(0, self.key_space - window + 1)
        keys = np.unique(self._random.integers(start, start + window, count))
        rows = Versions(keys, self._sequence + np.arange(len(keys)), self._random.random(len(keys)) < self.delete_share)
        self._sequence += len(keys)
        self.newest[keys], self.alive[keys] = rows.sequence, ~rows.deleted
        self.levels.update((), self._write(rows, 0))
        self.flushed += len(keys) * ROW_BYTES
        self.most_runs = max(self.most_runs, len(self.levels.runs))
        self._start()
        self._measure()

    def rewrite(self, merge: Merge, output_level: int, *, drop_delete: bool) -> list[DataFileMeta]:
        """Merge files, as the product's rewriter does with rows of real ones."""
        rows = Versions.merged([self.content[file.file_name] for file in merge.files])
        rows = rows.take(~rows.deleted) if drop_delete else rows
        self.rewritten += len(rows.keys) * ROW_BYTES
        return self._write(rows, output_level)

    def upgrade(self, file: DataFileMeta, output_level: int) -> bool:  # noqa: ARG002
        """A change of metadata."""
        return True

    def can_upgrade(self, file: DataFileMeta, output_level: int) -> bool:  # noqa: ARG002
        """No file is more than its metadata."""
        return True

    def discard(self, file: DataFileMeta) -> None:
        """Forget a file."""
        del self.content[file.file_name]

    def visible(self) -> Versions:
        """What a merging reader sees."""
        rows = Versions.merged([self.content[file.file_name] for file in self.levels.files])
        return rows.take(~rows.deleted)

    def _write(self, rows: Versions, level: int) -> list[DataFileMeta]:
        files, step = [], TARGET_BYTES // ROW_BYTES
        for at in range(0, len(rows.keys), step):
            part = rows.take(slice(at, at + step))
            self._files += 1
            file = DataFileMeta(
                file_name=f"data-{self._files}.parquet",
                file_size=len(part.keys) * ROW_BYTES,
                row_count=len(part.keys),
                min_key=int(part.keys[0]).to_bytes(8, "big"),
                max_key=int(part.keys[-1]).to_bytes(8, "big"),
                min_sequence_number=int(part.sequence.min()),
                max_sequence_number=int(part.sequence.max()),
                level=level,
                delete_row_count=int(part.deleted.sum()),
                creation_time=self._files,
            )
            self.content[file.file_name] = part
            files.append(file)
        return files

    def _start(self) -> None:
        """Begin the compaction that is due, unless one runs; its result counts once its time is over."""
        if self._running is not None:
            return
        self._settle()
        unit = self.setting.strategy.pick(self.levels.runs, self.levels.max_level)
        if unit is None:
            return
        levels = Levels(key_of, list(self.levels.files), self.levels.number_of_levels)
        policy = CompactionPolicy(self.setting.strategy, levels.number_of_levels, MIN_FILE_BYTES)
        context = CompactionContext(policy=policy, rewriter=self, rewrite_file=lambda file: [file])
        result = BucketCompactor(context, levels).compact()
        if result is None:
            return
        moved = {file.file_name for file in result.before} & {file.file_name for file in result.after}
        self.spared += len(unit.files) - len(result.before) + len(moved)
        self.compactions += 1
        self._running = result, float(sum(file.file_size for file in result.before if file.file_name not in moved))

    def _settle(self) -> None:
        """Move a large base from level 0 to the deepest level, as the product does; that takes no time."""
        levels, strategy = self.levels, self.setting.strategy
        base = trivial_move(levels.runs, levels.max_level, key_of, lambda runs: strategy.pick(runs, levels.max_level), MIN_FILE_BYTES)
        if base is not None and all(file.delete_row_count == 0 for file in base.files):
            levels.update(base.files, [file.upgrade(levels.max_level) for file in base.files])
            self.spared += len(base.files)

    def _advance(self, budget: float) -> None:
        if self._running is None:
            return
        result, left = self._running
        self._running = result, left - budget
        if left <= budget:
            self._finish(result)

    def _wait(self) -> None:
        """Stop the writer until the running compaction has ended."""
        if self._running is not None:
            result, left = self._running
            self.waited += left / self.bandwidth
            self._finish(result)
            self._start()

    def _finish(self, result: CompactResult) -> None:
        self._running = None
        self.levels.update(result.before, result.after)
        kept = {file.file_name for file in result.after}
        for file in result.before:
            if file.file_name not in kept:
                self.discard(file)

    def _measure(self) -> None:
        stored = sum(file.row_count for file in self.levels.files)
        self.series["write"].append((self.flushed + self.rewritten) / self.flushed)
        self.series["read"].append(len(self.levels.runs))
        self.series["space"].append(stored / max(1, int(self.alive.sum())))


def simulate(setting: Setting, flushes: int, *, seed: int = 7) -> Simulation:
    """A simulation after so many flushes."""
    run = Simulation(setting, seed=seed)
    for _ in range(flushes):
        run.flush()
    return run


def figures_of(runs: Sequence[Simulation]) -> Figures:
    """The table of results."""
    columns = [
        "setting",
        "write amp.",
        "read amp. mean",
        "p99",
        "most",
        "space amp. mean",
        "p99",
        "compactions",
        "files spared",
        "waits (flushes)",
    ]
    rows = []
    for run in runs:
        reads, space = run.series["read"], run.series["space"]
        name = f"{run.setting.name} (trigger {run.setting.trigger}, amplification {run.setting.amplification} %)"
        numbers = [f"{run.series['write'][-1]:.2f}", f"{np.mean(reads):.2f}", f"{np.percentile(reads, 99):.0f}", str(run.most_runs)]
        numbers += [
            f"{np.mean(space):.2f}",
            f"{np.percentile(space, 99):.2f}",
            f"{run.compactions:,}",
            f"{run.spared:,}",
            f"{run.waited:.1f}",
        ]
        rows.append([name, *numbers])
    return Figures(f"Universal compaction, {len(runs[0].series['read']):,} flushes", columns, rows)


def picture(runs: Sequence[Simulation]) -> str:
    """The three amplifications over time, as SVG."""
    titles = {"write": "write amplification", "read": "sorted runs (read amplification)", "space": "space amplification"}
    return svg([Chart(title, {run.setting.name: run.series[name] for run in runs}) for name, title in titles.items()], x_label="flushes")


def main() -> None:
    """Run all settings; print the table, write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flushes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--svg", type=Path, help="where a picture goes")
    parser.add_argument("--json", type=Path, help="where the figures go, too")
    arguments = parser.parse_args()
    runs = [simulate(setting, arguments.flushes, seed=arguments.seed) for setting in SETTINGS]
    found = figures_of(runs)
    found.show()
    store(arguments.json, [found])
    if arguments.svg is not None:
        arguments.svg.write_text(picture(runs), encoding="utf-8")


if __name__ == "__main__":
    main()
