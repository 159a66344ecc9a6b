"""Check of tables with data evolution: the files of a range of rows have all its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from manifest.entry.data_file import DataFileMeta
from manifest.entry.row_ranges import blob_files, range_groups
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from pyspark_paimon.plugins.fsck.live_files import LiveBucket


def broken_ranges(store: FileStore, snapshot: Snapshot, schema: TableSchema) -> Iterator[tuple[LiveBucket, str, str]]:
    """Yield bucket, file and problem of each range of rows that cannot be read.

    ``schema``: whose columns are read. Raises the errors of ``live_entries``.
    """
    entries = store.live_entries(snapshot)
    by_bucket: dict[LiveBucket, list[DataFileMeta]] = {}
    for bucket_id, file in zip(zip(entries.partition, entries.bucket.tolist(), strict=True), entries.files(), strict=True):
        by_bucket.setdefault(bucket_id, []).append(file)
    for bucket_id, files in sorted(by_bucket.items()):
        for file in files:
            if file.first_row_id is None:
                yield bucket_id, file.file_name, "has no row ids, which data evolution requires"
        for group in range_groups([file for file in files if file.first_row_id is not None]):
            for name, message in _problems(store, group, schema):
                yield bucket_id, name, message


def _problems(store: FileStore, group: Sequence[DataFileMeta], schema: TableSchema) -> Iterator[tuple[str, str]]:
    rows = [file for file in group if not file.is_blob]
    if not rows:
        yield group[0].file_name, "has rows of a BLOB column, but no file has their other columns"
        return
    for other in rows[1:]:
        if (other.first_row_id, other.row_count) != (rows[0].first_row_id, rows[0].row_count):
            yield other.file_name, f"has other row ids than {rows[0].file_name}, which has columns of its rows"
            return
    names = {field.id: field.name for field in schema.fields}
    columns: dict[str, list[DataFileMeta]] = {}
    for file in group[len(rows) :]:
        ids = {field.name: field.id for field in store.schemas.get(file.schema_id).fields}
        for column in file.write_cols or ():
            if ids.get(column, -1) in names:
                columns.setdefault(names[ids[column]], []).append(file)
    for column, files in columns.items():
        if not blob_files(files, rows[0])[1]:
            yield rows[0].file_name, f"has {rows[0].row_count:,} rows, but files of BLOB column '{column}' lack some of them"
