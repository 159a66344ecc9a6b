"""Splits of a plan, created from arrays.

A large plan keeps its entries encoded: a decoded entry takes as much again, and its file object 1.2 KB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, overload

import numpy as np

from lsm.deletion_vectors.reader import DeletionFile
from lsm.scan.planned_files import FileBatch, PlannedFiles
from lsm.scan.split_generator import WeightedFiles
from lsm.scan.splits import DataSplit
from lsm.secondary_index.selection import IndexSelection
from manifest.entry.columns import EntryColumns, whole_record
from paimon_base.lazy import cached_property
from paimon_base.process import gc_paused
from paimon_base.texts import count_text
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Indices, Int64s, Mask

Vectors: TypeAlias = Mapping[tuple[tuple[bytes, int], str], DeletionFile]
"""Deletion vectors by (partition, bucket) and data file."""


Selections: TypeAlias = Mapping[tuple[bytes, int], IndexSelection]
"""Rows that secondary indexes selected, by (partition, bucket)."""


def splits_of(
    entries: EntryColumns, groups: Sequence[WeightedFiles], vectors: Vectors, selections: Selections, snapshot_id: int
) -> Sequence[DataSplit]:
    """Return a split for each of ``groups``.

    Many splits are created on access.
    """
    if not groups:
        return ()
    splits = PlannedSplits.of(entries, groups, vectors, selections, snapshot_id)
    return tuple(splits) if len(entries) <= thresholds.plan_files else splits.encoded()


@dataclass(frozen=True, slots=True)
class EncodedEntries:
    """Manifest entries that are decoded on access."""

    payload: bytes
    """Encoded entries, possibly including others."""
    starts: Int64s
    ends: Int64s
    short: Mask
    """Entries without the last byte of the current layout."""
    paths: tuple[str, ...]
    """Manifest paths, for errors. ``source`` is the index of each entry's manifest."""
    source: Indices

    @classmethod
    def of(cls, entries: EntryColumns) -> EncodedEntries:
        """Return ``entries`` without their decoded columns."""
        starts, ends, payload = entries.columns.start, entries.columns.end, entries.payload
        if int((ends - starts).sum()) * 2 < len(payload):
            payload = b"".join([payload[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
            starts, ends = np.cumsum(ends - starts) - (ends - starts), np.cumsum(ends - starts)
        return cls(payload, starts, ends, entries.short, entries.paths, entries.source.astype(np.int32))

    def select(self, rows: Indices) -> EntryColumns:
        """Decode the entries at ``rows``."""
        bounds = zip(self.starts[rows].tolist(), self.ends[rows].tolist(), self.short[rows].tolist(), strict=True)
        decoded = EntryColumns.of_records([whole_record(self.payload[start:end], short=short) for start, end, short in bounds])
        # Every row has a number of its own, so all manifests share the objects built so far.
        return replace(decoded, paths=self.paths, source=self.source[rows], built=decoded.built * len(self.paths))


@dataclass(frozen=True, slots=True)
class Sums:
    """Totals of splits."""

    files: int
    rows: int
    file_size: int
    merging: int


def sums_of(splits: Sequence[DataSplit]) -> Sums:
    """Return the totals of ``splits``.

    No file, and no split of a lazy sequence, is created for it.
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
    caches it.
    """

    entries: EntryColumns | EncodedEntries
    """Entries of the files, in order of splits."""
    partitions: Sequence[bytes]
    partition_codes: Int64s
    """Position in ``partitions`` of each split's partition."""
    buckets: Int64s
    total_buckets: Int64s
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
    selections: Selections
    snapshot_id: int

    @classmethod
    def of(
        cls, entries: EntryColumns, groups: Sequence[WeightedFiles], vectors: Vectors, selections: Selections, snapshot_id: int
    ) -> PlannedSplits:
        """Return the splits of ``groups`` of ``entries``."""
        counts = np.array([group.rows.size for group in groups], np.int64)
        lasts = np.cumsum(counts)
        firsts = lasts - counts
        ordered = entries.select(np.concatenate([group.rows for group in groups]))
        codes, partitions = ordered.partition_codes
        return cls(
            entries=ordered,
            partitions=partitions,
            partition_codes=codes[firsts],
            buckets=ordered.bucket[firsts],
            total_buckets=ordered.total_buckets[firsts],
            sizes=np.add.reduceat(ordered.file_size, firsts),
            rows=np.add.reduceat(ordered.row_count, firsts),
            firsts=firsts,
            lasts=lasts,
            raw=np.array([group.raw_convertible for group in groups], np.bool_),
            vectors=vectors,
            selections=selections,
            snapshot_id=snapshot_id,
        )

    def encoded(self) -> PlannedSplits:
        """Return the same splits, whose entries are decoded on access."""
        return replace(self, entries=EncodedEntries.of(self.entries)) if isinstance(self.entries, EntryColumns) else self

    def __len__(self) -> int:
        return self.firsts.size

    @overload
    def __getitem__(self, index: int) -> DataSplit: ...

    @overload
    def __getitem__(self, index: slice) -> PlannedSplits: ...

    def __getitem__(self, index: int | slice) -> DataSplit | PlannedSplits:
        if isinstance(index, slice):
            return replace(self, **{name: getattr(self, name)[index] for name in _BY_SPLIT})
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
        """Return adjacent splits, whose files are created together."""
        counts = self.lasts[first:last] - self.firsts[first:last]
        ends = np.cumsum(counts)
        starts = ends - counts
        select = partial(self.entries.select, np.arange(ends[-1]) + np.repeat(self.firsts[first:last] - starts, counts))
        entries = select() if self.vectors or self.selections else None
        batch = FileBatch(select if entries is None else lambda: entries)
        vectors = () if entries is None else _vectors_of(self.vectors, entries)
        names = () if entries is None else entries.file_name
        by_split = (self.partition_codes, self.buckets, self.total_buckets, self.raw, self.rows, self.sizes)
        columns = (starts, ends, *(column[first:last] for column in by_split))
        with gc_paused():
            return tuple(
                [
                    DataSplit(
                        partition=self.partitions[code],
                        bucket=bucket,
                        total_buckets=total,
                        files=PlannedFiles(batch, start, end, rows, size),
                        raw_convertible=raw,
                        deletion_files=vectors[start:end] if any(vectors[start:end]) else None,
                        index_selection=_selection_of(self.selections, (self.partitions[code], bucket), names[start:end]),
                        snapshot_id=self.snapshot_id,
                    )
                    for start, end, code, bucket, total, raw, rows, size in zip(*(column.tolist() for column in columns), strict=True)
                ]
            )


_BY_SPLIT = ("partition_codes", "buckets", "total_buckets", "sizes", "rows", "firsts", "lasts", "raw")


def _selection_of(selections: Selections, bucket: tuple[bytes, int], names: Sequence[str]) -> IndexSelection | None:
    """Return the selected rows of some files of a bucket. None: of none of them."""
    selection = selections.get(bucket)
    return None if selection is None else selection.of_files(names)


def _vectors_of(vectors: Vectors, entries: EntryColumns) -> tuple[DeletionFile | None, ...]:
    """Return the vector of each file.

    Raises ``CorruptFile`` if a vector has more positions than its file has rows.
    """
    identities = zip(entries.partition, entries.bucket.tolist(), entries.file_name, strict=True)
    of_files = zip(((vectors.get((row[:2], row[2])), row[2]) for row in identities), entries.row_count.tolist(), strict=True)
    return tuple([vector and vector.within(name, rows) for (vector, name), rows in of_files])
