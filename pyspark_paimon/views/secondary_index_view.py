"""Secondary indexes of a snapshot: their payloads, and the files that none of them covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from lsm.secondary_index.payloads import Payload, compacted_files, live_payloads
from manifest.commit.conflicts import BucketId
from manifest.entry.columns import EntryColumns
from manifest.row.binary_row import decode_row
from manifest.schema.secondary_index import SecondaryIndex, secondary_indexes
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.texts import count_text
from pyspark_paimon.request.partition_spec import display_partition

Row: TypeAlias = dict[str, Any]


def secondary_index_rows(store: FileStore, snapshot: Snapshot | None) -> Iterator[Row]:
    """Yield the payloads of each index, and the levels with files outside of them.

    The columns are those of ``INDEX_HEALTH``.
    """
    indexes = secondary_indexes(store.schema)
    if not indexes or snapshot is None:
        return
    files = store.live_entries(snapshot)
    files = files.select(files.bucket >= 0)
    payloads = live_payloads(store, indexes, store.index_entries(snapshot), compacted_files(files))
    covered: dict[tuple[str, BucketId], set[str]] = {}
    for payload in payloads:
        names = covered.setdefault((payload.index.column, payload.bucket), set())
        names.update(file.name for file in payload.source.files)
        yield _payload_row(store, payload)
    for index in indexes:
        yield from _outside(store, index, files, covered)


def _payload_row(store: FileStore, payload: Payload) -> Row:
    entry = payload.entry
    path = store.paths.index(entry.file_name, store.partition.decode(entry.partition), entry.bucket, entry.external_path)
    note = f"covers {count_text(len(payload.source.files), 'file')} on level {payload.source.level}"
    return {
        **_bucket(store, payload.bucket),
        **_index(payload.index),
        "file_path": path,
        "record_count": entry.row_count,
        "index_size_in_bytes": entry.file_size,
        "bits_per_row": 8 * entry.file_size / max(1, entry.row_count),
        "note": note,
    }


def _outside(
    store: FileStore, index: SecondaryIndex, files: EntryColumns, covered: Mapping[tuple[str, BucketId], set[str]]
) -> Iterator[Row]:
    """Yield a row for each level of a bucket with files that no payload covers."""
    outside: dict[tuple[BucketId, int], list[int]] = {}
    columns = (files.partition, files.bucket.tolist(), files.file_name, files.level.tolist(), files.row_count.tolist())
    for partition, bucket, name, level, rows in zip(*columns, strict=True):
        if name not in covered.get((index.column, (partition, bucket)), ()):
            outside.setdefault(((partition, bucket), level), []).append(rows)
    for (bucket, level), row_counts in sorted(outside.items()):
        how = "compact()" if level == 0 else "compact(full=True)"
        yield {
            **_bucket(store, bucket),
            **_index(index),
            "file_path": "",
            "record_count": sum(row_counts),
            "index_size_in_bytes": 0,
            "bits_per_row": 0.0,
            "note": f"{count_text(len(row_counts), 'file')} outside on level {level}; {how} covers them",
        }


def _bucket(store: FileStore, bucket: BucketId) -> Row:
    partition = display_partition(decode_row(bucket[0], store.schema.partition_types), store.schema)
    return {"partition": partition, "bucket": bucket[1]}


def _index(index: SecondaryIndex) -> Row:
    return {"column_name": index.column, "index_type": f"pk-{index.kind}"}
