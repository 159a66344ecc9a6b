"""Reading the splits of a plan in this process: threads over splits, in order, sorted, or only counted."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from lsm.arrow.limit import limit_rows
from lsm.incremental.planner import IncrementalSplit
from lsm.keys.key_set import KeySet
from lsm.read.metrics import ReadReport
from lsm.read.split import counted_by_footers, known_count, read_split
from lsm.scan.splits import DataSplit
from pyspark_paimon.jobs.incremental import read_changes
from pyspark_paimon.jobs.ordering import candidates, first_rows, sorted_rows
from pyspark_paimon.scheduling.thread_pool import AHEAD_BYTES, interleaved

if TYPE_CHECKING:
    from lsm.scan.plan import ScanPlan
    from manifest.store import FileStore
    from pyspark_paimon.request.backend import ScanRequest

Split: TypeAlias = DataSplit | IncrementalSplit

_CHEAP_FILES = 256
"""As many files may be asked for their counts where no task helps."""


def plan_rows(
    store: FileStore, request: ScanRequest, plan: ScanPlan, threads: int, report: ReadReport | None = None, *, ahead: int = AHEAD_BYTES
) -> Generator[pa.RecordBatch, None, None]:
    """All rows of a plan: split after split, or as the request sorts them; with a limit no more than that.

    Threads run ``ahead`` of the consumer by so many bytes.
    """
    if request.order_by:
        rows = _sorted(store, candidates(request), plan, threads, report)
        yield from rows.select(list(request.columns)).to_batches()
        return
    threads = threads if request.limit is None else 1  # the first split may be enough
    with closing(_in_order(store, request, plan, threads, report, ahead=ahead)) as batches:
        yield from limit_rows(batches, request.limit)


def split_rows(store: FileStore, request: ScanRequest, split: Split, report: ReadReport | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of one split, in no order; with a limit those that can be among the first so many, by the request's order if it has one."""
    if isinstance(split, IncrementalSplit):
        return read_changes(store, split, request.model_copy(update={"limit": None}) if request.order_by else request, report)
    if request.order_by and request.limit is not None:
        return iter(first_rows(store, request, [split], 1, report).to_batches())
    rows = read_split(store, split, columns=request.columns, predicate=request.predicate, limit=_limit(request), report=report)
    return rows if request.keys is None else _of_keys(rows, request.keys)


def _of_keys(rows: Iterator[pa.RecordBatch], keys: KeySet) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        yield batch.filter(pa.array(keys.holds(batch)))


def count_rows(store: FileStore, request: ScanRequest, plan: ScanPlan, threads: int) -> int:
    """Number of a plan's rows; splits that metadata or exact indexes answer for are not read."""
    known = [split.merged_row_count if request.predicate is None else _count_by_indexes(store, request, split) for split in plan.splits]
    counted = sum(rows for rows in known if rows is not None)
    to_read = [split for split, rows in zip(plan.splits, known, strict=True) if rows is None]
    rows_only = request.model_copy(update={"columns": (), "order_by": (), "limit": None})
    sources = [partial(split_rows, store, rows_only, split) for split in to_read]
    counted += sum(int(batch.num_rows) for batch in interleaved(sources, threads))
    return counted if request.limit is None else min(counted, request.limit)


def _count_by_indexes(store: FileStore, request: ScanRequest, split: Split) -> int | None:
    """Rows of a split by its files' indexes: asked one after the other, for threads would only wait for each other's Python."""
    if isinstance(split, IncrementalSplit) or not all(
        file.embedded_index is not None or file.index_file is not None for file in split.files
    ):
        return None
    return known_count(store, split, request.predicate)


def cheap_count(store: FileStore, request: ScanRequest, plan: ScanPlan) -> int | None:
    """Number of a plan's rows if few files' metadata, exact indexes and footers tell it; no page of a data file is read."""
    if request.predicate is not None and (request.incremental is not None or plan.file_count > _CHEAP_FILES):
        return None
    total = 0
    footers = _CHEAP_FILES
    for split in plan.splits:
        count = split.merged_row_count if request.predicate is None else known_count(store, split, request.predicate)
        if count is None and request.predicate is None and request.incremental is None and len(split.files) <= footers:
            footers -= len(split.files)
            count = counted_by_footers(store, split)
        if count is None:
            return None
        total += count
    return total if request.limit is None else min(total, request.limit)


def _limit(request: ScanRequest) -> int | None:
    return None if request.order_by else request.limit


def _sorted(store: FileStore, request: ScanRequest, plan: ScanPlan, threads: int, report: ReadReport | None) -> pa.Table:
    if request.limit is not None and request.incremental is None:
        return first_rows(store, request, plan.splits, threads, report)
    return sorted_rows(_in_order(store, request, plan, threads, report, ahead=AHEAD_BYTES), request, store.schema)


def _in_order(
    store: FileStore, request: ScanRequest, plan: ScanPlan, threads: int, report: ReadReport | None, *, ahead: int
) -> Generator[pa.RecordBatch, None, None]:
    reports = [ReadReport() for _ in plan.splits]
    sources = [partial(split_rows, store, request, split, own) for split, own in zip(plan.splits, reports, strict=True)]
    try:
        yield from interleaved(sources, threads, ahead)
    finally:  # the consumer may leave early
        if report is not None:
            for own in reports:
                report.merge(own)


__all__ = ["cheap_count", "count_rows", "plan_rows", "split_rows"]
