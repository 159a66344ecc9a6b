"""``df.writeStream``: exactly one commit for each micro-batch.

The commit user is the query's id in its checkpoint, or the option ``commit.user``. The commit identifier is the batch number.
Several tasks may write the same bucket, so they write level 0 only, each with its own range of sequence numbers. The commit hook
commits and runs pending compactions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from manifest.io.errors import UnsupportedTable
from paimon_base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon.local.open_engine import is_catalog_location
from pyspark_paimon.request.requests import WriteRequest
from pyspark_paimon.request.validate import commit_identity
from pyspark_paimon.spark.driver.commit import commit_rows
from pyspark_paimon.spark.driver.options import DYNAMIC_OVERWRITE, missing_columns, properties_of_commit, table_path, write_options
from pyspark_paimon.spark.wire.errors import attach_error_notes
from pyspark_paimon.spark.wire.jobs import RowsJob, SparkPlanned, Unrouted
from pyspark_paimon.spark.write.save import check_columns, create_if_named, open_merged
from pyspark_paimon.spark.write.task import TaskMessage, commit_messages, store_for_commit
from pyspark_paimon.spark.write.writer import RowsWriter, first_sequence

COMMIT_USER = "commit.user"
_QUERY_ID = "sql.streaming.queryId"
_OF_SPARK = frozenset({"checkpointlocation", "queryname", COMMIT_USER})
_UNNAMED = "stream"
"""Commit user until a task reports the query's id."""


@dataclass
class BatchMessage(TaskMessage):
    """Message of one task of a micro-batch."""

    query: str | None = None
    """Id of the query."""


class PaimonStreamWriter(ds.DataSourceStreamArrowWriter):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Writer of a query's batches to the table at ``path``."""

    # Spark makes one writer for the tasks of each batch and another one to commit it.

    def __init__(self, path: str, request: WriteRequest, user: str | None, sequence: int | None) -> None:
        self.path = path
        self.request = request.model_dump_json()
        self.user = user
        self.sequence = sequence

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchMessage:
        """Write the rows of one task to files named after the query."""
        with attach_error_notes():
            request = WriteRequest.model_validate_json(self.request)
            context = TaskContext.get()
            query = self.user or (context.getLocalProperty(_QUERY_ID) if context is not None else None)
            named = request.model_copy(update={"commit_id": query or request.commit_id})
            message = RowsWriter(self.path, RowsJob(request=named, route=SparkPlanned()), self.sequence).write(iterator)
            return BatchMessage(message.messages, message.rows, query=query)

    def commit(self, messages: Sequence[BatchMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name
        """Commit the batch.

        If it was committed before, delete the new files instead.
        """
        with attach_error_notes():
            request = self._request_of_batch(messages, batchId)
            if request is not None:
                rows = sum(message.rows for message in messages if message is not None)
                job = RowsJob(request=request, route=Unrouted())
                if not commit_rows(store_for_commit(self.path, request), job, commit_messages(messages), rows, asked_for=False):
                    RowsWriter(self.path, job, None).discard(messages)

    def abort(self, messages: Sequence[BatchMessage | None], batchId: int) -> None:  # noqa: N803  # as above
        """Delete the batch's files unless it may be committed."""
        with attach_error_notes():
            request = self._request_of_batch(messages, batchId)
            if request is not None:
                RowsWriter(self.path, RowsJob(request=request, route=Unrouted()), None).discard(messages)

    def _request_of_batch(self, messages: Sequence[BatchMessage | None], batch_id: int) -> WriteRequest | None:
        """Return the request with the commit id of the batch.

        None: there is nothing to commit.
        """
        request = WriteRequest.model_validate_json(self.request)
        if request.mode != "overwrite" and not commit_messages(messages):
            return None
        query = self.user or next((message.query for message in messages if message is not None and message.query), None)
        if query is None:
            raise InvalidArgument(f"no task reported the query id of batch {batch_id}: give the query a name by option '{COMMIT_USER}'")
        return request.model_copy(update={"commit_id": commit_identity(query), "batch_id": batch_id})


def stream_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> PaimonStreamWriter:
    """Return the writer of a query's batches.

    ``overwrite``: each batch replaces the whole table (output mode ``complete``).
    """
    with attach_error_notes():
        path = table_path(options)
        if is_catalog_location(path):
            from pyspark_paimon.spark.read.stream_reader import NO_CATALOG_STREAMS  # noqa: PLC0415  # seldom needed

            raise UnsupportedTable(f"{path}: {NO_CATALOG_STREAMS}")
        user = commit_identity(options[COMMIT_USER]) if COMMIT_USER in options else None
        if DYNAMIC_OVERWRITE in options:
            raise UnsupportedOption(DYNAMIC_OVERWRITE, "is for batch writes: output mode 'complete' replaces the whole table")
        options = create_if_named(path, {key: value for key, value in options.items() if key not in _OF_SPARK}, schema)
        request = WriteRequest(
            commit_id=user or _UNNAMED,
            mode="overwrite" if overwrite else "append",
            missing=missing_columns(options),
            properties=properties_of_commit(options),
            options=write_options(options),
        )
        request, store = open_merged(path, request, schema)
        store.check_writable()
        kinds = check_columns(schema, store.schema, request)
        mode = "overwrite" if overwrite else store.schema.kind.write_mode
        return PaimonStreamWriter(path, request.model_copy(update={"mode": mode, "row_kinds": kinds}), user, first_sequence(store))
