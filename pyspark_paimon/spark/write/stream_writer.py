"""``df.writeStream``: every micro-batch is one commit, made once however often Spark runs the batch again.

The commit's user is the query, by the id that its checkpoint keeps (or the option ``commit.user``), its identifier the number of
the batch. Tasks do not own buckets: they write level 0 only, from ranges of sequence numbers of their own, and the commit hook
shows and compacts what is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from fileindex.base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon.request.backend import WriteRequest
from pyspark_paimon.request.validate import commit_identity
from pyspark_paimon.spark.driver.commit import commit_rows
from pyspark_paimon.spark.driver.options import DYNAMIC_OVERWRITE, table_path, write_options
from pyspark_paimon.spark.wire.errors import attach_error_notes
from pyspark_paimon.spark.wire.jobs import RowsJob
from pyspark_paimon.spark.write.save import fitting_kinds
from pyspark_paimon.spark.write.task import TaskMessage, commit_messages, open_store
from pyspark_paimon.spark.write.writer import RowsWriter, first_sequence

COMMIT_USER = "commit.user"
_QUERY_ID = "sql.streaming.queryId"
_OF_SPARK = frozenset({"checkpointlocation", "queryname", COMMIT_USER})
_UNNAMED = "stream"
"""Stands for the name of a query until a task tells it."""


@dataclass
class BatchMessage(TaskMessage):
    """What one task made, and the query whose batch it is."""

    query: str | None = None


class PaimonStreamWriter(ds.DataSourceStreamArrowWriter):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Writes the batches of a query to the table at ``path``; Spark makes one for each batch, and another one to commit it."""

    def __init__(self, path: str, request: WriteRequest, user: str | None, sequence: int | None) -> None:
        self.path = path
        self.request = request.model_dump_json()
        self.user = user
        self.sequence = sequence

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchMessage:
        """One task: rows into files, named for the query."""
        with attach_error_notes():
            request = WriteRequest.model_validate_json(self.request)
            context = TaskContext.get()
            query = self.user or (context.getLocalProperty(_QUERY_ID) if context is not None else None)
            named = request.model_copy(update={"commit_id": query or request.commit_id})
            made = RowsWriter(self.path, RowsJob(request=named, owned=False, plain=True), self.sequence).write(iterator)
            return BatchMessage(made.messages, made.rows, query=query)

    def commit(self, messages: Sequence[BatchMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name
        """Publish the batch, unless it was published before: then what the tasks made again is deleted."""
        with attach_error_notes():
            request = self._numbered(messages, batchId)
            if request is not None:
                rows = sum(message.rows for message in messages if message is not None)
                job = RowsJob(request=request, owned=False)
                if not commit_rows(open_store(self.path, request), job, commit_messages(messages), rows, asked_for=False):
                    RowsWriter(self.path, job, None).discard(messages)

    def abort(self, messages: Sequence[BatchMessage | None], batchId: int) -> None:  # noqa: N803  # as above
        """Delete the files of a batch that surely was not committed."""
        with attach_error_notes():
            request = self._numbered(messages, batchId)
            if request is not None:
                RowsWriter(self.path, RowsJob(request=request, owned=False), None).discard(messages)

    def _numbered(self, messages: Sequence[BatchMessage | None], batch_id: int) -> WriteRequest | None:
        """The request of the batch; None if no task made anything and nothing is replaced."""
        request = WriteRequest.model_validate_json(self.request)
        if request.mode == "append" and not commit_messages(messages):
            return None
        query = self.user or next((message.query for message in messages if message is not None and message.query), None)
        if query is None:
            raise InvalidArgument(f"no task told of which query batch {batch_id} is; name the query by the option '{COMMIT_USER}'")
        return request.model_copy(update={"commit_id": commit_identity(query), "batch_id": batch_id})


def stream_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> PaimonStreamWriter:
    """The writer of a query's batches; ``overwrite``: each replaces the whole table (output mode ``complete``)."""
    with attach_error_notes():
        path = table_path(options)
        user = commit_identity(options[COMMIT_USER]) if COMMIT_USER in options else None
        if DYNAMIC_OVERWRITE in options:
            raise UnsupportedOption(DYNAMIC_OVERWRITE, "is for batch writes: output mode 'complete' replaces the whole table")
        given = write_options({key: value for key, value in options.items() if key not in _OF_SPARK})
        request = WriteRequest(commit_id=user or _UNNAMED, mode="overwrite" if overwrite else "append", options=given)
        store = open_store(path, request)
        store.check_writable()
        kinds = fitting_kinds(schema, store.schema)
        return PaimonStreamWriter(path, request.model_copy(update={"row_kinds": kinds}), user, first_sequence(store))


__all__ = ["COMMIT_USER", "BatchMessage", "PaimonStreamWriter", "stream_writer"]
