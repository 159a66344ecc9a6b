"""Compaction task of a merge tree.

Decides which files are merged and which only move, then executes it. Paimon's ``MergeTreeCompactTask`` and ``MergeTreeCompactRewriter``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from lsm.compaction.delete_retention import DeleteRetention, drop_deletes
from lsm.data_files.rolling import discard_files, key_value_writer
from lsm.data_files.writer import FileTarget
from lsm.keys.sort import SortKey
from lsm.levels.sorted_runs import KeyOf, Section, SortedRun, interval_partition
from lsm.merge.function import MergeFunction, combines_versions, with_level, without_level
from lsm.merge.merge_iterator import MergeRound, merge_runs
from lsm.read.full_scan import batch_bytes_of, every_row, file_rows, runs_that_count
from manifest.entry.data_file import DataFileMeta, FileSource
from paimon_base.lazy import cached_property

if TYPE_CHECKING:
    from lsm.compaction.record_expiry import RecordExpiry
    from lsm.deletion_vectors.maintainer import BucketVectors
    from lsm.read.file_filter import FileFilter

ChangeObserver: TypeAlias = Callable[[MergeRound], None]
"""Receives each merge round: all versions with their ``_LEVEL``, and their result."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Sections to merge into one run of files.

    They are in key order. No other picked file lies between them.
    """

    sections: tuple[Section, ...]

    @property
    def files(self) -> Iterator[DataFileMeta]:
        """All input files."""
        return (file for section in self.sections for run in section for file in run.files)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A file that only changes its level in the metadata."""

    file: DataFileMeta


CompactStep: TypeAlias = Rewrite | Upgrade


@dataclass(slots=True)
class CompactTaskResult:
    """Files removed and files added by a compaction.

    An upgraded file is in both.
    """

    before: list[DataFileMeta] = field(default_factory=list)
    after: list[DataFileMeta] = field(default_factory=list)

    @property
    def made(self) -> Iterator[DataFileMeta]:
        """Files of ``after`` that are physically new."""
        older = {file.file_name for file in self.before}
        return (file for file in self.after if file.file_name not in older)


def plan_steps(files: Sequence[DataFileMeta], key_of: KeyOf, min_file_size: int) -> list[CompactStep]:
    """Return the compaction steps, in key order.

    Overlapping files are merged. A large file without overlap only moves. Smaller ones are merged with adjacent files.
    A single small file without overlap only moves.
    """
    steps: list[CompactStep] = []
    candidates: list[Section] = []

    def flush() -> None:
        if len(candidates) == 1 and len(candidates[0]) == 1:
            steps.extend(Upgrade(file) for file in candidates[0][0].files)
        elif candidates:
            steps.append(Rewrite(tuple(candidates)))
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
                steps.append(Upgrade(file))
    flush()
    return steps


class Rewriter(Protocol):
    """Rewrites and moves of files. Tests can replace it."""

    def rewrite(self, rewrite: Rewrite, output_level: int, *, drop_delete: bool) -> list[DataFileMeta]:
        """Merge the input files into new files on ``output_level``."""

    def upgrade(self, file: DataFileMeta, output_level: int) -> bool:
        """Prepare moving a file unchanged to ``output_level``.

        Returns False without any effect if the file must be rewritten.
        """

    def can_upgrade(self, file: DataFileMeta, output_level: int) -> bool:
        """Return whether ``upgrade`` only changes metadata."""

    def discard(self, file: DataFileMeta) -> None:
        """Delete an uncommitted file."""


