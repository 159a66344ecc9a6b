"""Compaction of one bucket of a primary-key table (Paimon's ``MergeTreeCompactManager`` and ``MergeTreeCompactTask``)."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from lsm.compaction.policy import CompactionPolicy
from lsm.compaction.rewriter import CompactResult, Merge, Rewriter
from lsm.levels.sorted_runs import KeyOf, LevelRun, Levels, Section, SortedRun, interval_partition
from lsm.levels.universal import CompactUnit, drops_deletes, pick_full, trivial_move
from manifest.entry.data_file import DataFileMeta, FileSource, wall_clock_millis
from paimon_base.log import logger_of

if TYPE_CHECKING:
    from lsm.compaction.changelog import ChangelogWriter
    from lsm.compaction.delete_retention import DeleteRetention
    from lsm.compaction.record_expiry import RecordExpiry
    from lsm.deletion_vectors.maintainer import BucketVectors

_LOG = logger_of(__name__)
MillisClock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A file that only changes its level in the metadata."""

    file: DataFileMeta


@dataclass(frozen=True, slots=True)
class DropDeletes:
    """A file without overlaps that has deletes or expired rows to drop."""

    file: DataFileMeta


@dataclass(frozen=True, slots=True)
class Nothing:
    """A file that is on its level already."""

    file: DataFileMeta


CompactChoice: TypeAlias = Merge | Upgrade | DropDeletes | Nothing


def plan_merges(files: Sequence[DataFileMeta], key_of: KeyOf, min_file_size: int) -> list[Merge | DataFileMeta]:
    """Return merges and files without overlap, in key order.

    Overlapping files are merged. Files below ``min_file_size`` are merged with adjacent files. A single small file is not merged.
    """
    steps: list[Merge | DataFileMeta] = []
    candidates: list[Section] = []

    def flush() -> None:
        if len(candidates) == 1 and len(candidates[0]) == 1:
            steps.extend(candidates[0][0].files)
        elif candidates:
            steps.append(Merge(tuple(candidates)))
        candidates.clear()

    for section in interval_partition(files, key_of):
        if len(section) > 1:
            candidates.append(section)
            continue
        for file in section[0].files:
            if file.file_size < min_file_size:
                candidates.append([SortedRun((file,))])
            else:
                flush()
                steps.append(file)
    flush()
    return steps


@dataclass(frozen=True, kw_only=True)
class CompactionContext:
    """Inputs of the compaction of a bucket.

    Args:
        policy: Compaction options of the table.
        rewriter: Merges and upgrades files.
        rewrite_file: Rewrites the rows of a file on its level.
        changelog: Receives the changelog of ``rewriter``. None: compactions write none.
        vectors: Deletion vectors. With them a compaction above level 0 keeps no deletes, because deleted rows are marked in place.
        expiry: Files with expired rows are rewritten.
        retention: Deletes stay on every level until their time is over. None: the deepest level has none.
        knows_all_columns: Whether no file has a newer schema. False: nothing is compacted, because a rewrite would lose the added columns.
        has_no_deletes: Proves that a file has no deletes. A moved file then counts as compacted, which secondary indexes need. None: a moved
            file keeps its source, as in Paimon.
        is_unindexed: Whether no secondary index can cover a file as it is. A full compaction rewrites it. None: the table has no such index.
        clock: Milliseconds of the local wall clock, like ``creation_time`` of files.
        name: Table and bucket, for logs.
    """

    policy: CompactionPolicy
    rewriter: Rewriter
    rewrite_file: Callable[[DataFileMeta], list[DataFileMeta]]
    changelog: ChangelogWriter | None = None
    vectors: BucketVectors | None = None
    expiry: RecordExpiry | None = None
    retention: DeleteRetention | None = None
    knows_all_columns: bool = True
    has_no_deletes: Callable[[DataFileMeta], bool] | None = None
    is_unindexed: Callable[[DataFileMeta], bool] | None = None
    clock: MillisClock = wall_clock_millis
    name: str = "bucket"


