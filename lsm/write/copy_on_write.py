"""Deletes and updates of rows in append tables.

With ``deletion-vectors.enabled`` rows are marked in deletion vectors. Otherwise every affected file is rewritten (copy on write).

``AppendMerge`` calls a decision function, which deletes, replaces or keeps each matching row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import Predicate, columns_of
from fileindex.rowset.roaring import bitmap_to_rows
from lsm.data_files.rolling import discard_files, row_writer
from lsm.data_files.writer import FileTarget, data_file_names
from lsm.deletion_vectors.maintainer import BucketVectors
from lsm.deletion_vectors.reader import DeletionFile, dead_rows
from lsm.deletion_vectors.writer import DeletionVectorWriter
from lsm.read.data_file import DataFileRead
from lsm.read.file_filter import FileFilter
from lsm.scan.planner import ScanPlanner
from lsm.scan.splits import DataSplit
from manifest.commit.conflicts import BucketId
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.entry.index_manifest import DELETION_VECTORS
from manifest.entry.live import EntryFilter
from manifest.io.paths import FileNames
from manifest.options.core_options import OWN_BRANCH
from manifest.options.support import check_rewritable
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.lazy import LazyModule, cached_property
from sparkexpr.values.arrays import Int64s, Mask, UInt32s

if TYPE_CHECKING:
    from lsm.write import column_change
else:  # few tables have data evolution
    column_change = LazyModule("lsm.write.column_change")

Update: TypeAlias = Callable[[Any], Any]
"""Returns the new rows for a table of old rows, with the table's columns."""


@dataclass(frozen=True)
class MatchingRows:
    """Live rows of a data file that match ``predicate``."""

    store: FileStore
    split: DataSplit
    file: DataFileMeta
    deletion_file: DeletionFile | None
    predicate: Predicate

    def exist(self) -> bool:
        """Return whether any row matches.

        Uses indexes and statistics to skip the file.
        """
        return any(batch.num_rows for batch in self._read((), self.predicate).batches())

    @cached_property
    def positions(self) -> UInt32s:
        """Positions of the matching rows in the file, ascending."""
        alive = np.ones(self.file.row_count, np.bool_)
        if self.deletion_file is not None:
            alive[bitmap_to_rows(dead_rows(self.store.file_io, self.deletion_file))] = False
        masks = [matches for _, matches in self.batches(tuple(columns_of(self.predicate)))]
        positions: UInt32s = np.flatnonzero(alive)[np.concatenate(masks)].astype(np.uint32)
        return positions

    def batches(self, columns: tuple[str, ...]) -> Iterator[tuple[Any, Mask]]:
        """Yield all live rows, and which of them match.

        ``columns`` must include the columns of the predicate.
        """
        names = columns or self.store.schema.names[:1]  # a filter without columns matches all rows or no row
        for batch in self._read(names, None).batches():
            rows = pa.Table.from_batches([batch])
            matches = mask(self.predicate, rows, self.store.schema.column_types)
            yield rows, np.asarray(matches.to_numpy() if isinstance(matches, pa.ChunkedArray) else matches.to_numpy(zero_copy_only=False))

    def rows(self) -> Iterator[Any]:
        """Yield the matching rows, all columns."""
        # Read at the positions, not by the filter: deleted and replaced rows are then the same ones.
        for batch in self._read(self.store.schema.names, None).at(self.positions.astype(np.int64)):
            yield pa.Table.from_batches([batch])

    def with_positions(self) -> Iterator[tuple[UInt32s, Any]]:
        """Yield the matching rows, all columns, with their file positions."""
        start = 0
        for rows in self.rows():
            yield self.positions[start : start + rows.num_rows], rows
            start += rows.num_rows

    def _read(self, columns: tuple[str, ...], predicate: Predicate | None) -> DataFileRead:
        file_filter = None if predicate is None else FileFilter(self.store, predicate)
        bucket_id = self.split.partition, self.split.bucket
        return DataFileRead(self.store, *bucket_id, self.file, columns, file_filter, deletion_file=self.deletion_file)


def matching_files(store: FileStore, split: DataSplit, predicate: Predicate) -> list[MatchingRows]:
    """Return the files of a split that have matching rows."""
    vectors = split.deletion_files or (None,) * len(split.files)
    candidates = [MatchingRows(store, split, file, vector, predicate) for file, vector in zip(split.files, vectors, strict=True)]
    return [rows for rows in candidates if rows.exist()]


