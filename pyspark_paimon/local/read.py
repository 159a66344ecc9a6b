"""Reading the splits of a plan in this process.

Threads read splits. Rows come in order, sorted, or only counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from lsm.arrow.limit import limit_rows
from lsm.read.metrics import ReadReport
from lsm.read.split import read_split
from lsm.scan.splits import DataSplit
from manifest.io.threads import map_in_threads
from manifest.schema.metadata_columns import metadata_names
from paimon_base.lazy import LazyModule
from paimon_base.thresholds import thresholds
from pyspark_paimon.jobs.incremental import read_changes
from pyspark_paimon.scheduling.thread_pool import interleave

if TYPE_CHECKING:
    import lsm.aggregate.aggregation as aggregates  # a name that no merge engine has
    import lsm.aggregate.value_counts as values
    from fileindex.predicate.tree import Predicate
    from lsm.aggregate.summary import RowSummary
    from lsm.incremental import planner as incremental
    from lsm.incremental.planner import IncrementalSplit
    from lsm.keys.key_set import KeySet
    from lsm.read import metadata_columns as metadata
    from lsm.scan.plan import ScanPlan
    from manifest.store import FileStore
    from pyspark_paimon.jobs import ordering
    from pyspark_paimon.request.engine import RowGrouping
    from pyspark_paimon.request.requests import ScanRequest
    from pyspark_paimon.results.results import FunnelStage
    from pyspark_paimon.views import explain
else:  # a lookup needs none of them
    aggregates = LazyModule("lsm.aggregate.aggregation")
    values = LazyModule("lsm.aggregate.value_counts")
    incremental = LazyModule("lsm.incremental.planner")
    metadata = LazyModule("lsm.read.metadata_columns")
    ordering = LazyModule("pyspark_paimon.jobs.ordering")
    explain = LazyModule("pyspark_paimon.views.explain")

Split: TypeAlias = "DataSplit | IncrementalSplit"
_Condition: TypeAlias = "tuple[KeySet | None, Predicate | None]"


def plan_rows(
    store: FileStore,
    request: ScanRequest,
    plan: ScanPlan,
    threads: int,
    report: ReadReport | None = None,
    *,
    ahead: int | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of a plan.

    Order: by split, or as the request sorts. The request's limit applies.
    ``ahead``: maximum bytes that threads read before the consumer needs them.
    """
    if request.order_by:
        rows = _sort(store, ordering.candidates(request), plan, threads, report)
        yield from rows.select(list(request.columns)).to_batches()
        return
    threads = threads if request.limit is None else 1  # the first split may be enough
    with closing(_in_order(store, request, plan, threads, report, ahead=ahead)) as batches:
        yield from limit_rows(batches, request.limit)


def split_rows(store: FileStore, request: ScanRequest, split: Split | str, report: ReadReport | None = None) -> Iterator[pa.RecordBatch]:
    """Return the rows of one split, unordered.

    ``split``: a split or its JSON. With a limit, returns only rows that can be in the limited result.
    """
    split = incremental.split_from_json(split) if isinstance(split, str) else split
    condition = request.keys_and_filter(store.schema)
    if not request.order_by or request.limit is None:
        return _rows_of(store, request, split, condition, report)
    # The sort columns choose the rows, also where they are not in the result.
    rows = _rows_of(store, ordering.candidates(request), split, condition, report)
    return (batch.select(list(request.columns)) for batch in rows)


def _rows_of(
    store: FileStore, request: ScanRequest, split: Split, condition: _Condition, report: ReadReport | None
) -> Iterator[pa.RecordBatch]:
    if type(split) is not DataSplit and isinstance(split, incremental.IncrementalSplit):
        return read_changes(store, split, request.model_copy(update={"limit": None}) if request.order_by else request, report)
    keys, predicate = condition
    if metadata_names(request.columns, store.schema):
        return metadata.read_with_metadata(
            store,
            split,
            columns=request.columns,
            predicate=request.predicate,
            keys=keys,
            condition=predicate,
            limit=_limit(request),
            report=report,
        )
    if request.order_by and request.limit is not None:
        return iter(ordering.first_rows(store, request, [split], 1, report).to_batches())
    return read_split(
        store,
        split,
        columns=request.columns,
        predicate=predicate,
        limit=_limit(request),
        report=report,
        dictionaries=request.dictionaries,
        keys=keys,
    )


def summarise(store: FileStore, request: ScanRequest, splits: Iterable[Split], threads: int) -> dict[bytes, RowSummary]:
    """Aggregate the rows of splits by partition.

    Opens data files only where metadata and indexes are not enough.
    """
    question = aggregation(store, request)
    report = ReadReport()
    summary_by_partition: dict[bytes, RowSummary] = {}
    unread: list[tuple[bytes, aggregates.Unread]] = []
    # Without threads: index queries hold the interpreter lock most of the time.
    for split in splits:
        metadata_summary, parts = question.known(split, report)
        _add(summary_by_partition, split.partition, metadata_summary)
        unread += [(split.partition, part) for part in parts]
    summaries = map_in_threads(lambda part: part[1](ReadReport()), unread, threads)
    for (partition, _), summary in zip(unread, summaries, strict=True):
        _add(summary_by_partition, partition, summary)
    return summary_by_partition


