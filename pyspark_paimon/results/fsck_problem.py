"""Results of a check: problem kinds, advice, origins, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict, computed_field

from manifest.io.paths import MAIN_BRANCH


class ProblemKind(StrEnum):
    """Kind of a problem. Names are stable."""

    SCHEMA = "schema"
    SNAPSHOT = "snapshot"
    SNAPSHOT_GAP = "snapshot-gap"
    HINT = "hint"
    TAG = "tag"
    CONSUMER = "consumer"
    CHANGELOG = "changelog"
    STATISTICS_FILE = "statistics-file"
    MANIFEST_LIST = "manifest-list"
    MANIFEST = "manifest"
    MANIFEST_RANGE = "manifest-range"
    RECORD_COUNT = "record-count"
    BASE_STATE = "base-state"
    DOUBLE_ADD = "double-add"
    DELETE_OF_ABSENT = "delete-of-absent"
    ENTRY = "entry"
    LEVEL_OVERLAP = "level-overlap"
    ROW_RANGE = "row-range"
    MISSING_FILE = "missing-file"
    FILE_SIZE = "file-size"
    DATA_FILE = "data-file"
    ROW_COUNT = "row-count"
    KEY_ORDER = "key-order"
    DUPLICATE_KEY = "duplicate-key"
    KEY_PARTITION = "key-partition"
    KEY_RANGE = "key-range"
    SEQUENCE_RANGE = "sequence-range"
    ROW_KIND = "row-kind"
    DELETE_COUNT = "delete-count"
    COLUMN_STATISTICS = "column-statistics"
    NULL_VALUE = "null-value"
    PARTITION_VALUE = "partition-value"
    WRONG_BUCKET = "wrong-bucket"
    FILE_INDEX = "file-index"
    FALSE_INDEX = "false-index"
    INDEX_MANIFEST = "index-manifest"
    DELETION_VECTOR = "deletion-vector"
    HASH_INDEX = "hash-index"


_RESTORE: Final = "restore the file from a backup, or roll back to a snapshot or tag that does not need it"
_REWRITE_INDEX: Final = "call rewrite_file_index after an ALTER that drops the index, then add it again; no row is in danger"
_WRITER: Final = "find the writer that made it (commit user of the snapshot); a full compaction of the bucket rewrites its files"
_ROLL_BACK: Final = "roll back to a snapshot before it, and find the writer that made it"

ADVICE: Final[dict[ProblemKind, str]] = {
    ProblemKind.SCHEMA: _RESTORE,
    ProblemKind.SNAPSHOT: _RESTORE,
    ProblemKind.SNAPSHOT_GAP: "restore the snapshot file, or expire the snapshots before the gap",
    ProblemKind.HINT: "delete the hint file; readers list the directory then, and the next commit writes it again",
    ProblemKind.TAG: "delete the tag, or restore its files",
    ProblemKind.CONSUMER: "delete the consumer, or let it read again from a snapshot that exists",
    ProblemKind.CHANGELOG: _RESTORE,
    ProblemKind.STATISTICS_FILE: "analyze the table again",
    ProblemKind.MANIFEST_LIST: _RESTORE,
    ProblemKind.MANIFEST: _RESTORE,
    ProblemKind.MANIFEST_RANGE: "filters may miss rows; overwrite or compact the partition to rewrite the manifest",
    ProblemKind.RECORD_COUNT: "the counters of the snapshot are wrong, not its rows; find the writer that made it",
    ProblemKind.BASE_STATE: _ROLL_BACK,
    ProblemKind.DOUBLE_ADD: _ROLL_BACK,
    ProblemKind.DELETE_OF_ABSENT: _ROLL_BACK,
    ProblemKind.ENTRY: _WRITER,
    ProblemKind.LEVEL_OVERLAP: "reads may give two rows of a key; overwrite the partition, or compact the bucket fully with an engine that allows it",
    ProblemKind.ROW_RANGE: _ROLL_BACK,
    ProblemKind.MISSING_FILE: f"{_RESTORE}; if only the oldest snapshots need it, an expiry was interrupted: expire again",
    ProblemKind.FILE_SIZE: _RESTORE,
    ProblemKind.DATA_FILE: _RESTORE,
    ProblemKind.ROW_COUNT: _RESTORE,
    ProblemKind.KEY_ORDER: "reads of this file merge wrongly; overwrite the partition with its rows sorted",
    ProblemKind.DUPLICATE_KEY: "reads of this file give a key twice; overwrite the partition",
    ProblemKind.KEY_PARTITION: "writes of such a key are refused; concurrent writers did not check for existing keys; drop or overwrite one of the partitions",
    ProblemKind.KEY_RANGE: _WRITER,
    ProblemKind.SEQUENCE_RANGE: _WRITER,
    ProblemKind.ROW_KIND: _WRITER,
    ProblemKind.DELETE_COUNT: "deleted rows may be read; compact the bucket fully",
    ProblemKind.COLUMN_STATISTICS: "filters may miss rows; compact the bucket fully, which rewrites statistics",
    ProblemKind.NULL_VALUE: _WRITER,
    ProblemKind.PARTITION_VALUE: _WRITER,
    ProblemKind.WRONG_BUCKET: "lookups by key miss the row, and writes do not replace it; overwrite the partition",
    ProblemKind.FILE_INDEX: _REWRITE_INDEX,
    ProblemKind.FALSE_INDEX: "filters may miss rows; " + _REWRITE_INDEX,
    ProblemKind.INDEX_MANIFEST: _RESTORE,
    ProblemKind.DELETION_VECTOR: _RESTORE,
    ProblemKind.HASH_INDEX: "new versions of keys may go to another bucket; overwrite the partition",
}
"""Advice by kind."""


class Origin(BaseModel):
    """State that needs a file.

    The newest snapshot, tag or kept changelog of a branch that uses it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    branch: str = MAIN_BRANCH
    snapshot: int | None = None
    tag: str | None = None
    changelog: int | None = None


