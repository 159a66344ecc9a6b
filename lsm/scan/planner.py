"""Scan planning from a snapshot's manifests to splits.

Every step is reported (Paimon's ``FileStoreScan`` and ``SnapshotReader``). A step may only drop what cannot hold a matching row. A value filter sees
single versions, so it acts on *sections*: files of a bucket whose key ranges overlap, computed before any file is dropped.
No version of a key is outside of its section.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fileindex.predicate.projection import only_columns
from fileindex.predicate.tree import FALSE, TRUE, ColumnRef, Predicate, columns_of, conjuncts
from fileindex.query.metrics import IndexMetrics
from lsm.deletion_vectors.reader import DeletionFile
from lsm.scan.bucket_pruner import BucketPruner, key_ranks, sections
from lsm.scan.file_pruner import FilePruner, ManifestPruner, row_ranges
from lsm.scan.other_branch import other_branch, plan_both
from lsm.scan.plan import Report, ScanPlan, Stage
from lsm.scan.planned_splits import Selections, splits_of, sums_of
from lsm.scan.predicates import bind_constants, is_short
from lsm.scan.split_generator import Ranges, file_groups
from lsm.scan.splits import DataSplit
from lsm.scan.table_statistics import own_statistics, proves_empty
from manifest.entry.bounds import BoundsColumn, may_match_each
from manifest.entry.columns import EntryColumns
from manifest.entry.index_manifest import DELETION_VECTORS
from manifest.entry.live import EntryFilter, refuse_files_added_twice
from manifest.entry.manifest_blocks import BlockRanges, EntryNarrowing
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.lost_snapshots import refuse_lost_snapshots
from manifest.schema.secondary_index import secondary_indexes
from manifest.snapshot.snapshot import BATCH_IDENTIFIER, CommitKind, Snapshot
from manifest.store import FileStore
from paimon_base.errors import UnknownColumn
from paimon_base.lazy import LazyModule
from paimon_base.texts import count_text
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, Mask

if TYPE_CHECKING:
    from lsm.secondary_index import answers as secondary
else:  # few tables have secondary indexes
    secondary = LazyModule("lsm.secondary_index.answers")


@dataclass(frozen=True)
class BlockPruner:
    """Pruning of manifest blocks by partition, bucket, key and level.

    All versions of a key agree on partition, bucket and first key column. ``residuals`` returns the filter inside each partition, ``wants`` whether a
    partition can match.
    """

    store: FileStore
    residuals: Callable[[Sequence[bytes]], list[Predicate]]
    wants: Callable[[bytes], bool]
    min_level: int = 0
    bucket: int | None = None

    def __call__(self, ranges: BlockRanges) -> Mask:
        """Return a mask of blocks that may hold matching entries."""
        conditions = self.residuals(ranges.partitions)
        partition_matches = [self.wants(partition) for partition in ranges.partitions]
        in_range: Mask = ranges.in_partitions(partition_matches) & (ranges.column("max_level") >= self.min_level)
        active_conditions = {condition for condition, hit in zip(conditions, partition_matches, strict=True) if hit}
        buckets = BucketPruner(self.store, lambda partition: self.residuals([partition])[0], bucket=self.bucket)
        if TRUE in active_conditions or not 0 < len(active_conditions) <= thresholds.block_residuals:
            return in_range if self.bucket is None else in_range & buckets.blocks(ranges, TRUE)
        may_match = np.zeros(len(ranges), np.bool_)
        for residual in active_conditions:
            may_match |= buckets.blocks(ranges, residual) & self._by_key(ranges, residual)
        return in_range & may_match

    def _by_key(self, ranges: BlockRanges, residual: Predicate) -> Mask:
        """Return a mask of blocks that may match by key.

        Tests the first key column.
        """
        keys = self.store.range_policy.key
        everything: Mask = np.ones(len(ranges), np.bool_)
        if not keys:
            return everything
        name = self.store.schema.trimmed_primary_keys[0]
        predicate = only_columns(residual, {name}).inclusive
        first_key_bounds = None if predicate == TRUE else ranges.key_bounds(keys[0][0])
        if first_key_bounds is None:
            return everything

        def bounds(column: ColumnRef) -> BoundsColumn | None:
            return first_key_bounds if column.name == name and column.key is None else None

        return may_match_each(predicate, bounds, self.store.schema.column_types, len(ranges))


_Bucket: TypeAlias = tuple[bytes, int]


@dataclass(frozen=True)
class ScanPlanner:
    """Planner of batch scans."""

    store: FileStore
    min_level: int = 0
    """Lowest level to read. 1: only compacted files, even if the table shows level 0."""

    def plan(
        self,
        predicate: Predicate | None = None,
        *,
        snapshot: Snapshot | None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        partitions: Collection[bytes] | None = None,
        bucket: int | None = None,
    ) -> ScanPlan:
        """Return the splits with all rows that match ``predicate``.

        Args:
            predicate: Filter with literals of the table's types. Reading the splits must apply it again.
            snapshot: Snapshot to read. None: an empty table.
            columns: Columns that will be read. Only checked.
            limit: Number of rows that suffice. Only used if the row counts of splits are known without reading.
            partitions: Serialised partitions to read. None: all.
            bucket: Bucket to read. Files that were written with another number of buckets are read, too. None: all.

        Raises:
            UnknownColumn: A column does not exist.
            UnsupportedTable: The table has a feature that would make the rows wrong.
            SnapshotExpired: Files of the snapshot were deleted.
            CorruptFile: A metadata file is missing or damaged; the message names it.
        """
        schema = self.store.schema
        for name in (*(columns or ()), *columns_of(predicate)):
            if name not in schema.column_types:
                raise UnknownColumn(name, schema.names)
        self.store.check_readable()
        condition = TRUE if predicate is None else predicate
        other = other_branch(self.store)
        if other is None:
            return _Funnel(self.store, condition, partitions, self.min_level, bucket).plan(snapshot, limit)

        def branch(store: FileStore, branch_snapshot: Snapshot | None, branch_partitions: Collection[bytes] | None) -> ScanPlan:
            return _Funnel(store, condition, branch_partitions, self.min_level).plan(branch_snapshot, None)

        return plan_both(self.store, other, snapshot, partitions, branch)


class _Funnel:
    """State of one scan plan through the stages."""

    def __init__(
        self, store: FileStore, predicate: Predicate, partitions: Collection[bytes] | None, min_level: int, bucket: int | None = None
    ) -> None:
        options = store.options
        self._store = store
        self._predicate = predicate
        self._partitions = partitions
        self._bucket = bucket
        self._notes = IndexMetrics()
        self._pruner = FilePruner(store, predicate, self._notes)
        self._report = Report()
        self._has_vectors = options.deletion_vectors_enabled
        self._has_single_version = store.schema.kind.has_single_version
        self._skips_level0 = store.skips_level0
        self._ranges = _ranges_of(store)
        self._min_level = max(min_level, int(self._skips_level0))
        self._folded: Int64s = np.zeros(0, np.int64)
        asked = set(columns_of(predicate)) if options.global_index_enabled else set()
        self._indexes = [index for index in secondary_indexes(store.schema) if index.column in asked] if asked else []
        self._selections: Selections = {}

    def plan(self, snapshot: Snapshot | None, limit: int | None) -> ScanPlan:
        with self._report.stage("snapshot") as stage:
            stage.note = "the table has no snapshot" if snapshot is None else f"{snapshot.id}, {snapshot.commit_kind.value}"
            stage.count(int(snapshot is not None), 0)
            if snapshot is None:
                refuse_lost_snapshots(self._store)
        if snapshot is None or (not self._has_single_version and not self._min_level and self._is_known_empty(snapshot)):
            return ScanPlan(0 if snapshot is None else snapshot.id, (), tuple(self._report.stages))
        entries = self._in_wanted_partitions(self._manifests(snapshot))
        entries = self._in_wanted_buckets(entries)
        entries = self._on_visible_levels(entries)
        if self._is_one_view(entries) and self._is_known_empty(snapshot):
            return ScanPlan(snapshot.id, (), tuple(self._report.stages))
        files = self._prune(snapshot, entries)
        splits = self._splits(snapshot, files, limit)
        return ScanPlan(snapshot.id, splits, tuple(self._report.stages))

    def _is_one_view(self, visible: EntryColumns) -> bool:
        """Return whether all engines see the same rows.

        Some engines skip level 0.

        If so, statistics are valid, whichever engine counted them.
        """
        return self._has_single_version and not self._min_level and not bool((visible.level == 0).any())

    def _is_known_empty(self, snapshot: Snapshot) -> bool:
        """Return whether statistics of this snapshot prove no match."""
        statistics = own_statistics(self._store, snapshot) if self._predicate != TRUE else None
        if statistics is None:
            return False
        with self._report.stage("table statistics") as stage:
            empty = proves_empty(self._store, statistics, self._predicate)
            stage.count(int(not empty), int(empty))
            rows = "rows not counted" if statistics.merged_record_count is None else count_text(statistics.merged_record_count, "row")
            stage.note = f"{rows}, {count_text(len(statistics.col_stats), 'column')}"
        return empty

    def _manifests(self, snapshot: Snapshot) -> EntryColumns:
        """Return the entries, deletes included, of possibly matching manifests."""
        store = self._store
        with self._report.stage("manifest list") as stage:
            listed = store.manifest_metas(snapshot)
            partitioned = bool(store.partition.names)
            entry_filter = EntryFilter(self._predicate if partitioned else None, self._partitions, min_level=self._min_level)
            metas = entry_filter.manifests(listed, store.partition, store.paths.manifests)
            _count_manifests(stage, listed, metas)
            stage.note = "by partition and level ranges" if len(metas) < len(listed) else ""
        with self._report.stage("manifest ranges") as stage:
            in_columns = self._ranges is row_ranges  # another manifest may hold newer values of the same column
            pruner = ManifestPruner(store, TRUE if in_columns else self._predicate)
            with store.reading(snapshot):
                selected = pruner.select(metas)
                _count_manifests(stage, metas, selected)
                stage.note = pruner.note
                entries = store.manifests.read_metas(selected, self._blocks(), self._narrowing())
        if pruner.waiting is None:
            return entries
        visible = entries.level > 0  # a skipped manifest may delete a level-0 file: keep only those known as live
        shallow = np.flatnonzero(~visible)
        visible[shallow] = [name in pruner.waiting for name in entries.select(shallow).file_name]
        return entries.select(visible)

    def _blocks(self) -> BlockPruner | None:
        """Return the block pruner of large manifests. None: decode all."""
        if self._predicate == TRUE and self._partitions is None and not self._min_level and self._bucket is None:
            return None
        return BlockPruner(self._store, self._pruner.residuals, self._wants, self._min_level, self._bucket)

    def _narrowing(self) -> EntryNarrowing | None:
        """Return the pruning that is cached with decoded entries.

        None: the filter is too long for a cache key.
        """
        if not is_short(self._predicate):
            return None
        partitions = None if self._partitions is None else frozenset(self._partitions)
        return EntryNarrowing((repr(self._predicate), partitions, self._bucket, self._store.schema.id), self._narrow)

    def _narrow(self, entries: EntryColumns) -> EntryColumns:
        """Prune entries by partition, bucket and key.

        All versions of a key agree on these.
        """
        entries = self._of_wanted_partitions(entries)
        entries = entries.select(BucketPruner(self._store, self._pruner.residual, bucket=self._bucket).may_match(entries))
        return entries.select(self._pruner.key_mask(entries)) if self._store.key else entries

    def _in_wanted_partitions(self, entries: EntryColumns) -> EntryColumns:
        with self._report.stage("partition") as stage:
            remaining = self._of_wanted_partitions(entries)
            live = remaining.not_deleted
            counts = f"{len(remaining.partition_codes[1])} of {count_text(len(entries.partition_codes[1]), 'partition')}"
            stage.note = counts if self._store.partition.names else "not partitioned"
            _count(stage, entries.not_deleted, live)
        return live

    def _of_wanted_partitions(self, entries: EntryColumns) -> EntryColumns:
        codes, partitions = entries.partition_codes
        self._pruner.residuals(partitions)  # computes all at once
        return entries.select(np.array([self._wants(partition) for partition in partitions], np.bool_)[codes])

    def _wants(self, partition: bytes) -> bool:
        if self._partitions is not None and partition not in self._partitions:
            return False
        return self._pruner.residual(partition) != FALSE

    def _in_wanted_buckets(self, entries: EntryColumns) -> EntryColumns:
        with self._report.stage("bucket") as stage:
            pruner = BucketPruner(self._store, self._pruner.residual, bucket=self._bucket)
            visible = entries.bucket >= 0  # rows of the postpone bucket are invisible until compacted
            remaining = entries.select(pruner.may_match(entries) & visible)
            stage.note = pruner.note
            _count(stage, entries, remaining)
        return remaining

    def _on_visible_levels(self, entries: EntryColumns) -> EntryColumns:
        with self._report.stage("level") as stage:
            remaining = entries.select(entries.level >= self._min_level) if self._min_level else entries
            waiting = "level 0 is skipped until it is compacted" if self._skips_level0 else self._waiting(remaining)
            stage.note = "; ".join(filter(None, (waiting, self._retained(remaining))))
            _count(stage, entries, remaining)
        return remaining

    def _waiting(self, visible: EntryColumns) -> str:
        """Return a note about files that wait for compaction."""
        if not self._has_single_version:
            return ""
        waiting = visible.select(visible.level == 0)
        if not len(waiting):
            return ""
        buckets = count_text(len(set(waiting.bucket_numbers.tolist())), "bucket")
        return f"{count_text(len(waiting), 'file')} not compacted yet in {buckets}"

    def _retained(self, visible: EntryColumns) -> str:
        """Return a note about deletes that compactions retained."""
        if self._store.options.delete_time_retained is None:
            return ""
        deletes = int(visible.delete_row_count[(visible.level > 0) & (visible.delete_row_count > 0)].sum())
        return f"{count_text(deletes, 'retained delete')} above level 0" if deletes else ""

    def _prune(self, snapshot: Snapshot, entries: EntryColumns) -> EntryColumns:
        """Prune files by key range, statistics and indexes."""
        partitions = entries.partition_codes[1]
        acts = set(self._pruner.residuals(partitions)) - {TRUE} != set()
        cut: Int64s | None = None
        with self._report.stage("key range") as stage:
            by_key = self._store.key is not None and acts and set(map(self._pruner.key_predicate, partitions)) - {TRUE} != set()
            key_matches = self._pruner.key_mask(entries) if by_key else np.ones(len(entries), np.bool_)
            if self._ranges and acts and not self._skips_level0:
                cut = self._cut_sections(entries)[key_matches]
            remaining = entries.select(key_matches)
            _count(stage, entries, remaining)
            stage.note = "" if by_key else "no condition on key columns alone" if self._store.key else "no primary key"
        with self._report.stage("value stats") as stage:
            reads_values = acts and self._pruner.needs_values(remaining)
            remaining, cut = self._keep_sections(stage, remaining, cut, self._pruner.value_mask if reads_values else None)
        with self._report.stage("embedded index") as stage:
            reads_index = acts and self._store.options.file_index_read_enabled
            remaining, cut = self._keep_sections(stage, remaining, cut, self._pruner.index_mask if reads_index else None)
            used = ", ".join(f"{name} x{count}" for name, count in sorted(self._notes.used.items()))
            warned = f"{self._notes.warnings.total()} warnings" if self._notes.warnings else ""
            stage.note = "; ".join(part for part in (used, warned, stage.note) if part)
        refuse_files_added_twice(remaining)
        if acts and self._indexes:
            with self._report.stage("secondary index") as stage:
                remaining, _ = self._ask_indexes(stage, snapshot, remaining, cut)
        return remaining

    def _ask_indexes(self, stage: Stage, snapshot: Snapshot, files: EntryColumns, cut: Int64s | None) -> tuple[EntryColumns, Int64s | None]:
        """Prune files by secondary index, and note the selected rows of the others."""
        notes, terms, columns = IndexMetrics(), conjuncts(self._predicate), self._store.partition
        types = self._store.schema.column_types

        def inside(partition: bytes) -> list[Predicate]:
            constants = dict(zip(columns.names, columns.decode(partition), strict=True))
            return [bind_constants(term, constants, types) for term in terms]

        entries = self._store.index_entries(snapshot)
        answers = secondary.ask_indexes(self._store, self._indexes, entries, files, predicate=self._predicate, inside=inside, notes=notes)
        self._selections = answers.selections
        remaining, cut = self._keep_sections(stage, files, cut, lambda _: answers.may_match)
        stage.note = "; ".join(filter(None, (answers.describe(), secondary.log_unusable(self._store.root, notes), stage.note)))
        return remaining, cut

    def _cut_sections(self, visible: EntryColumns) -> Int64s:
        """Return the section of every visible file.

        A file that shares no key, or no row, with other visible files is a section alone.
        """
        buckets = visible.bucket_numbers
        if np.bincount(buckets, minlength=1).max() <= 1:
            return buckets
        numbers = np.arange(len(visible))
        shared = np.arange(len(visible))
        if self._has_single_version:
            shared = np.flatnonzero((np.bincount(buckets, visible.level <= 0) > 0)[buckets])
        if shared.size:
            ranks = self._ranges(visible.select(shared)) if self._ranges else (shared, shared)
            numbers[shared] = len(visible) + sections(buckets[shared], *ranks)
        if self._store.options.engine.folds_values:
            shared, counts = np.unique(numbers, return_counts=True)
            self._folded = shared[counts > 1]
        return numbers

    def _keep_sections(
        self, stage: Stage, files: EntryColumns, cut: Int64s | None, test: Callable[[EntryColumns], Mask] | None
    ) -> tuple[EntryColumns, Int64s | None]:
        """Return the files of sections where any file passes ``test``.

        Without sections (``cut``) each file is tested alone.
        """
        if test is None:
            _count(stage, files, files)
            return files, cut
        passing = test(files)
        if passing.all():
            _count(stage, files, files)
            return files, cut
        alive = passing if cut is None else np.isin(cut, np.concatenate([cut[passing], self._folded]))
        remaining = files.select(alive)
        _count(stage, files, remaining)
        spared = int(alive.sum() - passing.sum())
        stage.note = f"{count_text(spared, 'file')} kept for older or newer versions of their keys" if spared else ""
        return remaining, None if cut is None else cut[alive]

    def _splits(self, snapshot: Snapshot, files: EntryColumns, limit: int | None) -> Sequence[DataSplit]:
        with self._report.stage("splits") as stage:
            splits = self._all_splits(snapshot, files)
            limited_splits = self._limit(splits, limit)
            sums, beyond = sums_of(limited_splits), splits[len(limited_splits) :]
            stage.count(len(limited_splits), len(beyond), sums.file_size, sums_of(beyond).file_size)
            limited = f", {len(beyond)} beyond the limit" if beyond else ""
            stage.note = f"{len(limited_splits) - sums.merging} raw, {sums.merging} merging{limited}"
            return limited_splits

    def _all_splits(self, snapshot: Snapshot, entries: EntryColumns) -> Sequence[DataSplit]:
        options = self._store.options
        vectors = self._deletion_files(snapshot) if self._has_vectors else {}
        groups = file_groups(
            entries,
            self._ranges,
            options.source_split_target_size,
            options.source_split_open_file_cost,
            one_version=self._has_single_version,
        )
        return splits_of(entries, groups, vectors, self._selections, snapshot.id)

    def _deletion_files(self, snapshot: Snapshot) -> dict[tuple[_Bucket, str], DeletionFile]:
        store, files_by_bucket = self._store, {}
        for index in store.index_entries(snapshot):
            if index.index_type != DELETION_VECTORS:
                continue
            values = store.partition.decode(index.partition)
            path = store.paths.index(index.file_name, values, index.bucket, index.external_path)
            for vector in index.vectors or ():
                file = DeletionFile(path, vector.offset, vector.length, vector.cardinality)
                files_by_bucket[(index.partition, index.bucket), vector.data_file] = file
        return files_by_bucket

    def _limit(self, splits: Sequence[DataSplit], limit: int | None) -> Sequence[DataSplit]:
        """Return the first splits that reach the limit.

        Returns all if a filter or a merge makes the number of rows uncertain.
        """
        if limit is None or self._predicate != TRUE:
            return splits
        rows = 0
        for position, split in enumerate(splits):
            if rows >= limit:
                return splits[:position]
            count = split.merged_row_count
            if count is None:
                return splits
            rows += count
        return splits


def _ranges_of(store: FileStore) -> Ranges | None:
    """Return the ranges that keep files together.

    Key ranges, or row id ranges with data evolution. None: each file is independent.
    """
    if store.key is not None:
        return partial(key_ranks, types=store.key.types)
    return row_ranges if store.options.data_evolution_enabled else None


def _count_manifests(stage: Stage, before: Sequence[ManifestFileMeta], after: Sequence[ManifestFileMeta]) -> None:
    remaining_bytes, total = sum([meta.file_size for meta in after]), sum([meta.file_size for meta in before])
    stage.count(len(after), len(before) - len(after), remaining_bytes, total - remaining_bytes)


def _count(stage: Stage, before: EntryColumns, after: EntryColumns) -> None:
    count, remaining_bytes = len(after), int(after.file_size.sum())
    if before is after:
        stage.count(count, 0, remaining_bytes)
    else:
        stage.count(count, len(before) - count, remaining_bytes, int(before.file_size.sum()) - remaining_bytes)


def compacted_snapshot(store: FileStore) -> Snapshot | None:
    """Return the newest compaction snapshot.

    Only full compactions count if the table schedules them. Without a compaction, returns the newest snapshot.
    """
    options = store.options
    scheduled = options.changelog_producer == "full-compaction" or options.full_compaction_delta_commits is not None
    every = (options.full_compaction_delta_commits or 1) if scheduled else 1
    for snapshot in store.snapshots.backwards():
        is_full = snapshot.commit_identifier % every == 0 or snapshot.commit_identifier == BATCH_IDENTIFIER
        if snapshot.commit_kind is CommitKind.COMPACT and is_full:
            return snapshot
    return store.snapshots.latest()