@dataclass(frozen=True)
class AppendChange:
    """Delete or update of the rows that match ``predicate``.

    Without ``update`` matching rows are deleted. One job per bucket, for a thread or a Spark task: ``buckets`` lists them, ``run`` changes one.

    Raises:
        UnsupportedTable: Rows must stay in their files.
    """

    store: FileStore
    snapshot: Snapshot
    predicate: Predicate
    commit_id: str
    update: Update | None = None
    columns: tuple[str, ...] | None = None
    """Columns that the update may change. None: rows may be deleted, too."""

    def __post_init__(self) -> None:
        if self.moves_rows and not self._writes_columns:
            check_rewritable(self.store.options, self.store.root)

    @property
    def moves_rows(self) -> bool:
        """Whether rows move into other files.

        Moved rows would lose their row ids. Deletion vectors leave the other rows in place.
        """
        return self.update is not None or not self.store.options.deletion_vectors_enabled

    @property
    def _writes_columns(self) -> bool:
        """Whether new column values are written beside the stored rows."""
        return self.columns is not None and self.store.options.data_evolution_enabled

    def buckets(self, partitions: Collection[bytes] | None = None) -> dict[BucketId, list[DataSplit]]:
        """Return the splits that may hold matching rows, by bucket."""
        splits_by_bucket: dict[BucketId, list[DataSplit]] = {}
        for split in (
            ScanPlanner(self.store.with_options(OWN_BRANCH)).plan(self.predicate, snapshot=self.snapshot, partitions=partitions).splits
        ):
            splits_by_bucket.setdefault((split.partition, split.bucket), []).append(split)
        return splits_by_bucket

    def run(self, splits: Sequence[DataSplit]) -> tuple[CommitMessage, int] | None:
        """Change the rows of one bucket.

        Returns the commit message and the number of changed rows, or None if no row changes. On failure all new files are deleted.
        """
        first = splits[0]
        base = CommitMessage(
            partition=first.partition,
            bucket=first.bucket,
            total_buckets=first.total_buckets,
            base_snapshot_id=self.snapshot.id,
            base_manifest_list=self.snapshot.delta_manifest_list,
        )
        target = self._target(base)
        new_files: list[DataFileMeta] = []
        if self._writes_columns:
            return self._write_columns(base, splits, target, new_files)
        files = [rows for split in splits for rows in matching_files(self.store, split, self.predicate)]
        if not files:
            return None
        try:
            if self.store.options.deletion_vectors_enabled:
                return self._mark(base, files, target, new_files)
            files = [rows for rows in files if self.concerns(rows)]
            count = sum(self._rewrite(rows, target, new_files) for rows in files)
        except BaseException:
            for file in new_files:
                discard_files(self.store.file_io, target.directory, file)
            raise
        before = tuple(rows.file for rows in files)
        if not files:
            return None
        return base.model_copy(update={"compact_before": before, "compact_after": tuple(new_files)}), count

    def _write_columns(
        self, base: CommitMessage, splits: Sequence[DataSplit], target: FileTarget, new_files: list[DataFileMeta]
    ) -> tuple[CommitMessage, int] | None:
        """Write the changed columns of the ranges with matching rows."""
        changed = 0
        target = column_change.column_target(target, self.columns or ())
        names = self.store.schema.names
        try:
            for row_range in column_change.row_ranges(self.store, splits, self.predicate):
                counts: list[int] = []

                def rows(row_range: column_change.RowRange = row_range, counts: list[int] = counts) -> Iterator[Any]:
                    for table, matches in row_range.batches(names):
                        new, count = self.replace_rows(table, matches) if matches.any() else (table, 0)
                        counts.append(count)
                        yield new.select(list(target.columns or ()))

                if not target.columns:  # a merge looks at the rows that match, and changes none of their values
                    deque(rows(), maxlen=0)
                    continue
                file = row_range.write(target, rows())
                if sum(counts):
                    new_files.append(file)
                else:
                    discard_files(self.store.file_io, target.directory, file)
                changed += sum(counts)
        except BaseException:
            for file in new_files:
                discard_files(self.store.file_io, target.directory, file)
            raise
        return (base.model_copy(update={"new_files": tuple(new_files)}), changed) if new_files else None

    def _target(self, base: CommitMessage) -> FileTarget:
        directory = self.store.paths.bucket_dir(self.store.partition.decode(base.partition), base.bucket)
        size = self.store.schema.kind.target_file_size
        return FileTarget(store=self.store, directory=directory, names=data_file_names(self.store, self.commit_id), target_size=size)

    def concerns(self, file_rows: MatchingRows) -> bool:  # noqa: ARG002  # overridden in AppendMerge
        """Return whether any matching row of a file changes."""
        return True

    def successors(self, file_rows: MatchingRows, gone: list[UInt32s]) -> Iterator[Any]:
        """Yield the new rows for a file's matching rows.

        Positions of rows to delete are appended to ``gone``.
        """
        gone.append(file_rows.positions)
        if self.update is not None:
            yield from map(self.update, file_rows.rows())

    def replace_rows(self, rows: Any, matches: Mask) -> tuple[Any, int]:
        """Return the changed rows and the number of changes.

        ``matches`` marks the matching rows. The order is kept.
        """
        if self.update is None:
            return rows.filter(pa.array(~matches)), int(matches.sum())
        return put_in_place(rows, np.flatnonzero(matches), self.update(rows.filter(pa.array(matches)))), int(matches.sum())

    def _mark(
        self, base: CommitMessage, files: Sequence[MatchingRows], target: FileTarget, new_files: list[DataFileMeta]
    ) -> tuple[CommitMessage, int] | None:
        """Mark rows as deleted and write their new versions."""
        live = self.store.live_entries(self.snapshot, EntryFilter(partitions={base.partition}))
        live = live.select(live.bucket == base.bucket)
        has_buckets = base.total_buckets > 0
        gone: dict[str, list[UInt32s]] = {rows.file.file_name: [] for rows in files}
        writer = row_writer(target, FileSource.APPEND, int(live.max_sequence_number.max()) + 1 if has_buckets else 0)
        new_files += writer.write_all(new for rows in files for new in self.successors(rows, gone[rows.file.file_name]))
        dead = {name: np.concatenate(parts) for name, parts in gone.items() if any(len(part) for part in parts)}
        if not dead:
            return None
        index_entries = self.store.index_entries(self.snapshot)
        entries = [e for e in index_entries if e.index_type == DELETION_VECTORS and (e.partition, e.bucket) == base.bucket_id]
        size = None if has_buckets else self.store.options.deletion_vector_index_file_target_size
        names = FileNames("index-", commit_id=self.commit_id)
        vectors = BucketVectors(
            DeletionVectorWriter(self.store, *base.bucket_id, names, size),
            entries,
            dict(zip(live.file_name, live.row_count.tolist(), strict=True)),
        )
        for name, positions in dead.items():
            vectors.mark(name, positions)
        message = base.model_copy(update={"new_files": tuple(new_files), "index_changes": (vectors.change(compaction=False),)})
        return message, sum(map(len, dead.values()))

    def _rewrite(self, file_rows: MatchingRows, target: FileTarget, new_files: list[DataFileMeta]) -> int:
        """Rewrite a file in row order. Return the change count."""
        changed = 0

        def rows() -> Iterator[Any]:
            nonlocal changed
            for table, matches in file_rows.batches(self.store.schema.names):
                new, count = self.replace_rows(table, matches) if matches.any() else (table, 0)
                changed += count
                yield new

        new_files += row_writer(target, FileSource.COMPACT, file_rows.file.min_sequence_number).write_all(rows())
        return changed


