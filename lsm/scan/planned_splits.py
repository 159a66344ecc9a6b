"""Lazy splits of a large plan.

Entries stay encoded; the file objects of a split are created on access. A file object takes about 1.2 KB, its encoded entry a quarter of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, overload

import numpy as np

from lsm.deletion_vectors.reader import DeletionFile
from lsm.scan.split_generator import WeightedFiles
from lsm.scan.splits import DataSplit
from manifest.entry.columns import EntryColumns, whole_record
from manifest.entry.data_file import DataFileMeta
from paimon_base.errors import CorruptFile
from paimon_base.lazy import cached_property
from paimon_base.texts import count_text
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Indices, Int64s, Mask

Vectors: TypeAlias = Mapping[tuple[tuple[bytes, int], str], DeletionFile]
"""Deletion vectors by (partition, bucket) and data file."""


def splits_of(entries: EntryColumns, groups: Sequence[WeightedFiles], vectors: Vectors, snapshot_id: int) -> Sequence[DataSplit]:
    """Return a split for each of ``groups``.

    Splits with many files are created on access.

    Raises:
        CorruptFile: A manifest entry is invalid.
    """
    if len(entries) <= thresholds.plan_files:
        return tuple(_splits(entries, groups, vectors, snapshot_id))
    return PlannedSplits.of(entries, groups, vectors, snapshot_id)


def _vectors_of(vectors: Vectors, bucket: tuple[bytes, int], files: Sequence[DataFileMeta]) -> tuple[DeletionFile | None, ...]:
    """Return the vector of each file, or ().

    Raises ``CorruptFile`` if a vector has more positions than its file has rows.
    """
    if not vectors:
        return ()
    vector_of_file = ((file, vectors.get((bucket, file.file_name))) for file in files)
    return tuple(None if vector is None else vector.within(file.file_name, file.row_count) for file, vector in vector_of_file)


def _splits(entries: EntryColumns, groups: Sequence[WeightedFiles], vectors: Vectors, snapshot_id: int) -> Iterator[DataSplit]:
    all_files = entries.files()
    codes, partitions = entries.partition_codes
    for group in groups:
        first, files = int(group.rows[0]), tuple([all_files[row] for row in group.rows.tolist()])
        partition, bucket = partitions[codes[first]], int(entries.bucket[first])
        deletion_files = _vectors_of(vectors, (partition, bucket), files)
        yield DataSplit(
            partition=partition,
            bucket=bucket,
            total_buckets=int(entries.total_buckets[first]),
            files=files,
            raw_convertible=group.raw_convertible,
            deletion_files=deletion_files if any(deletion_files) else None,
            snapshot_id=snapshot_id,
        )


@dataclass(frozen=True, slots=True)
class Sums:
    """Totals of splits."""

    files: int
    rows: int
    file_size: int
    merging: int


def sums_of(splits: Sequence[DataSplit]) -> Sums:
    """Return the totals of ``splits``.

    Lazy splits are not created for it.
    """
    if isinstance(splits, PlannedSplits):
        counts = (splits.lasts - splits.firsts, splits.rows, splits.sizes, ~splits.raw)
        return Sums(*(int(count.sum()) for count in counts))
    each = [(len(split.files), split.row_count, split.file_size, int(not split.raw_convertible)) for split in splits]
    return Sums(*(map(sum, zip(*each, strict=True)) if splits else (0, 0, 0, 0)))


@dataclass(frozen=True, eq=False, repr=False)
class PlannedSplits(Sequence[DataSplit]):
    """An immutable lazy sequence of splits, equal to a tuple.

    Pickling keeps it encoded. A slice is lazy too. Iterating creates each split once. Access by position creates a batch of adjacent splits and
    caches it. Accessing a split with invalid fields raises ``CorruptFile``.
    """

    payload: bytes
    """Encoded entries, possibly including other files."""
    starts: Int64s
    """Start of each file's entry in ``payload``, in order of splits."""
    ends: Int64s
    short: Mask
    """Entries without the last byte of the current layout."""
    paths: tuple[str, ...]
    """Manifest paths, for errors. ``source`` is the index of each entry's manifest."""
    source: Indices
    sizes: Int64s
    """Bytes of each split's files."""
    rows: Int64s
    """Physical rows of each split."""
    firsts: Int64s
    """First file of each split. ``lasts`` is one past its last file."""
    lasts: Int64s
    raw: Mask
    """Splits that need no merge."""
    vectors: Vectors
    snapshot_id: int

    @classmethod
    def of(cls, entries: EntryColumns, groups: Sequence[WeightedFiles], vectors: Vectors, snapshot_id: int) -> PlannedSplits:
        """Return the splits of ``groups`` of ``entries``."""
        counts = np.array([group.rows.size for group in groups], np.int64)
        order = np.concatenate([group.rows for group in groups])
        lasts = np.cumsum(counts)
        firsts = lasts - counts
        starts, ends, short = entries.columns.start[order], entries.columns.end[order], entries.short[order]
        payload = entries.payload
        if int((ends - starts).sum()) * 2 < len(payload):
            payload = b"".join([payload[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
            starts, ends = np.cumsum(ends - starts) - (ends - starts), np.cumsum(ends - starts)
        return cls(
            payload=payload,
            starts=starts,
            ends=ends,
            short=short,
            paths=entries.paths,
            source=entries.source[order].astype(np.int32),
            sizes=np.add.reduceat(entries.file_size[order], firsts),
            rows=np.add.reduceat(entries.row_count[order], firsts),
            firsts=firsts,
            lasts=lasts,
            raw=np.array([group.raw_convertible for group in groups], np.bool_),
            vectors=vectors,
            snapshot_id=snapshot_id,
        )

    def __len__(self) -> int:
        return self.firsts.size

    @overload
    def __getitem__(self, index: int) -> DataSplit: ...

    @overload
    def __getitem__(self, index: slice) -> PlannedSplits: ...

    def __getitem__(self, index: int | slice) -> DataSplit | PlannedSplits:
        if isinstance(index, slice):
            return replace(self, **{name: getattr(self, name)[index] for name in ("sizes", "rows", "firsts", "lasts", "raw")})
        position = range(len(self))[index]
        first, cached = self.__dict__.get("_near", (0, ()))
        if not first <= position < first + len(cached):
            first, last = self._batch_bounds(position)
            cached = self._create(first, last)
            self.__dict__["_near"] = first, cached  # one assignment: safe with concurrent readers
        split: DataSplit = cached[position - first]
        return split

    def __iter__(self) -> Iterator[DataSplit]:
        first = 0
        while first < len(self):
            first, last = self._batch_bounds(first)
            yield from self._create(first, last)
            first = last

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlannedSplits | tuple):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"PlannedSplits({count_text(len(self), 'split')}, {count_text(sums_of(self).files, 'file')})"

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name not in {"_near", "_batches"}}

    def _batch_bounds(self, position: int) -> tuple[int, int]:
        """Return the bounds of the batch of a split."""
        batch = self._batches[position]
        return int(np.searchsorted(self._batches, batch)), int(np.searchsorted(self._batches, batch, side="right"))

    @cached_property
    def _batches(self) -> Int64s:
        """Batch number of each split."""
        return (np.cumsum(self.lasts - self.firsts) - 1) // thresholds.plan_files_at_once

    def _create(self, first: int, last: int) -> tuple[DataSplit, ...]:
        spans = list(zip(self.firsts[first:last].tolist(), self.lasts[first:last].tolist(), strict=True))
        files = np.concatenate([np.arange(*span) for span in spans])
        spans_of = zip(self.starts[files].tolist(), self.ends[files].tolist(), self.short[files].tolist(), strict=True)
        records = [whole_record(self.payload[start:end], short=short) for start, end, short in spans_of]
        try:
            entries = EntryColumns.of_records(records)
            counts = np.array([last - first for first, last in spans])
            bounds = np.cumsum(counts) - counts
            groups = [
                WeightedFiles(np.arange(bound, bound + count), bool(raw))
                for bound, count, raw in zip(bounds.tolist(), counts.tolist(), self.raw[first:last].tolist(), strict=True)
            ]
            return tuple(_splits(entries, groups, self.vectors, self.snapshot_id))
        except (ValueError, CorruptFile) as error:
            paths = (self.paths[source] for source in np.unique(self.source[files]).tolist())
            names = ", ".join(path for path in paths if path) or "new manifest entries"
            raise CorruptFile(names, f"an entry is not valid ({error.__cause__ or error})") from error
