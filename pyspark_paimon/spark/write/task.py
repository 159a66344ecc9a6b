"""What the tasks of every write job share: the table, the ids of buckets, and the message to the driver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import datasource as ds

from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from manifest.store import FileStore
from pyspark_paimon.request.backend import CompactRequest, DeleteRequest, WriteRequest
from pyspark_paimon.spark.driver.running_jobs import mark_begun, mark_ended
from pyspark_paimon.spark.wire.errors import errors_noted


@dataclass
class TaskMessage(ds.WriterCommitMessage):  # type: ignore[misc]  # Spark's own annotations are not followed
    """What one task made: messages as JSON, and how many rows it took in; ``kinds``: those that carry a kind, by kind.

    ``dynamic``: whether the session's overwrites replace the partitions of the rows alone, where the job asks for it.
    """

    messages: list[str] = field(default_factory=list)
    rows: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    dynamic: bool | None = None


class JobWriter(ds.DataSourceArrowWriter):  # type: ignore[misc]  # as above
    """A write job of which the driver knows from ``begun`` to the end of a hook that it is under way.

    Subclasses have ``write`` for tasks and ``publish`` for the hook after them.
    """

    name: str | None = None
    identifier = BATCH_IDENTIFIER
    """Of the commit among those of its user."""

    def begun(self, name: str) -> Self:
        """Leave the mark of the job ``name``."""
        mark_begun(name)
        self.name = name
        return self

    def commit(self, messages: Sequence[Any]) -> None:
        """Spark's hook after all tasks: ``publish``."""
        with errors_noted(), self._over():
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


def open_store(path: str, request: WriteRequest | CompactRequest | DeleteRequest) -> FileStore:
    """The table with the options of one call."""
    return FileStore.open(path, dynamic_options=request.options)


def commit_of(path: str, request: WriteRequest | CompactRequest | DeleteRequest) -> FileStoreCommit:
    """Return the commit of a request, in the table with its options."""
    return FileStoreCommit(open_store(path, request), request.commit_id)


@contextmanager
def uncommitted(commit: FileStoreCommit) -> Iterator[list[CommitMessage]]:
    """Yield the list of a task's messages. Delete their files if the task fails."""
    messages: list[CommitMessage] = []
    try:
        yield messages
    except BaseException:
        commit.abort(messages)
        raise


def commit_messages(messages: Sequence[TaskMessage | None]) -> list[CommitMessage]:
    """The commit messages of the tasks that ended well."""
    return [CommitMessage.model_validate_json(text) for message in messages if message is not None for text in message.messages]


def touched_buckets(iterator: Iterator[pa.RecordBatch]) -> Iterator[tuple[bytes, int]]:
    """The (partition, bucket) ids in the columns ``partition`` and ``bucket``."""
    for batch in iterator:
        yield from zip(batch.column("partition").to_pylist(), batch.column("bucket").to_pylist(), strict=True)


__all__ = ["JobWriter", "TaskMessage", "commit_messages", "commit_of", "open_store", "touched_buckets", "uncommitted"]
