"""Results of table operations.

They are frozen values. Users can print them and programs can dump them as JSON.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from fileindex.base.public import public
from pyspark_paimon.request.counters import CompactCounters, WriteCounters
from pyspark_paimon.request.message import Message


@public
class Removal(Message):
    """Losses of a destructive operation, reported by a dry run.

    ``files``: files to delete, with their size ``bytes``.
    ``data_files`` and ``manifests`` (with manifest lists) are parts of ``files``.
    Commits delete no files: there, ``files`` are those that the newest snapshot would no longer list.
    ``rows``: physical rows in files that would no longer be read.
    """

    snapshots: int = 0
    tags: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    data_files: int = 0
    manifests: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0


class Outcome(Message):
    """Snapshots and counts of a visible commit."""

    snapshot_id: int | None
    compact_snapshot_id: int | None
    compact_lost: bool = False
    counts: dict[str, int] = Field(default_factory=dict)


@public
class WriteResult(Message):
    """Result of a write, delete or overwrite.

    ``snapshot_id``: commit of the rows. None: there was nothing to commit.
    ``compact_snapshot_id``: compaction after the commit. None: no compaction.
    Some engines show compacted rows only (deletion vectors, first-row). They show the rows from this snapshot on.
    If compaction writes the changelog, this snapshot contains the changelog.
    ``compact_lost``: the compaction lost to other commits or failed, which is logged.
    A retry with the same ``commit_id``, or the next write or compaction, repeats it.
    ``rows``: input rows. ``files``: data files written.
    ``removal``: result of a dry run. ``counters``: None for a replay.

    >>> WriteResult(rows=3, files=1, snapshot_id=1, seconds=0.25).snapshot_id
    1
    """

    rows: int
    files: int
    snapshot_id: int | None
    compact_snapshot_id: int | None = None
    compact_lost: bool = False
    replayed: bool = False
    removal: Removal | None = None
    counters: WriteCounters | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, outcome: Outcome | None, seconds: float, millis: dict[str, float], *, replayed: bool = False) -> Self:
        """Return the result of a commit.

        ``outcome`` None: there was nothing to commit.
        """
        if outcome is None:
            return cls(rows=0, files=0, snapshot_id=None, seconds=seconds)
        known = {name: count for name, count in outcome.counts.items() if name in WriteCounters.model_fields}
        return cls(
            rows=outcome.counts.get("rows", 0),
            files=outcome.counts.get("files", 0),
            snapshot_id=outcome.snapshot_id,
            compact_snapshot_id=outcome.compact_snapshot_id,
            compact_lost=outcome.compact_lost,
            replayed=replayed,
            counters=None if replayed else WriteCounters(**known, millis=millis),
            seconds=seconds,
        )


@public
class MergeResult(WriteResult):
    """Result of a merge.

    ``rows``: updated, deleted and inserted rows. All counts are 0 for a replay.
    """

    updated: int = 0
    deleted: int = 0
    inserted: int = 0


@public
class CompactResult(Message):
    """Result of a compaction.

    ``snapshot_id``: None where there was nothing to compact.
    ``attempts``: more than one if another commit removed files of the first attempt.
    ``counters``: all counters of the compaction.
    """

    files_before: int
    files_after: int
    bytes_read: int
    bytes_written: int
    snapshot_id: int | None
    rows: int = 0
    buckets: int = 0
    attempts: int = 1
    counters: CompactCounters | None = None
    seconds: float = 0.0


def compact_counters(result: CompactResult, *, retries: int, millis: dict[str, float]) -> CompactCounters:
    """Return the counters of a compaction."""
    names = set(CompactCounters.model_fields) & set(CompactResult.model_fields)
    return CompactCounters(**{name: getattr(result, name) for name in names}, retries=retries, millis=millis)


@public
class IndexRewriteResult(Message):
    """Result of a rewrite of file indexes.

    ``files``: data files examined. ``rewritten``: data files whose index changed.
    ``removal``: result of a dry run. Its ``files`` have such an index, its ``bytes`` are index bytes.
    """

    files: int
    rewritten: int
    bytes_read: int
    bytes_written: int
    snapshot_id: int | None
    removal: Removal | None = None
    seconds: float = 0.0


@public
class AnalyzeResult(Message):
    """Result of computing table statistics.

    ``bytes``: the rows' share of the data file bytes. ``columns``: number of analyzed columns.
    ``snapshot_id``: snapshot with the statistics. None: the table has no snapshot.
    """

    rows: int
    bytes: int
    columns: int
    snapshot_id: int | None
    seconds: float = 0.0


@public
class ExpireResult(Message):
    """Number of expired snapshots and deleted files.

    In a dry run, they would be removed, and ``removal`` has details. Only expired snapshots used the files.
    """

    snapshots: int
    data_files: int
    manifests: int
    removal: Removal | None = None


@public
class MaintenanceResult(Message):
    """Result of a maintenance round by step.

    None: the step was not requested, or it failed.
    ``errors``: error of each failed step; the other steps ran. ``seconds``: duration by step.
    A ``dry_run`` reports only ``expired``, ``partitions`` and ``orphans``. The result of a compaction is not known in advance.
    """

    dry_run: bool = False
    partitions: tuple[str, ...] | None = None
    compacted: CompactResult | None = None
    indexes: IndexRewriteResult | None = None
    tags: tuple[str, ...] | None = None
    expired: ExpireResult | None = None
    orphans: int | None = None
    orphan_bytes: int = 0
    errors: dict[str, str] = Field(default_factory=dict)
    seconds: dict[str, float] = Field(default_factory=dict)


@public
class FunnelStage(Message):
    """Candidates that one stage of a scan kept and dropped.

    Includes their bytes and the stage's milliseconds.
    """

    name: str
    kept: int
    dropped: int
    bytes_kept: int = 0
    bytes_dropped: int = 0
    millis: float = 0.0
    note: str = ""


@public
class ProgressEvent(Message):
    """Progress of a long operation.

    ``done`` of ``total`` (None: unknown) units in ``stage``.
    ``bytes_done`` of ``total_bytes`` (None: unknown): file bytes for reads, compactions, rewrites and checks.
    For writes they are bytes of rows in memory.
    Stages: ``write`` (consume rows), ``flush`` (write files), ``scan``, ``delete``, ``update``, ``merge``, ``analyze``, ``compact``,
    ``rewrite-file-index``, ``fsck``, ``expire``, ``orphans``.
    Both numbers only grow within one attempt. After a commit conflict the job starts again.
    """

    stage: str
    done: int
    total: int | None = None
    unit: str = "rows"
    bytes_done: int = 0
    total_bytes: int | None = None


def repr_fields(result: Message) -> dict[str, Any]:
    """Return ``result`` as plain JSON values.

    >>> repr_fields(ExpireResult(snapshots=1, data_files=2, manifests=3))
    {'snapshots': 1, 'data_files': 2, 'manifests': 3, 'removal': None}
    """
    return result.model_dump(mode="json")


__all__ = [
    "AnalyzeResult",
    "CompactResult",
    "ExpireResult",
    "FunnelStage",
    "IndexRewriteResult",
    "MaintenanceResult",
    "MergeResult",
    "Outcome",
    "ProgressEvent",
    "Removal",
    "WriteResult",
    "compact_counters",
    "repr_fields",
]
