"""Full compactions with a changelog (Paimon's ``FullChangelogMergeTreeCompactRewriter``)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lsm.compaction.changelog import CompactionChangelog
from lsm.compaction.rewriter import Merge, MergeTreeRewriter, by_age, observe_rounds
from lsm.keys.sort import Sorted
from lsm.levels.sorted_runs import Section, SortedRun
from lsm.merge.function import MergeFunction, without_level
from lsm.merge.merge_iterator import MergeRound, merge_rounds
from manifest.entry.data_file import DataFileMeta


@dataclass(frozen=True)
class FullChangelogRewriter:
    """Rewriter that compares new rows with ``max_level``.

    Only rewrites and upgrades to ``max_level`` write a changelog.
    """

    plain: MergeTreeRewriter
    changes: CompactionChangelog
    max_level: int

    def rewrite(self, merge: Merge, output_level: int, *, drop_delete: bool) -> list[DataFileMeta]:
        """See ``Rewriter``."""
        if output_level != self.max_level:
            return self.plain.rewrite(merge, output_level, drop_delete=drop_delete)
        merged = (self._merge_section(section, drop_delete=drop_delete) for section in merge.sections)
        return self.plain.write_files(merge, output_level, itertools.chain.from_iterable(merged))

    def upgrade(self, file: DataFileMeta, output_level: int) -> bool:
        """See ``Rewriter``."""
        if output_level == self.max_level:
            # The file overlaps no other file, so all its rows are new.
            for rows in self.plain.rows_with_level(SortedRun((file,)), 1, drop_delete=False):
                self.changes.observe(MergeRound(rows, None, rows))
        return True

    def can_upgrade(self, file: DataFileMeta, output_level: int) -> bool:  # noqa: ARG002 -- all files have the same rule
        """See ``Rewriter``."""
        return output_level != self.max_level

    def discard(self, file: DataFileMeta) -> None:
        """See ``Rewriter``."""
        self.plain.discard(file)

    def _merge_section(self, section: Section, *, drop_delete: bool) -> Iterator[Any]:
        runs = [self.plain.rows_with_level(run, len(section), drop_delete=drop_delete) for run in by_age(section)]
        rounds = merge_rounds(runs, self.plain.key, _WithoutLevel(self.plain.fold))
        return observe_rounds(rounds, self.changes.observe, self.plain.without_deletes if drop_delete else None)


@dataclass(frozen=True, slots=True)
class _WithoutLevel:
    """Merge function for rows with a ``_LEVEL`` column."""

    inner: MergeFunction

    def fold(self, rows: Any, sorted_rows: Sorted) -> Any:
        return self.inner.fold(without_level(rows), sorted_rows)
