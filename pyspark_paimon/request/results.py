"""What the operations of a table answer: small frozen values, printable by people and dumped as JSON by programs."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from fileindex.base.public import public
from pyspark_paimon.request.counters import CompactCounters, WriteCounters
from pyspark_paimon.request.message import Message


@public
class Removal(Message):
    """What would go if a dry run were meant, the same for everything that destroys.

    ``snapshots``, ``tags`` and ``partitions`` would go; ``files`` would be deleted with their ``bytes``, ``data_files`` of them and
    ``manifests`` (with lists). Commits delete no file: for them the files are those that the newest state would not name any more. ``rows``
    would not be read any more, as they lie in files.
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
    """A visible commit: its snapshots and the counts of its work."""

    snapshot_id: int | None
    compact_snapshot_id: int | None
    compact_lost: bool = False
    counts: dict[str, int] = Field(default_factory=dict)


@public
class WriteResult(Message):
    """What a write, a delete or an overwrite did.

    ``snapshot_id`` is the commit of the rows, from which on they are read (None: there was nothing to commit).
    ``compact_snapshot_id`` is that of a compaction which ran after it, if any: engines that show compacted rows only (deletion
    vectors, first-row) see them from there on, and the changelog of a table whose compaction makes one has them. ``compact_lost``:
    a compaction lost to other commits or met an error, which is logged; a repetition with the same ``commit_id``, or the next write
    or compaction, does it. ``rows`` counts input rows, ``files`` the data files that they became. ``removal`` tells what would go in a dry run,
    ``counters`` what was read, written and waited for (None for a replay).

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
        """Return the result of a commit. None: there was nothing to commit."""
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
    """What a merge did: a ``WriteResult``, whose ``rows`` are those updated, deleted and inserted; all 0 of a repetition."""

    updated: int = 0
    deleted: int = 0
    inserted: int = 0


@public
class CompactResult(Message):
    """What a compaction did; ``snapshot_id`` is None where there was nothing to do.

    ``attempts`` is above one if another commit removed files that the first try had merged. ``counters`` has all that was counted.
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
    """The counters of what a compaction did."""
    names = set(CompactCounters.model_fields) & set(CompactResult.model_fields)
    return CompactCounters(**{name: getattr(result, name) for name in names}, retries=retries, millis=millis)


@public
class IndexRewriteResult(Message):
    """What a rewrite of file indexes did: data files looked at, those that got another index, bytes read and written.

    ``removal`` tells what would go in a dry run: ``files`` are data files with such an index, ``bytes`` those of the indexes.
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
    """What counting a table found: its rows, their share of the bytes of data files, columns counted.

    ``snapshot_id`` brought the statistics; None if the table has no snapshot.
    """

    rows: int
    bytes: int
    columns: int
    snapshot_id: int | None
    seconds: float = 0.0


@public
class ExpireResult(Message):
    """How many snapshots an expiry removed, or would in a dry run (``removal`` tells more), and the files that only they reached."""

    snapshots: int
    data_files: int
    manifests: int
    removal: Removal | None = None


@public
class MaintenanceResult(Message):
    """What one round of maintenance did, step by step; a step that was not asked for, or failed, is None.

    ``errors`` has the error of each step that failed (the others went on), ``seconds`` how long each took. A ``dry_run`` names what
    would go: ``expired`` snapshots, ``partitions``, ``orphans``; what compaction would do is not known before.
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
    """One stage of a scan's funnel: how many of its candidates it kept and dropped, their bytes, its milliseconds."""

    name: str
    kept: int
    dropped: int
    bytes_kept: int = 0
    bytes_dropped: int = 0
    millis: float = 0.0
    note: str = ""


@public
class ProgressEvent(Message):
    """A sign of life of a long operation: ``done`` of ``total`` (None: unknown) ``unit`` in ``stage``.

    ``bytes_done`` of ``total_bytes`` (None: unknown) are behind it: of files for reads, compactions, rewrites and checks, of rows in memory for writes.
    Stages are ``write`` (taking rows in) and ``flush`` (into files), ``scan``, ``delete``, ``update``, ``merge``, ``analyze``, ``compact``, ``rewrite-file-index``, ``fsck``, ``expire``, ``orphans``.
    Both numbers only grow while one attempt lasts; where another commit was faster the job begins again.
    """

    stage: str
    done: int
    total: int | None = None
    unit: str = "rows"
    bytes_done: int = 0
    total_bytes: int | None = None


def repr_fields(result: Message) -> dict[str, Any]:
    """``result`` as plain JSON values, for programs.

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
