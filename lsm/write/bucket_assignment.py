"""Assignment of rows to buckets, one class per bucket mode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fileindex.predicate.tree import FALSE
from lsm.bucket.hash import buckets_of_hashes
from lsm.bucket.router import Assign, BucketRows, route, row_partitions
from lsm.data_files.spill import SpillSpace
from lsm.write.base_files import ExistingFiles
from lsm.write.bucket_writer import WriteJob
from lsm.write_buffer.source import Source
from manifest.commit.index_change import IndexChange
from manifest.commit.message import CommitMessage
from manifest.entry.index_manifest import HASH
from manifest.entry.live import EntryFilter
from manifest.io.paths import FileNames
from manifest.schema.table_schema import BucketMode
from manifest.store import FileStore
from paimon_base.lazy import LazyModule
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int8s, Int32s
from sparkexpr.values.column_type import Plain

if TYPE_CHECKING:
    from lsm.bucket import dynamic
    from lsm.cross_partition import assigner, staged_rows
else:  # only tables with dynamic buckets need these
    assigner = LazyModule("lsm.cross_partition.assigner")
    dynamic = LazyModule("lsm.bucket.dynamic")
    staged_rows = LazyModule("lsm.cross_partition.staged_rows")

RoutedRows: TypeAlias = tuple[Source, Sequence[BucketRows]]
"""A table of rows, and the row numbers of each bucket in it."""


@dataclass(frozen=True)
class AssignmentContext:
    """Everything that an assignment may need from its write."""

    store: FileStore
    job: WriteJob
    existing: ExistingFiles
    index_names: FileNames
    space: SpillSpace
    each: Callable[..., Any]
    """Parallel ``map``: runs a function for several values in threads."""


class BucketAssignment(ABC):
    """Assignment of rows to buckets, for one write.

    Only some subclasses keep rows or an index.
    """

    def __init__(self, context: AssignmentContext) -> None:
        self.context = context

    @abstractmethod
    def add(self, table: Any, kinds: Int8s | None) -> Iterator[RoutedRows]:
        """Assign rows. Yield those with a known bucket."""

    def drain(self) -> Iterator[RoutedRows]:
        """Yield the rows kept until the end of the write."""
        return iter(())

    def with_index_changes(self, message: CommitMessage) -> CommitMessage:
        """Return the message, extended with the bucket's index changes."""
        return message

    def reset(self) -> None:  # noqa: B027  # optional: most subclasses keep no state
        """Drop all assignments. The next commit reads the newest snapshot."""

    def clear(self) -> None:  # noqa: B027  # as above
        """Drop staged rows."""


