"""Lookup compaction (Paimon's ``LookupMergeTreeCompactRewriter``).

Finds older versions of new keys below the output level. If new rows simply replace old ones, the old ones are only marked as deleted.
If the result depends on the old row (``sequence.field``, engines that combine versions, changelogs), old rows take part in the merge
as an additional run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fileindex.base.lazy import cached_property
from lsm.compaction.lookup import Lookup
from lsm.compaction.record_expiry import RecordExpiry
from lsm.compaction.task import ChangeObserver, MergeTreeRewriter, Rewrite, by_age, observe_rounds
from lsm.levels.sorted_runs import KeyOf, Section
from lsm.merge.function import Deduplicate
from lsm.merge.lookup_function import LookupMerge, combines_versions
from lsm.merge.merge_iterator import merge_rounds
from lsm.read.full_scan import row_columns
from manifest.entry.data_file import DataFileMeta


@dataclass(frozen=True)
class LookupRewriter:
    """Rewriter that leaves no replaced version visible on any level.

    Args:
        plain: Reads, merges and writes files.
        key_of: Makes serialised keys comparable.
        files: Returns the current live files of the bucket.
        observe: Writes the changelog. None: no changelog.
        read: Collects the names of files read by lookups.
    """

    plain: MergeTreeRewriter
    key_of: KeyOf
    files: Callable[[], Sequence[DataFileMeta]]
    observe: ChangeObserver | None = None
    read: set[str] = field(default_factory=set)
    _lookup: Lookup = field(init=False, repr=False)

    def __post_init__(self) -> None:
        plain = self.plain
        lookup = Lookup(plain.target.store, plain.partition, plain.bucket, plain.key, self.key_of, plain.vectors, self.read)
        object.__setattr__(self, "_lookup", lookup)

    def rewrite(self, rewrite: Rewrite, output_level: int, *, drop_delete: bool) -> list[DataFileMeta]:
        """See ``Rewriter``."""
        new = _level0(rewrite.files)
        if output_level == 0 or not (new or combines_versions(self.plain.fold)):
            return self.plain.rewrite(rewrite, output_level, drop_delete=drop_delete)
        if not self._by_value:
            self._mark(new, self._below(output_level), self.plain.expiry)
            return self.plain.rewrite(rewrite, output_level, drop_delete=drop_delete)
        merged = (self._merge_section(section, output_level, drop_delete=drop_delete) for section in rewrite.sections)
        return self.plain.write_files(rewrite, output_level, itertools.chain.from_iterable(merged))

    def upgrade(self, file: DataFileMeta, output_level: int) -> bool:
        """See ``Rewriter``.

        Possible without older versions below, or if they only need marks.
        """
        if self.can_upgrade(file, output_level):
            return True
        if self._must_be_merged(file) or self._by_value:
            return False
        self._mark([file], self._below(output_level))
        return True

    def can_upgrade(self, file: DataFileMeta, output_level: int) -> bool:
        """See ``Rewriter``."""
        # Files above level 0 were looked up by an earlier compaction.
        return file.level != 0 or not (self._must_be_merged(file) or self._below(output_level))

    def discard(self, file: DataFileMeta) -> None:
        """See ``Rewriter``."""
        self.plain.discard(file)

    @cached_property
    def _by_value(self) -> bool:
        """Whether the result depends on the values of older versions."""
        fold = self.plain.fold
        if self.observe is not None or not isinstance(fold, Deduplicate):
            return True
        return self.plain.vectors is not None and (fold.ignore_delete or bool(self.plain.key.sequence_fields))

    def _must_be_merged(self, file: DataFileMeta) -> bool:
        return self.observe is not None or (self.plain.vectors is not None and file.delete_row_count != 0)

    def _mark(self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta], expiry: RecordExpiry | None = None) -> None:
        if self.plain.vectors is not None:
            self._lookup.mark(newer, older, expiry)

    def _below(self, level: int) -> list[DataFileMeta]:
        return [file for file in self.files() if file.level > level]

    def _merge_section(self, section: Section, output_level: int, *, drop_delete: bool) -> Iterator[Any]:
        new = _level0(file for run in section for file in run.files)
        if not new and not combines_versions(self.plain.fold):
            return self.plain.merge_section(section, drop_delete=drop_delete)
        store = self.plain.target.store
        runs = [self.plain.rows_with_level(run, len(section) + 1) for run in by_age(section)]
        expiry = self.plain.expiry
        old = self._lookup.versions(new, self._below(output_level), row_columns(store), expiry)
        if expiry is not None and not store.options.engine.first_row_wins:
            old = map(expiry.alive, old)  # expired rows are marked, but do not take part in the merge
        fold = LookupMerge(self.plain.fold, output_level if store.options.engine.first_row_wins else None)
        return observe_rounds(merge_rounds([old, *runs], self.plain.key, fold), self.observe, drop_delete=drop_delete)


def _level0(files: Iterable[DataFileMeta]) -> list[DataFileMeta]:
    return [file for file in files if file.level == 0]


__all__ = ["LookupRewriter"]
