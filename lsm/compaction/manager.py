"""When a bucket is compacted, and what a commit cycle makes of it (Paimon's ``MergeTreeCompactManager``)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from fileindex.base.log import logger_of
from lsm.compaction.task import CompactTaskResult, MergeTreeCompactTask, Rewriter
from lsm.levels.sorted_runs import KeyOf, LevelRun, Levels
from lsm.levels.trivial_move import trivial_move
from lsm.levels.universal import (
    CompactUnit,
    EarlyFullCompaction,
    ForceUpLevel0,
    OffPeakHours,
    UniversalCompaction,
    drops_deletes,
    pick_full,
)
from manifest.entry.data_file import DataFileMeta, wall_clock_millis
from manifest.options.core_options import CoreOptions

if TYPE_CHECKING:
    from lsm.compaction.record_expiry import RecordExpiry
    from lsm.deletion_vectors.maintainer import BucketVectors

_LOG = logger_of(__name__)
MillisClock = Callable[[], int]
CompactStrategy: TypeAlias = UniversalCompaction | ForceUpLevel0


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """A table's options, as far as they decide about compaction."""

    strategy: CompactStrategy
    number_of_levels: int
    min_file_size: int
    force_rewrite: bool = False

    @classmethod
    def of(cls, options: CoreOptions) -> CompactionPolicy:
        """The policy of a primary-key table."""
        early = EarlyFullCompaction(
            options.compaction_optimization_interval,
            options.compaction_total_size_threshold,
            options.compaction_incremental_size_threshold,
        )
        universal = UniversalCompaction(
            options.compaction_max_size_amplification_percent,
            options.compaction_size_ratio,
            options.num_sorted_run_compaction_trigger,
            None if early == EarlyFullCompaction() else early,
            OffPeakHours(options.compaction_offpeak_start_hour, options.compaction_offpeak_end_hour, options.compaction_offpeak_ratio),
        )
        forced = options.needs_lookup or options.compaction_force_up_level_0
        trigger = options.num_sorted_run_compaction_trigger
        interval = max(trigger, options.lookup_compact_max_interval or 2 * trigger) if options.lookup_compact == "gentle" else None
        return cls(
            ForceUpLevel0(universal, interval if options.needs_lookup else None) if forced else universal,
            options.max_level + 1,
            int(options.target_size(has_primary_key=True) * options.compaction_small_file_ratio),
            options.compaction_force_rewrite_all_files,
        )


