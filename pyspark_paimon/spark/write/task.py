"""Base class of write jobs, and its message from task to driver."""

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
from pyspark_paimon.local.open_engine import open_engine
from pyspark_paimon.operations.alter import store_for, store_pending
from pyspark_paimon.request.requests import WriteRequest
from pyspark_paimon.spark.driver.job_files import mark_ended, mark_started
from pyspark_paimon.spark.wire.errors import attach_error_notes


@dataclass
class TaskMessage(ds.WriterCommitMessage):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Result of one task."""

    messages: list[str] = field(default_factory=list)
    """Commit messages as JSON."""
    rows: int = 0
    """Number of input rows."""
    counts: dict[str, int] = field(default_factory=dict)
    """Rows by kind, or the counts of ``TaskWork``."""
    dynamic: bool | None = None
    """Whether the session's overwrites replace only the partitions of the rows. None: the job does not ask."""


class JobWriter(ds.DataSourceArrowWriter):  # type: ignore[misc]  # as above
    """Base class of write jobs.

    The driver marks the job as running from ``mark`` to the end of ``commit`` or ``abort``. Subclasses implement ``write``, which runs
    in tasks, and ``publish``, which runs on the driver.
    """

    name: str | None = None
    identifier = BATCH_IDENTIFIER
    """Commit identifier."""

    def mark(self, name: str) -> Self:
        """Mark the job ``name`` as running."""
        mark_started(name)
        self.name = name
        return self

    def commit(self, messages: Sequence[Any]) -> None:
        """Publish after all tasks succeeded. Spark calls it."""
        with attach_error_notes(), self._unmark():
            self.publish(messages)

    def abort(self, messages: Sequence[Any]) -> None:
        """Discard after a task or ``commit`` failed.

        Spark calls it, even if the commit is visible.
        """
        with self._unmark():
            self.discard(messages)

    @abstractmethod
    def publish(self, messages: Sequence[Any]) -> None:
        """Commit the files of the tasks."""

    @abstractmethod
    def committer(self) -> FileStoreCommit | None:
        """Return the commit of the job. None: it writes no files."""

    def discard(self, messages: Sequence[Any]) -> None:
        """Delete the files of the tasks unless they may be committed."""
        commit = self.committer()
        if commit is not None:
            commit.abort(commit_messages(messages), self.identifier)

    @contextmanager
    def _unmark(self) -> Iterator[None]:
        try:
            yield
        finally:
            if self.name is not None:
                mark_ended(self.name)


def open_store(path: str, request: WriteRequest) -> FileStore:
    """Open the table with the options of a write."""
    return store_for(open_engine(path), request)


def store_for_commit(path: str, request: WriteRequest) -> FileStore:
    """Store the pending schema of a write, and open the table with it."""
    if request.pending is not None:
        store_pending(open_engine(path), request.pending)
    return open_store(path, request)


def commit_messages(messages: Sequence[TaskMessage | None]) -> list[CommitMessage]:
    """Return the commit messages of the successful tasks."""
    return [CommitMessage.model_validate_json(text) for message in messages if message is not None for text in message.messages]


def sum_counts(messages: Sequence[TaskMessage | None]) -> Counter[str]:
    """Return the sum of the successful tasks' counts."""
    return sum((Counter(message.counts) for message in messages if message is not None), Counter())
