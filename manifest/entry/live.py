"""Live entries: cancels entries and skips manifests before reading them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from fileindex.predicate.tree import Predicate
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind
from manifest.entry.manifest_blocks import BlockRanges
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.stats.column_stats import PartitionType
from paimon_base.errors import CorruptFile
from paimon_base.lazy import cached_property
from sparkexpr.values.arrays import Int64s, Mask


def live(entries: EntryColumns) -> EntryColumns:
    """Return the ADD entries whose identity no DELETE entry has.

    The order of entries does not matter, as in Paimon's batch scan. Raises ``CorruptFile`` if a file of a bucket is added twice.
    """
    alive = entries.not_deleted
    refuse_files_added_twice(alive)
    return alive


def refuse_files_added_twice(alive: EntryColumns) -> None:
    """Raise ``CorruptFile`` if a bucket has a file twice.

    If manifests were skipped by key or value ranges, prune ``alive`` by the same ranges first. The DELETE of an entry may be in a
    skipped manifest.
    """
    if (twice := alive.added_twice) is not None:
        path, name = alive.path_of(twice), alive.file_name[twice]
        raise CorruptFile(path, f"adds data file {name}, which is in the table already, so its rows would count twice")


@dataclass(frozen=True, slots=True)
class Merged:
    """Entries after sequential merging.

    Args:
        entries: Remaining entries.
        twice: Rows of the input with an ADD whose identity already exists, or whose DELETE is still unmatched.
    """

    entries: EntryColumns
    twice: tuple[int, ...]

    @property
    def unmatched_deletes(self) -> EntryColumns:
        """DELETEs without an ADD in the input."""
        return self.entries.select(self.entries.kind == FileKind.DELETE)


def merge(entries: EntryColumns) -> Merged:
    """Cancel each ADD with a later DELETE of its identity.

    A DELETE without an ADD stays (Paimon's ``FileEntry.mergeEntries``).
    """
    row_by_identity: dict[tuple[bytes, ...], int] = {}
    twice: list[int] = []
    again = entries.has_repeated_name
    if not again.any():
        return Merged(entries, ())
    rows = np.flatnonzero(again)
    kinds = entries.kind[rows].tolist()
    for row, identity in enumerate(entries.identities(rows)):
        if kinds[row] == FileKind.ADD:
            if identity in row_by_identity:
                twice.append(row)
            row_by_identity[identity] = row
        elif identity in row_by_identity and kinds[row_by_identity[identity]] == FileKind.ADD:
            del row_by_identity[identity]
        else:
            # The ADD of this DELETE may be in a manifest that is not merged here.
            row_by_identity[identity] = row
    stays = ~again
    stays[rows[list(row_by_identity.values())]] = True
    return Merged(entries.select(stays), tuple(rows[twice].tolist()))


@dataclass(frozen=True)
class EntryFilter:
    """Filter of entries by identity fields.

    Other fields could drop a DELETE and keep its ADD.

    Args:
        predicate: May name any column. Only its terms over partition columns apply.
        partitions: Wanted partitions. None: all.
        buckets: Wanted buckets. None: all.
        bucket_counts: Entries of other buckets stay if their number of buckets is not among these. None: they are dropped.
        min_level: Smallest wanted level.
    """

    predicate: Predicate | None = None
    partitions: Collection[bytes] | None = None
    buckets: Collection[int] | None = None
    bucket_counts: Collection[int] | None = None
    min_level: int = 0

    @cached_property
    def is_everything(self) -> bool:
        """Whether nothing can be pruned."""
        return self.predicate is None and self.partitions is None and self.buckets is None and self.min_level <= 0

    def manifests(self, metas: Sequence[ManifestFileMeta], partition: PartitionType, path: str) -> list[ManifestFileMeta]:
        """Return the manifests that may have a wanted entry.

        ``path`` is their directory, for errors.
        """
        if self.is_everything:
            return list(metas)
        in_range = partition.spanning(self.partitions) if self.partitions is not None else None
        matching_metas: list[ManifestFileMeta] = []
        for meta in metas:
            if meta.max_level is not None and meta.max_level < self.min_level:
                continue
            if self.buckets is not None and self.bucket_counts is None and meta.min_bucket is not None and meta.max_bucket is not None:
                low, high = meta.min_bucket, meta.max_bucket
                if not any(low <= bucket <= high for bucket in self.buckets):
                    continue
            name = f"{path}/{meta.file_name}"
            if in_range is not None and not in_range(meta.partition_stats, name):
                continue
            if self.predicate is not None and not partition.may_hold(self.predicate, meta.partition_stats, meta.num_entries, name):
                continue
            matching_metas.append(meta)
        return matching_metas

    def blocks(self, ranges: BlockRanges, partition: PartitionType) -> Mask:
        """Return the blocks that may have a wanted entry."""
        may_match: Mask = ranges.column("max_level") >= self.min_level
        if self.buckets is not None:
            other = self._of_other_counts(ranges.column("min_total_buckets")) | self._of_other_counts(ranges.column("max_total_buckets"))
            if self.bucket_counts is not None:
                other |= ranges.column("min_total_buckets") != ranges.column("max_total_buckets")
            may_match &= ranges.in_buckets(list(self.buckets)) | other
        if self.partitions is not None:
            partition_set = set(self.partitions)
            may_match &= ranges.in_partitions([value in partition_set for value in ranges.partitions])
        if self.predicate is not None and partition.names:
            may_match &= ranges.in_partitions([partition.keeps(self.predicate, value) for value in ranges.partitions])
        return may_match

    def _of_other_counts(self, totals: Int64s) -> Mask:
        is_other: Mask = np.zeros(totals.size, np.bool_) if self.bucket_counts is None else ~np.isin(totals, list(self.bucket_counts))
        return is_other

    def entries(self, columns: EntryColumns, partition: PartitionType) -> EntryColumns:
        """Return the wanted entries."""
        if self.is_everything or not len(columns):
            return columns
        matches: Mask = columns.level >= self.min_level
        if self.buckets is not None:
            matches &= np.isin(columns.bucket, list(self.buckets)) | self._of_other_counts(columns.total_buckets)
        if self.partitions is not None:
            matches &= columns.in_partitions(self.partitions)
        if self.predicate is not None and partition.names:
            codes, present = columns.partition_codes
            partition_matches = [partition.keeps(self.predicate, value, columns.path_of(0)) for value in present]
            matches &= np.array(partition_matches, np.bool_)[codes]
        return columns.select(matches)
