"""Counters of writes, compactions and reads, for monitoring."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from paimon_base.public import public

if TYPE_CHECKING:
    import pyarrow as pa

    from lsm.read.metrics import ReadReport
    from lsm.scan.plan import ScanPlan


_MANIFEST_STAGES = ("manifest list", "manifest ranges")
_FILE_STAGES = ("partition", "bucket", "level", "key range", "value stats", "embedded index")
"""Names of plan stages that count manifests, and of those that count files."""


class Counters(BaseModel):
    """Frozen base class of counters.

    ``millis``: milliseconds by stage name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    millis: dict[str, float] = {}

    def as_dict(self) -> dict[str, Any]:
        """Return a flat dict, with stages as ``millis.<stage>``.

        >>> WriteCounters(rows=3, millis={"commit": 1.5}).as_dict()["millis.commit"]
        1.5
        """
        plain = self.model_dump(exclude={"millis"})
        return {**plain, **{f"millis.{stage}": millis for stage, millis in self.millis.items()}}


@public
class WriteCounters(Counters):
    """Counters of a write, delete or update.

    ``bytes_in``: size of the input in Arrow memory.
    ``files`` and ``bytes_written``: written files. ``compacted_files`` and ``compacted_bytes``: the compaction inside the write.
    ``retries``: number of times another commit was first.
    Stages: ``write`` (consume rows), ``flush`` (encode and compact), ``find`` (rows to change), ``commit``, ``compact`` (after the commit).
    On Spark, ``job`` is the only stage.
    """

    rows: int = 0
    bytes_in: int = 0
    files: int = 0
    bytes_written: int = 0
    compacted_files: int = 0
    compacted_bytes: int = 0
    retries: int = 0


@public
class CompactCounters(Counters):
    """Counters of a compaction.

    ``retries``: number of times the compaction or its commit lost to another commit.
    Stages: ``merge``, ``commit``. On Spark, ``job`` is the only stage.
    """

    buckets: int = 0
    files_before: int = 0
    files_after: int = 0
    rows: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    retries: int = 0


@public
class ScanCounters(Counters):
    """Counters of a scan's last read, up to its end.

    Stages: ``plan``, ``read`` (waiting for rows). Counts cover the rows that the caller consumed.
    ``files``: kept by the plan. ``files_pruned``: dropped by the plan. ``manifests_pruned``: dropped with all their files.
    ``files_skipped``, ``row_groups_skipped`` and ``pages_skipped``: skipped while reading.
    ``rows``: returned. ``rows_decoded``: decoded from files.
    ``bytes_read``: compressed column bytes. ``index_bytes``: index bytes.
    On Spark, tasks read the files, so only rows and milliseconds are known. ``explain()`` collects the tasks' counters.
    """

    rows: int = 0
    batches: int = 0
    splits: int = 0
    files: int = 0
    manifests_pruned: int = 0
    files_pruned: int = 0
    files_skipped: int = 0
    row_groups: int = 0
    row_groups_skipped: int = 0
    pages_skipped: int = 0
    rows_decoded: int = 0
    rows_merged: int = 0
    bytes_planned: int = 0
    bytes_read: int = 0
    index_bytes: int = 0


class Stopwatch:
    """Stopwatch that adds elapsed milliseconds to stages.

    Each call measures the time since the previous call.

    >>> stopwatch = Stopwatch()
    >>> stopwatch("commit")
    >>> list(stopwatch.millis)
    ['commit']
    """

    def __init__(self) -> None:
        self.millis: dict[str, float] = {}
        self._last = time.perf_counter()

    def __call__(self, stage: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self.millis[stage] = round(self.millis.get(stage, 0.0) + (now - self._last) * 1000, 3)
        self._last = now


class ScanTally:
    """Counter of the reads of a scan.

    ``counters``: result of the last finished read.
    """

    def __init__(self) -> None:
        self.counters: ScanCounters | None = None

    def count_rows(
        self, rows: Iterator[pa.RecordBatch], plan: ScanPlan | None = None, report: ReadReport | None = None, plan_millis: float = 0.0
    ) -> Iterator[pa.RecordBatch]:
        """Yield ``rows`` unchanged and count them."""
        waited = 0.0
        row_counts: list[int] = []
        try:
            while True:
                start = time.perf_counter()
                batch = next(rows, None)
                waited += time.perf_counter() - start
                if batch is None:
                    break
                row_counts.append(batch.num_rows)
                yield batch
        finally:
            if (close := getattr(rows, "close", None)) is not None:
                close()
            millis = {"plan": round(plan_millis, 3), "read": round(waited * 1000, 3)}
            self.counters = ScanCounters(rows=sum(row_counts), batches=len(row_counts), millis=millis, **_count_plan(plan), **_read(report))


def _count_plan(plan: ScanPlan | None) -> dict[str, int]:
    if plan is None:
        return {}
    splits: Sequence[Any] = plan.splits
    has_files = bool(splits) and hasattr(splits[0], "file_size")
    dropped = {stage.name: stage.dropped for stage in plan.report}
    return {
        "splits": len(splits),
        "files": plan.file_count if has_files else 0,
        "manifests_pruned": sum(dropped.get(name, 0) for name in _MANIFEST_STAGES),
        "files_pruned": sum(dropped.get(name, 0) for name in _FILE_STAGES),
        "bytes_planned": plan.file_size if has_files else 0,
    }


def _read(report: ReadReport | None) -> dict[str, int]:
    if report is None:
        return {}
    names = ("files_skipped", "row_groups", "row_groups_skipped", "pages_skipped", "rows_decoded", "rows_merged", "bytes_read")
    return {**{name: getattr(report, name) for name in names}, "index_bytes": report.index.bytes_read}
