"""Universal compaction: which runs to compact (Paimon's ``UniversalCompaction``).

Functions of the runs and the time, without state, so that a simulator can run them. The caller stores the time of the
last full compaction (``last_full_ms``).

Trivial move: universal compaction picks the newest runs, and its output may not go to level 0. A table loaded with ``write-only`` has all older
rows on level 0 too. Then a pick includes them, however large they are. Once the base is on the deepest level, Paimon's size rules
leave it alone. So the base moves there first. The move only changes metadata. The result is a valid merge tree: deeper levels are older, and each level is one
sorted run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsm.levels.sorted_runs import KeyOf, LevelRun, SortedRun, interval_partition
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
        is_off_peak = self.start <= hour < self.end if self.start < self.end else hour >= self.start or hour < self.end
        return self.ratio if is_off_peak else 0


@dataclass(frozen=True, slots=True)
class GrowingTrigger:
    """Trigger that grows with the logarithm of a bucket's size.

    Args:
        most: Largest trigger.
        level0_size: Bytes up to which the result of a merge may stay on level 0.
    """

    # K sorted runs need about (K! n) ** (1 / K) rewrites of each of n flushes. So for any fixed K, write amplification grows as a
    # polynomial of the number of flushes. It stays near log n only if K grows with log n.
    most: int = 24
    level0_size: int = 0

    def trigger(self, least: int, total_size: int, newest_size: int) -> int:
        """Return the trigger of a bucket, at least ``least``.

        Sizes are in bytes; ``newest_size`` is that of the newest run.
        """
        # With runs of doubling sizes, a bucket has this many.
        runs = math.ceil(math.log2(max(1, total_size) / max(1, newest_size)))
        return max(least, min(self.most, runs))


@dataclass(frozen=True, slots=True)
class UniversalCompaction:
    """Size-tiered compaction.

    First bounds the space amplification, then the number of runs. Percentages as in the options
    ``compaction.max-size-amplification-percent`` and ``compaction.size-ratio``; ``trigger`` is ``num-sorted-run.compaction-trigger``.
    ``growth``: how the trigger grows with the bucket. None: it is fixed, as in Paimon.
    """

    max_size_amplification: int = 200
    size_ratio: int = 1
    trigger: int = 5
    early: EarlyFullCompaction | None = None
    off_peak: OffPeakHours | None = None
    growth: GrowingTrigger | None = None

    def trigger_of(self, runs: Sequence[LevelRun]) -> int:
        """Return the number of runs from which the bucket compacts."""
        if self.growth is None or not runs:
            return self.trigger
        return self.growth.trigger(self.trigger, sum(run.size for run in runs), runs[0].size)

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
        if len(runs) < self.trigger_of(runs) or not runs:
            return None
        newer = sum(run.size for run in runs[:-1])
        return CompactUnit.of(max_level, runs, full=True) if newer * 100 > self.max_size_amplification * runs[-1].size else None

    def pick_for_size_ratio(self, runs: Sequence[LevelRun], max_level: int, *, hour: int = 0) -> CompactUnit | None:
        """Pick the newest run and following runs of similar size.

        Stops at a run that is much larger than the picked ones.
        """
        return self._grow(runs, max_level, 1, hour, forced=False) if len(runs) >= self.trigger_of(runs) else None

    def pick_for_run_count(self, runs: Sequence[LevelRun], max_level: int, *, hour: int = 0) -> CompactUnit | None:
        """Pick enough of the newest runs to return to the trigger."""
        count = len(runs) - self.trigger_of(runs) + 1
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
        level0_size = self.growth.level0_size if self.growth else 0
        for following in runs[count:]:
            # A result for level 1 needs the runs up to level 1, however large they are. A result that stays on level 0 does not.
            ends = not triggered or following.level > 1 or size <= level0_size
            if ends and size * (100.0 + ratio) / 100.0 < following.size:
                break
            size += following.size
            count += 1
            triggered = True
        return unit_of_prefix(runs, max_level, count, level0_size) if triggered else None


def unit_of_prefix(runs: Sequence[LevelRun], max_level: int, count: int, level0_size: int = 0) -> CompactUnit:
    """Return the unit of the first ``count`` runs.

    The output level is directly above the next run. If that is level 0, the prefix is extended, because level-0 files may overlap.
    It is not extended if the runs have at most ``level0_size`` bytes: the result is one file, which is a run of level 0.
    """
    level = max_level if count == len(runs) else max(0, runs[count].level - 1)
    if level == 0 and sum(run.size for run in runs[:count]) <= level0_size:
        return CompactUnit.of(0, runs[:count], full=False)
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

    def trigger_of(self, runs: Sequence[LevelRun]) -> int:
        """See ``UniversalCompaction.trigger_of``."""
        return self.universal.trigger_of(runs)

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


Pick = Callable[[Sequence[LevelRun]], CompactUnit | None]


def trivial_move(runs: Sequence[LevelRun], max_level: int, key_of: KeyOf, pick: Pick, min_file_size: int) -> SortedRun | None:
    """Return the files to move to ``max_level`` before compacting.

    None: compact the pick unchanged. The bucket must have files on level 0 only. The moved files are the oldest ones, form one sorted run
    and are older than all others. At most one may be below ``min_file_size``, because small files should be merged.
    They move if the pick contains one of them, but would not contain them on ``max_level``.

    Args:
        runs: All runs of the bucket, newest first (``Levels.runs``).
        max_level: Deepest level of the bucket.
        key_of: Makes serialised keys comparable.
        pick: Strategy. It must not keep state between calls.
        min_file_size: Size in bytes from which a compaction moves a file without overlaps.
    """
    picked = pick(runs) if runs and runs[-1].level == 0 else None
    if picked is None:
        return None
    picked_names = {file.file_name for file in picked.files}
    files = [file for run in runs for file in run.run.files]
    for first in range(len(files) - _most_files(files, min_file_size), len(files)):
        newer, base = files[:first], files[first:]
        if _is_run_below(base, newer, key_of) and not picked_names.isdisjoint(file.file_name for file in base):
            moved = SortedRun(tuple(sorted(base, key=lambda file: key_of(file.min_key))))
            then = pick([*runs[:first], LevelRun(max_level, moved)])
            if then is None or not then.full:
                return moved
    return None


def _most_files(files: Sequence[DataFileMeta], min_file_size: int) -> int:
    """Count the oldest files before the second small one."""
    small = [index for index, file in enumerate(reversed(files)) if file.file_size < min_file_size]
    return small[1] if len(small) > 1 else len(files)


def _is_run_below(files: Sequence[DataFileMeta], newer: Sequence[DataFileMeta], key_of: KeyOf) -> bool:
    """Return whether the files are one run older than ``newer``.

    Their key ranges must be disjoint, and their sequence numbers smaller than all of ``newer``.
    """
    if newer and max(file.max_sequence_number for file in files) >= min(file.min_sequence_number for file in newer):
        return False
    return all(len(section) == 1 for section in interval_partition(files, key_of))
