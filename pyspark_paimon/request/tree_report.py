"""What the picture of a table's tree says, as plain values: computed from metadata, drawn by a page, read by programs."""

from __future__ import annotations

from typing import Literal

from fileindex.base.public import public
from pyspark_paimon.request.message import Message
from pyspark_paimon.request.results import FunnelStage


@public
class TreeBox(Message):
    """A data file, or neighbours on a level that stand in one box because there are too many.

    ``lane`` is the row of the picture, 0 on top; ``left`` and ``width`` are shares (0 to 1) of the bucket's keys, or of its rows where there
    are no keys. ``deleted`` counts retracting rows and those that deletion vectors mark; ``created_millis`` is the newest file's, on its
    writer's wall clock; ``indexed`` counts files with a file index, ``index_bytes`` what is embedded of it.
    """

    lane: int
    left: float
    width: float
    level: int
    name: str
    files: int
    kept: int
    rows: int
    deleted: int
    size: int
    low: str | None
    high: str | None
    first_sequence: int
    last_sequence: int
    created_millis: int | None
    indexed: int
    index_bytes: int


@public
class TreeBucket(Message):
    """The tree of one bucket.

    ``lanes`` name the rows of the picture; ``runs`` are the sorted runs that a read merges at most; ``largest_run`` its bytes; ``sections``
    where, as shares of the keys, a stretch begins whose files overlap (the first, at 0, is left out). ``boxes`` is empty where more buckets
    exist than a picture holds.
    """

    partition: str
    bucket: int
    files: int
    kept: int
    rows: int
    deleted: int
    size: int
    runs: int
    largest_run: int
    level_0_files: int
    lanes: tuple[str, ...]
    sections: tuple[float, ...]
    boxes: tuple[TreeBox, ...]

    @property
    def name(self) -> str:
        """Partition and bucket in one text."""
        return f"{self.partition + ', ' if self.partition else ''}bucket {self.bucket}"


@public
class TreeSnapshot(Message):
    """What a snapshot brought, and what the table then came to.

    ``written`` are the bytes of its new data files; a file that only changed its level was not written. Of all bytes since the oldest snapshot
    looked at, ``write_amplification`` is what was written by what commits of rows wrote. ``space_amplification``: bytes of all files by
    those of the largest sorted run of each bucket. None where there is nothing to compare, or no key.
    """

    id: int
    kind: str
    user: str
    time_millis: int
    rows: int
    delta_rows: int
    added_files: int
    removed_files: int
    written: int
    removed: int
    files: int
    size: int
    write_amplification: float | None
    space_amplification: float | None


@public
class TreeIndex(Message):
    """All indexes of a column and type: how many files have one, its size, how well it serves."""

    column: str
    index_type: str
    files: int
    rows: int
    index_bytes: int
    column_bytes: int | None
    distinct_values: int | None
    false_positive_rate: float | None
    note: str


@public
class TreeAdvice(Message):
    """Something worth doing, the reason in figures, and the call that does it."""

    weight: Literal["act", "look", "fine"]
    text: str
    call: str = ""


@public
class TreeReport(Message):
    """A table's tree at a snapshot (0: there is none), and how it came about."""

    path: str
    snapshot_id: int
    made_millis: int
    columns: tuple[tuple[str, str, str], ...]
    has_keys: bool
    filter_text: str | None
    stages: tuple[FunnelStage, ...]
    buckets: tuple[TreeBucket, ...]
    history: tuple[TreeSnapshot, ...]
    snapshots_left_out: int
    indexes: tuple[TreeIndex, ...]
    indexes_left_out: int
    advice: tuple[TreeAdvice, ...]

    def total(self, member: str) -> int:
        """A count of all buckets: files, kept, rows, deleted, size, ...

        >>> from pyspark_paimon.example import cities
        >>> cities().tree().total("rows")
        3
        """
        return sum(getattr(bucket, member) for bucket in self.buckets)

    @property
    def most_runs(self) -> int:
        """The sorted runs of the bucket that has most of them: how many files a lookup of a key may have to open."""
        return max((bucket.runs for bucket in self.buckets), default=0)

    @property
    def space_amplification(self) -> float | None:
        """Bytes of all files by those of the largest run of each bucket."""
        largest = self.total("largest_run")
        return self.total("size") / largest if self.has_keys and largest else None

    @property
    def write_amplification(self) -> float | None:
        """That of the newest snapshot."""
        return self.history[-1].write_amplification if self.history else None


__all__ = ["TreeAdvice", "TreeBox", "TreeBucket", "TreeIndex", "TreeReport", "TreeSnapshot"]
