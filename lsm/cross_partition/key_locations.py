"""Partitions and buckets of keys at a snapshot.

They are found among the keys of all partitions, without an index. Paimon reads every key of the table into a local store before the
first row of a writer (``IndexBootstrap``). Here only the keys of a write are searched: their bounds select files, row groups and
pages, and key columns are read in batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from lsm.keys.key_set import KeySet, key_filter
from lsm.read.split import read_split
from lsm.scan.planner import ScanPlanner
from lsm.scan.splits import DataSplit
from manifest.io.errors import UnmergeableRows
from manifest.options.core_options import OWN_BRANCH
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int32s, Int64s

NOT_FOUND = -1
EVERY_ROW = {"deletion-vectors.merge-on-read": "true", **OWN_BRANCH}
"""Options to read all rows of the table's branch."""
ReadEach = Callable[[Callable[[DataSplit], list[tuple[int, int, Int64s]]], Iterable[DataSplit]], Iterable[list[tuple[int, int, Int64s]]]]


@dataclass(frozen=True)
class KeyLocations:
    """Partition and bucket of each key of a ``KeySet``.

    ``partition`` is an index into ``partitions``, or ``NOT_FOUND``.
    """

    partitions: list[bytes]
    partition: Int64s
    bucket: Int32s


def locate_keys(store: FileStore, snapshot: Snapshot | None, keys: KeySet, *, each: ReadEach = map) -> KeyLocations:
    """Return the locations of ``keys`` at a snapshot.

    None: an empty table. ``each`` reads several splits like ``map``. Cost: the key columns within the keys'
    bounds. Memory is a batch per merged run, and the keys.

    Raises:
        UnmergeableRows: A key is in two partitions, because a writer did not look it up.
    """
    locations = KeyLocations([], np.full(len(keys), NOT_FOUND, np.int64), np.zeros(len(keys), np.int32))
    if snapshot is None or not len(keys):
        return locations
    unfiltered_store = store.with_options(EVERY_ROW)
    predicate = key_filter(keys, store.schema, thresholds.listed_keys)
    plan = ScanPlanner(unfiltered_store).plan(predicate, snapshot=snapshot, columns=keys.names)
    numbers = {partition: number for number, partition in enumerate(dict.fromkeys(split.partition for split in plan.splits))}
    locations.partitions.extend(numbers)

    def found(split: DataSplit) -> list[tuple[int, int, Int64s]]:
        batches = read_split(unfiltered_store, split, columns=keys.names, predicate=predicate)
        return [(numbers[split.partition], split.bucket, hits[hits >= 0]) for hits in map(keys.find, batches)]

    for partition, bucket, hits in (part for parts in each(found, plan.splits) for part in parts):
        before = locations.partition[hits]
        twice = np.flatnonzero((before != NOT_FOUND) & (before != partition))
        if len(twice):
            raise _lives_twice(
                store, keys, int(hits[twice[0]]), [locations.partitions[int(before[twice[0]])], locations.partitions[partition]]
            )
        locations.partition[hits] = partition
        locations.bucket[hits] = bucket
    return locations


def _lives_twice(store: FileStore, keys: KeySet, number: int, partitions: list[bytes]) -> UnmergeableRows:
    key = name_key(keys, number)
    places = " and ".join(str(store.partition.decode(partition)) for partition in partitions)
    return UnmergeableRows(
        f"{store.root}: the key {key} lives in two partitions, {places}, so a write cannot decide which of its rows to replace; "
        "nothing was committed. Concurrent writers of another engine caused this: remove one row with drop_partitions(), or overwrite the table"
    )


def name_key(keys: KeySet, number: int) -> str:
    """Format a key for messages."""
    row = int(np.flatnonzero(keys.numbers == number)[0])
    return ", ".join(f"{name} = {keys.rows.column(name)[row].as_py()!r:.60}" for name in keys.names)
