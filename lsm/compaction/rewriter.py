"""Merges and upgrades of files (Paimon's ``MergeTreeCompactRewriter``)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from lsm.compaction.delete_retention import DeleteRetention, drop_deletes
from lsm.data_files.rolling import discard_files, key_value_writer
from lsm.data_files.writer import FileTarget
from lsm.keys.sort import SortKey
from lsm.levels.sorted_runs import Section, SortedRun
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
class Merge:
    """Sections to merge into one run of files.

    They are in key order. No other picked file lies between them.
    """

    sections: tuple[Section, ...]

    @property
    def files(self) -> Iterator[DataFileMeta]:
        """All input files."""
        return (file for section in self.sections for run in section for file in run.files)


@dataclass(slots=True)
class CompactResult:
    """Files removed and files added by a compaction.

    An upgraded file is in both.
    """

    before: list[DataFileMeta] = field(default_factory=list)
    after: list[DataFileMeta] = field(default_factory=list)

    @property
    def new_files(self) -> list[DataFileMeta]:
        """Files of ``after`` that are physically new."""
        removed_names = {file.file_name for file in self.before}
        return [file for file in self.after if file.file_name not in removed_names]


class Rewriter(Protocol):
    """Rewrites and moves of files. Tests can replace it."""

    def rewrite(self, merge: Merge, output_level: int, *, drop_delete: bool) -> list[DataFileMeta]:
        """Merge the input files into new files on ``output_level``."""

    def upgrade(self, file: DataFileMeta, output_level: int) -> bool:
        """Prepare moving a file unchanged to ``output_level``.

        Returns False without any effect if the file must be rewritten.
        """

    def can_upgrade(self, file: DataFileMeta, output_level: int) -> bool:
        """Return whether ``upgrade`` only changes metadata."""

    def discard(self, file: DataFileMeta) -> None:
        """Delete an uncommitted file."""


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

    def rewrite(self, merge: Merge, output_level: int, *, drop_delete: bool) -> list[DataFileMeta]:
        """See ``Rewriter``."""
        dictionaries = self._never_null(merge) if not combines_versions(self.fold) else frozenset()
        merged = (self.merge_section(section, drop_delete=drop_delete, dictionaries=dictionaries) for section in merge.sections)
        return self.write_files(merge, output_level, itertools.chain.from_iterable(merged))

    def rewrite_file(self, file: DataFileMeta) -> list[DataFileMeta]:
        """Rewrite the live rows of a file on its level.

        Ignores the file's statistics.
        """
        # Wrong statistics are a reason for the rewrite, so they must not prune rows.
        run = SortedRun((file.without_statistics(),))
        return self.write_files(Merge(([run],)), file.level, replace(self, expiry=None).rows(run, 1, drop_delete=False))

    def upgrade(self, file: DataFileMeta, output_level: int) -> bool:  # noqa: ARG002 -- independent of the level
        """See ``Rewriter``."""
        return True

    def can_upgrade(self, file: DataFileMeta, output_level: int) -> bool:  # noqa: ARG002 -- as above
        """See ``Rewriter``."""
        return True

    def discard(self, file: DataFileMeta) -> None:
        """See ``Rewriter``."""
        discard_files(self.target.store.file_io, self.target.directory, file)

    def write_files(self, merge: Merge, output_level: int, rows: Iterator[Any]) -> list[DataFileMeta]:
        """Write ``rows`` to new files that replace the input files."""
        new_files = key_value_writer(self.target, output_level, FileSource.COMPACT).write_all(rows)
        if self.vectors is not None:
            self.vectors.remove(file.file_name for file in merge.files)
        return new_files

    def merge_section(self, section: Section, *, drop_delete: bool, dictionaries: Collection[str] = ()) -> Iterator[Any]:
        """Return the merged rows of a section.

        Texts of the columns ``dictionaries`` may be dictionary arrays.
        """
        count = runs_that_count([run.size for run in section])
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
            batches = rows_of(file, batch_bytes=size, dead=dead, dictionaries=dictionaries)
            if drop_delete and self.retention is not None:
                batches = map(partial(self.retention.mark, file), batches)
            yield from batches if self.expiry is None else filter(_has_rows, map(self.expiry.alive, batches))

    def rows_with_level(self, run: SortedRun, runs: int, *, drop_delete: bool) -> Iterator[Any]:
        """Yield the live rows of a run with ``_LEVEL``.

        The files of a run may have different levels.
        """
        for file in run.files:
            for rows in self.rows(SortedRun((file,)), runs, drop_delete=drop_delete):
                yield with_level(rows, file.level)

    def _never_null(self, merge: Merge) -> frozenset[str]:
        """Return the non-key columns without nulls in the input.

        Uses the statistics of the input files.
        """
        schema = self.target.store.schema
        names = set(schema.names).difference(self.key.columns, self.key.sequence_fields)
        for file in merge.files:
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
