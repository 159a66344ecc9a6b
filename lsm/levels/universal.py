"""Which runs to compact: Paimon's ``UniversalCompaction`` and its companions, as functions of the runs and the time.

Nothing here touches data or keeps state, so that a simulator can drive it: the caller remembers when a full compaction was
last picked (``last_full_ms``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsm.levels.sorted_runs import LevelRun
from manifest.entry.data_file import DataFileMeta


@dataclass(frozen=True, slots=True)
class CompactUnit:
    """What to compact together, and the level that the result goes to. ``full``: all runs of the bucket.

    ``rewrite_individually``: files of one run with others between them, so that each is rewritten by itself.
    """

    output_level: int
    files: tuple[DataFileMeta, ...]
    full: bool = False
    rewrite_individually: bool = False

    @classmethod
    def of(cls, output_level: int, runs: Sequence[LevelRun], *, full: bool) -> CompactUnit:
        """The unit of all files of ``runs``."""
        return cls(output_level, tuple(file for run in runs for file in run.run.files), full)

    @property
    def changes_nothing(self) -> bool:
        """Whether it has no files, or one that lies on its level already."""
        return not self.files or (len(self.files) == 1 and self.files[0].level == self.output_level)


@dataclass(frozen=True, slots=True)
class EarlyFullCompaction:
    """Reasons for a full compaction before the strategy would have one; thresholds in bytes, the interval in milliseconds."""

    interval_ms: int | None = None
    total_size_threshold: int | None = None
    incremental_size_threshold: int | None = None

    def wants(self, runs: Sequence[LevelRun], max_level: int, now_ms: int, last_full_ms: int | None) -> bool:
        """Whether to compact everything now; never a single run."""
        if len(runs) == 1:
            return False
        if self.interval_ms is not None and (last_full_ms is None or now_ms - last_full_ms > self.interval_ms):
            return True
        if self.total_size_threshold is not None and sum(run.size for run in runs) < self.total_size_threshold:
            return True
        outside = sum(run.size for run in runs if run.level != max_level)
        return self.incremental_size_threshold is not None and outside > self.incremental_size_threshold


@dataclass(frozen=True, slots=True)
class OffPeakHours:
    """Hours of the day, [start, end) and perhaps over midnight, in which runs may differ more in size and still be merged.

    >>> OffPeakHours(22, 6, 10).ratio_at(23), OffPeakHours(22, 6, 10).ratio_at(6), OffPeakHours(-1, 6, 10).ratio_at(3)
    (10, 0, 0)
    """

    start: int
    end: int
    ratio: int

    def ratio_at(self, hour: int) -> int:
        """What to add to the size ratio at a local hour, in percent."""
        if self.start == self.end or -1 in {self.start, self.end}:
            return 0
        inside = self.start <= hour < self.end if self.start < self.end else hour >= self.start or hour < self.end
        return self.ratio if inside else 0


@dataclass(frozen=True, slots=True)
class UniversalCompaction:
    """Size-tiered compaction: bound the space that old versions take, then the number of runs.

    Percentages as in the options ``compaction.max-size-amplification-percent`` and ``compaction.size-ratio``; ``trigger``
    is ``num-sorted-run.compaction-trigger``.
    """

    max_size_amplification: int = 200
    size_ratio: int = 1
    trigger: int = 5
    early: EarlyFullCompaction | None = None
    off_peak: OffPeakHours | None = None

    def pick(
        self, runs: Sequence[LevelRun], max_level: int, *, now_ms: int = 0, last_full_ms: int | None = None, hour: int = 0
    ) -> CompactUnit | None:
        """The runs to compact, a prefix of ``runs`` (``Levels.runs``), or None if there is nothing to gain."""
        if self.early is not None and runs and self.early.wants(runs, max_level, now_ms, last_full_ms):
            return CompactUnit.of(max_level, runs, full=True)
        return (
            self.pick_for_size_amplification(runs, max_level)
            or self.pick_for_size_ratio(runs, max_level, hour=hour)
            or self.pick_for_run_count(runs, max_level, hour=hour)
        )

    def pick_for_size_amplification(self, runs: Sequence[LevelRun], max_level: int) -> CompactUnit | None:
        """Everything, if the newer runs together are large beside the oldest one."""
        if len(runs) < self.trigger or not runs:
            return None
        newer = sum(run.size for run in runs[:-1])
        return CompactUnit.of(max_level, runs, full=True) if newer * 100 > self.max_size_amplification * runs[-1].size else None

    def pick_for_size_ratio(self, runs: Sequence[LevelRun], max_level: int, *, hour: int = 0) -> CompactUnit | None:
        """The newest run and those that follow, as long as the next is not much larger than what is picked."""
        return self._grow(runs, max_level, 1, hour, forced=False) if len(runs) >= self.trigger else None

    def pick_for_run_count(self, runs: Sequence[LevelRun], max_level: int, *, hour: int = 0) -> CompactUnit | None:
        """Enough of the newest runs to get back to ``trigger`` of them."""
        count = len(runs) - self.trigger + 1
        return self._grow(runs, max_level, count, hour, forced=True) if count > 1 else None

    def force_level0(self, runs: Sequence[LevelRun], max_level: int, *, hour: int = 0) -> CompactUnit | None:
        """All level-0 runs and what their size draws in; None without level 0."""
        level0 = sum(run.level == 0 for run in runs)
        return self._grow(runs, max_level, level0, hour, forced=True) if level0 else None

    def _grow(self, runs: Sequence[LevelRun], max_level: int, count: int, hour: int, *, forced: bool) -> CompactUnit | None:
        ratio = self.size_ratio + (self.off_peak.ratio_at(hour) if self.off_peak else 0)
        size = sum(run.size for run in runs[:count])
        triggered = forced or count > 1
        for following in runs[count:]:
            if size * (100.0 + ratio) / 100.0 < following.size and (not triggered or following.level > 1):
                break
            size += following.size
            count += 1
            triggered = True
        return unit_of_prefix(runs, max_level, count) if triggered else None


def unit_of_prefix(runs: Sequence[LevelRun], max_level: int, count: int) -> CompactUnit:
    """The first ``count`` runs and the level above the first one left out; never level 0, for its files may overlap."""
    level = max_level if count == len(runs) else max(0, runs[count].level - 1)
    while level == 0 and count < len(runs):
        level = runs[count].level
        count += 1
    if count == len(runs):
        level = max_level
    return CompactUnit.of(level, runs[:count], full=count == len(runs))


@dataclass(frozen=True, slots=True)
class ForceUpLevel0:
    """Moves level 0 up where the strategy declines: at once, or (``interval``, gentle) when so many of its files wait.

    A flush leaves one file, so that their number is how often the strategy has declined, whichever writers asked it.
    """

    universal: UniversalCompaction
    interval: int | None = None

    def pick(
        self, runs: Sequence[LevelRun], max_level: int, *, now_ms: int = 0, last_full_ms: int | None = None, hour: int = 0
    ) -> CompactUnit | None:
        """See ``UniversalCompaction.pick``."""
        unit = self.universal.pick(runs, max_level, now_ms=now_ms, last_full_ms=last_full_ms, hour=hour)
        if unit is not None:
            return unit
        if self.interval is not None and sum(run.level == 0 for run in runs) < self.interval:
            return None
        return self.universal.force_level0(runs, max_level, hour=hour)


def pick_full(
    runs: Sequence[LevelRun], max_level: int, *, force_rewrite: bool = False, stale: Callable[[DataFileMeta], bool] = lambda _: False
) -> CompactUnit | None:
    """Everything to the deepest level; if it is there already, those of its files that hold ``stale`` (dead, expired) rows, or nothing."""
    if not runs:
        return None
    if len(runs) > 1 or runs[0].level != max_level or force_rewrite:
        return CompactUnit.of(max_level, runs, full=True)
    files = tuple(file for file in runs[0].run.files if stale(file))
    return CompactUnit(max_level, files, full=True, rewrite_individually=True) if files else None


def drops_deletes(output_level: int, highest_non_empty: int) -> bool:
    """Whether retract rows may vanish: nothing older remains below the output that they would have to mask."""
    return output_level != 0 and output_level >= highest_non_empty


__all__ = [
    "CompactUnit",
    "EarlyFullCompaction",
    "ForceUpLevel0",
    "OffPeakHours",
    "UniversalCompaction",
    "drops_deletes",
    "pick_full",
    "unit_of_prefix",
]