def put_in_place(rows: Any, places: Int64s, new: Any) -> Any:
    """Return ``rows`` with the rows at ``places`` replaced by ``new``.

    >>> put_in_place(pa.table({"n": [1, 2, 3]}), np.array([1]), pa.table({"n": [9]}))["n"].to_pylist()
    [1, 9, 3]
    """
    take = np.arange(rows.num_rows)
    take[places] = rows.num_rows + np.arange(len(places))
    return pa.concat_tables([rows, new]).take(pa.array(take))


@dataclass(frozen=True)
class Successors:
    """Decision about the rows of one table.

    Args:
        gone: Indices of the deleted rows.
        places: Indices of the replaced rows.
        rows: The new rows, one for each of ``places``.
    """

    gone: Int64s
    places: Int64s
    rows: Any


Decision = Callable[[Any], Successors]
"""Must be deterministic: it is called more than once for the same rows."""
_NONE = np.zeros(0, np.int64)


def _all_stay(rows: Any) -> Successors:
    return Successors(_NONE, _NONE, rows.slice(0, 0))


def _ignore_counts(deleted: int, replaced: int) -> None:
    """Accept counts without use."""


@dataclass(frozen=True)
class AppendMerge(AppendChange):
    """Change of matching rows by a decision function.

    The callback receives the number of deleted and of replaced rows, once per table.
    """

    decide: Decision = _all_stay
    tell: Callable[[int, int], None] = _ignore_counts

    @property
    def moves_rows(self) -> bool:
        """Always True: the decisions are not known in advance."""
        return True

    def concerns(self, file_rows: MatchingRows) -> bool:
        """See ``AppendChange``."""
        return any(len(decided.gone) + len(decided.places) for decided in map(self.decide, file_rows.rows()))

    def successors(self, file_rows: MatchingRows, gone: list[UInt32s]) -> Iterator[Any]:
        """See ``AppendChange``."""
        for positions, rows in file_rows.with_positions():
            decided = self.decide(rows)
            self.tell(len(decided.gone), len(decided.places))
            gone.append(positions[np.sort(np.concatenate([decided.gone, decided.places]))])
            if len(decided.places):
                yield decided.rows

    def replace_rows(self, rows: Any, matches: Mask) -> tuple[Any, int]:
        """See ``AppendChange``."""
        positions = np.flatnonzero(matches)
        decided = self.decide(rows.filter(pa.array(matches)))
        self.tell(len(decided.gone), len(decided.places))
        new = put_in_place(rows, positions[decided.places], decided.rows) if len(decided.places) else rows
        stays = np.ones(rows.num_rows, np.bool_)
        stays[positions[decided.gone]] = False
        return new.filter(pa.array(stays)), len(decided.gone) + len(decided.places)
