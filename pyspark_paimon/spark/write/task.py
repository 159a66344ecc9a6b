"""What the tasks of every write job share: the table, the ids of buckets, and the message to the driver."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from pyspark.sql import datasource as ds

from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from manifest.store import FileStore
from pyspark_paimon.request.backend import WriteRequest
from pyspark_paimon.spark.driver.running_jobs import mark_ended, mark_started
from pyspark_paimon.spark.wire.errors import attach_error_notes


@dataclass
class TaskMessage(ds.WriterCommitMessage):  # type: ignore[misc]  # Spark's own annotations are not followed
    """What one task made: messages as JSON, the number of rows it took in, and counts by name: rows by kind, or those of ``TaskWork``.

    ``dynamic``: whether the session's overwrites replace the partitions of the rows alone, where the job asks for it.
    """

    messages: list[str] = field(default_factory=list)
    rows: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    dynamic: bool | None = None


class JobWriter(ds.DataSourceArrowWriter):  # type: ignore[misc]  # as above
    """A write job of which the driver knows from ``begun`` to the end of a hook that it is under way.

    Subclasses have ``write`` for tasks and ``publish`` for the hook after them.
    """

    name: str | None = None
    identifier = BATCH_IDENTIFIER
    """Of the commit among those of its user."""

    def mark(self, name: str) -> Self:
        """Leave the mark of the job ``name``."""
        mark_started(name)
        self.name = name
        return self

    def commit(self, messages: Sequence[Any]) -> None:
        """Spark's hook after all tasks: ``publish``."""
        with attach_error_notes(), self._over():
            self.publish(messages)

    def abort(self, messages: Sequence[Any]) -> None:
        """Spark's hook where a task or the commit failed: ``discard``. It may be called after a commit that is visible."""
        with self._over():
            self.discard(messages)

    @abstractmethod
    def publish(self, messages: Sequence[Any]) -> None:
        """Make visible what the tasks made."""

    @abstractmethod
    def committer(self) -> FileStoreCommit | None:
        """Return the commit of the job. None: it makes no files."""

    def discard(self, messages: Sequence[Any]) -> None:
        """Delete what the tasks made, if it surely is not visible."""
        commit = self.committer()
        if commit is not None:
            commit.abort(commit_messages(messages), self.identifier)

    @contextmanager
    def _over(self) -> Iterator[None]:
        try:
            yield
        finally:
            if self.name is not None:
                mark_ended(self.name)


def open_store(path: str, request: WriteRequest) -> FileStore:
    """Open the table with the options of a write."""
    return FileStore.open(path, dynamic_options=request.options)


def commit_messages(messages: Sequence[TaskMessage | None]) -> list[CommitMessage]:
    """The commit messages of the tasks that ended well."""
    return [CommitMessage.model_validate_json(text) for message in messages if message is not None for text in message.messages]


def sum_counts(messages: Sequence[TaskMessage | None]) -> Counter[str]:
    """Add up the counts of the tasks that ended well."""
    return sum((Counter(message.counts) for message in messages if message is not None), Counter())


__all__ = ["JobWriter", "TaskMessage", "commit_messages", "open_store", "sum_counts"]
