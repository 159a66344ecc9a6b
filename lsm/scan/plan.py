"""What a scan plan is: splits to read, and a report of how the funnel came to them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from lsm.scan.planned_splits import sums_of
from lsm.scan.splits import DataSplit


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the funnel: how many things (manifests, then files, at last splits) it kept and dropped.

    Bytes are those of the things; ``note`` says what the step went by, or why it could not prune.
    """

    name: str
    kept: int
    dropped: int = 0
    bytes_kept: int = 0
    bytes_dropped: int = 0
    millis: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """Splits of one snapshot (0: the table has none), and one ``Stage`` per step in funnel order."""

    snapshot_id: int
    splits: Sequence[DataSplit]
    """A tuple, or of a large plan a sequence that makes its members when they are asked for."""
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
        """Splits whose files have to be merged."""
        return sums_of(self.splits).merging

    @property
    def file_size(self) -> int:
        """Bytes of all data files."""
        return sums_of(self.splits).file_size


@dataclass(slots=True)
class Tally:
    """Counters of the stage that is under way."""

    kept: int = 0
    dropped: int = 0
    bytes_kept: int = 0
    bytes_dropped: int = 0
    note: str = ""

    def count(self, kept: int, dropped: int, bytes_kept: int = 0, bytes_dropped: int = 0) -> None:
        """Add things and their bytes."""
        self.kept += kept
        self.dropped += dropped
        self.bytes_kept += bytes_kept
        self.bytes_dropped += bytes_dropped


@dataclass(slots=True)
class Report:
    """Collects the stages of a plan.

    >>> report = Report()
    >>> with report.stage("partition") as tally:
    ...     tally.count(3, 1)
    >>> report.stages[0].name, report.stages[0].kept, report.stages[0].dropped
    ('partition', 3, 1)
    """

    stages: list[Stage] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[Tally]:
        """Time a step; what is counted inside becomes its ``Stage``."""
        tally = Tally()
        start = time.perf_counter()
        yield tally
        millis = (time.perf_counter() - start) * 1000
        self.stages.append(Stage(name, tally.kept, tally.dropped, tally.bytes_kept, tally.bytes_dropped, millis, tally.note))


__all__ = ["Report", "ScanPlan", "Stage", "Tally"]