@dataclass(frozen=True, slots=True)
class MergeTreeCompactTask:
    """Compaction of ``files`` to ``output_level``.

    Args:
        force_rewrite: Rewrite every file, move no file (``compaction.force-rewrite-all-files``).
        rewrite_individually: Rewrite each file separately.
        expired: Returns whether a file has expired rows and must be rewritten.
        retention: Retention of deletes. None: the deepest level holds none.
    """

    files: Sequence[DataFileMeta]
    output_level: int
    max_level: int
    drop_delete: bool
    min_file_size: int
    force_rewrite: bool = False
    rewrite_individually: bool = False
    expired: Callable[[DataFileMeta], bool] = lambda _: False
    retention: DeleteRetention | None = None

    def run(self, key_of: KeyOf, rewriter: Rewriter) -> CompactTaskResult:
        """Run the task. On failure all new files are deleted."""
        result = CompactTaskResult()
        try:
            for step in self._steps(key_of):
                self._run_step(step, rewriter, result)
        except BaseException:
            for file in result.made:
                rewriter.discard(file)
            raise
        return result

    def only_upgrades(self, rewriter: Rewriter) -> bool:
        """Return whether all files can move without being read.

        Assumes that the files do not overlap others.
        """
        return all(self._may_stay(file) and rewriter.can_upgrade(file, self.output_level) for file in self.files)

    def _steps(self, key_of: KeyOf) -> Sequence[CompactStep]:
        if self.rewrite_individually:
            return [Rewrite(([SortedRun((file,))],)) for file in self.files]
        return plan_steps(self.files, key_of, self.min_file_size)

    def _run_step(self, step: CompactStep, rewriter: Rewriter, result: CompactTaskResult) -> None:
        if isinstance(step, Upgrade) and self._try_upgrade(step.file, rewriter):
            if step.file.level != self.output_level:
                result.before.append(step.file)
                result.after.append(step.file.upgrade(self.output_level))
            return
        rewrite = step if isinstance(step, Rewrite) else Rewrite(([SortedRun((step.file,))],))
        made = rewriter.rewrite(rewrite, self.output_level, drop_delete=self.drop_delete)
        result.before.extend(rewrite.files)
        result.after.extend(made)

    def _try_upgrade(self, file: DataFileMeta, rewriter: Rewriter) -> bool:
        return self._may_stay(file) and (file.level == self.output_level or rewriter.upgrade(file, self.output_level))

    def _may_stay(self, file: DataFileMeta) -> bool:
        """Return whether a file may move without a rewrite."""
        if self.force_rewrite or self.expired(file):
            return False
        # The deepest level must not hold deletes, except retained ones. A file with an unknown number of deletes may hold some.
        retained = self.retention is not None and not self.retention.is_over(file)
        return self.output_level != self.max_level or file.delete_row_count == 0 or retained


