"""Scan plans: splits to read, and a report."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from lsm.scan.planned_splits import sums_of
from lsm.scan.splits import DataSplit
from paimon_base.texts import count_text, size_text


@dataclass(slots=True)
class Stage:
    """One pruning step: number of items kept and dropped.

    Items are manifests, then files, finally splits. Bytes are their sizes. ``note`` describes the pruning, or why nothing was pruned.
    """

    name: str
    kept: int = 0
    dropped: int = 0
    bytes_kept: int = 0
    bytes_dropped: int = 0
    millis: float = 0.0
    note: str = ""

    def count(self, kept: int, dropped: int, bytes_kept: int = 0, bytes_dropped: int = 0) -> None:
        """Add items and their bytes."""
        self.kept += kept
        self.dropped += dropped
        self.bytes_kept += bytes_kept
        self.bytes_dropped += bytes_dropped


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """Splits of one snapshot, and the report in stage order.

    Snapshot 0 means that the table has no snapshot.
    """

    snapshot_id: int
    splits: Sequence[DataSplit]
    """A tuple, or for a large plan a lazy sequence."""
    report: tuple[Stage, ...]

    @property
    def row_count(self) -> int:
        """Physical rows of all splits."""
        return sums_of(self.splits).rows

    @property
    def file_count(self) -> int:
        """Data files of all splits."""
        return sums_of(self.splits).files

    @property
    def merging_count(self) -> int:
        """Number of splits that need a merge."""
        return sums_of(self.splits).merging

    @property
    def file_size(self) -> int:
        """Bytes of all data files."""
        return sums_of(self.splits).file_size

    def __repr__(self) -> str:
        """Return the snapshot and the sums.

        >>> ScanPlan(3, (), ())
        ScanPlan(snapshot 3: 0 splits, 0 files, 0 B)
        """
        sums = sums_of(self.splits)
        sizes = f"{count_text(len(self.splits), 'split')}, {count_text(sums.files, 'file')}, {size_text(sums.file_size)}"
        return f"ScanPlan(snapshot {self.snapshot_id}: {sizes})"


@dataclass(slots=True)
class Report:
    """Collector of the stages of a plan.

    >>> report = Report()
    >>> with report.stage("partition") as stage:
    ...     stage.count(3, 1)
    >>> report.stages[0].name, report.stages[0].kept, report.stages[0].dropped
    ('partition', 3, 1)
    """

    stages: list[Stage] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time a step and add its ``Stage``."""
        stage = Stage(name)
        start = time.perf_counter()
        yield stage
        stage.millis = (time.perf_counter() - start) * 1000
        self.stages.append(stage)
