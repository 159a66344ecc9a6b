"""Results of a check: problem kinds, advice, origins, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import unquote

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


_NO_VALUE: Final = "__DEFAULT_PARTITION__"
_RESTORE: Final = "restore the file from a backup"
_LOSE: Final = f"{_RESTORE}{{or_lose}}"
_REPAIR: Final = "`table.fsck('deep', repair=True)`"
_EXPIRE: Final = "`table.expire_snapshots(retain_min=1, retain_max=1)`"
_READ_WITHOUT: Final = "`table.alter_options({{'file-index.read.enabled': False}})`"
_LATER: Final = f"; older snapshots keep their files until {_EXPIRE}, and tags until they are deleted"
_REWRITE: Final = "`table.write(table.scan({filter}).to_arrow(), mode='overwrite')` writes its rows again"
_OVERWRITE: Final = f"{_REWRITE}{_LATER}"
_MANIFESTS: Final = "`table.compact_manifests()` writes the manifests again"
_WRITER: Final = f"find the writer that made it (commit user of the snapshot); {_OVERWRITE}"
_ROLL_BACK: Final = "{roll_back}; find the writer that made it (commit user of the snapshot)"

ADVICE: Final[dict[ProblemKind, str]] = {
    ProblemKind.SCHEMA: _RESTORE,
    ProblemKind.SNAPSHOT: _LOSE,
    ProblemKind.SNAPSHOT_GAP: f"{_RESTORE}; without one, {_EXPIRE} removes the snapshots before the gap, unless a consumer or tag needs them",
    ProblemKind.HINT: f"{_REPAIR} writes it again",
    ProblemKind.TAG: f"{_LOSE}; its files stay until `table.remove_orphan_files()`",
    ProblemKind.CONSUMER: "`table.reset_consumer({consumer!r})` deletes it: its stream begins again",
    ProblemKind.CHANGELOG: _RESTORE,
    ProblemKind.STATISTICS_FILE: f"{_REPAIR} computes them again",
    ProblemKind.MANIFEST_LIST: _LOSE,
    ProblemKind.MANIFEST: _LOSE,
    ProblemKind.MANIFEST_RANGE: f"filters may miss rows; {_MANIFESTS}{_LATER}",
    ProblemKind.RECORD_COUNT: "the counters of the snapshot are wrong, not its rows; find the writer that made it; the counters stay wrong until the snapshot expires",
    ProblemKind.BASE_STATE: _ROLL_BACK,
    ProblemKind.DOUBLE_ADD: _ROLL_BACK,
    ProblemKind.DELETE_OF_ABSENT: _ROLL_BACK,
    ProblemKind.ENTRY: _ROLL_BACK,
    ProblemKind.LEVEL_OVERLAP: f"reads may give two rows of a key; {_REWRITE}, {_MANIFESTS}{_LATER}",
    ProblemKind.ROW_RANGE: _ROLL_BACK,
    ProblemKind.MISSING_FILE: f"{_LOSE}; if only the oldest snapshots need it, an expiry was cut off: {_EXPIRE}",
    ProblemKind.FILE_SIZE: _LOSE,
    ProblemKind.DATA_FILE: _LOSE,
    ProblemKind.ROW_COUNT: _ROLL_BACK,
    ProblemKind.KEY_ORDER: f"reads of this file merge wrongly; {_OVERWRITE}",
    ProblemKind.DUPLICATE_KEY: f"reads of this file give a key twice; {_OVERWRITE}",
    ProblemKind.KEY_PARTITION: "writes of such a key are refused; concurrent writers did not check for existing keys; drop or overwrite one of the partitions",
    ProblemKind.KEY_RANGE: _WRITER,
    ProblemKind.SEQUENCE_RANGE: _WRITER,
    ProblemKind.ROW_KIND: _ROLL_BACK,
    ProblemKind.DELETE_COUNT: f"deleted rows may be read; {_OVERWRITE}",
    ProblemKind.COLUMN_STATISTICS: f"filters may miss rows; {_REPAIR} writes the file again{_LATER}",
    ProblemKind.NULL_VALUE: _ROLL_BACK,
    ProblemKind.PARTITION_VALUE: _ROLL_BACK,
    ProblemKind.WRONG_BUCKET: f"lookups by key miss the row, and writes do not replace it; {_OVERWRITE}",
    ProblemKind.FILE_INDEX: f"no row is in danger; {_OVERWRITE}",
    ProblemKind.FALSE_INDEX: f"filters may miss rows; {_READ_WITHOUT} reads without indexes until {_OVERWRITE}",
    ProblemKind.INDEX_MANIFEST: _LOSE,
    ProblemKind.DELETION_VECTOR: _LOSE,
    ProblemKind.HASH_INDEX: f"new versions of keys may go to another bucket; {_OVERWRITE}",
}
"""Advice by kind. Calls to copy are in backquotes; ``Problem.advice`` fills in what they need."""


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
    "`table.fsck('deep', repair=True)` writes it again"
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
        """What to do. Calls to copy are in backquotes; ``table`` is of the branch of ``origin``."""
        before = (self.origin.snapshot or 1) - 1
        roll_back = f"`table.rollback_to({before})`, which drops the later snapshots" if before else ""
        lose = f"`table.delete_tag({self.origin.tag!r})`" if self.origin.tag is not None else roll_back
        pairs = [pair.split("=", 1) for pair in (self.partition or "").split("/") if "=" in pair]
        rows = " AND ".join(map(_condition, *zip(*pairs, strict=True))) if pairs else ""
        return ADVICE[self.kind].format(
            consumer=self.path.rsplit("consumer-", 1)[-1],
            filter=repr(rows) if rows else "",
            or_lose=f", or {lose}" if lose else "",
            roll_back=roll_back or "no older snapshot is stored, so it stays until the table is written again from its source",
        )

    def __str__(self) -> str:
        return f"{self.kind}: {self.path}: {self.message}"


def _condition(name: str, value: str) -> str:
    """Return the filter of a partition value, both as in paths."""
    text = unquote(value).replace("'", "''")
    return f"{unquote(name)} IS NULL" if text == _NO_VALUE else f"{unquote(name)} = '{text}'"


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
