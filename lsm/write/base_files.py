"""The live files of the base snapshot in the buckets that a write touches: data files, deletion vectors, bucket counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from fileindex.base.column_type import Plain
from lsm.bucket.router import describe_bucket
from lsm.scan.split_generator import bucket_numbers
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta
from manifest.entry.index_manifest import DELETION_VECTORS, IndexManifestEntry
from manifest.entry.live import EntryFilter
from manifest.io.errors import UnsupportedTable
from manifest.schema.bucket_mode import BucketMode
from manifest.snapshot.snapshot import EMPTY_TABLE, Snapshot, SnapshotKey
from manifest.store import FileStore


class ExistingFiles:
    """Live files of the buckets that are written, as of one snapshot; manifests are read once for each set of partitions.

    ``snapshot_id`` is that snapshot (0: before the first), None the newest; with ``ignore`` nothing of it counts. With ``buckets``
    the files of others are not looked at.
    """

    def __init__(self, store: FileStore, *, ignore: bool, snapshot_id: int | None = None, buckets: Collection[int] | None = None) -> None:
        self._store = store
        self._buckets = buckets
        self._ignore = ignore or snapshot_id == 0
        self._chosen = snapshot_id or None
        self.forget()

    def forget(self) -> None:
        """Look at the newest snapshot again next time."""
        self._found: list[Snapshot | None] = []
        self._overwritten: list[Snapshot | None] = []
        self._entries: dict[tuple[bytes, int], EntryColumns] = {}
        self._totals: dict[bytes, int] = {}
        self._loaded: set[bytes] = set()
        self._vectors: dict[tuple[bytes, int], list[IndexManifestEntry]] | None = None

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot looked at; None if there was none, or if nothing of it counts."""
        if not self._found:
            self._found.append(None if self._ignore else self._look())
        return self._found[0]

    @property
    def overwritten(self) -> Snapshot | None:
        """The snapshot of which nothing counts, looked at once; None if there was none."""
        if not self._overwritten:
            self._overwritten.append(self._look())
        return self._overwritten[0]

    def _look(self) -> Snapshot | None:
        snapshots = self._store.snapshots
        return snapshots.latest() if self._chosen is None else snapshots.get(self._chosen)

    @property
    def key(self) -> SnapshotKey:
        """Identity of the snapshot looked at."""
        seen = self._overwritten[0] if self._overwritten else self.snapshot
        return EMPTY_TABLE if seen is None else seen.key

    def load(self, partitions: Iterable[tuple[Plain, ...]]) -> None:
        """Make the files of ``partitions`` known, in one go."""
        wanted = {self._store.partition.encode(partition) for partition in partitions} - self._loaded
        if not wanted or self._ignore:
            return
        self._loaded |= wanted
        live = self._store.live_entries(self.snapshot, EntryFilter(partitions=wanted, buckets=self._buckets))
        if not len(live):
            return
        codes, known = live.partition_codes
        buckets, totals, numbers = live.bucket, live.total_buckets, bucket_numbers(live)
        order = np.argsort(numbers, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
            partition, bucket = known[codes[rows[0]]], int(buckets[rows[0]])
            self._entries[partition, bucket] = live.select(rows)
            if bucket >= 0:
                self._totals[partition] = int(totals[rows[-1]])

    def of(self, partition: tuple[Plain, ...], encoded: bytes, bucket: int) -> list[DataFileMeta]:
        """Live files of a bucket."""
        self.load([partition])
        entries = self._entries.get((encoded, bucket))
        return [] if entries is None else entries.files()

    def keys_by_bucket(self, partition: tuple[Plain, ...]) -> dict[int, int]:
        """About how many keys each bucket of a partition has: versions that wait for a compaction count, too."""
        self.load([partition])
        encoded = self._store.partition.encode(partition)
        found: dict[int, int] = {}
        for (of, bucket), entries in self._entries.items():
            if of == encoded:
                found[bucket] = max(0, int((entries.row_count - np.maximum(entries.delete_row_count, 0)).sum()))
        return found

    def total_buckets(self, partition: tuple[Plain, ...], encoded: bytes, *, new_rows: bool) -> int:
        """The number of buckets of a partition, that of the table if it is empty.

        Raises:
            UnsupportedTable: There are ``new_rows``, and the partition was written with another number than the table has now.
        """
        self.load([partition])
        options = self._store.options
        postponed = self._store.schema.bucket_mode is BucketMode.POSTPONE_MODE
        wanted = options.postpone_default_bucket_num if postponed else options.bucket
        total = self._totals.get(encoded, wanted)
        if new_rows and total != wanted and not postponed:
            where = describe_bucket(partition, self._store.schema.partition_keys) or "the table"
            raise UnsupportedTable(
                f"{self._store.root}: {where} has {total} buckets, but option 'bucket' is {wanted}; "
                "overwrite it to change its number of buckets"
            )
        return total

    def deletion_vectors(self, encoded: bytes, bucket: int) -> list[IndexManifestEntry]:
        """The deletion-vector files of a bucket."""
        if self._vectors is None:
            self._vectors = {}
            for entry in self._store.index_entries(self.snapshot):
                if entry.index_type == DELETION_VECTORS:
                    self._vectors.setdefault((entry.partition, entry.bucket), []).append(entry)
        return self._vectors.get((encoded, bucket), [])


__all__ = ["ExistingFiles"]
