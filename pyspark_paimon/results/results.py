"""Results of table operations.

They are frozen values. Users can print them and programs can dump them as JSON.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field

from paimon_base.public import public
from paimon_base.texts import count_text, list_text, size_text
from pyspark_paimon.results.counters import CompactCounters, WriteCounters
from pyspark_paimon.results.message import Message, Result


@public
class Removal(Result):
    """Losses of a destructive operation, reported by a dry run.

    ``files``: files to delete, with their size ``bytes``.
    ``data_files`` and ``manifests`` (with manifest lists) are parts of ``files``.
    Commits delete no files: there, ``files`` are those that the newest snapshot would no longer list.
    ``rows``: physical rows in files that would no longer be read. ``verb``: ``update`` where the rows get other values instead.
    """

    snapshots: int = 0
    tags: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    data_files: int = 0
    manifests: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0
    verb: Literal["remove", "update"] = "remove"

    def __str__(self) -> str:
        """Return what would be lost.

        >>> print(Removal(snapshots=2, files=1, rows=3, bytes=2048))
        2 snapshots, 3 rows, 1 file (2.0 KiB)
        """
        lost = list_text(
            count_text(self.snapshots, "snapshot") if self.snapshots else None,
            count_text(len(self.tags), "tag") if self.tags else None,
            count_text(len(self.partitions), "partition") if self.partitions else None,
            count_text(self.rows, "row") if self.rows else None,
            f"{count_text(self.files, 'file')} ({size_text(self.bytes)})" if self.files else None,
        )
        return lost or "nothing"


def dry_run_text(removal: Removal) -> str:
    """Return the sentence of a dry run."""
    return f"dry run: would {removal.verb} {removal}"


class Outcome(Message):
    """Snapshots and counts of a visible commit."""

    snapshot_id: int | None
    compact_snapshot_id: int | None
    compact_lost: bool = False
    compact_error: str | None = None
    counts: dict[str, int] = Field(default_factory=dict)


@public
class WriteResult(Result):
    """Result of a write, delete or overwrite.

    ``snapshot_id``: commit of the rows. None: there was nothing to commit.
    ``compact_snapshot_id``: compaction after the commit. None: no compaction.
    Some engines show compacted rows only (deletion vectors, first-row). They show the rows from this snapshot on.
    If compaction writes the changelog, this snapshot contains the changelog.
    ``compact_lost``: the compaction lost to other commits, or failed. ``compact_error``: why it failed. None: it did not.
    A retry with the same ``commit_id``, or the next write or compaction, repeats it.
    ``rows``: input rows. ``files``: data files written.
    ``removal``: result of a dry run. ``counters``: None for a replay.
    ``rejected``: Arrow table of rows that did not fit, with the reason in ``_error``, of a write with ``errors="collect"``.

    >>> WriteResult(rows=3, files=1, snapshot_id=1, seconds=0.25)
    WriteResult(3 rows in 1 file, 0.25 s, snapshot 1)
    """

    rows: int
    files: int
    snapshot_id: int | None
    compact_snapshot_id: int | None = None
    compact_lost: bool = False
    compact_error: str | None = None
    replayed: bool = False
    removal: Removal | None = None
    counters: WriteCounters | None = None
    seconds: float = 0.0
    rejected: Any = Field(default=None, exclude=True)

    @classmethod
    def of(cls, outcome: Outcome | None, seconds: float, millis: dict[str, float], *, replayed: bool = False) -> Self:
        """Return the result of a commit.

        ``outcome`` None: there was nothing to commit.
        """
        if outcome is None:
            return cls(rows=0, files=0, snapshot_id=None, seconds=seconds)
        counts = {name: count for name, count in outcome.counts.items() if name in WriteCounters.model_fields}
        return cls(
            rows=outcome.counts.get("rows", 0),
            files=outcome.counts.get("files", 0),
            snapshot_id=outcome.snapshot_id,
            compact_snapshot_id=outcome.compact_snapshot_id,
            compact_lost=outcome.compact_lost,
            compact_error=outcome.compact_error,
            replayed=replayed,
            counters=None if replayed else WriteCounters(**counts, millis=millis),
            seconds=seconds,
        )

    def __str__(self) -> str:
        """Return rows, files, seconds and snapshot."""
        if self.removal is not None:
            return dry_run_text(self.removal)
        if self.snapshot_id is None:
            return "nothing to commit"
        if self.replayed:
            return f"already committed by snapshot {self.snapshot_id}"
        compacted = None if self.compact_snapshot_id is None else f"compacted in snapshot {self.compact_snapshot_id}"
        lost = "the compaction lost to another commit" if self.compact_lost else None
        if self.compact_error is not None:
            lost = f"the compaction failed, and the next write or compaction repeats it ({self.compact_error})"
        rejected = f"{count_text(self.rejected.num_rows, 'row')} rejected" if self.rejected is not None and self.rejected.num_rows else None
        return list_text(
            f"{self._rows_text} in {count_text(self.files, 'file')}",
            f"{self.seconds:.2f} s",
            f"snapshot {self.snapshot_id}",
            compacted,
            lost,
            rejected,
        )

    @property
    def _rows_text(self) -> str:
        return count_text(self.rows, "row")


@public
class MergeResult(WriteResult):
    """Result of a merge.

    ``rows``: updated, deleted and inserted rows. All counts are 0 for a replay.

    >>> MergeResult(rows=3, updated=2, inserted=1, files=1, snapshot_id=4)
    MergeResult(2 rows updated, 0 deleted, 1 inserted in 1 file, 0.00 s, snapshot 4)
    """

    updated: int = 0
    deleted: int = 0
    inserted: int = 0

    @property
    def _rows_text(self) -> str:
        return f"{count_text(self.updated, 'row')} updated, {self.deleted:,} deleted, {self.inserted:,} inserted"


@public
class CompactResult(Result):
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

    def __str__(self) -> str:
        """Return files, bytes, seconds and snapshot.

        >>> print(CompactResult(files_before=4, files_after=1, bytes_read=2048, bytes_written=900, snapshot_id=5))
        4 files became 1: 2.0 KiB read, 900 B written in 0.00 s, snapshot 5
        """
        if self.snapshot_id is None:
            return "nothing to compact"
        files = f"{count_text(self.files_before, 'file')} became {self.files_after:,}"
        return f"{files}: {_bytes_text(self)}, snapshot {self.snapshot_id}"


def _bytes_text(result: CompactResult | IndexRewriteResult) -> str:
    return f"{size_text(result.bytes_read)} read, {size_text(result.bytes_written)} written in {result.seconds:.2f} s"


def compact_counters(result: CompactResult, *, retries: int, millis: dict[str, float]) -> CompactCounters:
    """Return the counters of a compaction."""
    names = set(CompactCounters.model_fields) & set(CompactResult.model_fields)
    return CompactCounters(**{name: getattr(result, name) for name in names}, retries=retries, millis=millis)


@public
class IndexRewriteResult(Result):
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

    def __str__(self) -> str:
        """Return files, bytes, seconds and snapshot.

        >>> print(IndexRewriteResult(files=4, rewritten=1, bytes_read=2048, bytes_written=900, snapshot_id=5))
        1 of 4 files has new indexes: 2.0 KiB read, 900 B written in 0.00 s, snapshot 5
        """
        if self.removal is not None:
            return dry_run_text(self.removal)
        if self.snapshot_id is None:
            return f"no index of {count_text(self.files, 'file')} changed"
        verb = "has" if self.rewritten == 1 else "have"
        return (
            f"{self.rewritten:,} of {count_text(self.files, 'file')} {verb} new indexes: {_bytes_text(self)}, snapshot {self.snapshot_id}"
        )


@public
class AnalyzeResult(Result):
    """Result of computing table statistics.

    ``bytes``: the rows' share of the data file bytes. ``columns``: number of analyzed columns.
    ``snapshot_id``: snapshot with the statistics. None: the table has no snapshot.
    """

    rows: int
    bytes: int
    columns: int
    snapshot_id: int | None
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return rows, columns, seconds and snapshot.

        >>> print(AnalyzeResult(rows=3, bytes=2048, columns=1, snapshot_id=2))
        3 rows (2.0 KiB), 1 column, 0.00 s, snapshot 2
        """
        if self.snapshot_id is None:
            return "the table has no snapshot"
        rows = f"{count_text(self.rows, 'row')} ({size_text(self.bytes)})"
        return list_text(rows, count_text(self.columns, "column"), f"{self.seconds:.2f} s", f"snapshot {self.snapshot_id}")


