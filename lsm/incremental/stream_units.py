"""The state of one snapshot in units, so that a stream can begin with it in several batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fileindex.base.arrays import Indices, Int64s
from fileindex.base.lazy import cached_property
from fileindex.predicate.tree import Predicate
from lsm.scan.plan import ScanPlan
from lsm.scan.planner import ScanPlanner
from lsm.scan.splits import DataSplit
from manifest.entry.columns import EntryColumns
from manifest.entry.live import EntryFilter
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore


@dataclass(frozen=True)
class WholeState:
    """The live files of ``snapshot`` from ``min_level`` on: a unit is a bucket where rows have a key, else a file.

    The order of units depends on nothing but the snapshot.
    """

    store: FileStore
    snapshot: Snapshot
    min_level: int = 0

    def sizes(self) -> Int64s:
        """What each unit holds."""
        files = file_sizes(self._entries)
        if not self.store.schema.is_primary_key_table:
            return files
        counted = [np.bincount(self._bucket_of, weights=size, minlength=len(self._buckets)) for size in files]
        return np.stack(counted).astype(np.int64)

    def plan(self, first: int, end: int | None, predicate: Predicate | None) -> ScanPlan:
        """The splits of units ``first`` to ``end`` (None: to the last) that may hold rows for which ``predicate`` is true."""
        whole = ScanPlanner(self.store, self.min_level).plan(predicate, snapshot=self.snapshot)
        if self.store.schema.is_primary_key_table:
            wanted = set(self._buckets[first:end])
            splits = [split for split in whole.splits if (split.partition, split.bucket) in wanted]
        else:
            chosen = self._entries.select(np.arange(len(self._entries))[first:end])
            names = set(zip(chosen.partition, chosen.bucket.tolist(), chosen.file_name, strict=True))
            splits = [part for split in whole.splits for part in _part(split, names)]
        return ScanPlan(whole.snapshot_id, tuple(splits), whole.report)

    @cached_property
    def _entries(self) -> EntryColumns:
        live = self.store.live_entries(self.snapshot, EntryFilter(min_level=self.min_level))
        return live.select(live.bucket >= 0) if self.store.schema.is_primary_key_table else live

    @cached_property
    def _buckets(self) -> list[tuple[bytes, int]]:
        return sorted(set(zip(self._entries.partition, self._entries.bucket.tolist(), strict=True)))

    @property
    def _bucket_of(self) -> Indices:
        numbers = {bucket: number for number, bucket in enumerate(self._buckets)}
        return np.array([numbers[bucket] for bucket in zip(self._entries.partition, self._entries.bucket.tolist(), strict=True)], np.intp)


def file_sizes(entries: EntryColumns) -> Int64s:
    """The sizes of files that are units of their own."""
    return np.stack([np.ones(len(entries), np.int64), entries.row_count, entries.file_size])


def _part(split: DataSplit, names: set[tuple[bytes, int, str]]) -> list[DataSplit]:
    """The split with those of its files that ``names`` has; none if there are none."""
    kept = [at for at, file in enumerate(split.files) if (split.partition, split.bucket, file.file_name) in names]
    vectors = split.deletion_files
    left = {"files": tuple(split.files[at] for at in kept), "deletion_files": vectors and tuple(vectors[at] for at in kept)}
    return [split.model_copy(update=left)] if kept else []


__all__ = ["WholeState", "file_sizes"]