def read_counted(store: FileStore, request: ScanRequest, plan: ScanPlan, threads: int) -> tuple[FunnelStage, ...]:
    """Read a plan's rows and count each stage's rows."""
    report, start = ReadReport(), time.perf_counter()
    for _ in plan_rows(store, request, plan, threads, report):
        pass
    return explain.read_stages(report, (time.perf_counter() - start) * 1000)


def summarise_cheaply(store: FileStore, request: ScanRequest, plan: ScanPlan) -> dict[bytes, RowSummary] | None:
    """Aggregate by metadata, indexes and footers of few files.

    Reads no page of a data file. None: these are not enough.
    """
    asks_files = request.predicate is not None or bool(request.aggregates)
    if asks_files and (request.incremental is not None or plan.file_count > thresholds.counted_files):
        return None
    question = aggregation(store, request)
    summaries: dict[bytes, RowSummary] = {}
    files = thresholds.counted_files
    for split in plan.splits:
        if asks_files or split.merged_row_count is None:
            files -= len(split.files)
        split_summary = question.cheap(split) if files >= 0 else None
        if split_summary is None:
            return None
        _add(summaries, split.partition, split_summary)
    return summaries


def aggregation(store: FileStore, request: ScanRequest) -> aggregates.RowAggregation:
    """Return the aggregation of a request, for single splits."""
    return aggregates.RowAggregation(
        store, request.predicate, {name: frozenset(functions) for name, functions in request.aggregates.items()}
    )


def count_groups(store: FileStore, request: ScanRequest, plan: ScanPlan, grouping: RowGrouping, threads: int) -> pa.Table:
    """Return the groups of a plan's rows with their row counts.

    Opens data files only where indexes are not enough.
    """
    index_counts, sources = _count_by_indexes(store, request, plan, grouping)
    folded = grouping.fold_all(interleave(sources, threads), store.root)
    return _fold_groups(grouping, folded, index_counts)


def count_groups_cheaply(store: FileStore, request: ScanRequest, plan: ScanPlan, grouping: RowGrouping) -> pa.Table | None:
    """Return the groups of a plan's rows with their row counts, by indexes of few files.

    None: these are not enough.
    """
    if request.incremental is not None or plan.file_count > thresholds.counted_files:
        return None
    index_counts, sources = _count_by_indexes(store, request, plan, grouping)
    return None if sources else _fold_groups(grouping, grouping.fold_all((), store.root), index_counts)


def _count_by_indexes(
    store: FileStore, request: ScanRequest, plan: ScanPlan, grouping: RowGrouping
) -> tuple[list[values.CountedValues], list[Callable[[], Iterator[pa.RecordBatch]]]]:
    """Return the counts that indexes know, and sources of the other rows."""
    condition = request.keys_and_filter(store.schema)
    counting = values.ValueCounting(store, request.predicate, grouping.counted_keys or (), request.columns)
    report = ReadReport()
    index_counts: list[values.CountedValues] = []
    sources: list[Callable[[], Iterator[pa.RecordBatch]]] = []
    for split in plan.splits:
        if type(split) is not DataSplit or not split.has_independent_files or condition[0] is not None:
            sources.append(partial(_rows_of, store, request, split, condition, None))
            continue
        counted, unread = counting.of_split(split, report)
        index_counts += counted
        sources += [read.batches for read in unread]
    return index_counts, sources


def _fold_groups(grouping: RowGrouping, folded: pa.Table, index_counts: Sequence[values.CountedValues]) -> pa.Table:
    return grouping.fold(
        pa.concat_tables([folded, *(grouping.fold_counts(value_counts.keys, value_counts.rows) for value_counts in index_counts)])
    )


def rows_in(summaries: Mapping[bytes, RowSummary], limit: int | None) -> int:
    """Return the number of rows, at most ``limit``."""
    rows = sum(summary.rows for summary in summaries.values())
    return rows if limit is None else min(rows, limit)


def _add(summaries: dict[bytes, RowSummary], partition: bytes, summary: RowSummary) -> None:
    if partition in summaries:
        summaries[partition].merge(summary)
    else:
        summaries[partition] = summary


def _limit(request: ScanRequest) -> int | None:
    return None if request.order_by else request.limit


def _sort(store: FileStore, request: ScanRequest, plan: ScanPlan, threads: int, report: ReadReport | None) -> pa.Table:
    if request.limit is not None and request.incremental is None and not metadata_names(request.columns, store.schema):
        return ordering.first_rows(store, request, plan.splits, threads, report)
    return ordering.sort_rows(_in_order(store, request, plan, threads, report), request, store.schema)


def _in_order(
    store: FileStore, request: ScanRequest, plan: ScanPlan, threads: int, report: ReadReport | None, *, ahead: int | None = None
) -> Generator[pa.RecordBatch, None, None]:
    reports = [ReadReport() for _ in range(len(plan.splits))]
    condition = request.keys_and_filter(store.schema)  # once for all splits: it may be a long list of keys

    def rows(position: int, split_report: ReadReport) -> Iterator[pa.RecordBatch]:
        return _rows_of(store, request, plan.splits[position], condition, split_report)

    sources = [partial(rows, position, split_report) for position, split_report in enumerate(reports)]
    try:
        yield from interleave(sources, threads, ahead)
    finally:  # the consumer may leave early
        if report is not None:
            for split_report in reports:
                report.merge(split_report)