class FixedBuckets(BucketAssignment):
    """Fixed buckets, or no buckets (``HASH_FIXED``, ``BUCKET_UNAWARE``).

    The bucket is a hash of the bucket key.
    """

    def add(self, table: Any, kinds: Int8s | None) -> Iterator[RoutedRows]:
        """See ``BucketAssignment``."""
        step = max(1, thresholds.source_bytes * table.num_rows // max(1, table.nbytes))
        for start in range(0, table.num_rows, step):
            source = Source(table.slice(start, step).combine_chunks(), None if kinds is None else kinds[start : start + step])
            yield source, route(source.table, self.context.store.schema, self.assign_of(source), self.context.each)

    def assign_of(self, source: Source) -> Assign | None:  # noqa: ARG002  # overridden
        """Return the function from hashes to buckets.

        None: use the table's number of buckets.
        """
        return None


class PartitionBuckets(FixedBuckets):
    """Hash buckets with a bucket count per partition (``POSTPONE_MODE``)."""

    def assign_of(self, source: Source) -> Assign:
        """See ``FixedBuckets``."""
        # Read the manifests once for all partitions.
        self.context.existing.load(row_partitions(source.table, self.context.store.schema)[1])
        return self._assign

    def _assign(self, partition: tuple[Plain, ...], hashes: Int32s) -> Int32s:
        encoded = self.context.store.partition.encode(partition)
        return buckets_of_hashes(hashes, self.context.existing.total_buckets(partition, encoded, new_rows=True))


class HashIndexBuckets(FixedBuckets):
    """Buckets from hash index files (``HASH_DYNAMIC``).

    The index is read from the write's base snapshot.
    """

    def __init__(self, context: AssignmentContext) -> None:
        super().__init__(context)
        self._assigner: dynamic.HashBucketAssigner | None = None

    def assign_of(self, source: Source) -> Assign:  # noqa: ARG002  # one for all
        """See ``FixedBuckets``."""
        return self._assign

    def _assign(self, partition: tuple[Plain, ...], hashes: Int32s) -> Int32s:
        context = self.context
        if self._assigner is None:
            self._assigner = dynamic.HashBucketAssigner(context.store, context.existing.snapshot, context.job.bucket_writers)
        return self._assigner.assign(context.store.partition.encode(partition), hashes)

    def with_index_changes(self, message: CommitMessage) -> CommitMessage:
        """Add the bucket's new hash index, or the unchanged one."""
        if self._assigner is None:
            return message
        entries = self._assigner.entries(message.partition)
        hashes = self._assigner.new_hashes(message.partition, message.bucket)
        change = IndexChange(kind=HASH, base=tuple(entry.file_name for entry in entries), partition_wide=True)
        if hashes is not None:
            index_file = dynamic.write_hashes(self.context.store, self.context.index_names, message.partition, message.bucket, hashes)
            old = tuple(entry.file for entry in entries if entry.bucket == message.bucket)
            change = change.model_copy(update={"new": (index_file,), "removed": old})
        return message.model_copy(update={"index_changes": (*message.index_changes, change)})

    def reset(self) -> None:
        """See ``BucketAssignment``."""
        self._assigner = None


class CrossPartitionBuckets(BucketAssignment):
    """Partition and bucket by location of each key (``KEY_DYNAMIC``)."""

    def __init__(self, context: AssignmentContext) -> None:
        super().__init__(context)
        budget = min(context.store.options.write_buffer_size // 2, thresholds.source_bytes)
        self._staged = staged_rows.StagedRows(context.store.schema, budget, context.space)

    def add(self, table: Any, kinds: Int8s | None) -> Iterator[RoutedRows]:
        """Stage the rows. Keys are looked up at the end."""
        self._staged.add(table, kinds)
        return iter(())

    def drain(self) -> Iterator[RoutedRows]:
        """See ``BucketAssignment``."""
        context = self.context
        existing, bucket_writers = context.existing, context.job.bucket_writers
        replaces = context.job.replaces
        snapshot = (existing.snapshot if replaces is None else existing.base_snapshot) if context.job.finds_keys else None
        owned = dynamic.BucketOwnership() if bucket_writers is None else dynamic.BucketOwnership(bucket_writers.task, bucket_writers.tasks)
        crossing = assigner.CrossPartitionAssigner(
            context.store, snapshot, existing.keys_by_bucket, owned=owned, replaces=replaces is not None, each=context.each
        )
        for table, kinds in self._staged.drain():
            yield crossing.assign(table, kinds)
        if replaces is not None:
            named = [] if replaces == FALSE else context.store.live_partitions(snapshot, EntryFilter(predicate=replaces))
            crossing.check_replaced(named)

    def clear(self) -> None:
        """See ``BucketAssignment``."""
        self._staged.clear()


def bucket_assignment(context: AssignmentContext) -> BucketAssignment:
    """Return the assignment for the table's bucket mode."""
    match context.store.schema.bucket_mode:
        case BucketMode.HASH_DYNAMIC:
            return HashIndexBuckets(context)
        case BucketMode.KEY_DYNAMIC:
            return CrossPartitionBuckets(context)
        case BucketMode.POSTPONE_MODE:
            return PartitionBuckets(context)
        case _:
            return FixedBuckets(context)
