"""Buckets in which a compaction may be due, by their entries alone."""

from __future__ import annotations

import numpy as np

from lsm.compaction.policy import CompactionPolicy
from lsm.levels.universal import UniversalCompaction
from manifest.entry.columns import EntryColumns
from manifest.schema.table_schema import BucketMode
from manifest.store import FileStore
from sparkexpr.values.arrays import Int64s


def due_entries(store: FileStore, entries: EntryColumns, *, added: int = 0) -> EntryColumns:
    """Return the entries of buckets whose compaction strategy may pick files.

    ``entries`` must be live. ``added``: number of level-0 files to assume in addition, in each bucket.
    """
    rows = entries.select(entries.bucket >= 0)
    strategy = CompactionPolicy.of(store.schema.kind).strategy if store.schema.is_primary_key_table else None
    if not isinstance(strategy, UniversalCompaction) or strategy.early is not None or not len(rows):
        return rows
    bucket, level = rows.bucket_numbers, rows.level
    deeper = np.unique(np.stack([bucket, level])[:, level > 0], axis=1)[0]
    count = int(bucket.max()) + 1
    # A run is a file on level 0, and all files of a deeper level.
    runs = np.bincount(bucket[level == 0], minlength=count) + np.bincount(deeper, minlength=count)
    return rows.select((runs + added >= _triggers(strategy, rows, count))[bucket])


def _triggers(strategy: UniversalCompaction, rows: EntryColumns, count: int) -> Int64s | int:
    """Return the trigger of each of ``count`` buckets."""
    if strategy.growth is None:
        return strategy.trigger
    bucket, level, size = rows.bucket_numbers, rows.level, rows.file_size
    totals = np.bincount(bucket, size, minlength=count)
    # The newest run is the newest file of level 0, or the first level that has files.
    order = np.lexsort((-rows.max_sequence_number, level, bucket))
    newest = order[np.unique(bucket[order], return_index=True)[1]]
    first_level = np.zeros(count, level.dtype)
    first_level[bucket[newest]] = level[newest]
    in_run = np.where(level == 0, np.isin(np.arange(len(rows)), newest), level == first_level[bucket])
    newest_sizes = np.bincount(bucket, size * in_run, minlength=count)
    return np.array([strategy.growth.trigger(strategy.trigger, *sizes) for sizes in zip(totals, newest_sizes, strict=True)])


def compaction_bytes(store: FileStore) -> int:
    """Estimate the bytes that compactions after one more small write read."""
    if store.options.write_only or store.schema.bucket_mode is BucketMode.BUCKET_UNAWARE:
        return 0
    entries = store.live_entries(store.snapshots.latest())
    if store.options.compacts_fully_at_commit:
        return int(entries.file_size.sum())
    return int(due_entries(store, entries, added=1).file_size.sum())
