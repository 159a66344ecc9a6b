"""Small tables for the tests of scans and reads, and a model of what they must return."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa

from fileindex.predicate.evaluate_rows import mask
from lsm.read.metrics import ReadReport
from lsm.read.split import read_split
from lsm.scan.planner import ScanPlanner
from lsm.write.compaction_job import compact_together
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage
from manifest.io.file_io import LocalFileIO
from manifest.schema.manager import SchemaManager
from manifest.schema.validation import build_schema
from manifest.store import FileStore


def create(path, ddl, *, keys=(), partitions=(), **options):
    """A new table; option names with underscores for dashes."""
    settings = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    schema = build_schema(ddl, primary_keys=keys, partition_keys=partitions, options={"write-only": "true", **settings})
    SchemaManager(LocalFileIO(), str(path)).create(schema)
    return str(path)


def write(path, rows, kinds=None):
    """Commit one write of ``rows`` (a mapping of column lists), without compaction."""
    store = FileStore.open(path)
    table = pa.table({name: pa.array(rows[name], store.schema.arrow.field(name).type) for name in store.schema.names})
    with TableWrite(store) as job:
        job.write(table, kinds=None if kinds is None else pa.array(kinds, pa.int8()))
        messages = job.prepare_commit()
    FileStoreCommit(store, "test", fresh=True).commit(messages)


def compact(path):
    """Fully compact every bucket."""
    store = FileStore.open(path)
    entries = store.live_entries(store.snapshots.latest())
    buckets = sorted(set(zip(entries.partition, entries.bucket.tolist(), strict=True)))
    FileStoreCommit(store, "test", fresh=True).commit(compact_together(store, buckets, full=True))


def scan(path, predicate=None, *, columns=None, limit=None, file_io=None, partitions=None, options=None):
    """Plan and read: ``plan``, ``table``, ``report`` and the funnel as ``dropped`` by stage name."""
    store = FileStore.open(path, file_io, options)
    names = store.schema.names if columns is None else columns
    plan = ScanPlanner(store).plan(predicate, snapshot=store.snapshots.latest(), columns=names, limit=limit, partitions=partitions)
    report = ReadReport()
    batches = [
        batch for split in plan.splits for batch in read_split(store, split, columns=names, predicate=predicate, limit=limit, report=report)
    ]
    table = pa.Table.from_batches(batches, schema=pa.schema([store.schema.arrow.field(name) for name in names])) if names else None
    dropped = {stage.name: stage.dropped for stage in plan.report}
    return SimpleNamespace(store=store, plan=plan, table=table, report=report, dropped=dropped, rows=sum(b.num_rows for b in batches))


def matching(rows, predicate, store):
    """The model: ``rows`` (dicts) for which ``predicate`` is true, judged row by row on a table of them."""
    table = pa.Table.from_pylist(rows, schema=store.schema.arrow)
    return table if predicate is None else table.filter(mask(predicate, table, store.schema.column_types))


def replace_file(path, **changes):
    """Change the metadata of a table's only data file, as another writer would have recorded it."""
    _replace(path, lambda _: changes)


def resize_files(path):
    """Tell the manifests what size the table's data files have now."""
    _replace(path, lambda file: {"file_size": next(Path(path).rglob(file.file_name)).stat().st_size})


def _replace(path, changes):
    store = FileStore.open(path)
    messages = [
        CommitMessage(
            partition=entry.partition,
            bucket=entry.bucket,
            total_buckets=entry.total_buckets,
            new_files=(entry.file.model_copy(update=changes(entry.file)),),
            compact_before=(),
            compact_after=(),
        )
        for entry in store.live_entries(store.snapshots.latest()).entries()
    ]
    shutil.rmtree(f"{path}/snapshot")
    FileStoreCommit(store, "other").commit(messages)
