"""Assembly of the tree report of one snapshot."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from lsm.scan.plan import ScanPlan
from manifest.entry.data_file import wall_clock_millis
from manifest.entry.index_manifest import DELETION_VECTORS
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from pyspark_paimon.request.backend import ScanRequest
from pyspark_paimon.request.tree_report import TreeIndex, TreeReport
from pyspark_paimon.tree.advice import tree_advice
from pyspark_paimon.tree.buckets import TreeFile, bucket_trees
from pyspark_paimon.tree.history import MOST_SNAPSHOTS, tree_history
from pyspark_paimon.views.explain import funnel_stage
from pyspark_paimon.views.index_views import health_summary, index_health_table

MOST_INDEXED_FILES = 200
"""Largest number of files whose index health is checked. The largest files are chosen."""


def tree_report(store: FileStore, request: ScanRequest, snapshot: Snapshot | None, plan: ScanPlan, threads: int) -> TreeReport:
    """Return the tree report of ``snapshot``.

    plan: Plan of the snapshot with the filter of ``request``, or of all files.
    """
    files = _files(store, snapshot, plan)
    buckets = bucket_trees(files, store.schema)
    snapshots = list(store.snapshots.backwards())[::-1] if snapshot is not None else []
    until = [found for found in snapshots if snapshot is not None and found.id <= snapshot.id]
    indexed = [item for item in files if item.file.embedded_index is not None or item.file.index_file is not None]
    indexes = _indexes(store, snapshot, threads) if indexed else ()
    return TreeReport(
        path=store.root,
        snapshot_id=0 if snapshot is None else snapshot.id,
        made_millis=wall_clock_millis(),
        columns=_columns(store),
        has_keys=store.schema.is_primary_key_table,
        filter_text=None,
        stages=tuple(funnel_stage(stage) for stage in plan.report),
        buckets=buckets,
        history=tree_history(store, until[-MOST_SNAPSHOTS:], threads),
        snapshots_left_out=max(len(until) - MOST_SNAPSHOTS, 0),
        indexes=indexes,
        indexes_left_out=max(len(indexed) - MOST_INDEXED_FILES, 0),
        advice=tree_advice(store, buckets, indexes, unindexed=len(files) - len(indexed), snapshots=len(until), predicate=request.predicate),
    )


def _files(store: FileStore, snapshot: Snapshot | None, plan: ScanPlan) -> list[TreeFile]:
    kept: set[tuple[bytes, int, str]] = set()
    for split in plan.splits:
        kept |= {(split.partition, split.bucket, file.file_name) for file in split.files}
    dead = _deleted_rows(store, snapshot)
    entries = store.live_entries(snapshot)
    found = zip(entries.partition, entries.bucket.tolist(), entries.files(), strict=True)
    return [
        TreeFile(
            partition=partition,
            bucket=bucket,
            file=file,
            deleted=(file.delete_row_count or 0) + dead[partition, bucket, file.file_name],
            kept=(partition, bucket, file.file_name) in kept,
        )
        for partition, bucket, file in found
    ]


def _deleted_rows(store: FileStore, snapshot: Snapshot | None) -> Counter[tuple[bytes, int, str]]:
    """Count the rows marked by deletion vectors, by file."""
    found: Counter[tuple[bytes, int, str]] = Counter()
    for index in store.index_entries(snapshot):
        for vector in (index.vectors or ()) if index.index_type == DELETION_VECTORS else ():
            found[index.partition, index.bucket, vector.data_file] += vector.cardinality or 0
    return found


def _columns(store: FileStore) -> tuple[tuple[str, str, str], ...]:
    schema = store.schema
    roles: defaultdict[str, list[str]] = defaultdict(list)
    for name in schema.primary_keys:
        roles[name].append("key")
    for name in schema.partition_keys:
        roles[name].append("partition")
    for spec in schema.file_index.specs:
        roles[spec.column.name].append(spec.index_type)
    return tuple((field.name, str(field.type), ", ".join(roles[field.name])) for field in schema.fields)


def _indexes(store: FileStore, snapshot: Snapshot | None, threads: int) -> tuple[TreeIndex, ...]:
    rows: list[dict[str, Any]] = health_summary(index_health_table(store, snapshot, threads, most_files=MOST_INDEXED_FILES))
    return tuple(
        TreeIndex(
            column=row["column_name"] or "",
            index_type=row["index_type"] or "",
            **{
                name: row[name]
                for name in ("files", "rows", "index_bytes", "column_bytes", "distinct_values", "false_positive_rate", "note")
            },
        )
        for row in rows
    )


__all__ = ["MOST_INDEXED_FILES", "tree_report"]
