"""Lookup compaction (Paimon's ``LookupMergeTreeCompactRewriter``).

Finds older versions of new keys below the output level. If new rows simply replace old ones, the old ones are only marked as deleted.
If the result depends on the old row (``sequence.field``, engines that combine versions, changelogs), old rows take part in the merge
as an additional run.

Merges sorted keys, where Paimon's ``LookupLevels`` looks up one key at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.rowset.roaring import bitmap_to_rows
from lsm.compaction.record_expiry import RecordExpiry
from lsm.compaction.rewriter import ChangeObserver, Merge, MergeTreeRewriter, by_age, observe_rounds
from lsm.deletion_vectors.maintainer import BucketVectors
from lsm.deletion_vectors.reader import dead_rows
from lsm.keys.encoding import one_array
from lsm.keys.sort import SortKey, sort_rows
from lsm.levels.sorted_runs import KeyOf, Section
from lsm.merge.alignment import align_runs
from lsm.merge.function import Deduplicate, LookupMerge, combines_versions, with_level
from lsm.merge.merge_iterator import gather_runs, merge_rounds
from lsm.read.data_file import DataFileRead
from lsm.read.full_scan import batch_bytes_of, row_columns
from manifest.entry.data_file import DataFileMeta
from manifest.store import FileStore
from paimon_base.lazy import cached_property
from sparkexpr.values.arrays import Int64s

_FILE, _POSITION = "_FILE", "_POSITION"


@dataclass(frozen=True, slots=True)
class Lookup:
    """Lookup of the visible rows of keys in deeper files.

    Args:
        store: Store of the table.
        partition: Serialised partition of the bucket.
        bucket: Number of the bucket.
        key: Order of rows.
        key_of: Makes serialised keys comparable.
        vectors: Deleted rows are skipped, and rows found are marked as deleted. None for tables without deletion vectors.
        read: Collects the names of files read, so that the commit can check that they are still live.
    """

    store: FileStore
    partition: bytes
    bucket: int
    key: SortKey
    key_of: KeyOf
    vectors: BucketVectors | None
    read: set[str]

    def mark(self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta], expiry: RecordExpiry | None = None) -> None:
        """Mark rows of ``older`` files whose key is in ``newer``.

        Expired rows of ``newer`` files are ignored.
        """
        for _ in self._find(newer, older, self.key.columns, expiry):
            pass

    def versions(
        self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta], columns: Sequence[str], expiry: RecordExpiry | None = None
    ) -> Iterator[Any]:
        """Return and mark the old rows of keys in ``newer``.

        One row per key, from the shallowest level of ``older``. Expired rows of ``newer`` files are ignored.

        Yields:
            Tables in key order of ``columns`` and ``_LEVEL``.
        """
        return (rows.drop_columns([_FILE, _POSITION]) for rows in self._find(newer, older, columns, expiry) if rows.num_rows)

    def _find(
        self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta], columns: Sequence[str], expiry: RecordExpiry | None
    ) -> Iterator[Any]:
        reached = self._overlapping(newer, older)
        self.read.update(file.file_name for file in reached)
        levels = sorted({file.level for file in reached})
        if not levels:
            return
        size = batch_bytes_of(len(newer) + len(levels))
        large_runs, gathered = gather_runs([self._keys(file, size, expiry) for file in newer], self.key)
        probes = [*large_runs, *gathered]
        runs = [self._run(reached, level, columns, size) for level in levels]
        for pieces in align_runs([*probes, *runs], self.key):
            old_pieces = [piece for number, piece in pieces if number >= len(probes)]
            keys = [piece for number, piece in pieces if number < len(probes)]
            if not old_pieces or not keys:
                continue
            rows = pa.concat_tables(old_pieces).combine_chunks()
            hits, first = self._match(rows, keys)
            self._mark(rows, hits, reached)
            yield rows.take(pa.array(first))

    def _overlapping(self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta]) -> list[DataFileMeta]:
        """Return the ``older`` files that overlap ``newer`` files.

        Sorted by level, then key.
        """
        spans = [(self.key_of(file.min_key), self.key_of(file.max_key)) for file in newer]
        reached = [
            file for file in older if any(low <= self.key_of(file.max_key) and self.key_of(file.min_key) <= high for low, high in spans)
        ]
        return sorted(reached, key=lambda file: (file.level, self.key_of(file.min_key)))

    def _keys(self, file: DataFileMeta, batch_bytes: int, expiry: RecordExpiry | None) -> Iterator[Any]:
        names = list(self.key.columns)
        if expiry is None:
            return self._read(file, names, batch_bytes)
        alive = map(expiry.alive, self._read(file, list(dict.fromkeys([*names, expiry.column])), batch_bytes))
        return (rows.select(names) for rows in alive if rows.num_rows)

    def _run(self, files: Sequence[DataFileMeta], level: int, columns: Sequence[str], batch_bytes: int) -> Iterator[Any]:
        """Yield the live rows of a level with file positions."""
        for number, file in enumerate(files):
            if file.level != level:
                continue
            positions = self._positions(file)
            start = 0
            for rows in self._read(file, columns, batch_bytes):
                there = positions[start : start + rows.num_rows]
                start += rows.num_rows
                rows = rows.append_column(_FILE, pa.array(np.full(rows.num_rows, number, np.int32)))  # noqa: PLW2901 - same rows
                yield with_level(rows.append_column(_POSITION, pa.array(there)), level)

    def _read(self, file: DataFileMeta, columns: Sequence[str], batch_bytes: int) -> Iterator[Any]:
        dead = None if self.vectors is None else self.vectors.dead_rows(file.file_name)
        names = tuple(columns)
        read = DataFileRead(
            self.store, self.partition, self.bucket, file, names, deletion_file=dead, use_index=False, batch_bytes=batch_bytes
        )
        return (pa.Table.from_batches([batch]) for batch in read.batches() if batch.num_rows)

    def _positions(self, file: DataFileMeta) -> Int64s:
        """Return the positions of a file's live rows."""
        vector = None if self.vectors is None else self.vectors.dead_rows(file.file_name)
        alive = np.ones(file.row_count, np.bool_)
        if vector is not None:
            alive[bitmap_to_rows(dead_rows(self.store.file_io, vector))] = False
        return np.flatnonzero(alive)

    def _match(self, rows: Any, keys: Sequence[Any]) -> tuple[Int64s, Int64s]:
        """Return the rows whose key is in ``keys``.

        The second result has the first such row of each key, in key order.
        """
        names = list(self.key.columns)
        joined = pa.concat_tables([rows.select(names), *(piece.select(names) for piece in keys)])
        sorted_rows = sort_rows(self.key.key_words(joined), length=joined.num_rows, runs=True)
        is_old = sorted_rows.order < rows.num_rows
        has_new_key = np.logical_or.reduceat(~is_old, sorted_rows.starts)
        hits = sorted_rows.order[is_old & np.repeat(has_new_key, np.diff(sorted_rows.starts, append=len(sorted_rows.order)))]
        first = sorted_rows.order[sorted_rows.starts[has_new_key]]  # the sort is stable: an old row comes before the keys
        return hits, first[first < rows.num_rows]

    def _mark(self, rows: Any, hits: Int64s, files: Sequence[DataFileMeta]) -> None:
        if self.vectors is None:
            return
        where = one_array(rows.column(_FILE)).to_numpy()[hits]
        positions = one_array(rows.column(_POSITION)).to_numpy()[hits].astype(np.uint32)
        for number in np.unique(where).tolist():
            self.vectors.mark(files[number].file_name, positions[where == number])


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

    def rewrite(self, merge: Merge, output_level: int, *, drop_delete: bool) -> list[DataFileMeta]:
        """See ``Rewriter``."""
        new = _level0(merge.files)
        if output_level == 0 or not (new or combines_versions(self.plain.fold)):
            return self.plain.rewrite(merge, output_level, drop_delete=drop_delete)
        if not self._by_value:
            self._mark(new, self._below(output_level), self.plain.expiry)
            return self.plain.rewrite(merge, output_level, drop_delete=drop_delete)
        merged = (self._merge_section(section, output_level, drop_delete=drop_delete) for section in merge.sections)
        return self.plain.write_files(merge, output_level, itertools.chain.from_iterable(merged))

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
        runs = [self.plain.rows_with_level(run, len(section) + 1, drop_delete=drop_delete) for run in by_age(section)]
        expiry = self.plain.expiry
        old = self._lookup.versions(new, self._below(output_level), row_columns(store), expiry)
        if expiry is not None and not store.options.engine.first_row_wins:
            old = map(expiry.alive, old)  # expired rows are marked, but do not take part in the merge
        fold = LookupMerge(self.plain.fold, output_level if store.options.engine.first_row_wins else None)
        rounds = merge_rounds([old, *runs], self.plain.key, fold)
        return observe_rounds(rounds, self.observe, self.plain.without_deletes if drop_delete else None)


def _level0(files: Iterable[DataFileMeta]) -> list[DataFileMeta]:
    return [file for file in files if file.level == 0]