class BucketCompactor:
    """Levels of one bucket, and their compaction in the calling thread.

    ``drain`` returns the net file changes for a commit, ``undo`` deletes the new files.
    """

    def __init__(self, context: CompactionContext, levels: Levels) -> None:
        self.context = context
        self.levels = levels
        self._increment = CompactIncrement(context.rewriter.discard)
        self._changelog_files: list[DataFileMeta] = []
        # The time of the last full compaction is stored nowhere: take that of the newest file on the deepest level.
        creation_times = [file.creation_time for file in levels.files if file.level == levels.max_level and file.creation_time is not None]
        self._last_full_ms: int | None = max(creation_times, default=None)

    @property
    def is_due(self) -> bool:
        """Whether ``compact`` would compact files now."""
        return self._pick_now(self.levels.runs) is not None

    def compact(self, *, full: bool = False) -> CompactResult | None:
        """Compact the files picked by the strategy, or all.

        None: nothing to do. Levels change only on success; on failure all new files are deleted.
        """
        if not self.context.knows_all_columns:
            return None
        if not full:
            self.move_base()
        unit = self._pick(full=full)
        if unit is None:
            return None
        changelog, result = self.context.changelog, CompactResult()
        try:
            for choice in self._choices(unit):
                self._carry_out(choice, unit.output_level, result)
            changelog_files = [] if changelog is None else changelog.finish()
        except BaseException:
            if changelog is not None:
                changelog.abort()
            for file in result.new_files:
                self.context.rewriter.discard(file)
            raise
        self._apply(result)
        level = result.after[0].level if result.after else self.levels.max_level
        # Readers that skip level 0 also skip a changelog of level 0.
        self._changelog_files += [file.upgrade(level) for file in changelog_files]
        before, after = result.before, result.after
        _LOG.info(
            "%s: compacted %d files into %d on level %d: %s", self.context.name, len(before), len(after), unit.output_level, _names(before)
        )
        return result

    def move_base(self) -> CompactResult | None:
        """Move the oldest level-0 files to the deepest level.

        Moves them only if the strategy then does not rewrite them. None: nothing was moved.
        """
        # A compaction could make the same move: no file is read, no changelog is due, and no delete that it would drop
        # reaches the deepest level.
        levels, rewriter = self.levels, self.context.rewriter
        base = trivial_move(levels.runs, levels.max_level, levels.key_of, self._pick_now, self.context.policy.min_file_size)
        if base is None:
            return None
        if not all(self._may_stay(file, levels.max_level) and rewriter.can_upgrade(file, levels.max_level) for file in base.files):
            return None
        result = CompactResult(list(base.files), [self._moved(file, levels.max_level) for file in base.files])
        self._apply(result)
        return result

    def rewrite(self, names: Collection[str]) -> None:
        """Rewrite files one by one, with the same rows.

        Each file stays on its level. No changelog: no row changes.
        """
        for file in [file for file in self.levels.files if file.file_name in names]:
            self._apply(CompactResult([file], self.context.rewrite_file(file)))

    def drain(self) -> tuple[list[DataFileMeta], list[DataFileMeta], list[DataFileMeta]]:
        """Return removed, added and changelog files, and reset."""
        changelog_files, self._changelog_files = self._changelog_files, []
        return (*self._increment.drain(), changelog_files)

    def undo(self) -> None:
        """Delete the files created since the last ``drain``."""
        self._increment.undo()
        if self.context.changelog is not None:
            for file in self._changelog_files:
                self.context.changelog.discard(file)
        self._changelog_files = []

    def _apply(self, result: CompactResult) -> None:
        self.levels.update(result.before, result.after)
        self._increment.add(result)

    def _choices(self, unit: CompactUnit) -> Iterator[CompactChoice]:
        """Yield what happens to the files of ``unit``, in key order."""
        if unit.rewrite_individually:
            yield from map(DropDeletes, unit.files)
            return
        for step in plan_merges(unit.files, self.levels.key_of, self.context.policy.min_file_size):
            if isinstance(step, Merge):
                yield step
            elif not self._may_stay(step, unit.output_level):
                yield DropDeletes(step)
            else:
                yield Nothing(step) if step.level == unit.output_level else Upgrade(step)

    def _carry_out(self, choice: CompactChoice, output_level: int, result: CompactResult) -> None:
        match choice:
            case Nothing():
                return
            case Upgrade(file) if self.context.rewriter.upgrade(file, output_level):
                result.before.append(file)
                result.after.append(self._moved(file, output_level))
                return
            case Upgrade(file) | DropDeletes(file):
                merge = Merge(([SortedRun((file,))],))
            case Merge():
                merge = choice
        marks_deletes = self.context.vectors is not None and output_level > 0
        drop_delete = marks_deletes or drops_deletes(output_level, self.levels.highest_non_empty)
        new_files = self.context.rewriter.rewrite(merge, output_level, drop_delete=drop_delete)
        result.before.extend(merge.files)
        result.after.extend(new_files)

    def _moved(self, file: DataFileMeta, level: int) -> DataFileMeta:
        has_no_deletes = self.context.has_no_deletes
        moved = file.upgrade(level)
        return (
            moved.model_copy(update={"file_source": FileSource.COMPACT}) if has_no_deletes is not None and has_no_deletes(file) else moved
        )

    def _may_stay(self, file: DataFileMeta, output_level: int) -> bool:
        """Return whether a file may move to ``output_level`` without a rewrite."""
        context = self.context
        if context.policy.force_rewrite or self._has_expired_rows(file):
            return False
        # The deepest level must not hold deletes, except retained ones. A file with an unknown number of deletes may hold some.
        retained = context.retention is not None and not context.retention.is_over(file)
        return output_level != self.levels.max_level or file.delete_row_count == 0 or retained

    def _pick(self, *, full: bool) -> CompactUnit | None:
        runs, max_level, context = self.levels.runs, self.levels.max_level, self.context
        now = context.clock()
        if full:
            unit = pick_full(runs, max_level, force_rewrite=context.policy.force_rewrite, stale=self._is_stale)
        else:
            unit = self._pick_by_strategy(runs, now)
            if unit is not None and unit.changes_nothing:
                unit = None
        if unit is not None and unit.full:
            self._last_full_ms = now
        picked = "nothing" if unit is None else f"{len(unit.files)} files for level {unit.output_level}"
        sizes = [(run.level, run.size) for run in runs]
        kind = "full" if full else "universal"
        _LOG.debug("%s: picked for %s compaction: %s of the runs (level, bytes) %s", context.name, kind, picked, sizes)
        return unit

    def _has_expired_rows(self, file: DataFileMeta) -> bool:
        return self.context.expiry is not None and self.context.expiry.has_expired_rows(file)

    def _is_stale(self, file: DataFileMeta) -> bool:
        """Return whether a full compaction would remove a file's rows, or make it known to indexes."""
        retention, vectors = self.context.retention, self.context.vectors
        if self.context.is_unindexed is not None and self.context.is_unindexed(file):
            return True
        drops = bool(file.delete_row_count) and (retention is None or retention.is_over(file))
        return drops or self._has_expired_rows(file) or (vectors is not None and file.file_name in vectors)

    def _pick_now(self, runs: Sequence[LevelRun]) -> CompactUnit | None:
        """Return the current pick of the strategy."""
        return self._pick_by_strategy(runs, self.context.clock())

    def _pick_by_strategy(self, runs: Sequence[LevelRun], now_ms: int) -> CompactUnit | None:
        # The clock counts local time already, so gmtime adds no offset.
        hour = time.gmtime(now_ms // 1000).tm_hour
        return self.context.policy.strategy.pick(runs, self.levels.max_level, now_ms=now_ms, last_full_ms=self._last_full_ms, hour=hour)


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

    def add(self, result: CompactResult) -> None:
        """Add the result of a compaction."""
        uncommitted = {file.file_name for file in self.after}
        remaining = {file.file_name for file in result.after}
        for file in result.before:
            if file.file_name not in uncommitted:
                self.before.setdefault(file.file_name, file)
                continue
            self.after = [other for other in self.after if other.file_name != file.file_name]
            if file.file_name not in self.before and file.file_name not in remaining:
                self.discard(file)
        self.after.extend(result.after)

    def drain(self) -> tuple[list[DataFileMeta], list[DataFileMeta]]:
        """Return removed and added files, and reset."""
        drained = list(self.before.values()), self.after
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