@dataclass(frozen=True)
class MergeTreeRewriter:
    """Rewriter that merges sections in bounded memory.

    Rows deleted in ``vectors`` and rows expired by ``expiry`` are dropped. The deletion vectors of rewritten files are removed.
    Where deletes are dropped, those that ``retention`` holds stay.
    """

    target: FileTarget
    partition: bytes
    bucket: int
    key: SortKey
    fold: MergeFunction
    vectors: BucketVectors | None = None
    expiry: RecordExpiry | None = None
    retention: DeleteRetention | None = None

    @cached_property
    def _every_row(self) -> FileFilter:
        return every_row(self.target.store)

    def rewrite(self, rewrite: Rewrite, output_level: int, *, drop_delete: bool) -> list[DataFileMeta]:
        """See ``Rewriter``."""
        dictionaries = self._never_null(rewrite) if not combines_versions(self.fold) else frozenset()
        merged = (self.merge_section(section, drop_delete=drop_delete, dictionaries=dictionaries) for section in rewrite.sections)
        return self.write_files(rewrite, output_level, itertools.chain.from_iterable(merged))

    def rewrite_file(self, file: DataFileMeta) -> list[DataFileMeta]:
        """Rewrite the live rows of a file on its level.

        Ignores the file's statistics.
        """
        run = SortedRun((file.without_statistics(),))
        return self.write_files(Rewrite(([run],)), file.level, replace(self, expiry=None).rows(run, 1, drop_delete=False))

    def upgrade(self, file: DataFileMeta, output_level: int) -> bool:  # noqa: ARG002 -- independent of the level
        """See ``Rewriter``."""
        return True

    def can_upgrade(self, file: DataFileMeta, output_level: int) -> bool:  # noqa: ARG002 -- as above
        """See ``Rewriter``."""
        return True

    def discard(self, file: DataFileMeta) -> None:
        """See ``Rewriter``."""
        discard_files(self.target.store.file_io, self.target.directory, file)

    def write_files(self, rewrite: Rewrite, output_level: int, rows: Iterator[Any]) -> list[DataFileMeta]:
        """Write ``rows`` to new files that replace the input files."""
        made = key_value_writer(self.target, output_level, FileSource.COMPACT).write_all(rows)
        if self.vectors is not None:
            self.vectors.remove(file.file_name for file in rewrite.files)
        return made

    def merge_section(self, section: Section, *, drop_delete: bool, dictionaries: Collection[str] = ()) -> Iterator[Any]:
        """Return the merged rows of a section.

        Texts of the columns ``dictionaries`` may be dictionary arrays.
        """
        count = runs_that_count([sum(file.file_size for file in run.files) for run in section])
        runs = [self.rows(run, count, dictionaries, drop_delete=drop_delete) for run in by_age(section)]
        merged = merge_runs(runs, self.key, self.fold) if len(runs) > 1 else runs[0]
        return filter(_has_rows, map(self.without_deletes, merged)) if drop_delete else merged

    def without_deletes(self, rows: Any) -> Any:
        """Return merged rows without the deletes that may be dropped."""
        return drop_deletes(rows, self.retention)

    def rows(self, run: SortedRun, runs: int, dictionaries: Collection[str] = (), *, drop_delete: bool) -> Iterator[Any]:
        """Yield the live rows of a run.

        ``runs`` is the number of runs read at once; it bounds the batch size. ``drop_delete``: their merge ends in ``without_deletes``.
        """
        size, vectors = batch_bytes_of(runs), self.vectors
        rows_of = partial(file_rows, self.target.store, self.partition, self.bucket, shared=self._every_row)
        for file in run.files:
            dead = None if vectors is None else vectors.dead_rows(file.file_name)
            found = rows_of(file, batch_bytes=size, dead=dead, dictionaries=dictionaries)
            if drop_delete and self.retention is not None:
                found = map(partial(self.retention.mark, file), found)
            yield from found if self.expiry is None else filter(_has_rows, map(self.expiry.alive, found))

    def rows_with_level(self, run: SortedRun, runs: int, *, drop_delete: bool) -> Iterator[Any]:
        """Yield the live rows of a run with ``_LEVEL``.

        The files of a run may have different levels.
        """
        for file in run.files:
            for rows in self.rows(SortedRun((file,)), runs, drop_delete=drop_delete):
                yield with_level(rows, file.level)

    def _never_null(self, rewrite: Rewrite) -> frozenset[str]:
        """Return the non-key columns without nulls in the input.

        Uses the statistics of the input files.
        """
        schema = self.target.store.schema
        names = set(schema.names).difference(self.key.columns, self.key.sequence_fields)
        for file in rewrite.files:
            counts = dict(zip(file.value_stats_cols or schema.names, file.value_stats.null_counts, strict=False))
            names = {name for name in names if counts.get(name) == 0} if file.schema_id == schema.id else set()
        return frozenset(names)


def observe_rounds(rounds: Iterable[MergeRound], observe: ChangeObserver | None, drop: Callable[[Any], Any] | None = None) -> Iterator[Any]:
    """Yield the results of rounds, without ``_LEVEL``.

    ``observe`` receives each round before its result is yielded. ``drop`` removes deletes of a result. None: they stay.
    """
    for merged in rounds:
        if observe is not None:
            observe(merged)
        rows = without_level(merged.result)
        rows = rows if drop is None else drop(rows)
        del merged
        if rows.num_rows:
            yield rows
        del rows


def by_age(section: Section) -> Section:
    """Return the runs of a section, oldest first."""
    return sorted(section, key=lambda run: max(file.max_sequence_number for file in run.files))


def _has_rows(table: Any) -> bool:
    return bool(table.num_rows)
