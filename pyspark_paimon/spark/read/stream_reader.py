"""``spark.readStream``: the driver walks through the table's snapshots, tasks read what they changed.

A query begins by the options' start and goes on from its checkpoint, whatever the options say then. Spark keeps the positions;
what lies between two of them is planned anew, so that a repeated batch has the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from lsm.incremental.stream_scan import Position
from manifest.io.errors import SchemaMismatch
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.frames.spark_types import arrow_for_spark, cast_for_spark, spark_schema
from pyspark_paimon.jobs.incremental import scan_fields
from pyspark_paimon.local.backend import LocalBackend
from pyspark_paimon.scheduling.task_packing import tasks_of
from pyspark_paimon.spark.driver.options import COLUMNS, FILTER, columns, read_options, table_options, table_path
from pyspark_paimon.spark.read.reader import SplitPartition
from pyspark_paimon.spark.read.threads import use_task_cpus
from pyspark_paimon.spark.wire.errors import SparkUnavailable, attach_error_notes
from pyspark_paimon.spark.wire.rpc import SCAN
from pyspark_paimon.spark.wire.session_settings import refuse_task_settings
from pyspark_paimon.stream.options import StreamOptions, offset_of, position_of, without_stream
from pyspark_paimon.stream.table_stream import TableStream, stream_columns

try:
    from pyspark.sql.streaming import datasource as limits
except ImportError as error:
    raise SparkUnavailable("a stream is read with PySpark 4.2 or newer; the server's is older") from error


class PaimonStreamReader(ds.DataSourceStreamReader, limits.SupportsTriggerAvailableNow):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Reads ``stream`` in Spark's ``schema``. Lives in one process on the driver as long as the query runs; copies of it read in tasks."""

    def __init__(self, stream: TableStream, schema: StructType) -> None:
        self.stream = stream
        self.schema = schema
        self.last: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """Where a new query begins."""
        with attach_error_notes():
            return offset_of(self.stream.start())

    def getDefaultReadLimit(self) -> limits.ReadLimit:  # noqa: N802  # as above
        """One of the limits; Spark takes one, and hands it back to ``latestOffset`` where limits are to be kept."""
        asked = self.stream.asked
        if asked.max_files is not None:
            return limits.ReadMaxFiles(asked.max_files)
        if asked.max_rows is not None:
            return limits.ReadMaxRows(asked.max_rows)
        return limits.ReadAllAvailable() if asked.max_bytes is None else limits.ReadMaxBytes(asked.max_bytes)

    def latestOffset(self, start: dict[str, Any], limit: limits.ReadLimit) -> dict[str, Any]:  # noqa: N802  # as above
        """The end of the next batch."""
        with attach_error_notes():
            limited = not isinstance(limit, limits.ReadAllAvailable)
            return offset_of(self.stream.advance(position_of(start), limited=limited, last=self.last))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # as above
        """What is there now is all that the query reads."""
        with attach_error_notes():
            self.last = self.stream.newest()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802  # as above
        """Where a query that had read everything would stand."""
        with attach_error_notes():
            return offset_of(Position(self.stream.newest() + 1))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ds.InputPartition]:
        """The splits of the batch, small ones together."""
        with attach_error_notes():
            plan, schema = self.stream.plan(position_of(start), position_of(end))
            return [SplitPartition(tuple(task)) for task in tasks_of(plan, schema, ordered=False)]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        with attach_error_notes():
            refuse_task_settings(self.stream.path, self.stream.request.options)
            use_task_cpus()
            wanted = arrow_for_spark(self.schema)
            for split in partition.splits if isinstance(partition, SplitPartition) else ():
                for batch in self.stream.rows(split):
                    yield cast_for_spark(batch, wanted)

    def commit(self, end: dict[str, Any]) -> None:
        """What comes before ``end`` is done with."""
        with attach_error_notes():
            self.stream.done(position_of(end))

    def stop(self) -> None:
        """Nothing is held. The consumer stays, so that the query can go on later."""


def stream_schema(options: Mapping[str, str]) -> StructType:
    """The columns of a stream, when ``DataSource.schema`` is asked for them."""
    given = read_options(without_stream(options))
    table = LocalBackend(table_path(given)).schema()
    names = stream_columns(table, columns(given), StreamOptions.of(options, table.options))
    return spark_schema(scan_fields(table, names))


def stream_reader(options: Mapping[str, str], schema: StructType) -> PaimonStreamReader:
    """The reader of a stream with the columns of ``schema``."""
    with attach_error_notes():
        own = {key: value for key, value in options.items() if key != SCAN}  # a scan that schema() pinned: it cannot know of the stream
        given = read_options(without_stream(own), schema)
        path = table_path(given)
        table = LocalBackend(path).schema()
        asked = StreamOptions.of(own, table.options).model_copy(update={"kinds": False})  # the schema says it
        every = COLUMNS not in given and set(schema.names) >= set(table.names)
        predicate = bind_filter(given.get(FILTER), table.column_types)
        stream = TableStream.of(path, asked, predicate, tuple(schema.names), table_options(given))
        expected = {field.name: field.dataType for field in spark_schema(scan_fields(table, stream.request.columns)).fields}
        for field in schema.fields:
            if field.dataType != expected[field.name]:
                raise SchemaMismatch(
                    f"{path}: column '{field.name}' is {expected[field.name].simpleString()} in the table, not {field.dataType.simpleString()}"
                )
        return PaimonStreamReader(replace(stream, every=table.names) if every else stream, schema)


__all__ = ["PaimonStreamReader", "stream_reader", "stream_schema"]
