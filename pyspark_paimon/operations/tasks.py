"""Questions about the tasks of a job: its buckets and files."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fileindex.base.lazy import LazyModule
from manifest.entry.index_manifest import HASH
from manifest.fsck.problem import Origin
from manifest.io.paths import POSTPONE_BUCKET
from pyspark_paimon.jobs.compaction import wanted_buckets, wanted_entries
from pyspark_paimon.request.backend import CompactRequest
from pyspark_paimon.request.message import Message
from pyspark_paimon.request.operation import OpenTable, Question

if TYPE_CHECKING:
    from lsm.commit import postponed
    from manifest.fsck import walk
    from pyspark_paimon.jobs import index_rewrite
else:  # a client of a server asks these questions and needs no storage engine
    postponed = LazyModule("lsm.commit.postponed")
    walk = LazyModule("manifest.fsck.walk")
    index_rewrite = LazyModule("pyspark_paimon.jobs.index_rewrite")


class ListBuckets(Question[list[tuple[str, int, int]]]):
    """Buckets to compact: partition in hexadecimal, number, bytes.

    ``waiting_at``: instead the postponed buckets with files at that snapshot.
    """

    request: CompactRequest
    waiting_at: int | None = None

    def answer(self, table: OpenTable) -> list[tuple[str, int, int]]:
        """Read the manifests."""
        store = table.store()
        if self.waiting_at is not None:
            found = postponed.waiting_files(store, store.snapshots.get(self.waiting_at), wanted_entries(store, self.request))
            return [(partition.hex(), POSTPONE_BUCKET, sum(file.file_size for file in files)) for partition, files in found.items()]
        return [(partition.hex(), bucket, size) for (partition, bucket), size in wanted_buckets(store, self.request).items()]


class CountDynamicBuckets(Question[int]):
    """Dynamic buckets of the partition that has the most."""

    snapshot_id: int

    def answer(self, table: OpenTable) -> int:
        """Count hash index files."""
        store = table.store()
        entries = store.index_entries(store.snapshots.get(self.snapshot_id))
        return max(Counter(entry.partition for entry in entries if entry.index_type == HASH).values(), default=0)


class IndexableFiles(Message):
    """Data files of a snapshot: partition in hexadecimal, bucket, name, bytes."""

    snapshot_id: int
    files: tuple[tuple[str, int, str, int], ...]


class ListIndexableFiles(Question[IndexableFiles]):
    """Data files that a rewrite of file indexes checks. None: of all partitions."""

    partitions: tuple[dict[str, str | None], ...] | None

    def answer(self, table: OpenTable) -> IndexableFiles:
        """Read the manifests of the newest snapshot."""
        store = table.store()
        snapshot = store.snapshots.latest()
        files = [
            (entry.partition.hex(), entry.bucket, entry.file.file_name, entry.file.file_size)
            for entry in index_rewrite.indexable_files(store, snapshot, self.partitions)
        ]
        return IndexableFiles(snapshot_id=0 if snapshot is None else snapshot.id, files=tuple(files))


class FindExpired(Question[list[bool]]):
    """Whether each of these states has expired since a check read it."""

    origins: tuple[Origin, ...]

    def answer(self, table: OpenTable) -> list[bool]:
        """Look each state up."""
        return walk.gone(table.store(), self.origins)


__all__ = ["CountDynamicBuckets", "FindExpired", "IndexableFiles", "ListBuckets", "ListIndexableFiles"]
