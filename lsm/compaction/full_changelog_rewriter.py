"""Compaction that tells what changed since the last full one (Paimon's ``FullChangelogMergeTreeCompactRewriter``)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lsm.arrow.row_kind import drop_retracts
from lsm.compaction.changelog import CompactionChangelog
from lsm.compaction.task import MergeTreeRewriter, Rewrite, by_age
from lsm.keys.sort import Sorted
from lsm.levels.sorted_runs import Section, SortedRun
from lsm.merge.function import MergeFunction
from lsm.merge.lookup_function import with_level, without_level
from lsm.merge.merge_iterator import MergeRound, merge_rounds
from manifest.entry.data_file import DataFileMeta


@dataclass(frozen=True)
class FullChangelogRewriter:
    """Rewrites as ``plain`` does; what goes to ``max_level`` is held against what lies there."""

    plain: MergeTreeRewriter
    changes: CompactionChangelog
    max_level: int

    def rewrite(self, rewrite: Rewrite, output_level: int, *, drop_delete: bool) -> list[DataFileMeta]:
        """See ``Rewriter``."""
        if output_level != self.max_level:
            return self.plain.rewrite(rewrite, output_level, drop_delete=drop_delete)
        merged = (self._merged(section, drop_delete=drop_delete) for section in rewrite.sections)
        return self.plain.written(rewrite, output_level, itertools.chain.from_iterable(merged))

    def upgrade(self, file: DataFileMeta, output_level: int) -> bool:
        """See ``Rewriter``: a file that overlaps nothing brings nothing but new rows, which are told."""
        if output_level == self.max_level:
            for rows in self._rows(SortedRun((file,)), 1):
                self.changes.observe(MergeRound(rows, None, rows))
        return True

    def can_upgrade(self, file: DataFileMeta, output_level: int) -> bool:  # noqa: ARG002 -- all files have the same rule
        """See ``Rewriter``."""
        return output_level != self.max_level

    def discard(self, file: DataFileMeta) -> None:
        """See ``Rewriter``."""
        self.plain.discard(file)

    def _merged(self, section: Section, *, drop_delete: bool) -> Iterator[Any]:
        runs = [self._rows(run, len(section)) for run in by_age(section)]
        for merged in merge_rounds(runs, self.plain.key, _WithoutLevel(self.plain.fold)):
            self.changes.observe(merged)
            rows = without_level(merged.result)
            rows = drop_retracts(rows) if drop_delete else rows
            if rows.num_rows:
                yield rows

    def _rows(self, run: SortedRun, runs: int) -> Iterator[Any]:
        """The rows of a run, and the level of each; files of several levels may form one run."""
        for file in run.files:
            for rows in self.plain.rows(SortedRun((file,)), runs):
                yield with_level(rows, file.level)


@dataclass(frozen=True, slots=True)
class _WithoutLevel:
    """A table's merge function where rows carry ``_LEVEL``."""

    inner: MergeFunction

    def fold(self, rows: Any, done: Sorted) -> Any:
        return self.inner.fold(without_level(rows), done)


__all__ = ["FullChangelogRewriter"]
