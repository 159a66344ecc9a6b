"""Plain values of a table's tree report.

They are computed from metadata. The HTML page draws them and programs read them.
"""

from __future__ import annotations

from typing import Literal

from paimon_base.plugins import plugin
from paimon_base.public import public
from paimon_base.texts import count_text, list_text
from pyspark_paimon.results.message import Message, Result
from pyspark_paimon.results.results import FunnelStage


@public
class TreeBox(Message):
    """A data file, or neighbours merged into one box.

    Neighbours are files on one level, merged where there are too many.
    ``lane``: row of the picture, 0 at the top.
    ``left`` and ``width``: fraction (0 to 1) of the bucket's keys, or of its rows where there are no keys.
    ``deleted``: retracting rows, and rows marked by deletion vectors.
    ``created_millis``: creation time of the newest file, by its writer's clock.
    ``indexed``: number of files with a file index. ``index_bytes``: size of their embedded indexes.
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
    """Tree of one bucket.

    ``lanes``: names of the picture's rows. ``runs``: maximum number of sorted runs that a read merges.
    ``trigger``: number of sorted runs from which the bucket compacts. ``largest_run``: bytes of the largest run.
    ``sections``: start of each section of overlapping files, as a fraction of the keys. The first, at 0, is left out.
    ``boxes``: empty if the table has more buckets than a picture can show.
    """

    partition: str
    bucket: int
    files: int
    kept: int
    rows: int
    deleted: int
    size: int
    runs: int
    trigger: int
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
    """Changes of a snapshot and the resulting table state.

    ``written``: bytes of new data files. A file that only changed its level is not counted.
    ``write_amplification``: bytes written by all commits, divided by bytes written by commits of rows.
    It covers the snapshots since the oldest one in the report.
    ``space_amplification``: bytes of all files, divided by the bytes of each bucket's largest sorted run.
    Both can be None: without a key or without data to compare.
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
    """Indexes of one column and type.

    Number of files with an index, index size, and selectivity.
    """

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
    """A recommended action with its reason and call."""

    weight: Literal["act", "look", "fine"]
    text: str
    call: str = ""


@public
class TreeReport(Result):
    """Tree of a table at a snapshot, with its history.

    ``snapshot_id`` 0: the table has no snapshot.
    """

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

    def __str__(self) -> str:
        """Return the files, the rows and the advice.

        >>> from pyspark_paimon.example import cities
        >>> print(str(cities().tree("id = 9")).split(": ", 1)[1])
        0 of 1 file kept, 3 rows, 1 bucket, snapshot 1
        There is nothing to do.
        """
        kept = f"{self.total('kept'):,} of {count_text(self.total('files'), 'file')} kept"
        counts = list_text(
            kept, count_text(self.total("rows"), "row"), count_text(len(self.buckets), "bucket"), f"snapshot {self.snapshot_id}"
        )
        return "\n".join([f"{self.path}: {counts}", *(f"{advice.text} {advice.call}".rstrip() for advice in self.advice)])

    def _repr_html_(self) -> str:
        cards = plugin("page", "cards")
        stages = [(stage.name, stage.kept, stage.dropped, stage.note) for stage in self.stages]
        advice = [(advice.text, advice.call) for advice in self.advice]
        grids = [cards.Grid.of(("advice", "call"), advice), cards.Grid.of(("stage", "kept", "dropped", ""), stages)]
        text: str = cards.or_error("TreeReport", lambda: cards.card(str(self).partition("\n")[0], (), grids))
        return text

    def total(self, member: str) -> int:
        """Return the sum of a count over all buckets.

        ``member``: files, kept, rows, deleted, size, ...

        >>> from pyspark_paimon.example import cities
        >>> cities().tree().total("rows")
        3
        """
        return sum(getattr(bucket, member) for bucket in self.buckets)

    @property
    def most_runs(self) -> int:
        """Maximum number of sorted runs in a bucket.

        A lookup of a key may open this number of files.
        """
        return max((bucket.runs for bucket in self.buckets), default=0)

    @property
    def space_amplification(self) -> float | None:
        """Bytes of all files divided by the largest runs' bytes."""
        largest = self.total("largest_run")
        return self.total("size") / largest if self.has_keys and largest else None

    @property
    def write_amplification(self) -> float | None:
        """Write amplification of the newest snapshot."""
        return self.history[-1].write_amplification if self.history else None
