"""Small tables of metadata for the tests of commits: files are a few bytes, keys are one INT."""

import json
import uuid

from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import DataFileMeta, FileKind
from manifest.entry.live import live
from manifest.io.errors import UnsupportedTable
from manifest.io.file_io import LocalFileIO
from manifest.row.binary_row import encode_row
from manifest.schema.manager import SchemaManager
from manifest.schema.validation import build_schema
from manifest.stats.column_stats import SimpleStats
from manifest.store import FileStore
from paimon_base.errors import CorruptFile

EMPTY = bytes(12)


def make_table(path, *, keys=("id",), partitions=(), options=(), file_io=None):
    """A new table of (id INT, part STRING)."""
    raw = {"bucket": "2" if keys else "-1", "commit.max-retry-wait": "500 ms", **dict(options)}
    schema = build_schema(
        "id INT NOT NULL, part STRING", primary_keys=(*keys, *partitions) if keys else (), partition_keys=partitions, options=raw
    )
    SchemaManager(LocalFileIO(), str(path)).create(schema)
    return FileStore.open(path, file_io)


def data_file(store, *, partition=EMPTY, bucket=0, keys=(0, 9), seq=(0, 9), level=0, rows=10, deletes=0, name=None, extra=(), **fields):
    """A physical file of a few bytes, and what a manifest says of it."""
    name = name or f"data-{uuid.uuid4()}-0.parquet"
    low, high = (encode_row((key,), store.key.types) if store.key else EMPTY for key in keys)
    stats = SimpleStats(low, high, (0,)) if store.key else SimpleStats.EMPTY
    meta = DataFileMeta(
        file_name=name,
        file_size=len(name),
        row_count=rows,
        min_key=low,
        max_key=high,
        key_stats=stats,
        min_sequence_number=seq[0],
        max_sequence_number=seq[1],
        level=level,
        delete_row_count=deletes,
        extra_files=tuple(extra),
        file_source=0,
        **fields,
    )
    for path in store.physical_files(partition, bucket, meta):
        if not store.file_io.exists(path):
            store.file_io.write(path, name.encode(), durable=False)
    return meta


def message(store, new=(), before=(), after=(), *, partition=EMPTY, bucket=0, total=None, **fields):
    """A commit message of bucket 0 unless told."""
    total = store.options.bucket if total is None else total
    return CommitMessage(
        partition=partition,
        bucket=bucket,
        total_buckets=total,
        new_files=tuple(new),
        compact_before=tuple(before),
        compact_after=tuple(after),
        **fields,
    )


def committer(store, user=None, **options):
    return FileStoreCommit(store, user or str(uuid.uuid4()), **options)


def set_watermark(store, snapshot_id, watermark):
    """As another engine, which knows event time and no checksum, would have committed the snapshot."""
    path = store.paths.snapshot_file(snapshot_id)
    fields = json.loads(store.file_io.read(path)) | {"watermark": watermark}
    text = json.dumps({name: value for name, value in fields.items() if value is not None and name != "crc32"})
    store.file_io.write(path, text.encode(), overwrite=True)


def live_names(store, snapshot=None):
    return sorted(store.live_entries(snapshot or store.snapshots.latest()).file_name)


def live_model(store):
    """Live files as (partition, bucket, level, name)."""
    entries = store.live_entries(store.snapshots.latest())
    assert set(entries.kind.tolist()) <= {FileKind.ADD}
    return sorted(zip(entries.partition, entries.bucket.tolist(), entries.level.tolist(), entries.file_name, strict=True))


def renumber(store):
    """A resequencing that rewrites our few bytes: one file for one."""

    def rewrite(partition, bucket, files, first):
        written = []
        for file in files:
            last = first + file.max_sequence_number - file.min_sequence_number
            keys = (store.key.decode(file.min_key)[0], store.key.decode(file.max_key)[0])
            written.append(data_file(store, partition=partition, bucket=bucket, keys=keys, seq=(first, last), rows=file.row_count))
            first = last + 1
        return written

    return rewrite


def outcome(call):
    """(result, None) or (None, the typed error about a file); anything else that is raised is a defect."""
    try:
        return call(), None
    except (CorruptFile, UnsupportedTable) as error:
        return None, error


def check_table(store, newest=10**9):
    """Snapshot ids have no gap, the newest states are readable, each is made on the one before, counters add up, every live file exists."""
    ids = [i for i in store.snapshots.ids() if i <= (store.snapshots.latest_id() or 0)]  # after it: what a rollback was cut off at
    assert ids == list(range(ids[0], ids[0] + len(ids))) if ids else True
    for snapshot_id in ids[-newest:]:
        snapshot = store.snapshots.get(snapshot_id)
        entries = store.live_entries(snapshot)
        assert store.schemas.get(snapshot.schema_id)
        if snapshot_id - 1 in ids and snapshot.first_replaced is None:
            base = store.manifest_lists.read(snapshot.base_manifest_list, snapshot.base_manifest_list_size)
            before = store.live_entries(store.snapshots.get(snapshot_id - 1))
            assert sorted(live(store.manifests.read_metas(base)).identities()) == sorted(before.identities())
        assert entries.row_count.sum() == snapshot.total_record_count
        identities = entries.identities()
        assert len(set(identities)) == len(identities)
        for entry in entries.entries():
            assert all(map(store.file_io.exists, store.physical_files(entry.partition, entry.bucket, entry.file)))
