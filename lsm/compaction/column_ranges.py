"""Joins of files with columns of the same rows, and of adjacent ranges of row ids (Paimon's ``DataEvolutionCompactTask``).

Rows keep their ids and their order. Files of BLOB columns stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from fileindex.predicate.tree import TRUE
from lsm.compaction.rewriter import CompactResult
from lsm.compaction.small_files import SmallFilePolicy
from lsm.data_files.rolling import discard_files, whole_file_writer
from lsm.data_files.writer import FileTarget
from lsm.merge.alignment import table_of_rows
from lsm.read.split import SplitRead
from lsm.scan.splits import DataSplit
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.entry.row_ranges import range_groups
from sparkexpr.values.column_type import Kind

RangeGroup = tuple[DataFileMeta, ...]
"""Files with columns of the same rows, newest first."""


def _no_blobs(_: RangeGroup) -> frozenset[int]:
    return frozenset()


def pick_ranges(
    files: Sequence[DataFileMeta],
    policy: SmallFilePolicy,
    open_cost: int,
    *,
    full: bool = False,
    blobs: Callable[[RangeGroup], frozenset[int]] = _no_blobs,
) -> list[list[RangeGroup]]:
    """Return the adjacent ranges to join, each with its files.

    A join has at least ``min_files`` files, or two with ``full``, and about the target size. A range that is larger is joined alone.
    ``blobs`` returns the ids of the BLOB columns of a range. A join has the same ones in all ranges, as files of BLOB columns stay.

    >>> files = [DataFileMeta(file_name=f"{at}.parquet", file_size=9, row_count=5, first_row_id=at) for at in (0, 0, 5, 20)]
    >>> policy = SmallFilePolicy(target=100, small=70, min_files=3)
    >>> [[group[0].first_row_id for group in groups] for groups in pick_ranges(files, policy, 0)]
    [[0, 5]]
    """
    least = 2 if full else max(2, policy.min_files)
    picked: list[list[RangeGroup]] = []
    waiting: list[RangeGroup] = []
    weight, columns = 0, frozenset[int]()

    def finish() -> None:
        nonlocal weight
        if sum(map(len, waiting)) >= least:
            picked.append(list(waiting))
        waiting.clear()
        weight = 0

    for every in range_groups(files):
        group, before, columns = tuple(file for file in every if not file.is_blob), columns, blobs(every)
        if waiting and (_end(waiting[-1]) != group[0].first_row_id or columns != before):
            finish()
        group_size = sum(max(file.file_size, open_cost) for file in group)
        if group_size > policy.target:
            finish()
            waiting.append(group)
            finish()
            continue
        waiting.append(group)
        weight += group_size
        if weight > policy.target:
            finish()
    finish()
    return picked


def _end(group: RangeGroup) -> int:
    return (group[0].first_row_id or 0) + group[0].row_count


def join_ranges(
    target: FileTarget, partition: bytes, bucket: int, files: Sequence[DataFileMeta], policy: SmallFilePolicy, *, full: bool = False
) -> CompactResult | None:
    """Join each range of ``pick_ranges`` into one file.

    None: nothing was picked. On failure all new files are deleted.
    """
    store = target.store
    names = tuple([field.name for field in store.schema.fields if field.type.kind is not Kind.BLOB])
    full_target = replace(target, columns=None if len(names) == len(store.schema.fields) else names)
    split = DataSplit(partition=partition, bucket=bucket, total_buckets=-1, files=tuple(files), raw_convertible=False)
    read = SplitRead(store, split, names, TRUE)
    joined = CompactResult()
    live = {field.id for field in store.schema.fields}

    def blobs(group: RangeGroup) -> frozenset[int]:
        blob_columns = ((store.schemas.get(file.schema_id), file.write_cols or ()) for file in group if file.is_blob)
        return frozenset(schema.field(name).id for schema, columns in blob_columns for name in columns if schema.field(name).id in live)

    def rows(groups: Sequence[RangeGroup]) -> Iterator[Any]:
        for group in groups:
            yield from (table_of_rows(batch) for batch in read.by_columns(group).batches() if batch.num_rows)

    try:
        for groups in pick_ranges(files, policy, store.options.source_split_open_file_cost, full=full, blobs=blobs):
            (joined_file,) = whole_file_writer(full_target, FileSource.COMPACT).write_all(rows(groups))
            before = [file for group in groups for file in group]
            numbers = {
                "first_row_id": groups[0][0].first_row_id,
                "min_sequence_number": min(file.min_sequence_number for file in before),
                "max_sequence_number": max(file.max_sequence_number for file in before),
            }
            joined.before += before
            joined.after.append(joined_file.model_copy(update=numbers))
    except BaseException:
        for file in joined.after:
            discard_files(store.file_io, target.directory, file)
        raise
    return joined if joined.before else None