class Problem(BaseModel):
    """A problem of a table.

    Attributes:
        kind: Kind of the problem.
        path: File that is wrong or missing.
        message: What is wrong with it.
        origin: State that needs it.
        manifest: Manifest that names the file, or manifest list that names the manifest. None: not named.
        partition: As in paths (``day=2024-01-31``), "" for tables without partitions. None: not about a partition.
        bucket: Number of the bucket.

    >>> problem = Problem(kind=ProblemKind.HINT, path="/w/t/snapshot/LATEST", message="names snapshot 9, the newest is 3")
    >>> problem.advice
    'delete the hint file; readers list the directory then, and the next commit writes it again'
    """

    model_config = ConfigDict(frozen=True)

    kind: ProblemKind
    path: str
    message: str
    origin: Origin = Origin()
    manifest: str | None = None
    partition: str | None = None
    bucket: int | None = None

    @computed_field  # type: ignore[prop-decorator]  # pydantic's documented order
    @property
    def advice(self) -> str:
        """What to do."""
        return ADVICE[self.kind]

    def __str__(self) -> str:
        return f"{self.kind}: {self.path}: {self.message}"


class RepairKind(StrEnum):
    """Kind of a repair. Names are stable."""

    FINISH_ROLLBACK = "finish-rollback"
    RESTORE_SNAPSHOT = "restore-snapshot"
    FORGET_SNAPSHOTS = "forget-snapshots"
    WRITE_HINT = "write-hint"
    REMOVE_INDEX_FILE = "remove-index-file"
    COUNT_STATISTICS = "count-statistics"
    REWRITE_FILE = "rewrite-file"
    COMPACT = "compact"


class Repair(BaseModel):
    """A repair, done or planned.

    Attributes:
        kind: Kind of the repair.
        path: File that was wrong.
        message: What was wrong with it, and what was done.
        copies: Copies of changed or removed files. Empty for repairs by a commit, which changes no file.
    """

    model_config = ConfigDict(frozen=True)

    kind: RepairKind
    path: str
    message: str
    copies: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.path}: {self.message}"


@dataclass
class Findings:
    """Collector of check findings.

    Keeps ``limit`` problems and counts the rest.

    >>> findings = Findings(limit=1)
    >>> for name in ("a", "b"):
    ...     findings.add(ProblemKind.MISSING_FILE, name, "is missing")
    >>> len(findings.problems), findings.total
    (1, 2)
    """

    limit: int = 1000
    problems: list[Problem] = field(default_factory=list)
    total: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    unchecked: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        kind: ProblemKind,
        path: str,
        message: str,
        origin: Origin | None = None,
        *,
        manifest: str | None = None,
        partition_and_bucket: tuple[str, int] | None = None,
    ) -> None:
        """Add a problem.

        ``partition_and_bucket`` is a partition (as in paths) and a bucket.
        """
        partition, bucket = (None, None) if partition_and_bucket is None else partition_and_bucket
        self.take(
            Problem(
                kind=kind,
                path=path,
                message=message,
                origin=origin or Origin(),
                manifest=manifest,
                partition=partition,
                bucket=bucket,
            )
        )

    def take(self, problem: Problem) -> None:
        """Add an existing problem."""
        self.total += 1
        if len(self.problems) < self.limit:
            self.problems.append(problem)

    def merge(self, other: Findings) -> None:
        """Add all findings of another collector."""
        for problem in other.problems:
            self.take(problem)
        self.total += other.total - len(other.problems)
        self.counts.update(other.counts)
        self.unchecked.update(other.unchecked)

    def without(self, gone: Callable[[Problem], bool]) -> Findings:
        """Return the findings without problems that ``gone`` accepts."""
        remaining = [problem for problem in self.problems if not gone(problem)]
        return Findings(self.limit, remaining, self.total - len(self.problems) + len(remaining), self.counts, self.unchecked)
