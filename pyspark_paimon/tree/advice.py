"""Advice on a table, derived from its tree.

Each advice has its reason in figures, and the call to make.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from fileindex.predicate.tree import Predicate, columns_of
from manifest.schema.table_schema import TableSchema
from manifest.store import FileStore
from pyspark_paimon.request.tree_report import TreeAdvice, TreeBucket, TreeIndex
from pyspark_paimon.views.explain import size_text

_MANY_DELETED = 0.3
_MUCH_SPACE = 1.5
_SKEW = 4
_FEW_FILES = 8
_MANY_SNAPSHOTS = 1000


def tree_advice(
    store: FileStore,
    buckets: Sequence[TreeBucket],
    indexes: Sequence[TreeIndex],
    *,
    unindexed: int,
    snapshots: int,
    predicate: Predicate | None,
) -> tuple[TreeAdvice, ...]:
    """Return advice, the most urgent first.

    If there is nothing to do, the result is one line that says so.

    unindexed: Number of files without an index file.
    """
    found = [
        *_compaction(store, buckets),
        *_space(store.schema, buckets),
        *_index_state(store.schema, indexes, unindexed),
        *_for_filter(store.schema, predicate, buckets),
        *_shape(store, buckets),
    ]
    if snapshots > _MANY_SNAPSHOTS:
        found.append(
            TreeAdvice(weight="look", text=f"{snapshots:,} snapshots and all their files are retained.", call="table.expire_snapshots()")
        )
    found.sort(key=lambda advice: advice.weight != "act")
    return tuple(found) or (TreeAdvice(weight="fine", text="There is nothing to do."),)


def _compaction(store: FileStore, buckets: Sequence[TreeBucket]) -> Iterator[TreeAdvice]:
    if store.schema.is_primary_key_table:
        trigger = store.options.num_sorted_run_compaction_trigger
        due = [bucket for bucket in buckets if bucket.runs >= trigger]
        waiting = sum(bucket.level_0_files for bucket in buckets)
        if due:
            most = max(bucket.runs for bucket in due)
            yield TreeAdvice(
                weight="act",
                text=f"In {len(due):,} of {len(buckets):,} buckets a read merges {trigger} sorted runs or more (up to {most}).",
                call="table.compact()",
            )
        elif waiting and store.has_single_version:
            yield TreeAdvice(
                weight="look",
                text=f"{waiting:,} files on level 0 wait for a compaction; other engines do not read them yet.",
                call="table.compact()",
            )
        return
    target = store.options.target_size(has_primary_key=False)
    small = [bucket for bucket in buckets if bucket.files >= _FEW_FILES and bucket.size / bucket.files < target / 4]
    if small:
        files, size = sum(bucket.files for bucket in small), sum(bucket.size for bucket in small)
        yield TreeAdvice(
            weight="act",
            text=f"{files:,} files of {size_text(size // files)} on average; the target is {size_text(target)}.",
            call="table.compact()",
        )


def _space(schema: TableSchema, buckets: Sequence[TreeBucket]) -> Iterator[TreeAdvice]:
    rows, deleted = sum(bucket.rows for bucket in buckets), sum(bucket.deleted for bucket in buckets)
    if rows and deleted > rows * _MANY_DELETED:
        yield TreeAdvice(weight="look", text=f"{deleted / rows:.0%} of the stored rows are deleted.", call="table.compact(full=True)")
    size, largest = sum(bucket.size for bucket in buckets), sum(bucket.largest_run for bucket in buckets)
    if schema.is_primary_key_table and largest and size > largest * _MUCH_SPACE:
        text = f"The table takes {size / largest:.2f} times the bytes of its largest runs ({size_text(size)} for {size_text(largest)})."
        yield TreeAdvice(weight="look", text=text, call="table.compact(full=True)")


def _index_state(schema: TableSchema, indexes: Sequence[TreeIndex], unindexed: int) -> Iterator[TreeAdvice]:
    if schema.file_index.specs and unindexed:
        yield TreeAdvice(
            weight="act", text=f"{unindexed:,} files lack indexes that the options require.", call="table.rewrite_file_index()"
        )
    for index in indexes:
        if index.note:
            what = f"{index.index_type} on {index.column}" if index.column else "an index container"
            files = f"{index.files:,} file{'s' if index.files != 1 else ''}"
            broken = "unusable" in index.note
            yield TreeAdvice(
                weight="act" if broken else "look",
                text=f"{what}, {files}: {index.note}.",
                call="table.rewrite_file_index()" if broken else "table.alter_options({...}), then table.rewrite_file_index()",
            )


def _for_filter(schema: TableSchema, predicate: Predicate | None, buckets: Sequence[TreeBucket]) -> Iterator[TreeAdvice]:
    files = sum(bucket.files for bucket in buckets)
    if predicate is None or files < _FEW_FILES or sum(bucket.kept for bucket in buckets) < files:
        return
    known = {spec.column.name for spec in schema.file_index.specs} | set(schema.primary_keys) | set(schema.partition_keys)
    if lacking := [name for name in columns_of(predicate) if name not in known]:
        names = ", ".join(sorted(set(lacking)))
        yield TreeAdvice(
            weight="look",
            text=f"The filter drops no file: {names} {'is' if len(set(lacking)) == 1 else 'are'} neither key nor partition and without an index.",
            call=f"table.alter_options({{'file-index.bloom-filter.columns': {names!r}}}), then table.rewrite_file_index()",
        )


def _shape(store: FileStore, buckets: Sequence[TreeBucket]) -> Iterator[TreeAdvice]:
    largest = max(buckets, key=lambda bucket: bucket.size, default=None)
    if largest is None or len(buckets) < _FEW_FILES or not store.schema.is_primary_key_table:
        return
    middle = median(bucket.size for bucket in buckets)
    if largest.size > _SKEW * middle and largest.size > store.options.target_size(has_primary_key=True):
        text = f"{largest.name} holds {size_text(largest.size)}, {largest.size / max(middle, 1):.0f} times the median: one task processes it alone."
        yield TreeAdvice(weight="look", text=text, call="choose a bucket-key with more distinct values, or more buckets")


__all__ = ["tree_advice"]
