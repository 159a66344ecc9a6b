"""Assembly of the tree report of one snapshot.

Advice has its reason in figures, and the call to make.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

from fileindex.predicate.tree import ColumnRef, Predicate, leaves, values_of
from fileindex.query.metrics import IndexName, IndexUse
from lsm.scan.plan import ScanPlan
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind, wall_clock_millis
from manifest.entry.index_manifest import DELETION_VECTORS
from manifest.io.errors import SnapshotExpired
from manifest.io.threads import map_in_threads
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import CommitKind, Snapshot
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from paimon_base.texts import count_text, size_text
from pyspark_paimon.plugins.page.tree.buckets import TreeFile, bucket_trees, writer_prefix
from pyspark_paimon.plugins.page.tree.index_calls import BLOOM, index_call, mending_call
from pyspark_paimon.plugins.page.tree.opened_files import BucketFile, opened_files
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.results.tree_report import TreeAdvice, TreeBucket, TreeIndex, TreeReport, TreeSnapshot
from pyspark_paimon.views.explain import funnel_stage, index_stages
from pyspark_paimon.views.index_views import health_summary, index_health_table

MOST_INDEXED_FILES = 200
"""Largest number of files whose index health is checked. The largest files are chosen."""
_MANY_DELETED = 0.3
_MUCH_SPACE = 1.5
_SKEW = 4
_FEW_FILES = 8
_MANY_SNAPSHOTS = 1000
MOST_SNAPSHOTS = 120
"""Largest number of snapshots in the history. The delta manifests of each are read."""
_ROWS = (CommitKind.APPEND, CommitKind.OVERWRITE)


def tree_report(store: FileStore, request: ScanRequest, snapshot: Snapshot | None, plan: ScanPlan, threads: int) -> TreeReport:
    """Return the tree report of ``snapshot``.

    plan: Plan of the snapshot with the filter of ``request``, or of all files.
    """
    opened = opened_files(store, request, plan, threads)
    files = _files(store, snapshot, opened.files)
    buckets = bucket_trees(files, store.schema)
    snapshots = list(store.snapshots.backwards())[::-1] if snapshot is not None else []
    until = [snapshot_of_history for snapshot_of_history in snapshots if snapshot is not None and snapshot_of_history.id <= snapshot.id]
    indexed = [item for item in files if item.file.embedded_index is not None or item.file.index_file is not None]
    indexes = _indexes(store, snapshot, threads) if indexed else ()
    return TreeReport(
        path=store.root,
        snapshot_id=0 if snapshot is None else snapshot.id,
        made_millis=wall_clock_millis(),
        columns=_columns(store),
        has_keys=store.schema.is_primary_key_table,
        filter_text=None,
        stages=(*map(funnel_stage, plan.report), *index_stages(opened.report)),
        buckets=buckets,
        history=tree_history(store, until[-MOST_SNAPSHOTS:], threads),
        snapshots_left_out=max(len(until) - MOST_SNAPSHOTS, 0),
        indexes=indexes,
        indexes_left_out=max(len(indexed) - MOST_INDEXED_FILES, 0),
        advice=tree_advice(
            store,
            buckets,
            indexes,
            unindexed=len(files) - len(indexed),
            snapshots=len(until),
            predicate=request.predicate,
            uses=opened.report.index.by_index,
        ),
    )


def _files(store: FileStore, snapshot: Snapshot | None, opened: AbstractSet[BucketFile]) -> list[TreeFile]:
    dead = _deleted_rows(store, snapshot)
    entries = store.live_entries(snapshot)
    entry_files = zip(entries.partition, entries.bucket.tolist(), entries.files(), strict=True)
    return [
        TreeFile(
            partition=partition,
            bucket=bucket,
            file=file,
            deleted=(file.delete_row_count or 0) + dead[partition, bucket, file.file_name],
            kept=(partition, bucket, file.file_name) in opened,
        )
        for partition, bucket, file in entry_files
    ]


def _deleted_rows(store: FileStore, snapshot: Snapshot | None) -> Counter[tuple[bytes, int, str]]:
    """Count the rows marked by deletion vectors, by file."""
    deleted_rows: Counter[tuple[bytes, int, str]] = Counter()
    for index in store.index_entries(snapshot):
        for vector in (index.vectors or ()) if index.index_type == DELETION_VECTORS else ():
            deleted_rows[index.partition, index.bucket, vector.data_file] += vector.cardinality or 0
    return deleted_rows


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


def tree_advice(
    store: FileStore,
    buckets: Sequence[TreeBucket],
    indexes: Sequence[TreeIndex],
    *,
    unindexed: int,
    snapshots: int,
    predicate: Predicate | None,
    uses: Mapping[IndexName, IndexUse],
) -> tuple[TreeAdvice, ...]:
    """Return advice, the most urgent first.

    If there is nothing to do, the result is one line that says so.

    unindexed: Number of files without an index file.
    uses: What each index did for ``predicate``.
    """
    advices = [
        *(_sorted_runs(store, buckets) if store.schema.is_primary_key_table else _small_files(store, buckets)),
        *_space(buckets),
        *_index_state(store.schema, indexes, unindexed, uses),
        *_for_filter(store.schema, predicate, buckets),
    ]
    if snapshots > _MANY_SNAPSHOTS:
        advices.append(
            TreeAdvice(weight="look", text=f"{snapshots:,} snapshots and all their files are retained.", call="table.expire_snapshots()")
        )
    advices.sort(key=lambda advice: advice.weight != "act")
    return tuple(advices) or (TreeAdvice(weight="fine", text="There is nothing to do."),)


def _sorted_runs(store: FileStore, buckets: Sequence[TreeBucket]) -> Iterator[TreeAdvice]:
    due = [bucket for bucket in buckets if bucket.runs >= bucket.trigger]
    waiting = sum(bucket.level_0_files for bucket in buckets)
    if due:
        max_runs = max(bucket.runs for bucket in due)
        yield TreeAdvice(
            weight="act",
            text=f"In {len(due):,} of {len(buckets):,} buckets a compaction of sorted runs is due. A read merges up to {max_runs}.",
            call="table.compact()",
        )
    elif waiting and store.schema.kind.has_single_version:
        yield TreeAdvice(
            weight="look",
            text=f"Level 0 has {count_text(waiting, 'file')} that no compaction has merged yet; other engines do not read their rows yet.",
            call="table.compact()",
        )
    yield from _skew(store, buckets)


def _small_files(store: FileStore, buckets: Sequence[TreeBucket]) -> Iterator[TreeAdvice]:
    target = store.schema.kind.target_file_size
    small = [bucket for bucket in buckets if bucket.files >= _FEW_FILES and bucket.size / bucket.files < target / 4]
    if small:
        files, size = sum(bucket.files for bucket in small), sum(bucket.size for bucket in small)
        yield TreeAdvice(
            weight="act",
            text=f"{count_text(files, 'file')} of {size_text(size // files)} on average; the target is {size_text(target)}.",
            call="table.compact()",
        )


def _space(buckets: Sequence[TreeBucket]) -> Iterator[TreeAdvice]:
    rows, deleted = sum(bucket.rows for bucket in buckets), sum(bucket.deleted for bucket in buckets)
    if rows and deleted > rows * _MANY_DELETED:
        yield TreeAdvice(weight="look", text=f"{deleted / rows:.0%} of the stored rows are deleted.", call="table.compact(full=True)")
    size, largest = sum(bucket.size for bucket in buckets), sum(bucket.largest_run for bucket in buckets)
    if largest and size > largest * _MUCH_SPACE:
        text = f"The table takes {size / largest:.2f} times the bytes of its largest runs ({size_text(size)} for {size_text(largest)})."
        yield TreeAdvice(weight="look", text=text, call="table.compact(full=True)")


def _index_state(
    schema: TableSchema, indexes: Sequence[TreeIndex], unindexed: int, uses: Mapping[IndexName, IndexUse]
) -> Iterator[TreeAdvice]:
    if schema.file_index.specs and unindexed:
        yield TreeAdvice(
            weight="act",
            text=f"Indexes that the options require are missing for {count_text(unindexed, 'file')}.",
            call="table.rewrite_file_index()",
        )
    for index in indexes:
        if not index.note or index.note.startswith("covers "):
            continue
        use = uses.get((index.column, index.index_type), IndexUse())
        larger = "larger than the column" in index.note
        if larger and (use.skipped or use.rows):
            continue  # this filter is what the index is for
        what = f"{index.index_type} on {index.column}" if index.column else "an index container"
        why = (
            "" if not larger else " It pays only for filters that it drops files or rows for, and for counts. Remove it if there are none."
        )
        yield TreeAdvice(
            weight="act" if "unusable" in index.note else "look",
            text=f"{what}, {count_text(index.files, 'file')}: {index.note}.{why}",
            call=mending_call(schema, index),
        )


def _for_filter(schema: TableSchema, predicate: Predicate | None, buckets: Sequence[TreeBucket]) -> Iterator[TreeAdvice]:
    files = sum(bucket.files for bucket in buckets)
    if predicate is None or files < _FEW_FILES or sum(bucket.kept for bucket in buckets) < files:
        return
    fast = {ColumnRef(name) for name in (*schema.primary_keys, *schema.partition_keys)} | {spec.column for spec in schema.file_index.specs}
    lacking = sorted({str(leaf.column) for leaf in leaves(predicate) if leaf.column not in fast and values_of(leaf) is not None})
    if lacking:
        names = ", ".join(lacking)
        yield TreeAdvice(
            weight="look",
            text=f"The filter drops no file. A bloom filter on {names} would drop the files without the value.",
            call=index_call(schema, add=dict.fromkeys(lacking, BLOOM)),
        )


def _skew(store: FileStore, buckets: Sequence[TreeBucket]) -> Iterator[TreeAdvice]:
    largest = max(buckets, key=lambda bucket: bucket.size, default=None)
    if largest is None or len(buckets) < _FEW_FILES:
        return
    middle = median(bucket.size for bucket in buckets)
    if largest.size > _SKEW * middle and largest.size > store.schema.kind.target_file_size:
        text = (
            f"{largest.name} holds {size_text(largest.size)}, {largest.size / max(middle, 1):.0f} times the median: one task processes it "
            "alone. A table with another bucket-key, of more distinct values, divides the rows evenly."
        )
        yield TreeAdvice(weight="look", text=text)


@dataclass(slots=True)
class _State:
    """Live files and written bytes at a snapshot."""

    has_keys: bool
    files: dict[BucketFile, tuple[int, int]] = field(default_factory=dict)
    runs: defaultdict[tuple[bytes, int], Counter[int | str]] = field(default_factory=lambda: defaultdict(Counter))
    size: int = 0
    largest: int = 0
    written: int = 0
    user_written: int = 0

    def add(self, file: BucketFile, level: int, size: int) -> None:
        self.files[file] = level, size
        self._grow(file, level, size)

    def remove(self, file: BucketFile) -> int:
        level, size = self.files.pop(file, (0, 0))
        self._grow(file, level, -size)
        return size

    def _grow(self, file: BucketFile, level: int, size: int) -> None:
        runs, run = self.runs[file[:2]], level or writer_prefix(file[2])
        before = max(runs.values(), default=0)
        runs[run] += size
        if not runs[run]:
            del runs[run]
        self.size += size
        self.largest += max(runs.values(), default=0) - before


def tree_history(store: FileStore, snapshots: Sequence[Snapshot], threads: int) -> tuple[TreeSnapshot, ...]:
    """Return the changes of consecutive snapshots, oldest first.

    The history starts after the last snapshot that has expired.
    """
    state = _State(store.schema.kind.has_row_kinds)
    steps: list[TreeSnapshot] = []
    deltas = map_in_threads(partial(_delta, store), snapshots, threads)
    for snapshot, delta in zip(snapshots, deltas, strict=True):
        if delta is None:
            state, steps = _State(state.has_keys), []
            continue
        if not steps and snapshot.id > 1:
            _restore_start(state, store, snapshot, delta)
        steps.append(_step(state, snapshot, delta))
    return tuple(steps)


def _delta(store: FileStore, snapshot: Snapshot) -> EntryColumns | None:
    with suppress(SnapshotExpired, CorruptFile):
        return store.delta_entries(snapshot)
    return None


def _restore_start(state: _State, store: FileStore, snapshot: Snapshot, delta: EntryColumns) -> None:
    """Restore the state before the first snapshot.

    It is the state at ``snapshot`` without the files that the snapshot added, and with those that it removed.
    """
    with suppress(SnapshotExpired, CorruptFile):
        before = store.live_entries(snapshot)
        added_files = {file for file, kind, _, _ in _rows(delta) if kind == FileKind.ADD}
        for file, _, level, size in _rows(before):
            if file not in added_files:
                state.add(file, level, size)
        for file, kind, level, size in _rows(delta):
            if kind == FileKind.DELETE and file not in added_files:
                state.add(file, level, size)


def _step(state: _State, snapshot: Snapshot, delta: EntryColumns) -> TreeSnapshot:
    rows = _rows(delta)
    gone = {file for file, kind, _, _ in rows if kind == FileKind.DELETE}
    new = {file: (level, size) for file, kind, level, size in rows if kind == FileKind.ADD}
    removed = sum(state.remove(file) for file in gone)
    for file, (level, size) in new.items():
        state.add(file, level, size)
    written = sum(size for file, (_, size) in new.items() if file not in gone)
    state.written += written
    state.user_written += written if snapshot.commit_kind in _ROWS else 0
    moved = sum(size for file, (_, size) in new.items() if file in gone)
    return TreeSnapshot(
        id=snapshot.id,
        kind=snapshot.commit_kind.value,
        user=snapshot.commit_user,
        time_millis=snapshot.time_millis,
        rows=snapshot.total_record_count,
        delta_rows=snapshot.delta_record_count,
        added_files=len(new.keys() - gone),
        removed_files=len(gone - new.keys()),
        written=written,
        removed=removed - moved,
        files=len(state.files),
        size=state.size,
        write_amplification=state.written / state.user_written if state.user_written else None,
        space_amplification=state.size / state.largest if state.has_keys and state.largest else None,
    )


def _rows(entries: EntryColumns) -> list[tuple[BucketFile, int, int, int]]:
    """Return file, kind, level and bytes of each entry."""
    files = zip(entries.partition, entries.bucket.tolist(), entries.file_name, strict=True)
    return list(zip(files, entries.kind.tolist(), entries.level.tolist(), entries.file_size.tolist(), strict=True))
