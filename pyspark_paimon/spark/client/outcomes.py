"""Results of ``Table``'s methods, from the counts that a commit noted under its id."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyspark_paimon.request.results import CompactResult, IndexRewriteResult, WriteResult
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
        seconds=_since(started),
    )


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

    return CompactResult(
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


__all__ = ["compact_result", "index_result", "nothing_written", "write_result"]
