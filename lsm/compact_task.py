"""One compaction of a merge tree: which files are rewritten together, which only move, and doing it.

Paimon's ``MergeTreeCompactTask`` and ``MergeTreeCompactRewriter``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from lsm.data_file_writer import FileTarget
from lsm.file_rows import batch_bytes_of, file_rows
from lsm.levels import KeyOf, Section, SortedRun, interval_partition
from lsm.merge_function import MergeFunction, drop_retracts
from lsm.merge_runs import merge_runs
from lsm.rolling_writer import delete_files, key_value_writer
from lsm.sort_key import SortKey
from manifest.data_file import DataFileMeta, FileSource


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Sections to be merged into one run of files; in key order, nothing of the bucket's picked files lies between them."""

    sections: tuple[Section, ...]

    @property
    def files(self) -> Iterator[DataFileMeta]:
        """All input files."""
        return (file for section in self.sections for run in section for file in run.files)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A file that need not be rewritten: its level in the metadata changes."""

    file: DataFileMeta


Step: TypeAlias = Rewrite | Upgrade


@dataclass(slots=True)
class CompactResult:
    """Files that a compaction takes away and those that it brings; an upgraded file is in both."""

    before: list[DataFileMeta] = field(default_factory=list)
    after: list[DataFileMeta] = field(default_factory=list)

    @property
    def made(self) -> Iterator[DataFileMeta]:
        """Files of ``after`` that are physically new."""
        older = {file.file_name for file in self.before}
        return (file for file in self.after if file.file_name not in older)


def plan_steps(files: Sequence[DataFileMeta], key_of: KeyOf, min_file_size: int) -> list[Step]:
    """What to do with the files of a compaction, in key order.

    Overlapping files are merged. A large file that overlaps nothing moves as it is; smaller ones are merged with their
    neighbours, unless there are none.
    """
    steps: list[Step] = []
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
    """Merges files; a fake one is enough to test planning."""

    def rewrite(self, rewrite: Rewrite, output_level: int, *, drop_delete: bool) -> list[DataFileMeta]:
        """New files on ``output_level`` that hold what the inputs hold."""

    def discard(self, file: DataFileMeta) -> None:
        """Delete a file that was made in vain."""


@dataclass(frozen=True, slots=True)
class MergeTreeCompactTask:
    """Compacts ``files`` to ``output_level``.

    ``force_rewrite``: no file may just move (``compaction.force-rewrite-all-files``).
    """

    files: Sequence[DataFileMeta]
    output_level: int
    max_level: int
    drop_delete: bool
    min_file_size: int
    force_rewrite: bool = False

    def run(self, key_of: KeyOf, rewriter: Rewriter) -> CompactResult:
        """Do it; on failure nothing that was made remains."""
        result = CompactResult()
        try:
            for step in plan_steps(self.files, key_of, self.min_file_size):
                self._run_step(step, rewriter, result)
        except BaseException:
            for file in result.made:
                rewriter.discard(file)
            raise
        return result

    def _run_step(self, step: Step, rewriter: Rewriter, result: CompactResult) -> None:
        if isinstance(step, Upgrade) and not self._must_rewrite(step.file):
            if step.file.level != self.output_level:
                result.before.append(step.file)
                result.after.append(step.file.upgrade(self.output_level))
            return
        rewrite = step if isinstance(step, Rewrite) else Rewrite(([SortedRun((step.file,))],))
        made = rewriter.rewrite(rewrite, self.output_level, drop_delete=self.drop_delete)
        result.before.extend(rewrite.files)
        result.after.extend(made)

    def _must_rewrite(self, file: DataFileMeta) -> bool:
        """Deletes must not come to rest on the deepest level, nor files that may hold some."""
        return self.force_rewrite or (self.output_level == self.max_level and file.delete_row_count != 0)


@dataclass(frozen=True, slots=True)
class MergeTreeRewriter:
    """Reads sections, merges their runs in bounded memory and rolls new files; counts bytes for reports."""

    target: FileTarget
    partition: bytes
    bucket: int
    key: SortKey
    fold: MergeFunction

    def rewrite(self, rewrite: Rewrite, output_level: int, *, drop_delete: bool) -> list[DataFileMeta]:
        """See ``Rewriter``."""
        writer = key_value_writer(self.target, output_level, FileSource.COMPACT)
        merged = itertools.chain.from_iterable(self._merged(section, drop_delete=drop_delete) for section in rewrite.sections)
        return writer.write_all(merged)

    def discard(self, file: DataFileMeta) -> None:
        """See ``Rewriter``."""
        delete_files(self.target.store.file_io, self.target.directory, file)

    def _merged(self, section: Section, *, drop_delete: bool) -> Iterator[Any]:
        oldest_first = sorted(section, key=lambda run: max(file.max_sequence_number for file in run.files))
        if len(oldest_first) > 1:
            return merge_runs([self._rows(run, len(section)) for run in oldest_first], self.key, self.fold, drop_delete=drop_delete)
        rows = self._rows(oldest_first[0], 1)
        return filter(_has_rows, map(drop_retracts, rows)) if drop_delete else rows

    def _rows(self, run: SortedRun, runs: int) -> Iterator[Any]:
        store, size = self.target.store, batch_bytes_of(runs)
        return itertools.chain.from_iterable(file_rows(store, self.partition, self.bucket, file, batch_bytes=size) for file in run.files)


def _has_rows(table: Any) -> bool:
    return bool(table.num_rows)


__all__ = ["CompactResult", "MergeTreeCompactTask", "MergeTreeRewriter", "Rewrite", "Rewriter", "Step", "Upgrade", "plan_steps"]