@public
class ExpireResult(Result):
    """Number of expired snapshots and deleted files.

    In a dry run, they would be removed, and ``removal`` has details. Only expired snapshots used the files.
    """

    snapshots: int
    data_files: int
    manifests: int
    removal: Removal | None = None

    def __str__(self) -> str:
        """Return the numbers of snapshots and files.

        >>> print(ExpireResult(snapshots=1, data_files=2, manifests=3))
        1 snapshot expired: 2 data files and 3 manifests deleted
        """
        if self.removal is not None:
            return dry_run_text(self.removal)
        if not self.snapshots:
            return "nothing to expire"
        return f"{count_text(self.snapshots, 'snapshot')} expired: {deleted_text(self.data_files, self.manifests)}"


def deleted_text(data_files: int, manifests: int) -> str:
    """Return the numbers of deleted files."""
    return f"{count_text(data_files, 'data file')} and {count_text(manifests, 'manifest')} deleted"


@public
class MaintenanceResult(Result):
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
    iceberg: str | None = None
    errors: dict[str, str] = Field(default_factory=dict)
    seconds: dict[str, float] = Field(default_factory=dict)

    @property
    def steps(self) -> dict[str, str]:
        """The result of each step as text, or its error.

        >>> MaintenanceResult(orphans=1, orphan_bytes=10, seconds={"orphans": 0.1}).steps
        {'orphans': '1 file, 10 B'}
        """
        orphans = None if self.orphans is None else f"{count_text(self.orphans, 'file')}, {size_text(self.orphan_bytes)}"
        texts = {
            "partitions": None if self.partitions is None else ", ".join(self.partitions) or "none",
            "compacted": self.compacted,
            "indexes": self.indexes,
            "tags": None if self.tags is None else ", ".join(self.tags) or "none",
            "expired": self.expired,
            "orphans": orphans,
            "iceberg": self.iceberg,
        }
        return {name: self.errors.get(name) or str(texts[name]) for name in self.seconds}

    def __str__(self) -> str:
        """Return the result of each step, separated by semicolons."""
        return "; ".join(f"{name}: {text}" for name, text in self.steps.items()) or "no step was due"


@public
class FunnelStage(Result):
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

    def __str__(self) -> str:
        """Return the numbers of candidates.

        >>> print(FunnelStage(name="value stats", kept=1, dropped=3))
        value stats: 1 kept, 3 dropped
        """
        return f"{self.name}: {self.kept:,} kept, {self.dropped:,} dropped" + (f" ({self.note})" if self.note else "")


@public
class ProgressEvent(Message):
    """Progress of a long operation.

    ``done`` of ``total`` (None: unknown) units in ``stage``.
    ``bytes_done`` of ``total_bytes`` (None: unknown): file bytes for reads, compactions, rewrites and checks.
    For writes they are bytes of rows in memory.
    Stages: ``start`` (a Spark session starts its Python processes), ``write`` (consume rows), ``flush`` (write files), ``scan``, ``delete``, ``update``, ``merge``, ``analyze``, ``compact``,
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
