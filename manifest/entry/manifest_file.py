"""Manifests: files of ADD and DELETE entries (Paimon's ``ManifestFile``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np

from manifest.avro.container import AVRO, Container, ContainerWriter, in_format, read_container
from manifest.avro.schemas import MANIFEST_ENTRY
from manifest.entry.bounds import key_bounds
from manifest.entry.cache import EntryCache, entries_weight
from manifest.entry.column_ranges import RangePolicy
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind, ManifestEntry
from manifest.entry.manifest_blocks import BLOCK_RANGES, BlockFilter, BlockRanges, EntryNarrowing, some_entries
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.file_cache import StatIdentity
from manifest.io.file_io import FileIO
from manifest.io.paths import FileNames, TablePaths
from manifest.stats.column_stats import PartitionType
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile, PaimonError
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s


def cluster(entries: EntryColumns, partition: PartitionType, keys: Sequence[tuple[int, DataType]]) -> EntryColumns:
    """Sort entries by partition, bucket and first key.

    ``keys`` has ids and types of the primary key, () without one. The sort is stable.
    """
    # Most filters and all commits name a partition. An equality on the key gives the bucket, and within a bucket key ranges are narrow.
    codes, code_partitions = entries.partition_codes
    try:
        order = sorted(range(len(code_partitions)), key=lambda code: partition.order(code_partitions[code]))
        ranks = np.empty(len(code_partitions), np.int64)
        ranks[order] = np.arange(len(code_partitions))
        return entries.select(np.lexsort((*_first_keys(entries, keys), entries.bucket, ranks[codes])))
    except (PaimonError, ValueError):  # reading the entries reports the error
        return entries


def _first_keys(entries: EntryColumns, keys: Sequence[tuple[int, DataType]]) -> list[Int64s]:
    """Return ranks of each file's least first key."""
    if not keys:
        return []
    names = [str(field_id) for field_id, _ in keys]
    low = key_bounds(entries, names, [data_type for _, data_type in keys], names[:1])[names[0]].low
    if low.dtype != object:
        return [low]
    _, ranks = np.unique(low, return_inverse=True)
    return [ranks]


