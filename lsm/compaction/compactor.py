"""Compaction of a bucket within a write (Paimon's ``MergeTreeCompactManager``)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lsm.compaction.policy import CompactionPolicy, CompactStrategy
from lsm.compaction.rewriter import CompactTaskResult, MergeTreeCompactTask, Rewriter
from lsm.levels.sorted_runs import KeyOf, LevelRun, Levels
from lsm.levels.universal import CompactUnit, drops_deletes, pick_full, trivial_move
from manifest.entry.data_file import DataFileMeta, wall_clock_millis
from paimon_base.log import logger_of

if TYPE_CHECKING:
    from lsm.compaction.delete_retention import DeleteRetention
    from lsm.compaction.record_expiry import RecordExpiry
    from lsm.deletion_vectors.maintainer import BucketVectors

_LOG = logger_of(__name__)
MillisClock = Callable[[], int]


class MergeTreeCompactManager:
    """Levels of one bucket, and their compaction.

    Compactions run in the calling thread.

    ``clock`` returns milliseconds of the local wall clock, like ``creation_time`` of files. With ``vectors`` a compaction above level 0 keeps
    no deletes, because deleted rows are marked in place. With ``expiry`` files with expired rows are rewritten. With ``retention`` deletes stay
    on every level until their time is over. ``name`` is the table and bucket, for logs.
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
        retention: DeleteRetention | None = None,
        name: str = "bucket",
    ) -> None:
        self.levels = Levels(key_of, files, policy.number_of_levels)
        self._policy = policy
        self._rewriter = rewriter
        self._clock = clock
        self._vectors = vectors
        self._retention = retention
        self._name = name
        self._expired = (lambda _: False) if expiry is None else expiry.has_expired_rows
        deepest = [file.creation_time for file in files if file.level == self.levels.max_level and file.creation_time is not None]
        self._last_full_ms: int | None = max(deepest, default=None)

    def add(self, files: list[DataFileMeta]) -> None:
        """Add level-0 files."""
        self.levels.update((), files)

    @property
    def is_due(self) -> bool:
        """Whether ``compact`` would compact files now."""
        return self._pick_now(self.levels.runs) is not None

    def move_base(self) -> CompactTaskResult | None:
        """Move the oldest level-0 files to the deepest level.

        Moves them only if the strategy then does not rewrite them. None: nothing was moved.
        """
        # A compaction could make the same move: no file is read, no changelog is due, and no delete that it would drop
        # reaches the deepest level.
        levels = self.levels
        base = trivial_move(levels.runs, levels.max_level, levels.key_of, self._pick_now, self._policy.min_file_size)
        if base is None or not self._task(CompactUnit(levels.max_level, base.files)).only_upgrades(self._rewriter):
            return None
        result = CompactTaskResult(list(base.files), [file.upgrade(levels.max_level) for file in base.files])
        levels.update(result.before, result.after)
        return result

    def replace(self, file: DataFileMeta, made: list[DataFileMeta]) -> CompactTaskResult:
        """Replace a file by files with the same rows.

        The level stays the same.
        """
        result = CompactTaskResult([file], made)
        self.levels.update(result.before, result.after)
        return result

    def compact(self, *, full: bool = False) -> CompactTaskResult | None:
        """Compact the files picked by the strategy, or all.

        None: nothing to do. Levels change only on success.
        """
        unit = self._pick(full=full)
        if unit is None:
            return None
        result = self._task(unit).run(self.levels.key_of, self._rewriter)
        self.levels.update(result.before, result.after)
        before, after = result.before, result.after
        _LOG.info("%s: compacted %d files into %d on level %d: %s", self._name, len(before), len(after), unit.output_level, _names(before))
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
            retention=self._retention,
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
        kind = "full" if full else "universal"
        _LOG.debug("%s: picked for %s compaction: %s of the runs (level, bytes) %s", self._name, kind, picked, sizes)
        return unit

    def _is_stale(self, file: DataFileMeta) -> bool:
        """Return whether a full compaction would remove a file's rows."""
        drops = bool(file.delete_row_count) and (self._retention is None or self._retention.is_over(file))
        return drops or self._expired(file) or (self._vectors is not None and file.file_name in self._vectors)

    def _pick_now(self, runs: Sequence[LevelRun]) -> CompactUnit | None:
        """Return the current pick of the strategy."""
        return self._by_strategy(self._policy.strategy, runs, self._clock())

    def _by_strategy(self, strategy: CompactStrategy, runs: Sequence[LevelRun], now: int) -> CompactUnit | None:
        hour = time.gmtime(now // 1000).tm_hour
        return strategy.pick(runs, self.levels.max_level, now_ms=now, last_full_ms=self._last_full_ms, hour=hour)


def _names(files: Sequence[DataFileMeta]) -> str:
    return ", ".join(file.file_name for file in files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")


@dataclass(slots=True)
class CompactIncrement:
    """Net file changes of the compactions of one commit cycle.

    A file created and replaced within the cycle was never visible. It is deleted at once.
    """

    discard: Callable[[DataFileMeta], None]
    before: dict[str, DataFileMeta] = field(default_factory=dict)
    after: list[DataFileMeta] = field(default_factory=list)

    def add(self, result: CompactTaskResult) -> None:
        """Add the result of a compaction."""
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
        """Return (before, after), and reset."""
        drained = tuple(self.before.values()), tuple(self.after)
        self.before, self.after = {}, []
        return drained

    def undo(self) -> None:
        """Delete the files created in this cycle.

        Moved files belong to older snapshots and stay.
        """
        for file in self.after:
            if file.file_name not in self.before:
                self.discard(file)
        self.before, self.after = {}, []
