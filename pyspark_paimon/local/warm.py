"""Caching of all that lookups at one snapshot need, ahead of the first one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fileindex.predicate.tree import TRUE
from lsm.keys.sorted_keys import SortedKeys
from lsm.read.keyed_read import KeyedRead
from lsm.read.split import SplitRead
from lsm.scan.key_plan import BucketPlace
from manifest.io.threads import map_in_threads
from pyspark_paimon.local.plan import hold_buckets, plan_request

if TYPE_CHECKING:
    from manifest.store import FileStore
    from pyspark_paimon.request.requests import ScanRequest


def warm_lookups(store: FileStore, request: ScanRequest, threads: int) -> None:
    """Cache files of buckets, footers, page bounds and keys.

    Stops where the cache is full. Files of the deepest levels come first: they have the most keys.
    """
    snapshot = request.find_snapshot(store.snapshots)
    if snapshot is None:
        return
    splits = [split for split in plan_request(store, request, snapshot).splits if split.branch is None]
    hold_buckets(store, snapshot, dict.fromkeys(BucketPlace.of(store, split) for split in splits))
    names, cache = tuple(store.schema.trimmed_primary_keys), store.cache.files
    empty = store.schema.arrow.empty_table()
    keys = SortedKeys.of([empty.column(name) for name in names])
    reads = [KeyedRead(SplitRead(store, split, names, TRUE).alone(file), keys, names) for split in splits for file in split.files]
    reads.sort(key=lambda read: -read.read.file.level)
    map_in_threads(lambda read: read.warm(lambda: cache.lesser_capacity - cache.lesser_bytes), reads, threads)
