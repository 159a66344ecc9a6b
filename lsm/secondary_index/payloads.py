"""Payloads of a snapshot that may answer for its files.

A payload lists the files of one level. It counts if the listed files that are live on that level have the listed row counts, and were
written with the column's type. Other files of the level are read as usual.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from fileindex.sorted_index.index_meta import SortedIndexMeta, SourceFile, SourceMeta
from manifest.commit.conflicts import BucketId
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.entry.index_manifest import IndexManifestEntry
from manifest.schema.secondary_index import SecondaryIndex, secondary_indexes
from manifest.store import FileStore
from paimon_base.errors import CorruptIndex
from sparkexpr.values.arrays import Int64s, UInt32s


class LiveFile(NamedTuple):
    """A compacted file of a snapshot."""

    level: int
    row_count: int
    schema_id: int


LiveFiles: TypeAlias = Mapping[str, LiveFile]
"""Compacted files of a bucket, by name."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload, its definition, and the files that it was built from."""

    index: SecondaryIndex
    entry: IndexManifestEntry
    source: SourceMeta
    meta: SortedIndexMeta

    @property
    def bucket(self) -> BucketId:
        """Partition and bucket."""
        return self.entry.partition, self.entry.bucket

    def live_files(self, live: LiveFiles) -> list[tuple[int, SourceFile]]:
        """Return number and file of the listed files that are live on the payload's level."""
        files = enumerate(self.source.files)
        return [(number, file) for number, file in files if file.name in live and live[file.name].level == self.source.level]

    def by_file(self, ordinals: UInt32s, live: LiveFiles) -> Iterator[tuple[SourceFile, UInt32s]]:
        """Yield the live files of the level, each with the positions in it of ascending ordinals."""
        starts = self.offsets()
        bounds = np.searchsorted(ordinals, starts)
        for number, file in self.live_files(live):
            yield file, ordinals[bounds[number] : bounds[number + 1]] - np.uint32(starts[number])

    def offsets(self) -> Int64s:
        """Return the first ordinal of each listed file, and the number of rows."""
        counts = [file.row_count for file in self.source.files]
        return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def payload_of(indexes: Sequence[SecondaryIndex], entry: IndexManifestEntry) -> Payload | None:
    """Return the payload of an index manifest's entry.

    None: no payload of ``indexes``, or one that is not understood.
    """
    indexed = entry.indexed
    if indexed is None or indexed.source_meta is None or indexed.index_meta is None:
        return None
    index = next((index for index in indexes if index.kind == entry.index_type and index.field_id == indexed.field_id), None)
    if index is None:
        return None
    try:
        source, meta = SourceMeta.parse(indexed.source_meta), SortedIndexMeta.parse(indexed.index_meta)
    except CorruptIndex:
        return None
    rows = source.row_count
    is_whole = rows == entry.row_count and (indexed.first_row, indexed.last_row) == (0, rows - 1)
    return Payload(index, entry, source, meta) if is_whole else None


def live_payloads(
    store: FileStore, indexes: Sequence[SecondaryIndex], entries: Iterable[IndexManifestEntry], live: Mapping[BucketId, LiveFiles]
) -> list[Payload]:
    """Return the payloads that may answer for some of the live files.

    Two such payloads of one index and level contradict each other, and neither counts.
    """
    by_level: dict[tuple[BucketId, int, int], list[Payload]] = {}
    for entry in entries:
        files = live.get((entry.partition, entry.bucket))
        payload = None if files is None else payload_of(indexes, entry)
        if files is not None and payload is not None and _fits(store, payload, files):
            by_level.setdefault((payload.bucket, payload.index.field_id, payload.source.level), []).append(payload)
    return [payloads[0] for payloads in by_level.values() if len(payloads) == 1]


def _fits(store: FileStore, payload: Payload, files: LiveFiles) -> bool:
    on_level = [(files[file.name], file) for _, file in payload.live_files(files)]
    return bool(on_level) and all(
        live.row_count == file.row_count and keeps_type(store, payload.index, live.schema_id) for live, file in on_level
    )


def keeps_type(store: FileStore, index: SecondaryIndex, schema_id: int) -> bool:
    """Return whether the column has its present type in files of a schema, or is not in them.

    The keys of a payload have the encoding of the type that the column had when it was built, and nothing says which that was. A column can
    change its type while no option names it.
    """
    field = next((field for field in store.schemas.get(schema_id).fields if field.id == index.field_id), None)
    return field is None or field.type.column_type == index.type


def is_covered(file: DataFileMeta) -> bool:
    """Return whether payloads list a file: compactions wrote it, above level 0."""
    return file.level > 0 and file.file_source == FileSource.COMPACT


def is_unindexed(store: FileStore, file: DataFileMeta) -> bool:
    """Return whether payloads leave a file out, or do not count because of it."""
    indexes = secondary_indexes(store.schema)
    return file.file_source != FileSource.COMPACT or not all(keeps_type(store, index, file.schema_id) for index in indexes)


def compacted_files(entries: EntryColumns) -> dict[BucketId, dict[str, LiveFile]]:
    """Return the files of each bucket that an index may cover."""
    compacted = entries.select(~entries.is_appended & (entries.level > 0))
    files: dict[BucketId, dict[str, LiveFile]] = {}
    numbers = (compacted.bucket, compacted.level, compacted.row_count, compacted.schema_id)
    columns = (compacted.partition, compacted.file_name, *(column.tolist() for column in numbers))
    for partition, name, bucket, level, rows, schema_id in zip(*columns, strict=True):
        files.setdefault((partition, bucket), {})[name] = LiveFile(level, rows, schema_id)
    return files