_Known: TypeAlias = tuple[ManifestFileMeta, StatIdentity]


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """Reads and writes the manifests of a table.

    ``names`` belongs to one committer.
    """

    file_io: FileIO
    paths: TablePaths
    partition: PartitionType
    codec: str
    level: int
    target_size: int
    names: FileNames
    cache: EntryCache
    ranges: RangePolicy
    file_format: str = AVRO

    def read(self, name: str, size: int | None = None) -> EntryColumns:
        """Return the entries of a manifest.

        Raises ``FileNotFoundError`` and ``CorruptFile``.
        """
        return EntryColumns.from_container(self._open(name, size))

    def _open(self, name: str, size: int | None, data: bytes | None = None) -> Container:
        path = self.paths.manifest(name)
        data = self.file_io.read(path) if data is None else data
        if size is not None and size != len(data):
            raise CorruptFile(path, f"has {len(data)} bytes instead of {size}, as its manifest list records")
        return read_container(path, data)

    def read_meta(self, meta: ManifestFileMeta) -> EntryColumns:
        """Return the entries of a listed manifest.

        Checks their number against the list.
        """
        return self.read_metas([meta])

    def read_metas(
        self, metas: Sequence[ManifestFileMeta], block_filter: BlockFilter | None = None, narrowing: EntryNarrowing | None = None
    ) -> EntryColumns:
        """Return the entries of listed manifests, in order.

        Checks their number against the list. Manifests that are not cached are decoded together.

        Args:
            metas: Manifests to read.
            block_filter: Selects blocks of large manifests. None: all.
            narrowing: Selects entries of large results. None: all.
        """
        parts = {meta.file_name: cached for meta in metas if (cached := self.cache.get(meta.file_name)) is not None}
        if block_filter is not None:
            for meta in metas:
                filtered = None
                if meta.file_name not in parts:
                    filtered = some_entries(
                        self.file_io, self.paths.manifest(meta.file_name), meta, self.cache.files, block_filter, narrowing=narrowing
                    )
                if filtered is not None:
                    parts[meta.file_name] = filtered
        shared = not parts
        joined: EntryColumns | None = None
        for meta, entries, is_shared, together in self._entries([meta for meta in metas if meta.file_name not in parts]):
            self._check_counts(meta, entries)
            key = (("manifest", meta.file_size), self.paths.manifest(meta.file_name)) if is_shared else None
            self.cache.put(meta.file_name, entries, entries_weight(entries), key)
            parts[meta.file_name] = entries
            shared &= is_shared
            joined = together
        names = tuple(meta.file_name for meta in metas)
        if joined is not None and len(joined.paths) != len(names):
            joined = None  # others came from the cache
        entry_parts = [parts[name] for name in names]
        parts.clear()  # release them once they are copied
        return self.cache.join(names, entry_parts, joined, shared=shared)

    def _entries(self, metas: Sequence[ManifestFileMeta]) -> Iterator[tuple[ManifestFileMeta, EntryColumns, bool, EntryColumns | None]]:
        """Yield (manifest, entries, shared, joined batch).

        Shared entries are cached for tables opened later. Manifests that were decoded separately have no joined batch.
        Cached manifests come first.
        """
        files, unknown = self.cache.files, []
        for meta in metas:
            identity, cached = files.recall(self.file_io, self.paths.manifest(meta.file_name), ("manifest", meta.file_size))
            if cached is None:
                unknown.append((meta, identity))
            else:
                yield meta, cached, True, None
        contents = self.file_io.read_many([self.paths.manifest(meta.file_name) for meta, _ in unknown] if unknown else ())
        for batch in _batches(unknown):
            opened = [self._open(meta.file_name, meta.file_size, next(contents)) for meta, _ in batch]
            parts, joined = EntryColumns.from_containers(opened)
            for (meta, identity), entries in zip(batch, parts, strict=True):
                path = self.paths.manifest(meta.file_name)
                files.keep(path, ("manifest", meta.file_size), identity, entries, entries_weight(entries))
                yield meta, entries, identity is not None, joined

    def _check_counts(self, meta: ManifestFileMeta, entries: EntryColumns) -> None:
        deleted = int(np.count_nonzero(entries.kind == FileKind.DELETE))
        if (len(entries) - deleted, deleted) != (meta.num_added_files, meta.num_deleted_files):
            expected = f"{meta.num_added_files} added and {meta.num_deleted_files} deleted"
            raise CorruptFile(
                self.paths.manifest(meta.file_name), f"has {len(entries)} entries instead of {expected}, as its manifest list records"
            )

    def write(self, entries: EntryColumns | Iterable[ManifestEntry]) -> list[ManifestFileMeta]:
        """Write entries to manifests that roll at the target size.

        Writes none for no entries.
        """
        columns = entries if isinstance(entries, EntryColumns) else EntryColumns.of(entries)
        metas: list[ManifestFileMeta] = []
        for file_entries, name, container in self._files(columns):
            data = in_format(name, container, MANIFEST_ENTRY, self.file_format, self.codec)
            self.file_io.write(self.paths.manifest(name), data)
            metas.append(self._meta(name, len(data), file_entries))
        return metas

    def write_clustered(self, entries: EntryColumns) -> list[ManifestFileMeta]:
        """Write entries sorted for pruning, as ``write``."""
        return self.write(cluster(entries, self.partition, self.ranges.key))

    def _files(self, columns: EntryColumns) -> Iterator[tuple[EntryColumns, str, bytes]]:
        """Yield (entries, file name, content) of every manifest to write."""
        first = last = 0
        name, writer = self._new_file()
        records = columns.records()
        for end in _block_ends(columns):
            count = end - last
            block = b"".join(islice(records, count))
            if last > first and writer.size >= self.target_size:
                yield self._file(writer, name, columns.select(np.arange(first, last)))
                first = last
                name, writer = self._new_file()
            writer.add(count, block)
            last += count
        if last > first:
            yield self._file(writer, name, columns.select(np.arange(first, last)))

    def _file(self, writer: ContainerWriter, name: str, entries: EntryColumns) -> tuple[EntryColumns, str, bytes]:
        """Return the manifest with its block ranges in the header."""
        ranges = BlockRanges.of(entries, writer.blocks, self.ranges.key)
        if ranges is not None:
            writer.metadata[BLOCK_RANGES] = ranges.to_text(name, writer.metadata)
        return entries, name, writer.content()

    def _new_file(self) -> tuple[str, ContainerWriter]:
        name = self.names.next()
        return name, ContainerWriter(MANIFEST_ENTRY, codec=self.codec, level=self.level, name=name)

    def _meta(self, name: str, size: int, entries: EntryColumns) -> ManifestFileMeta:
        deleted = int(np.count_nonzero(entries.kind == FileKind.DELETE))
        tracked = bool(entries.present("_FILE._FIRST_ROW_ID").all())
        first_row = entries.numbers("_FILE._FIRST_ROW_ID")
        bucket, level = entries.bucket, entries.level
        return ManifestFileMeta(
            file_name=name,
            file_size=size,
            num_added_files=len(entries) - deleted,
            num_deleted_files=deleted,
            partition_stats=self.partition.stats(entries.partition),
            schema_id=int(entries.schema_id.max()),
            min_bucket=int(bucket.min()),
            max_bucket=int(bucket.max()),
            min_level=int(level.min()),
            max_level=int(level.max()),
            min_row_id=int(first_row.min()) if tracked else None,
            max_row_id=int((first_row + entries.row_count - 1).max()) if tracked else None,
            column_ranges=self.ranges.ranges(entries),
        )


def _block_ends(columns: EntryColumns) -> Iterator[int]:
    """Yield the end of every block.

    Blocks have about ``manifest_block_bytes`` and hold whole buckets, or parts of one bucket.
    """
    # So few blocks have entries of a wanted bucket, and the keys of each have a narrow range.
    if not len(columns):
        return
    codes, _ = columns.partition_codes
    is_other_bucket = (np.diff(codes) != 0) | (np.diff(columns.bucket) != 0)
    sums = np.concatenate([[0], np.cumsum(columns.columns.end - columns.columns.start)])
    until = sums.tolist()
    first = start = 0
    for end in [*(np.flatnonzero(is_other_bucket) + 1).tolist(), len(columns)]:
        fills = until[end] - until[start] >= thresholds.manifest_block_bytes // 2
        if first < start and fills:
            yield start
            first = start
        start, size = end, until[end] - until[first]
        if fills or size >= thresholds.manifest_block_bytes * 3 // 4:
            parts = max(1, round(size / thresholds.manifest_block_bytes))
            yield from np.unique(np.searchsorted(sums, until[first] + size * np.arange(1, parts + 1) // parts)).tolist()
            first = end
    if first < len(columns):
        yield len(columns)


def _batches(metas: Sequence[_Known]) -> Iterator[list[_Known]]:
    """Yield adjacent manifests of about ``manifest_bytes_together`` bytes.

    A larger manifest is alone.
    """
    batch: list[_Known] = []
    size = 0
    for meta, identity in metas:
        if batch and size + meta.file_size > thresholds.manifest_bytes_together:
            yield batch
            batch, size = [], 0
        batch.append((meta, identity))
        size += meta.file_size
    if batch:
        yield batch
