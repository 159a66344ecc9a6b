"""What a commit adds to each partition and takes from it, as catalogs count it."""

from __future__ import annotations

import numpy as np

from manifest.entry.columns import EntryColumns
from manifest.entry.manifest_entry import FileKind
from manifest.io.partition_path import partition_text
from manifest.snapshot.snapshot_commit import PartitionStatistics
from manifest.store import FileStore


def partition_statistics(store: FileStore, entries: EntryColumns) -> list[PartitionStatistics]:
    """One for each partition that ``entries`` touch; a table without partitions is one with an empty ``spec``."""
    codes, partitions = entries.partition_codes
    count = len(partitions)
    signs = np.where(entries.kind == FileKind.ADD, 1, -1)

    def summed(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
        totals = np.zeros(count, np.int64)
        np.add.at(totals, codes, signs * values)
        return list(map(int, totals))

    newest, buckets = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.maximum.at(newest, codes, entries.numbers("_FILE._CREATION_TIME"))
    np.maximum.at(buckets, codes, entries.total_buckets)
    sums = zip(summed(entries.row_count), summed(entries.file_size), summed(np.ones(len(entries), np.int64)), strict=True)
    return [
        PartitionStatistics(
            spec=_spec(store, partition),
            record_count=rows,
            file_size_in_bytes=size,
            file_count=files,
            last_file_creation_time=created,
            total_buckets=of_buckets,
        )
        for partition, (rows, size, files), created, of_buckets in zip(partitions, sums, newest.tolist(), buckets.tolist(), strict=True)
    ]


def _spec(store: FileStore, partition: bytes) -> dict[str, str]:
    """The partition's texts, as directories spell them before they are escaped."""
    options, schema = store.options, store.schema
    values = zip(schema.partition_keys, store.partition.decode(partition), schema.partition_types, strict=True)
    default, legacy = options.partition_default_name, options.partition_legacy_name
    return {name: partition_text(value, kind.column_type, default, legacy=legacy) for name, value, kind in values}


__all__ = ["partition_statistics"]
