"""Tasks of an operation and their work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from manifest.snapshot.snapshot import SnapshotKey
from pyspark_paimon.results.message import Message
from pyspark_paimon.results.results import Outcome

if TYPE_CHECKING:
    from manifest.commit.conflicts import BucketId
    from manifest.commit.message import CommitMessage
    from manifest.store import FileStore


class Task(NamedTuple):
    """A bucket, or one data file of it."""

    partition: str
    """Serialised ``BinaryRow``, in hexadecimal."""
    bucket: int
    size: int
    """Bytes to read."""
    file: str = ""
    """Name of the data file. Empty: all files of the bucket."""

    @property
    def bucket_id(self) -> BucketId:
        """Partition and bucket, as commit messages have them."""
        return bytes.fromhex(self.partition), self.bucket


def partitions_of(tasks: Sequence[Task]) -> frozenset[bytes]:
    """Return the partitions of some tasks.

    >>> partitions_of([Task("61", 0, 9), Task("61", 1, 9)])
    frozenset({b'a'})
    """
    return frozenset(bytes.fromhex(task.partition) for task in tasks)


class TaskPlan(Message):
    """Tasks, and the snapshot that they are planned on."""

    base: SnapshotKey
    tasks: tuple[Task, ...] = ()


@dataclass
class TaskWork:
    """Commit messages of tasks, and their counts by name."""

    messages: list[CommitMessage] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, other: TaskWork) -> None:
        """Add the work of more tasks."""
        self.messages += other.messages
        self.counts.update(other.counts)


Worker: TypeAlias = "Callable[[FileStore, Sequence[Task]], TaskWork]"
"""Does some of the tasks. The store is that of ``TaskOperation.prepare``, with a progress listener."""


@dataclass(frozen=True)
class TaskRun:
    """All rounds of an operation."""

    outcomes: Sequence[Outcome]
    """Commits, oldest first."""
    tasks: int
    """Number of tasks in the first round."""
    rounds: int
    seconds: float
    millis: dict[str, float]

    @property
    def snapshot_id(self) -> int | None:
        """The newest snapshot that the operation made."""
        snapshot_ids = [outcome.compact_snapshot_id or outcome.snapshot_id for outcome in self.outcomes]
        return next((snapshot_id for snapshot_id in reversed(snapshot_ids) if snapshot_id is not None), None)

    def total(self, name: str) -> int:
        """Return the sum of a count over all commits."""
        return sum(outcome.counts.get(name, 0) for outcome in self.outcomes)
