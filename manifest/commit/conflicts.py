"""Conflict checks of a change against live entries (Paimon's ``ConflictDetection``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import BLOB_FORMAT, FileKind
from manifest.entry.live import merge
from manifest.stats.column_stats import PartitionType

BucketId = tuple[bytes, int]


@dataclass(frozen=True, slots=True)
class Conflict:
    """A bucket whose change does not fit, with the reason."""

    bucket: BucketId
    reason: str


def file_conflicts(base: EntryColumns, delta: EntryColumns, key: PartitionType | None) -> list[Conflict]:
    """Return conflicts of ``delta`` with the live entries ``base``.

    A file to delete must exist, and a file to add must not.

    Args:
        base: Live entries of the partitions that ``delta`` touches.
        delta: Entries to commit.
        key: Key columns of a primary-key table. Files of one level above 0 must then keep disjoint key ranges.
    """
    if not len(delta) or _adds_unknown_names(base, delta):
        return []
    combined = EntryColumns.concat([base, delta])
    merged = merge(combined)
    conflicts = [Conflict(_bucket(combined, row), f"file {combined.file_name[row]} is already in the table") for row in merged.twice]
    gone = merged.unmatched_deletes
    conflicts += [Conflict(_bucket(gone, row), f"file {gone.file_name[row]} was removed by a newer commit") for row in range(len(gone))]
    if key is not None:
        conflicts += _level_conflicts(merged.entries, set(_buckets(delta)), key)
    return conflicts


def _adds_unknown_names(base: EntryColumns, delta: EntryColumns) -> bool:
    """Return whether ``delta`` adds only files on level 0 with new names."""
    # Such files fit any base. Most commits are like this, and need not be merged with the live files.
    if (delta.kind != FileKind.ADD).any() or delta.level.any():
        return False
    names = delta.content("_FILE._FILE_NAME")
    return len(set(names)) == len(names) and set(names).isdisjoint(base.content("_FILE._FILE_NAME"))


def read_conflicts(base: EntryColumns, reads: Iterable[tuple[BucketId, Sequence[str]]]) -> list[Conflict]:
    """Return buckets in which a read file is gone."""
    # The result of the read, a dropped or changed row, may depend on the removed file.
    nonempty_reads = [(bucket, names) for bucket, names in reads if names]
    live = set(zip(_buckets(base), base.file_name, strict=True)) if nonempty_reads else set()
    gone = ((bucket, name) for bucket, names in nonempty_reads for name in names if (bucket, name) not in live)
    return [
        Conflict(bucket, f"file {name}, in which older versions were looked up, was removed by a newer commit") for bucket, name in gone
    ]


def row_range_conflicts(base: EntryColumns, delta: EntryColumns) -> list[Conflict]:
    """Return conflicts in the ranges of row ids.

    Files with columns of the same rows must have the same range.

    Args:
        base: Live entries of the partitions that ``delta`` touches.
        delta: Entries to commit. New rows have no ids yet, and fit.
    """
    merged = merge(EntryColumns.concat([base, delta])).entries
    # A BLOB file may have a part of the rows of a range.
    has_row_ids = merged.present("_FILE._FIRST_ROW_ID") & np.array([not name.endswith(BLOB_FORMAT) for name in merged.file_name], np.bool_)
    rows = np.flatnonzero(has_row_ids & (merged.kind == FileKind.ADD))
    first = merged.numbers("_FILE._FIRST_ROW_ID")[rows]
    order = np.lexsort([merged.row_count[rows], first])
    rows, first = rows[order], first[order]
    ends = first + merged.row_count[rows]
    same = (first[1:] == first[:-1]) & (ends[1:] == ends[:-1])
    # A compaction joins ranges. New columns of one of these ranges would overlap the joined one without being equal to it.
    wrong = np.flatnonzero(~same & (first[1:] < np.maximum.accumulate(ends)[:-1]))
    return [
        Conflict(
            _bucket(merged, int(rows[index + 1])),
            f"row ids of file {merged.file_name[int(rows[index + 1])]} are in a range that changed meanwhile",
        )
        for index in wrong[:1].tolist()
    ]


def bucket_count_conflicts(base: EntryColumns, delta: EntryColumns) -> list[Conflict]:
    """Return conflicts in the number of buckets of one partition.

    -1 (dynamic) and -2 (postpone) are no bucket counts and fit any.
    """
    counts: dict[bytes, int] = {}
    for entries in (base, delta):
        totals = entries.total_buckets
        codes, partitions = entries.partition_codes
        for code, total in np.unique(np.stack([codes[totals > 0], totals[totals > 0]]), axis=1).T.tolist():
            bucket_count = counts.setdefault(partitions[code], total)
            if bucket_count != total:
                return [Conflict((partitions[code], -1), f"the partition has {bucket_count} buckets, the commit was written for {total}")]
    return []


def first_touched(changes: Iterable[EntryColumns], buckets: Collection[BucketId]) -> BucketId | None:
    """Return the first of ``buckets`` that one of ``changes`` touches."""
    for change in changes:
        for bucket in dict.fromkeys(_buckets(change)):
            if bucket in buckets:
                return bucket
    return None


def max_sequences(entries: EntryColumns, buckets: Collection[BucketId]) -> dict[BucketId, int]:
    """Return the greatest live sequence number of each of ``buckets``."""
    max_by_bucket: dict[BucketId, int] = {}
    for bucket, number in zip(_buckets(entries), entries.max_sequence_number.tolist(), strict=True):
        if bucket in buckets and number > max_by_bucket.get(bucket, -1):
            max_by_bucket[bucket] = number
    return max_by_bucket


def _level_conflicts(merged: EntryColumns, buckets: Collection[BucketId], key: PartitionType) -> Iterator[Conflict]:
    upper = merged.select((merged.level > 0) & (merged.kind == FileKind.ADD))
    runs: dict[tuple[BucketId, int], list[int]] = {}
    for row, (bucket, level) in enumerate(zip(_buckets(upper), upper.level.tolist(), strict=True)):
        if bucket in buckets:
            runs.setdefault((bucket, level), []).append(row)
    for (bucket, level), rows in runs.items():
        if len(rows) > 1 and (pair := _overlap(upper, rows, key)) is not None:
            first, second = (upper.file_name[row] for row in pair)
            yield Conflict(bucket, f"files {first} and {second} of level {level} overlap in keys")


def _overlap(entries: EntryColumns, rows: Sequence[int], key: PartitionType) -> tuple[int, int] | None:
    """Return two of ``rows`` whose key ranges overlap, or None."""
    bounds = sorted((key.order(entries.min_key[row]), key.order(entries.max_key[row]), row) for row in rows)
    # By their lower bounds: if no neighbours overlap, no files do.
    for (_, high, row), (low, _, following) in pairwise(bounds):
        if high >= low:
            return row, following
    return None


def _bucket(entries: EntryColumns, row: int) -> BucketId:
    return entries.partition[row], int(entries.bucket[row])


def _buckets(entries: EntryColumns) -> list[BucketId]:
    return list(zip(entries.partition, entries.bucket.tolist(), strict=True))
