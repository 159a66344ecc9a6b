"""Live files of the base snapshot in the written buckets.

Covers data files, deletion vectors and bucket counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from lsm.bucket.router import describe_bucket
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta
from manifest.entry.index_manifest import IndexManifestEntry
from manifest.entry.live import EntryFilter
from manifest.io.errors import UnsupportedTable
from manifest.schema.table_schema import BucketMode
from manifest.snapshot.snapshot import EMPTY_TABLE, Snapshot, SnapshotKey
from manifest.store import FileStore
from sparkexpr.values.column_type import Plain


class ExistingFiles:
    """Live files of the written buckets, as of one snapshot.

    Manifests are read once for each set of partitions.

    Args:
        ignore: Treat the table as empty.
        snapshot_id: Base snapshot. 0: before the first. None: the newest.
        buckets: Read only files of these buckets. None: all.
    """

    def __init__(self, store: FileStore, *, ignore: bool, snapshot_id: int | None = None, buckets: Collection[int] | None = None) -> None:
        self._store = store
        self._buckets = buckets
        self._ignore = ignore or snapshot_id == 0
        self._chosen = snapshot_id or None
        self.refresh()

    def refresh(self) -> None:
        """Drop all state. The next access reads the newest snapshot."""
        self._found: list[Snapshot | None] = []
        self._base: list[Snapshot | None] = []
        self._entries: dict[tuple[bytes, int], EntryColumns] = {}
        self._totals: dict[bytes, int] = {}
        self._loaded: set[bytes] = set()
        self._index_files: dict[tuple[bytes, int], list[IndexManifestEntry]] | None = None

    @property
    def snapshot(self) -> Snapshot | None:
        """Base snapshot. None: the table is empty or ignored."""
        if not self._found:
            self._found.append(None if self._ignore else self._look())
        return self._found[0]

    @property
    def base_snapshot(self) -> Snapshot | None:
        """Base snapshot of an overwrite. None: the table is empty."""
        if not self._base:
            self._base.append(self._look())
        return self._base[0]

    def _look(self) -> Snapshot | None:
        snapshots = self._store.snapshots
        return snapshots.latest() if self._chosen is None else snapshots.get(self._chosen)

    @property
    def key(self) -> SnapshotKey:
        """Identity of the base snapshot."""
        snapshot = self._base[0] if self._base else self.snapshot
        return EMPTY_TABLE if snapshot is None else snapshot.key

    def load(self, partitions: Iterable[tuple[Plain, ...]]) -> None:
        """Load the files of ``partitions`` with one manifest read."""
        missing = {self._store.partition.encode(partition) for partition in partitions} - self._loaded
        if not missing or self._ignore:
            return
        self._loaded |= missing
        live = self._store.live_entries(self.snapshot, EntryFilter(partitions=missing, buckets=self._buckets))
        if not len(live):
            return
        codes, encoded_partitions = live.partition_codes
        buckets, totals, numbers = live.bucket, live.total_buckets, live.bucket_numbers
        order = np.argsort(numbers, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
            partition, bucket = encoded_partitions[codes[rows[0]]], int(buckets[rows[0]])
            self._entries[partition, bucket] = live.select(rows)
            if bucket >= 0:
                self._totals[partition] = int(totals[rows[-1]])

    def of(self, partition: tuple[Plain, ...], encoded: bytes, bucket: int) -> list[DataFileMeta]:
        """Return the live files of a bucket."""
        if encoded not in self._loaded:
            self.load([partition])
        entries = self._entries.get((encoded, bucket))
        return [] if entries is None else entries.files()

    def keys_by_bucket(self, partition: tuple[Plain, ...]) -> dict[int, int]:
        """Return the approximate number of keys per bucket.

        Counts uncompacted versions of a key several times.
        """
        self.load([partition])
        encoded = self._store.partition.encode(partition)
        keys: dict[int, int] = {}
        for (of, bucket), entries in self._entries.items():
            if of == encoded:
                keys[bucket] = max(0, int((entries.row_count - np.maximum(entries.delete_row_count, 0)).sum()))
        return keys

    def total_buckets(self, partition: tuple[Plain, ...], encoded: bytes, *, new_rows: bool) -> int:
        """Return the number of buckets of a partition.

        An empty partition has the table's number.

        Raises:
            UnsupportedTable: ``new_rows`` is True, and the partition has another number of buckets than the table.
        """
        if encoded not in self._loaded:
            self.load([partition])
        options = self._store.options
        postponed = self._store.schema.bucket_mode is BucketMode.POSTPONE_MODE
        configured = options.postpone_default_bucket_num if postponed else options.bucket
        total = self._totals.get(encoded, configured)
        if new_rows and total != configured and not postponed:
            where = describe_bucket(partition, self._store.schema.partition_keys) or "the table"
            raise UnsupportedTable(
                f"{self._store.root}: {where} has {total} buckets, but option 'bucket' is {configured}; "
                "overwrite it to change its number of buckets"
            )
        return total

    def index_files(self, encoded: bytes, bucket: int) -> list[IndexManifestEntry]:
        """Return the index files of a bucket, of all types."""
        if self._index_files is None:
            self._index_files = {}
            for entry in self._store.index_entries(self.snapshot):
                self._index_files.setdefault((entry.partition, entry.bucket), []).append(entry)
        return self._index_files.get((encoded, bucket), [])
