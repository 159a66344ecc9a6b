"""Universal compaction: which runs to compact (Paimon's ``UniversalCompaction``).

Functions of the runs and the time, without state, so that a simulator can run them. The caller stores the time of the
last full compaction (``last_full_ms``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsm.levels.sorted_runs import LevelRun
from manifest.entry.data_file import DataFileMeta


@dataclass(frozen=True, slots=True)
class CompactUnit:
    """Files to compact together, and the level of the result.

    Args:
        full: All runs of the bucket.
        rewrite_individually: Rewrite each file separately. Set for files of one run with other files between them.
    """

    output_level: int
    files: tuple[DataFileMeta, ...]
    full: bool = False
    rewrite_individually: bool = False

    @classmethod
    def of(cls, output_level: int, runs: Sequence[LevelRun], *, full: bool) -> CompactUnit:
        """Return the unit of all files of ``runs``."""
        return cls(output_level, tuple(file for run in runs for file in run.run.files), full)

    @property
    def changes_nothing(self) -> bool:
        """Whether compacting the unit has no effect."""
        return not self.files or (len(self.files) == 1 and self.files[0].level == self.output_level)


@dataclass(frozen=True, slots=True)
class EarlyFullCompaction:
    """Triggers of an early full compaction.

    Thresholds are in bytes, the interval is in milliseconds.
    """

    interval_ms: int | None = None
    total_size_threshold: int | None = None
    incremental_size_threshold: int | None = None

    def wants(self, runs: Sequence[LevelRun], max_level: int, now_ms: int, last_full_ms: int | None) -> bool:
        """Return whether to compact all runs now.

        Always False for a single run.
        """
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
    """Off-peak hours [start, end), with a larger size ratio.

    The range may include midnight.

    >>> OffPeakHours(22, 6, 10).ratio_at(23), OffPeakHours(22, 6, 10).ratio_at(6), OffPeakHours(-1, 6, 10).ratio_at(3)
    (10, 0, 0)
    """

    start: int
    end: int
    ratio: int

    def ratio_at(self, hour: int) -> int:
        """Return the addition to the size ratio, in percent.

        ``hour`` is a local hour.
        """
        if self.start == self.end or -1 in {self.start, self.end}:
            return 0
        inside = self.start <= hour < self.end if self.start < self.end else hour >= self.start or hour < self.end
        return self.ratio if inside else 0


@dataclass(frozen=True, slots=True)
class UniversalCompaction:
    """Size-tiered compaction.

    First bounds the space amplification, then the number of runs. Percentages as in the options
    ``compaction.max-size-amplification-percent`` and ``compaction.size-ratio``; ``trigger`` is ``num-sorted-run.compaction-trigger``.
    """

    max_size_amplification: int = 200
    size_ratio: int = 1
    trigger: int = 5
    early: EarlyFullCompaction | None = None
    off_peak: OffPeakHours | None = None

    def pick(
        self, runs: Sequence[LevelRun], max_level: int, *, now_ms: int = 0, last_full_ms: int | None = None, hour: int = 0
    ) -> CompactUnit | None:
        """Return the runs to compact, a prefix of ``runs``.

        ``runs`` are newest first (``Levels.runs``). None: no compaction is due.
        """
        if self.early is not None and runs and self.early.wants(runs, max_level, now_ms, last_full_ms):
            return CompactUnit.of(max_level, runs, full=True)
        return (
            self.pick_for_size_amplification(runs, max_level)
            or self.pick_for_size_ratio(runs, max_level, hour=hour)
            or self.pick_for_run_count(runs, max_level, hour=hour)
        )

    def pick_for_size_amplification(self, runs: Sequence[LevelRun], max_level: int) -> CompactUnit | None:
        """Pick all runs if the newer runs are large.

        Their total size is compared with the oldest run.
        """
        if len(runs) < self.trigger or not runs:
            return None
        newer = sum(run.size for run in runs[:-1])
        return CompactUnit.of(max_level, runs, full=True) if newer * 100 > self.max_size_amplification * runs[-1].size else None

    def pick_for_size_ratio(self, runs: Sequence[LevelRun], max_level: int, *, hour: int = 0) -> CompactUnit | None:
        """Pick the newest run and following runs of similar size.

        Stops at a run that is much larger than the picked ones.
        """
        return self._grow(runs, max_level, 1, hour, forced=False) if len(runs) >= self.trigger else None

    def pick_for_run_count(self, runs: Sequence[LevelRun], max_level: int, *, hour: int = 0) -> CompactUnit | None:
        """Pick enough of the newest runs to return to ``trigger``."""
        count = len(runs) - self.trigger + 1
        return self._grow(runs, max_level, count, hour, forced=True) if count > 1 else None

    def force_level0(self, runs: Sequence[LevelRun], max_level: int, *, hour: int = 0) -> CompactUnit | None:
        """Pick all level-0 runs and following runs of similar size.

        None: level 0 is empty.
        """
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
    """Return the unit of the first ``count`` runs.

    The output level is directly above the next run. If that is level 0, the prefix is extended, because level-0 files may overlap.
    """
    level = max_level if count == len(runs) else max(0, runs[count].level - 1)
    while level == 0 and count < len(runs):
        level = runs[count].level
        count += 1
    if count == len(runs):
        level = max_level
    return CompactUnit.of(level, runs[:count], full=count == len(runs))


@dataclass(frozen=True, slots=True)
class ForceUpLevel0:
    """Strategy that compacts level 0 when universal compaction declines.

    With ``interval`` (gentle) it waits until level 0 has that many files.
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
        # Each flush leaves one file, so the number of level-0 files counts the declined compactions of all writers.
        if self.interval is not None and sum(run.level == 0 for run in runs) < self.interval:
            return None
        return self.universal.force_level0(runs, max_level, hour=hour)


def pick_full(
    runs: Sequence[LevelRun], max_level: int, *, force_rewrite: bool = False, stale: Callable[[DataFileMeta], bool] = lambda _: False
) -> CompactUnit | None:
    """Pick all files for the deepest level.

    If they are there already, pick only files with ``stale`` (deleted or expired) rows. None: nothing to do.
    """
    if not runs:
        return None
    if len(runs) > 1 or runs[0].level != max_level or force_rewrite:
        return CompactUnit.of(max_level, runs, full=True)
    files = tuple(file for file in runs[0].run.files if stale(file))
    return CompactUnit(max_level, files, full=True, rewrite_individually=True) if files else None


def drops_deletes(output_level: int, highest_non_empty: int) -> bool:
    """Return whether retract rows may be dropped.

    They may if no older rows exist below the output level.
    """
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
