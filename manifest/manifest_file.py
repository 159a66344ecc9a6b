"""Manifests: files of ADD and DELETE entries (Paimon's ``ManifestFile``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from manifest.avro import ContainerWriter, blocks_of, read_container
from manifest.avro_schemas import MANIFEST_ENTRY
from manifest.column_ranges import RangePolicy
from manifest.entry_cache import EntryCache
from manifest.entry_columns import EntryColumns
from manifest.errors import CorruptFile
from manifest.file_io import FileIO
from manifest.manifest_entry import FileKind, ManifestEntry
from manifest.manifest_list import ManifestFileMeta, ManifestList
from manifest.partition_stats import PartitionType
from manifest.paths import FileNames, TablePaths


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """Reads and writes the manifests of a table; ``names`` belongs to one committer."""

    file_io: FileIO
    paths: TablePaths
    partition: PartitionType
    codec: str
    level: int
    target_size: int
    names: FileNames
    cache: EntryCache
    ranges: RangePolicy

    def read(self, name: str, size: int | None = None) -> EntryColumns:
        """The entries of a manifest. ``FileNotFoundError`` if it is gone, ``CorruptFile`` if it is not what it should be."""
        path = self.paths.manifest(name)
        data = self.file_io.read(path)
        if size is not None and size != len(data):
            raise CorruptFile(path, f"has {len(data)} bytes where its list says {size}")
        return EntryColumns.from_container(read_container(path, data))

    def read_meta(self, meta: ManifestFileMeta) -> EntryColumns:
        """The entries of a listed manifest, counted against the list."""
        held = self.cache.get(meta.file_name)
        if held is not None:
            return held
        entries = self.read(meta.file_name, meta.file_size)
        deleted = int(np.count_nonzero(entries.kind == FileKind.DELETE))
        if (len(entries) - deleted, deleted) != (meta.num_added_files, meta.num_deleted_files):
            promised = f"{meta.num_added_files} added and {meta.num_deleted_files} deleted"
            raise CorruptFile(self.paths.manifest(meta.file_name), f"has {len(entries)} entries where its list says {promised}")
        self.cache.put(meta.file_name, entries)
        return entries

    def write(self, entries: EntryColumns | Iterable[ManifestEntry]) -> list[ManifestFileMeta]:
        """New manifests with ``entries``, rolled at the target size; none for no entries."""
        columns = entries if isinstance(entries, EntryColumns) else EntryColumns.of(entries)
        metas: list[ManifestFileMeta] = []
        for first, last, data in self._files(columns):
            name = self.names.next()
            self.file_io.write(self.paths.manifest(name), data)
            metas.append(self._meta(name, len(data), columns.select(np.arange(first, last))))
        return metas

    def _files(self, columns: EntryColumns) -> Iterator[tuple[int, int, bytes]]:
        """(first entry, one past the last, file content) of every manifest to write."""
        first = last = 0
        writer = ContainerWriter(MANIFEST_ENTRY, codec=self.codec, level=self.level)
        for count, block in blocks_of(columns.records()):
            if last > first and writer.size >= self.target_size:
                yield first, last, writer.content()
                first, writer = last, ContainerWriter(MANIFEST_ENTRY, codec=self.codec, level=self.level)
            writer.add(count, block)
            last += count
        if last > first:
            yield first, last, writer.content()

    def _meta(self, name: str, size: int, entries: EntryColumns) -> ManifestFileMeta:
        deleted = int(np.count_nonzero(entries.kind == FileKind.DELETE))
        tracked = bool(entries.present("_FILE._FIRST_ROW_ID").all())
        first_row = entries.numbers("_FILE._FIRST_ROW_ID")
        return ManifestFileMeta(
            file_name=name,
            file_size=size,
            num_added_files=len(entries) - deleted,
            num_deleted_files=deleted,
            partition_stats=self.partition.stats(entries.partition),
            schema_id=int(entries.schema_id.max()),
            min_bucket=int(entries.bucket.min()),
            max_bucket=int(entries.bucket.max()),
            min_level=int(entries.level.min()),
            max_level=int(entries.level.max()),
            min_row_id=int(first_row.min()) if tracked else None,
            max_row_id=int((first_row + entries.row_count - 1).max()) if tracked else None,
            column_ranges=self.ranges.ranges(entries),
        )


__all__ = ["EntryColumns", "FileKind", "ManifestEntry", "ManifestFile", "ManifestFileMeta", "ManifestList"]