class MergeTreeCompactManager:
    """Holds the levels of one bucket, picks what to compact and does it, in the calling thread.

    ``clock`` gives milliseconds of the local wall clock, as files have them in ``creation_time``. With ``vectors`` deletes
    never need to be kept: what they delete is marked where it lies. With ``expiry`` files with expired rows are written anew.
    """

    def __init__(
        self,
        key_of: KeyOf,
        files: list[DataFileMeta],
        policy: CompactionPolicy,
        rewriter: Rewriter,
        clock: MillisClock = wall_clock_millis,
        *,
        vectors: BucketVectors | None = None,
        expiry: RecordExpiry | None = None,
    ) -> None:
        self.levels = Levels(key_of, files, policy.number_of_levels)
        self._policy = policy
        self._rewriter = rewriter
        self._clock = clock
        self._vectors = vectors
        self._expired = (lambda _: False) if expiry is None else expiry.has_expired_rows
        deepest = [file.creation_time for file in files if file.level == self.levels.max_level and file.creation_time is not None]
        self._last_full_ms: int | None = max(deepest, default=None)

    def add(self, files: list[DataFileMeta]) -> None:
        """Take new level-0 files."""
        self.levels.update((), files)

    @property
    def is_due(self) -> bool:
        """Whether ``compact`` would find something to do now."""
        return self._asked(self.levels.runs) is not None

    def move_base(self) -> CompactTaskResult | None:
        """Move the bucket's oldest files from level 0 to the deepest level, if the strategy then need not rewrite them; else None.

        The move is one that a compaction would make, too: nothing is read, no delete comes to rest, no changelog is due.
        """
        levels = self.levels
        base = trivial_move(levels.runs, levels.max_level, levels.key_of, self._asked, self._policy.min_file_size)
        if base is None or not self._task(CompactUnit(levels.max_level, base.files)).only_upgrades(self._rewriter):
            return None
        result = CompactTaskResult(list(base.files), [file.upgrade(levels.max_level) for file in base.files])
        levels.update(result.before, result.after)
        return result

    def replace(self, file: DataFileMeta, made: list[DataFileMeta]) -> CompactTaskResult:
        """Have other files, with the same rows on the same level, in the place of one."""
        result = CompactTaskResult([file], made)
        self.levels.update(result.before, result.after)
        return result

    def compact(self, *, full: bool = False) -> CompactTaskResult | None:
        """Compact what the strategy picks, or everything; None if there is nothing to do. Levels change only on success."""
        unit = self._pick(full=full)
        if unit is None:
            return None
        result = self._task(unit).run(self.levels.key_of, self._rewriter)
        self.levels.update(result.before, result.after)
        before, after = result.before, result.after
        _LOG.info("compacted %d files to %d on level %d: %s", len(before), len(after), unit.output_level, _names(before))
        return result

    def _task(self, unit: CompactUnit) -> MergeTreeCompactTask:
        marks = self._vectors is not None and unit.output_level > 0
        return MergeTreeCompactTask(
            unit.files,
            unit.output_level,
            self.levels.max_level,
            marks or drops_deletes(unit.output_level, self.levels.highest_non_empty),
            self._policy.min_file_size,
            self._policy.force_rewrite,
            rewrite_individually=unit.rewrite_individually,
            expired=self._expired,
        )

    def _pick(self, *, full: bool) -> CompactUnit | None:
        runs, max_level = self.levels.runs, self.levels.max_level
        now = self._clock()
        if full:
            unit = pick_full(runs, max_level, force_rewrite=self._policy.force_rewrite, stale=self._is_stale)
        else:
            unit = self._by_strategy(self._policy.strategy, runs, now)
            if unit is not None and unit.changes_nothing:
                unit = None
        if unit is not None and unit.full:
            self._last_full_ms = now
        picked = "nothing" if unit is None else f"{len(unit.files)} files for level {unit.output_level}"
        sizes = [(run.level, run.size) for run in runs]
        _LOG.debug("%s compaction picks %s of the runs (level, bytes) %s", "full" if full else "universal", picked, sizes)
        return unit

    def _is_stale(self, file: DataFileMeta) -> bool:
        """Whether a file holds rows that a full compaction takes out, wherever the file lies."""
        return self._expired(file) or (self._vectors is not None and file.file_name in self._vectors)

    def _asked(self, runs: Sequence[LevelRun]) -> CompactUnit | None:
        """What the strategy would pick now."""
        return self._by_strategy(self._policy.strategy, runs, self._clock())

    def _by_strategy(self, strategy: CompactStrategy, runs: Sequence[LevelRun], now: int) -> CompactUnit | None:
        hour = time.gmtime(now // 1000).tm_hour
        return strategy.pick(runs, self.levels.max_level, now_ms=now, last_full_ms=self._last_full_ms, hour=hour)


def _names(files: Sequence[DataFileMeta]) -> str:
    return ", ".join(file.file_name for file in files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")


@dataclass(slots=True)
class CompactIncrement:
    """The compactions of one commit cycle, folded into one change.

    A file that an earlier compaction of the cycle made and a later one replaced was never visible: it is discarded at once.
    """

    discard: Callable[[DataFileMeta], None]
    before: dict[str, DataFileMeta] = field(default_factory=dict)
    after: list[DataFileMeta] = field(default_factory=list)

    def add(self, result: CompactTaskResult) -> None:
        """Append one compaction's result."""
        made = {file.file_name for file in self.after}
        kept = {file.file_name for file in result.after}
        for file in result.before:
            if file.file_name not in made:
                self.before.setdefault(file.file_name, file)
                continue
            self.after = [other for other in self.after if other.file_name != file.file_name]
            if file.file_name not in self.before and file.file_name not in kept:
                self.discard(file)
        self.after.extend(result.after)

    def drain(self) -> tuple[tuple[DataFileMeta, ...], tuple[DataFileMeta, ...]]:
        """(before, after), and start over."""
        drained = tuple(self.before.values()), tuple(self.after)
        self.before, self.after = {}, []
        return drained

    def undo(self) -> None:
        """Discard every file that compactions of the cycle made; those that only moved belong to older snapshots."""
        for file in self.after:
            if file.file_name not in self.before:
                self.discard(file)
        self.before, self.after = {}, []


__all__ = ["CompactIncrement", "CompactionPolicy", "MergeTreeCompactManager"]
