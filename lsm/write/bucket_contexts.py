"""Contexts of the buckets of one write or compaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsm.data_files.spill import SpillDirectory, SpillSpace
from lsm.write.base_files import ExistingFiles
from lsm.write.bucket_writer import BucketContext
from manifest.entry.data_file import DataFileMeta
from manifest.entry.index_manifest import DELETION_VECTORS
from manifest.io.paths import FileNames
from manifest.schema.table_schema import BucketMode
from manifest.store import FileStore
from paimon_base.lazy import LazyModule
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import Plain

if TYPE_CHECKING:
    from lsm.compaction import secondary_indexes as indexes
    from lsm.deletion_vectors import maintainer
    from lsm.deletion_vectors import writer as vector_files
else:  # Only some tables need these.
    indexes = LazyModule("lsm.compaction.secondary_indexes")
    maintainer = LazyModule("lsm.deletion_vectors.maintainer")
    vector_files = LazyModule("lsm.deletion_vectors.writer")


def spill_space(store: FileStore, directory: SpillDirectory) -> SpillSpace:
    """Return where and how a write of the table spills rows."""
    raw = store.options.raw
    return SpillSpace(
        directory.name,
        raw.get("spill-compression", "zstd"),
        int(raw.get("spill-compression.zstd-level", "1")),
        min(thresholds.spill_batch_bytes, store.options.write_buffer_size // thresholds.spill_fan_in),
    )


@dataclass(frozen=True, kw_only=True)
class BucketContexts:
    """What the contexts of all buckets share. See ``BucketContext``."""

    store: FileStore
    existing: ExistingFiles
    names: FileNames
    index_names: FileNames
    space: SpillSpace
    compacts: bool = False
    writes_changelog: bool = True
    first_sequence: int | None = None

    def of_new_rows(self, partition: tuple[Plain, ...], encoded: bytes, bucket: int) -> BucketContext:
        """Return the context of a bucket that gets rows."""
        if self._is_unaware:  # an append without compaction needs no existing files
            return self._context(partition, encoded, bucket, [], None)
        files = self.existing.of(partition, encoded, bucket)
        return self._context(partition, encoded, bucket, files, self.existing.total_buckets(partition, encoded, new_rows=True))

    def of_compaction(self, encoded: bytes, bucket: int) -> BucketContext:
        """Return the context of a bucket that is compacted."""
        partition = self.store.partition.decode(encoded)
        files = self.existing.of(partition, encoded, bucket)
        return self._context(partition, encoded, bucket, files, self.existing.total_buckets(partition, encoded, new_rows=False))

    @property
    def _is_unaware(self) -> bool:
        return self.store.schema.bucket_mode is BucketMode.BUCKET_UNAWARE

    def _context(
        self, partition: tuple[Plain, ...], encoded: bytes, bucket: int, files: list[DataFileMeta], total_buckets: int | None
    ) -> BucketContext:
        return BucketContext(
            store=self.store,
            partition=encoded,
            values=partition,
            bucket=bucket,
            names=self.names,
            space=self.space,
            existing=files,
            base=self.existing.key,
            compacts=self.compacts,
            first_sequence=self.first_sequence,
            vectors=self._vectors(encoded, bucket, files),
            indexes=self._indexes(encoded, bucket),
            writes_changelog=self.writes_changelog,
            total_buckets=total_buckets,
        )

    def _vectors(self, partition: bytes, bucket: int, files: Sequence[DataFileMeta]) -> maintainer.BucketVectors | None:
        """Return the bucket's deletion vectors. None: the table has none."""
        options = self.store.options
        if not options.deletion_vectors_enabled or (self._is_unaware and not files):  # an append without compaction deletes no rows
            return None
        size = options.deletion_vector_index_file_target_size if self._is_unaware else None
        vectors = vector_files.DeletionVectorWriter(self.store, partition, bucket, self.index_names, size)
        row_counts = {file.file_name: file.row_count for file in files}
        entries = [entry for entry in self.existing.index_files(partition, bucket) if entry.index_type == DELETION_VECTORS]
        return maintainer.BucketVectors(vectors, entries, row_counts)

    def _indexes(self, partition: bytes, bucket: int) -> indexes.BucketIndexes | None:
        """Return the bucket's secondary indexes. None: the table cannot have any."""
        if not self.store.schema.is_primary_key_table or not self.store.options.deletion_vectors_enabled or bucket < 0:
            return None
        return indexes.BucketIndexes(
            self.store, partition, bucket, self.index_names, self.space, self.existing.index_files(partition, bucket)
        )
