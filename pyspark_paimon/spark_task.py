"""What the tasks of every write job share: the table, the ids of buckets, and the message to the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import datasource as ds

from manifest.commit_message import CommitMessage
from manifest.store import FileStore
from pyspark_paimon.engine import CompactRequest, DeleteRequest, WriteRequest


@dataclass
class TaskMessage(ds.WriterCommitMessage):  # type: ignore[misc]  # Spark's own annotations are not followed
    """What one task made: messages as JSON, and how many rows it took in."""

    messages: list[str] = field(default_factory=list)
    rows: int = 0


def open_store(path: str, request: WriteRequest | CompactRequest | DeleteRequest) -> FileStore:
    """The table with the options of one call."""
    return FileStore.open(path, dynamic_options=request.options)


def commit_messages(messages: Sequence[TaskMessage | None]) -> list[CommitMessage]:
    """The commit messages of the tasks that ended well."""
    return [CommitMessage.model_validate_json(text) for message in messages if message is not None for text in message.messages]


def bucket_ids(iterator: Iterator[pa.RecordBatch]) -> Iterator[tuple[bytes, int]]:
    """The (partition, bucket) ids in the columns ``partition`` and ``bucket``."""
    for batch in iterator:
        yield from zip(batch.column("partition").to_pylist(), batch.column("bucket").to_pylist(), strict=True)


__all__ = ["TaskMessage", "bucket_ids", "commit_messages", "open_store"]
