"""Payloads of a snapshot that may answer for its files.

A payload lists the files of one level. It counts if the listed files that are live on that level have the listed row counts. Other
files of the level are read as usual.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fileindex.sorted_index.index_meta import SortedIndexMeta, SourceMeta
from manifest.commit.conflicts import BucketId
from manifest.entry.columns import EntryColumns
from manifest.entry.index_manifest import IndexManifestEntry
from manifest.schema.secondary_index import SecondaryIndex
from paimon_base.errors import CorruptIndex
from sparkexpr.values.arrays import Int64s

LiveFiles: TypeAlias = Mapping[str, tuple[int, int]]
"""Level and row count of the compacted files of a bucket, by name."""


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
    indexes: Sequence[SecondaryIndex], entries: Iterable[IndexManifestEntry], live: Mapping[BucketId, LiveFiles]
) -> list[Payload]:
    """Return the payloads that may answer for some of the live files.

    Two such payloads of one index and level contradict each other, and neither counts.
    """
    by_level: dict[tuple[BucketId, int, int], list[Payload]] = {}
    for entry in entries:
        files = live.get((entry.partition, entry.bucket))
        payload = None if files is None else payload_of(indexes, entry)
        if files is not None and payload is not None and _fits(payload, files):
            by_level.setdefault((payload.bucket, payload.index.field_id, payload.source.level), []).append(payload)
    return [payloads[0] for payloads in by_level.values() if len(payloads) == 1]


def _fits(payload: Payload, files: LiveFiles) -> bool:
    present = [(files[file.name], file.row_count) for file in payload.source.files if file.name in files]
    on_level = [rows == listed for (level, rows), listed in present if level == payload.source.level]
    return bool(on_level) and all(on_level)


def compacted_files(entries: EntryColumns) -> dict[BucketId, dict[str, tuple[int, int]]]:
    """Return the files of each bucket that an index may cover."""
    compacted = entries.select(~entries.is_appended & (entries.level > 0))
    files: dict[BucketId, dict[str, tuple[int, int]]] = {}
    columns = (compacted.partition, compacted.bucket.tolist(), compacted.file_name, compacted.level.tolist(), compacted.row_count.tolist())
    for partition, bucket, name, level, rows in zip(*columns, strict=True):
        files.setdefault((partition, bucket), {})[name] = level, rows
    return files
