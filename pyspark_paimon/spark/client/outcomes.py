"""Results of ``Table``'s methods, from the counts that a commit noted under its id."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyspark_paimon.request.counters import WriteCounters
from pyspark_paimon.request.results import CompactResult, IndexRewriteResult, WriteResult, compact_counters
from pyspark_paimon.spark.wire.rpc import Outcome


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 6)


def nothing_written(started: float) -> WriteResult:
    """The answer of a write that had nothing to commit."""
    return WriteResult(rows=0, files=0, snapshot_id=None, seconds=_since(started))


def write_result(done: Outcome, started: float, *, replayed: bool = False) -> WriteResult:
    """The answer of a write, a delete or an update."""
    return WriteResult(
        rows=done.counts.get("rows", 0),
        files=done.counts.get("files", 0),
        snapshot_id=done.snapshot_id,
        compact_snapshot_id=done.compact_snapshot_id,
        compact_lost=done.compact_lost,
        replayed=replayed,
        counters=None if replayed else _counters(done, started),
        seconds=_since(started),
    )


def _counters(done: Outcome, started: float) -> WriteCounters:
    known = {name: count for name, count in done.counts.items() if name in WriteCounters.model_fields}
    return WriteCounters(**known, millis={"job": _since(started) * 1000})


def index_result(outcomes: Sequence[Outcome], files: int, started: float) -> IndexRewriteResult:
    """The answer of a rewrite of indexes that looked at ``files`` and committed ``outcomes``."""
    return IndexRewriteResult(
        files=files,
        rewritten=sum(outcome.counts.get("rewritten", 0) for outcome in outcomes),
        bytes_read=sum(outcome.counts.get("bytes_read", 0) for outcome in outcomes),
        bytes_written=sum(outcome.counts.get("bytes_written", 0) for outcome in outcomes),
        snapshot_id=outcomes[-1].compact_snapshot_id if outcomes else None,
        seconds=_since(started),
    )


def compact_result(outcomes: Sequence[Outcome], attempts: int, started: float) -> CompactResult:
    """The answer of a compaction that committed ``outcomes``."""

    def total(name: str) -> int:
        return sum(outcome.counts.get(name, 0) for outcome in outcomes)

    result = CompactResult(
        files_before=total("files_before"),
        files_after=total("files_after"),
        bytes_read=total("bytes_read"),
        bytes_written=total("bytes_written"),
        snapshot_id=outcomes[-1].compact_snapshot_id if outcomes else None,
        rows=total("rows"),
        buckets=total("buckets"),
        attempts=attempts,
        seconds=_since(started),
    )
    counters = compact_counters(result, retries=attempts - 1 + total("retries"), millis={"job": result.seconds * 1000})
    return result.model_copy(update={"counters": counters})


__all__ = ["compact_result", "index_result", "nothing_written", "write_result"]
